"""W, Figure 4: many passes over a small pool teach parity without chain of thought, for several shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracies, draw_accuracy
from parityscope.papers.w.multi_pass import (
    DEMO_K,
    DEMO_N,
    NARROW_K,
    NARROW_N,
    best_accuracy,
    demo_pool,
    narrow_pool,
    paper_pool,
    pool_name,
    shape_name,
    smoke_pool,
)
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    DecoderRow,
    ShownDecoder,
    narrow,
    paper,
    samples,
    smoke,
    solved,
    training_table,
    with_chain,
)

ID = "W-figure-4"
TITLE = "W, Figure 4: many passes over a small pool learn without chain of thought"
TEXT = (
    "Held-out accuracy without chain of thought while one pool of inputs is visited over and over, for several numbers "
    "of layers × heads, beside the same number of steps on fresh samples and a training with chain of thought on the "
    "same pool (dashed). The paper has (20, 6), 10 000 inputs and 1000 epochs; here (16, 4), 2000 inputs and "
    "2500 steps at width 64, one layer (the demo: (14, 3), 600 inputs, 600 steps)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 19, "reference": 103, "paper": 2e6}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        smoke_pool(ANSWER, 24),
        smoke_pool(ANSWER, None),
        smoke(CHAIN, pool=24),
    ],
    "demo": [
        *(demo_pool(ANSWER, 600, heads) for heads in (1, 4)),
        demo_pool(ANSWER, None, 4),
        narrow(CHAIN, DEMO_N, DEMO_K, heads=4, pool=600, steps=300),
    ],
    "reference": [
        *(narrow_pool(ANSWER, 2000, heads) for heads in (1, 2, 4)),
        narrow_pool(ANSWER, None, 4),
        narrow(CHAIN, NARROW_N, NARROW_K, heads=4, pool=2000, batch=512, steps=1000),
    ],
    "paper": [
        *(paper_pool(ANSWER, 10_000, layers, heads) for layers in (1, 2, 3, 4) for heads in (1, 2, 3, 4)),
        paper_pool(ANSWER, None, 4, 4),
        paper(CHAIN, 20, 6, pool=10_000, steps=19531),
    ],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw every shape's accuracy; the training with chain of thought is dashed."""
    figure, axes = new_figure(8.5, 4.4)
    without = with_chain(rows, False)
    draw_accuracies(axes, without, [f"{shape_name(row)}, {pool_name(row)}" for row in without])
    for row in with_chain(rows, True):
        draw_accuracy(axes, row, color="0.5", linestyle="--", label=f"with CoT, {pool_name(row)}")
    axes.set_title("layers × heads, training inputs", fontsize=11)
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _epochs(row: DecoderRow) -> str:
    pool = row.config.training.pool or math.inf  # fresh samples are never seen again
    return f"{(samples(row) or 0) / pool:.0f} epochs"


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Count the shapes that learn from the pool, and set fresh samples and chain of thought beside them."""
    pools = [row for row in with_chain(rows, False) if row.config.training.pool is not None]
    fresh = [row for row in with_chain(rows, False) if row.config.training.pool is None]
    chain = with_chain(rows, True)
    done = [f"{shape_name(row)} in {_epochs(row)}" for row in solved(pools)]
    not_done = [f"{shape_name(row)} stays at {best_accuracy(row):.2f}" for row in pools if samples(row) is None]
    others = [f"fresh samples in as many steps: {best_accuracy(row):.2f} at best" for row in fresh]
    return [
        Finding(
            "Almost every shape reaches perfect accuracy from a small pool seen many times.",
            f"{len(done)} of {len(pools)} shapes: {'; '.join([*done, *not_done, *others])}.",
        ),
        Finding(
            "With CoT a few epochs are enough.",
            "; ".join(
                f"with CoT perfect in {_epochs(row)}" if samples(row) else f"with CoT {best_accuracy(row):.3f} at best"
                for row in chain
            )
            + ".",
        ),
    ]
