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
    pool_cells,
    pool_name,
    reference_pool,
    smoke_pool,
)
from parityscope.papers.w.over_seeds import Cell
from parityscope.papers.w.settings import FRESH, DecoderRow, ShownDecoder, fell_before_jump, solved, training_table

ID = "W-figure-5"
TITLE = "W, Figure 5: a smaller pool learns, a larger one does not"
TEXT = (
    "Without chain of thought, one shape and one number of steps, two pools of inputs. Left: held-out accuracy. Middle "
    "and right: normalised attention entropy (Eq. (1)) of every head, for the smaller and the larger pool. The paper "
    "has (20, 6), 4 layers × 4 heads, 50 000 inputs against 10⁶; here (14, 3), 1 layer × 4 heads, 600 against 2400, "
    "five seeds (the demo: one, at width 64)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 7, "reference": 20}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool("pool", pool, heads=2) for pool in (16, 40)],
    "demo": [demo_pool("pool", pool) for pool in (600, 2400)],
    "reference": [reference_pool("pool", pool, seed=seed) for pool in (600, 2400) for seed in FRESH],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw accuracy of every seed, then the entropy of every head of the first seed for each pool."""
    cells = pool_cells(rows)
    figure, panels = new_figure(4.6 * (1 + len(cells)), 4, 1, 1 + len(cells))
    names = [pool_name(cell.rows[0]) for cell in cells]
    draw_accuracies(panels[0], cells, names)
    panels[0].legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    for axes, cell, name in zip(panels[1:], cells, names, strict=True):
        draw_entropy(axes, cell.rows[0])
        axes.set_title(f"{name}, seed {cell.rows[0].config.training.seed}", fontsize=11)
    panels[-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Compare the pools, and when entropy falls with when accuracy jumps."""
    cells = pool_cells(rows)
    return [
        Finding(
            "The small pool reaches perfect accuracy, the large one fails in as many steps.",
            f"{'; '.join(map(_reached, cells))}.",
        ),
        Finding(
            "Learning coincides with a fall of attention entropy; where nothing is learned it stays high.",
            f"{'; '.join(map(_sparse, cells))}.",
        ),
    ]


def _reached(cell: Cell) -> str:
    best = sorted(map(best_accuracy, cell.rows))
    seeds = f"{cell.reached} of {len(cell.rows)} seeds perfect"
    return f"{pool_name(cell.rows[0])}: {seeds}, best accuracy {best[0]:.3f}–{best[-1]:.3f}"


def _sparse(cell: Cell) -> str:
    lowest = sorted(map(lowest_entropy, cell.rows))
    times = [fell_before_jump(row) for row in solved(cell.rows)]
    said = ", ".join(f"{fallen} and {risen}" for fallen, risen in times)
    when = f" (steps at which entropy is half down and accuracy half up: {said})" if times else ""
    return f"{pool_name(cell.rows[0])}: lowest entropy {lowest[0]:.2f}–{lowest[-1]:.2f}{when}"
