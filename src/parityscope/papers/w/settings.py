"""What W's figures share: one decoder's training as a row, the paper's settings, what rows say, and a table.

Nothing here draws (see `w_drawing`), so that checks of claims can read rows where there is no plotting library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.ties import first_largest
from parityscope.papers.figure import Table
from parityscope.records import Config, Result, Row
from parityscope.training.decoders import CROSSINGS, DecoderSettings, train_decoder

ID = ROWS_FROM = "W-training"  # rows are stored once for all figures that draw them
PAPER_RATES = (6e-5, 8e-5, 1e-4)
CHAIN, ANSWER = "with CoT", "without CoT"  # labels
_PAPER_BUDGET = 10**7
_CHANCE = 0.5


class Trained(Config):
    """One training: the address of its row."""

    training: DecoderSettings


class Decoder(Trained):
    """One training in a figure; `label` says what it stands for there.

    >>> Decoder(label="with CoT", training=DecoderSettings(n=6, k=2, steps=20)).training.width
    128
    """

    label: str


def row_config(config: Decoder) -> Trained:
    """Return the address of a training's row, the same for all figures.

    >>> row_config(smoke("here")) == row_config(smoke("there"))
    True
    """
    return Trained(training=config.training)


def smoke(label: str, n: int = 6, k: int = 2, **changes: Any) -> Decoder:
    """Return a training of a second.

    >>> smoke("small", pool=24).training.width, smoke("small", pool=24).training.pool
    (16, 24)
    """
    usual = {"width": 16, "batch": 32, "steps": 20, "held_out": 16, "evaluate_every": 5, "learning_rate": 3e-3}
    return Decoder(label=label, training=DecoderSettings(n=n, k=k, **{**usual, **changes}))


def narrow(label: str, n: int, k: int, **changes: Any) -> Decoder:
    """Return W's training at a width that trains in seconds: 64 instead of 720, at ten times the rate.

    >>> round(narrow("", 16, 3, steps=400).training.learning_rate / paper("", 16, 3).training.learning_rate)
    10
    """
    usual = {"width": 64, "learning_rate": 1e-3, "batch": 256, "held_out": 1024, "evaluate_every": 10}
    return Decoder(label=label, training=DecoderSettings(n=n, k=k, **{**usual, **changes}))


def paper(label: str, n: int, k: int, **changes: Any) -> Decoder:
    """Return W's own settings (Appendix C.1): width 720, MLP 3072, Adam, linear decay, batch 512, 10⁷ samples.

    >>> own = paper(CHAIN, 30, 4).training
    >>> own.width, own.mlp_width, own.steps * own.batch <= 10**7 < (own.steps + 1) * own.batch
    (720, 3072, True)
    """
    usual = {
        "width": 720,
        "mlp_width": 3072,
        "learning_rate": 1e-4,
        "batch": 512,
        "steps": _PAPER_BUDGET // 512,
        "evaluate_every": 20,
    }
    return Decoder(label=label, training=DecoderSettings(n=n, k=k, **{**usual, **changes}))


def run(config: Trained) -> Result:
    """Train one decoder."""
    training = config.training
    outcome = train_decoder(training)
    secret_attention = outcome.secret_attention().amax((0, 1))
    numbers = {
        "samples": [outcome.samples_to(accuracy) for accuracy in CROSSINGS],
        "steps": outcome.history.step[-1],
        "accuracy": outcome.accuracy,
        "free_running": outcome.free_running,
        "secret": list(outcome.task.secret),
        "secret_attention": float(secret_attention.mean()) if training.chain_of_thought else None,
        "final_entropy": float(outcome.history.entropy[-1].min()),
        "parameters": sum(p.numel() for p in outcome.model.parameters()),
    }
    arrays = {name: tensor.float() for name, tensor in outcome.history.tensors().items()}
    arrays |= {"attention": outcome.attention.float(), "one_attention": outcome.one_attention.float()}
    return Result(numbers, arrays)


def settings(row: Row) -> dict[str, Any]:
    """Return a row's training settings.

    >>> settings(Row("W-figure-1", {"label": CHAIN, "training": {"k": 3}}, {}))["k"]
    3
    """
    return row.config["training"]


def samples(row: Row) -> int | None:
    """Return the examples seen when every held-out token was right for the first time: W's sample complexity.

    A row notes when 99 %, 99.5 % and all tokens were right; none means that its budget ended first.

    >>> samples(Row("W-figure-1", {}, {"samples": [256, 512, 768]}))
    768
    """
    return row.numbers["samples"][-1]


def budget(row: Row) -> int:
    """Return the examples a training may see.

    >>> budget(Row("W-figure-1", {"training": {"steps": 400, "batch": 256}}, {}))
    102400
    """
    return settings(row)["steps"] * settings(row)["batch"]


def samples_at_least(row: Row) -> int:
    """Return the samples needed, or the budget where it ended first: a lower bound.

    >>> samples_at_least(Row("W-figure-1", {"training": {"steps": 10, "batch": 32}}, {"samples": [None, None, None]}))
    320
    """
    return samples(row) or budget(row)


def solved(rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose decoder got everything right.

    >>> rows = [Row("W-figure-1", {}, {"samples": [256, None, last]}) for last in (None, 768)]
    >>> [samples(row) for row in solved(rows)]
    [768]
    """
    return [row for row in rows if samples(row) is not None]


