"""W, Figure 5: a small pool teaches what a large one does not, and attention becomes sparse as it does."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracies, draw_entropy
from parityscope.papers.w.multi_pass import (
    best_accuracy,
    demo_pool,
    lowest_entropy,
    narrow_pool,
    paper_pool,
    pool_name,
    smoke_pool,
)
from parityscope.papers.w.settings import (
    DecoderRow,
    ShownDecoder,
    fell_before_jump,
    solved,
    training_table,
)

ID = "W-figure-5"
TITLE = "W, Figure 5: a smaller pool learns, a larger one does not"
TEXT = (
    "Without chain of thought, one shape and one number of steps, two pools of inputs. Left: held-out accuracy. Middle "
    "and right: normalised attention entropy (Eq. (1)) of every head, for the smaller and the larger pool. The paper "
    "has (20, 6), 4 layers × 4 heads, 50 000 inputs against 10⁶; here (16, 4), 1 layer × 4 heads, 2000 against "
    "8000 (the demo: (14, 3), 600 against 2400)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 7, "reference": 51, "paper": 4e5}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool("pool", pool, heads=2) for pool in (16, 40)],
    "demo": [demo_pool("pool", pool) for pool in (600, 2400)],
    "reference": [narrow_pool("pool", pool) for pool in (2000, 8000)],
    "paper": [paper_pool("pool", pool, 4, 4) for pool in (50_000, 1_000_000)],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw accuracy, then the entropy of every head for each pool."""
    figure, panels = new_figure(4.6 * (1 + len(rows)), 4, 1, 1 + len(rows))
    draw_accuracies(panels[0], rows, [pool_name(row) for row in rows])
    panels[0].legend(fontsize=9, loc="upper left")
    for axes, row in zip(panels[1:], rows, strict=True):
        draw_entropy(axes, row)
        axes.set_title(pool_name(row), fontsize=11)
    panels[-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Compare the pools, and when entropy falls with when accuracy jumps."""
    reached = "; ".join(f"{pool_name(row)}: accuracy {best_accuracy(row):.3f} at best" for row in rows)
    sparse = "; ".join(f"{pool_name(row)}: lowest entropy {lowest_entropy(row):.2f}" for row in rows)
    timing = []
    for row in solved(rows):
        fallen, risen = fell_before_jump(row)
        timing.append(f" For {pool_name(row)} entropy is half down at step {fallen}, accuracy half up at {risen}.")
    return [
        Finding("The small pool reaches perfect accuracy, the large one fails in as many steps.", f"{reached}."),
        Finding(
            "Learning coincides with a fall of attention entropy; where nothing is learned it stays high.",
            f"{sparse}.{''.join(timing)}",
        ),
    ]
