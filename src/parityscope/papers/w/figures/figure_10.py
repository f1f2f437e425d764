"""W, Figure 10: the size of the pool, for several shapes, at a fixed number of steps."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracies
from parityscope.papers.w.multi_pass import (
    DEMO_POOLS,
    NARROW_POOLS,
    PAPER_POOLS,
    best_accuracy,
    demo_pool,
    lowest_entropy,
    narrow_pool,
    paper_pool,
    pool_name,
    shape_name,
    smoke_pool,
)
from parityscope.papers.w.settings import (
    DecoderRow,
    ShownDecoder,
    samples,
    training_table,
)

ID = "W-figure-10"
TITLE = "W, Figure 10: how large a pool may be"
TEXT = (
    "Held-out accuracy without chain of thought for pools of several sizes and a fixed number of steps, one panel per "
    "layers × heads. A pool can be too small (it is memorised) and too large (it is not learned in as many steps). The "
    "paper has (20, 6) with 5000 to 10⁶ inputs; here (16, 4) with 500 to 8000 and fresh samples (the demo: "
    "(14, 3), 150 to 2400)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 18, "reference": 101, "paper": 3e6}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool("1 × 2", pool, heads=2) for pool in (16, 40)],
    "demo": [demo_pool("1 × 4", pool) for pool in DEMO_POOLS],
    "reference": [narrow_pool("1 × 4", pool) for pool in NARROW_POOLS],
    "paper": [
        paper_pool(f"{layers} × {heads}", pool, layers, heads)
        for layers, heads in ((1, 1), (1, 2), (2, 3), (4, 4))
        for pool in PAPER_POOLS
    ],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw one panel per shape, one line per pool."""
    shapes = list(dict.fromkeys(shape_name(row) for row in rows))
    figure, panels = new_figure(3 + 4.2 * len(shapes), 4.2, 1, len(shapes), squeeze=False, sharey=True)
    for axes, shape in zip(panels[0], shapes, strict=True):
        chosen = [row for row in rows if shape_name(row) == shape]
        draw_accuracies(axes, chosen, [pool_name(row) for row in chosen])
        axes.set_title(f"{shape} (layers × heads)", fontsize=11)
    panels[0][-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """List what each pool gave."""
    lines = [
        f"{shape_name(row)}, {pool_name(row)}: "
        + (f"perfect after {samples(row):,} examples" if samples(row) else f"{best_accuracy(row):.2f} at best")
        + f", lowest entropy {lowest_entropy(row):.2f}"
        for row in rows
    ]
    return [Finding("Small pools are learned and large ones are not, for every shape.", "; ".join(lines) + ".")]
