"""What W's figures on multi-pass training share: the trainings without chain of thought on pools of several sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from parityscope.papers.w.over_seeds import Cell
from parityscope.papers.w.settings import DecoderRow, ShownDecoder, laptop, narrow, smoke

# Found by search on seeds below 1000: among the smallest problems that a pool can teach where fresh samples do not, in
# as many steps.
POOL_N, POOL_K = 14, 3
POOLS = (150, 600, 2400, None)
_REFERENCE_STEPS = 1000


def reference_pool(label: str, pool: int | None, layers: int = 1, heads: int = 4, seed: int = 0) -> ShownDecoder:
    """Return the training without chain of thought on a pool, or on fresh samples, at reference scale.

    >>> small = reference_pool("", 2000).training
    >>> (small.n, small.k), small.steps * small.batch / small.pool  # epochs
    ((14, 3), 128.0)
    """
    usual = {"chain_of_thought": False, "start_gain": 1.0, "steps": _REFERENCE_STEPS, "evaluate_every": 25}
    return laptop(label, POOL_N, POOL_K, pool=pool, layers=layers, heads=heads, seed=seed, **usual)


def demo_pool(label: str, pool: int | None, heads: int = 4) -> ShownDecoder:
    """Return a training of seconds without chain of thought on a pool, or on fresh samples.

    >>> small = demo_pool("", 600).training
    >>> (small.n, small.k), small.steps * small.batch / small.pool  # epochs
    ((14, 3), 256.0)
    """
    usual = {"chain_of_thought": False, "start_gain": 1.0, "steps": 600, "evaluate_every": 25}
    return narrow(label, POOL_N, POOL_K, pool=pool, heads=heads, **usual)


def smoke_pool(label: str, pool: int | None, heads: int = 1, seed: int = 0) -> ShownDecoder:
    """Return a training of a second, without chain of thought on a pool.

    >>> smoke_pool("", 24).training.chain_of_thought
    False
    """
    return smoke(label, chain_of_thought=False, pool=pool, heads=heads, seed=seed)


def pool_cells(rows: Iterable[DecoderRow]) -> list[Cell]:
    """Return the trainings of every shape and pool over their seeds, in the order they come in.

    >>> from parityscope.records import Numbers, Row
    >>> rows = [Row(smoke_pool("", pool, seed=seed), Numbers()) for pool in (24, None) for seed in (0, 1)]
    >>> [(pool_name(cell.rows[0]), len(cell.rows)) for cell in pool_cells(rows)]
    [('pool 24', 2), ('fresh', 2)]
    """
    found: dict[tuple[str, str], list[DecoderRow]] = {}
    for row in rows:
        found.setdefault((shape_name(row), pool_name(row)), []).append(row)
    return [Cell(tuple(cell)) for cell in found.values()]


def pool_name(row: DecoderRow) -> str:
    """Return the size of a row's pool in words.

    >>> from parityscope.records import Numbers, Row
    >>> [pool_name(Row(smoke_pool("", pool), Numbers())) for pool in (10_000, None)]
    ['pool 10,000', 'fresh']
    """
    pool = row.config.training.pool
    return "fresh" if pool is None else f"pool {pool:,}"


def shape_name(row: DecoderRow) -> str:
    """Return a row's layers × heads in words.

    >>> from parityscope.records import Numbers, Row
    >>> shape_name(Row(smoke("", layers=2, heads=3), Numbers()))
    '2 × 3'
    """
    return f"{row.config.training.layers} × {row.config.training.heads}"


def lowest_entropy(row: DecoderRow) -> float:
    """Return the lowest normalised entropy any head reached.

    >>> import torch
    >>> from parityscope.records import Numbers, Row
    >>> entropy = torch.tensor([[[1.0, 0.75]], [[0.5, 0.25]]])  # two records of a layer with two heads
    >>> lowest_entropy(Row(smoke_pool("", 24, heads=2), Numbers(), {"entropy": entropy}))
    0.25
    """
    return float(row.arrays["entropy"].min())


def stays_elevated(row: DecoderRow) -> bool:
    """Return whether no head's entropy ever fell below half of the lowest one's start: it remained elevated.

    >>> import torch
    >>> from parityscope.records import Numbers, Row
    >>> curves = [torch.tensor(curve)[:, None, None] for curve in ([1.0, 0.75], [1.0, 0.25])]
    >>> [stays_elevated(Row(smoke_pool("", 24), Numbers(), {"entropy": entropy})) for entropy in curves]
    [True, False]
    """
    return lowest_entropy(row) >= float(row.arrays["entropy"][0].min()) / 2


def best_accuracy(row: DecoderRow) -> float:
    """Return the best held-out accuracy during training.

    >>> import torch
    >>> from parityscope.records import Numbers, Row
    >>> best_accuracy(Row(smoke_pool("", 24), Numbers(), {"accuracy": torch.tensor([0.5, 0.75, 0.625])}))
    0.75
    """
    return float(row.arrays["accuracy"].max())


def guessing_bound(row: DecoderRow) -> float:
    """Return an accuracy that guessing exceeds with probability below 1e-9 per evaluation: six standard deviations.

    >>> from parityscope.records import Numbers, Row
    >>> guessing_bound(Row(smoke("", held_out=900), Numbers()))
    0.6
    """
    return 0.5 + 6 * 0.5 / math.sqrt(row.config.training.held_out)
