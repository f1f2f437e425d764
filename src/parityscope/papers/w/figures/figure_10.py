"""W, Figure 10: the size of the pool, for several shapes, at a fixed number of steps."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracies
from parityscope.papers.w.multi_pass import (
    POOLS,
    best_accuracy,
    demo_pool,
    lowest_entropy,
    pool_cells,
    pool_name,
    reference_pool,
    shape_name,
    smoke_pool,
)
from parityscope.papers.w.over_seeds import Cell
from parityscope.papers.w.settings import FRESH, DecoderRow, ShownDecoder, training_table

ID = "W-figure-10"
TITLE = "W, Figure 10: how large a pool may be"
TEXT = (
    "Held-out accuracy without chain of thought for pools of several sizes and a fixed number of steps, one panel per "
    "layers × heads. A pool can be too small (it is memorised) and too large (it is not learned in as many steps). The "
    "paper has (20, 6) with 5000 to 10⁶ inputs; here (14, 3) with 150 to 2400 and fresh samples, five seeds (the demo: "
    "one, at width 64)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 18, "reference": 80}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool("1 × 2", pool, heads=2) for pool in (16, 40)],
    "demo": [demo_pool("1 × 4", pool) for pool in POOLS],
    "reference": [
        reference_pool(f"1 × {heads}", pool, heads=heads, seed=seed)
        for heads in (2, 4)
        for pool in POOLS
        for seed in FRESH
    ],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw one panel per shape, one colour per pool, one thin line per seed."""
    shapes = list(dict.fromkeys(shape_name(row) for row in rows))
    figure, panels = new_figure(3 + 4.2 * len(shapes), 4.2, 1, len(shapes), squeeze=False, sharey=True)
    for axes, shape in zip(panels[0], shapes, strict=True):
        cells = pool_cells([row for row in rows if shape_name(row) == shape])
        draw_accuracies(axes, cells, [pool_name(cell.rows[0]) for cell in cells])
        axes.set_title(f"{shape} (layers × heads)", fontsize=11)
    panels[0][-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """List what each pool gave."""
    return [
        Finding(
            "Small pools are learned and large ones are not, for every shape.",
            f"Seeds that learned: {'; '.join(map(_found, pool_cells(rows)))}.",
        )
    ]


def _found(cell: Cell) -> str:
    row, lowest = cell.rows[0], sorted(map(lowest_entropy, cell.rows))
    best = sorted(map(best_accuracy, cell.rows))
    return (
        f"{shape_name(row)}, {pool_name(row)}: {cell.reached} of {len(cell.rows)}, best accuracy "
        f"{best[0]:.2f}–{best[-1]:.2f}, lowest entropy {lowest[0]:.2f}–{lowest[-1]:.2f}"
    )