def with_chain(rows: Iterable[Row], chain: bool) -> list[Row]:
    """Return the rows with (or without) chain of thought.

    >>> rows = [Row("W-figure-1", {"training": {"k": k, "chain_of_thought": k == 2}}, {}) for k in (1, 2, 3)]
    >>> [settings(row)["k"] for row in with_chain(rows, False)]
    [1, 3]
    """
    return [row for row in rows if settings(row)["chain_of_thought"] is chain]


def best_by(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], Row]:
    """Return, for every value of the named settings, the row with the fewest samples: W picks the best rate.

    >>> def row(k, rate, count):
    ...     return Row("W-figure-1", {"training": {"k": k, "learning_rate": rate}}, {"samples": [count]})
    >>> best = best_by([row(2, 1e-4, 900), row(2, 6e-5, 500), row(1, 1e-4, None)], "k")
    >>> {k: settings(row)["learning_rate"] for (k,), row in best.items()}
    {1: 0.0001, 2: 6e-05}
    """
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(settings(row)[name] for name in names)
        if key not in best or (samples(row) or math.inf) < (samples(best[key]) or math.inf):
            best[key] = row
    return dict(sorted(best.items()))


def growth(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the factor per unit of x of the least-squares exponential through (x, y); none for fewer than two points.

    >>> round(growth([(1, 3.0), (2, 6.0), (3, 12.0)]), 6)
    2.0
    """
    if len({x for x, _ in pairs}) < 2:
        return None
    x = torch.tensor([float(x) for x, _ in pairs], dtype=torch.float64)
    y = torch.tensor([math.log(y) for _, y in pairs], dtype=torch.float64)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return math.exp(float(slope))


def fell_before_jump(row: Row) -> tuple[int | None, int | None]:
    """Return the steps at which the lowest head's entropy has made half its fall, and accuracy half its rise.

    >>> arrays = {"step": torch.tensor([0, 10, 20]), "accuracy": torch.tensor([0.5, 0.5, 1.0])}
    >>> fell_before_jump(Row("W-figure-1", {}, {}, {**arrays, "entropy": torch.tensor([[[1.0]], [[0.2]], [[0.0]]])}))
    (10, 20)
    """
    steps = row.arrays["step"].int().tolist()
    entropy = row.arrays["entropy"].flatten(1).amin(1)
    accuracy = row.arrays["accuracy"]
    half_fall = (entropy[0] + entropy.min()) / 2
    half_rise = (_CHANCE + accuracy.max()) / 2
    fallen = [s for s, value in zip(steps, entropy.tolist(), strict=True) if value <= half_fall]
    risen = [s for s, value in zip(steps, accuracy.tolist(), strict=True) if value >= half_rise]
    return (fallen[0] if fallen else None), (risen[0] if risen else None)


def chain_wins(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Return in how many pairs of shape and k > 1 chain of thought needs fewer samples, in how many more, of how many.

    >>> def row(chain, k, count):
    ...     training = {"chain_of_thought": chain, "layers": 1, "heads": 1, "k": k}
    ...     return Row("W-figure-2", {"training": training}, {"samples": [count]})
    >>> chain_wins([row(True, 2, 500), row(False, 2, None), row(True, 3, 900), row(False, 3, 900)])
    (1, 0, 2)
    """
    shape = ("layers", "heads", "k")
    chain, answer = (best_by(with_chain(rows, which), *shape) for which in (True, False))
    pairs = [(samples(chain[key]) or math.inf, samples(answer[key]) or math.inf) for key in chain if key[2] > 1]
    return sum(with_it < without for with_it, without in pairs), sum(a > b for a, b in pairs), len(pairs)


def looking_right(row: Row) -> int:
    """Return how many chain positions attend to their secret bit most, in the first head of the first layer.

    >>> attention = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.8, 0, 0], [0.1, 0.7, 0.2, 0]])
    >>> row = Row("W-figure-3", {"training": {"n": 2}}, {"secret": [1, 0]}, {"attention": attention[None, None]})
    >>> looking_right(row)  # position 2 looks at bit 1 as it should, position 3 does not look at bit 0
    1
    """
    n, attention = settings(row)["n"], row.arrays["attention"][0, 0]
    return sum(int(first_largest(attention[n + i])) == bit for i, bit in enumerate(row.numbers["secret"]))


def attention_on_secret(row: Row) -> Float[Tensor, "layers links"]:
    """Return the attention of every chain position on its secret bit, by the head of a layer that gives it most.

    >>> attention = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    >>> row = Row("W-figure-8", {"training": {"n": 2}}, {"secret": [1]}, {"attention": attention[None, None]})
    >>> attention_on_secret(row).tolist()
    [[0.75]]
    """
    secret = row.numbers["secret"]
    positions = torch.arange(len(secret)) + settings(row)["n"]
    return row.arrays["attention"][:, :, positions, secret].amax(1)


def table(rows: Sequence[Row]) -> Table:
    """Return every training with the samples at which it crossed each accuracy.

    >>> table([]).header[-4:]
    ['samples to 0.99', 'samples to 0.995', 'samples to 1', 'entropy']
    """
    header = ["label", "n", "k", "chain", "layers × heads", "width", "pool", "rate", "accuracy", "free-running"]
    header += [f"samples to {accuracy:g}" for accuracy in CROSSINGS] + ["entropy"]
    return Table(header, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    training = settings(row)
    return [
        row.config["label"],
        str(training["n"]),
        str(training["k"]),
        "yes" if training["chain_of_thought"] else "no",
        f"{training['layers']} × {training['heads']}",
        str(training["width"]),
        "fresh" if training["pool"] is None else f"{training['pool']:,}",
        f"{training['learning_rate']:g}",
        f"{row.numbers['accuracy']:.4f}",
        f"{row.numbers['free_running']:.4f}",
        *("–" if count is None else f"{count:,}" for count in row.numbers["samples"]),
        f"{row.numbers['final_entropy']:.3f}",
    ]


def spoken(count: int | None, limit: int) -> str:
    """Return a sample count for people, or the budget it exceeded.

    >>> spoken(None, 1000), spoken(512, 1000)
    ('more than 1,000', '512')
    """
    return f"more than {limit:,}" if count is None else f"{count:,}"


def spoken_by_k(best: Mapping[tuple[Any, ...], Row]) -> str:
    """Return the samples needed for every k in words, from what `best_by(rows, "k")` gave.

    >>> row = Row("W-figure-1", {"training": {"k": 3, "steps": 100, "batch": 10}}, {"samples": [None, None, None]})
    >>> spoken_by_k({(3,): row})
    'k = 3: more than 1,000'
    """
    return ", ".join(f"k = {k}: {spoken(samples(row), budget(row))}" for (k,), row in best.items())
