"""W, Figure 4: many passes over a small pool teach parity without chain of thought, for several shapes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.core.statistics import median
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracies
from parityscope.papers.w.multi_pass import (
    POOL_K,
    POOL_N,
    best_accuracy,
    demo_pool,
    pool_cells,
    pool_name,
    reference_pool,
    shape_name,
    smoke_pool,
)
from parityscope.papers.w.over_seeds import Cell
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    FRESH,
    DecoderRow,
    ShownDecoder,
    laptop,
    narrow,
    smoke,
    training_table,
    with_chain,
)

ID = "W-figure-4"
TITLE = "W, Figure 4: many passes over a small pool learn without chain of thought"
TEXT = (
    "Held-out accuracy without chain of thought while one pool of inputs is visited over and over, for several numbers "
    "of layers × heads, beside the same number of steps on fresh samples and a training with chain of thought on the "
    "same pool; one line per seed. The paper has (20, 6), 10 000 inputs and 1000 epochs; here (14, 3), 600 inputs and "
    "1000 steps of 256 at width 128, five seeds (the demo: 600 steps at width 64, one seed)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 19, "reference": 210}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        smoke_pool(ANSWER, 24),
        smoke_pool(ANSWER, None),
        smoke(CHAIN, pool=24),
    ],
    "demo": [
        *(demo_pool(ANSWER, 600, heads) for heads in (1, 4)),
        demo_pool(ANSWER, None, 4),
        narrow(CHAIN, POOL_N, POOL_K, pool=600, steps=300),
    ],
    "reference": [
        *(
            reference_pool(ANSWER, 600, layers, heads, seed)
            for layers, heads in ((1, 1), (1, 2), (1, 4), (2, 1))
            for seed in FRESH
        ),
        *(reference_pool(ANSWER, None, seed=seed) for seed in FRESH),
        *(laptop(CHAIN, POOL_N, POOL_K, pool=600, steps=1000, seed=seed) for seed in FRESH),
    ],
}


def _cells(rows: Sequence[DecoderRow], chain: bool) -> list[Cell]:
    return pool_cells(with_chain(rows, chain))


def _name(cell: Cell) -> str:
    row = cell.rows[0]
    shape = f"{shape_name(row)}, {pool_name(row)}"
    return f"with CoT, {shape}" if row.config.training.chain_of_thought else shape


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw every shape's accuracy, one thin line per seed; the training with chain of thought is the last."""
    figure, axes = new_figure(9.5, 4.6)
    cells = [*_cells(rows, False), *_cells(rows, True)]
    draw_accuracies(axes, cells, [_name(cell) for cell in cells])
    axes.set_title("layers × heads, training inputs", fontsize=11)
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Count the seeds of every shape that learn from the pool; fresh samples and chain of thought beside them."""
    pools = [cell for cell in _cells(rows, False) if cell.rows[0].config.training.pool is not None]
    others = [*(cell for cell in _cells(rows, False) if cell not in pools), *_cells(rows, True)]
    taught = sum(cell.median is not None for cell in pools)
    return [
        Finding(
            "Almost every shape reaches perfect accuracy from a small pool seen many times.",
            f"{taught} of {len(pools)} shapes for more than half of their seeds: {'; '.join(map(_found, pools))}.",
        ),
        Finding(
            "As many fresh samples do not teach it; with CoT a few epochs are enough.",
            f"{'; '.join(map(_found, others))}.",
        ),
    ]


def _found(cell: Cell) -> str:
    """Return what became of a cell: how many seeds learned, after how many passes, and the best of the others."""
    pool, seeds = cell.rows[0].config.training.pool, len(cell.rows)
    passes = "" if pool is None or not cell.needed else f" in {median(cell.needed) / pool:.0f} epochs"
    best = f", accuracy at best {max(map(best_accuracy, cell.rows)):.2f}" if cell.reached == 0 else ""
    return f"{_name(cell)}: {cell.reached} of {seeds} seeds{passes}{best}"
