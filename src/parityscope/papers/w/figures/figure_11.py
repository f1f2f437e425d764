"""W, Figure 11: the entropy of every head while parity is learned without chain of thought."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracy, draw_entropy
from parityscope.papers.w.multi_pass import (
    demo_pool,
    lowest_entropy,
    pool_cells,
    reference_pool,
    shape_name,
    smoke_pool,
)
from parityscope.papers.w.over_seeds import Cell
from parityscope.papers.w.settings import FRESH, DecoderRow, ShownDecoder, fell_before_jump, samples, training_table

ID = "W-figure-11"
TITLE = "W, Figure 11: entropy of every head while learning from a pool"
TEXT = (
    "Normalised attention entropy (Eq. (1)) of every head during training without chain of thought on a small pool, one"
    " panel per layers × heads; the grey line is held-out accuracy. The paper has (20, 6) and 10 000 inputs; here "
    "(14, 3) and 600 inputs, one layer, five seeds; drawn is the first that learned, or else the first."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 7, "reference": 5}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool(f"1 × {heads}", 24, heads=heads) for heads in (1, 2)],
    "demo": [demo_pool(f"1 × {heads}", 600, heads) for heads in (1, 4)],
    "reference": [reference_pool(f"1 × {heads}", 600, heads=heads, seed=seed) for heads in (1, 2, 4) for seed in FRESH],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw the entropies of one shape per panel, accuracy in grey: of the first seed that learned, or of the first."""
    shown = [next((row for row in cell.rows if samples(row)), cell.rows[0]) for cell in pool_cells(rows)]
    figure, panels = new_figure(5.2 * len(shown), 4.2, 1, len(shown), squeeze=False, sharey=True)
    for axes, row in zip(panels[0], shown, strict=True):
        draw_entropy(axes, row)
        draw_accuracy(axes, row, color="0.55", linewidth=2.2, label="accuracy")
        axes.set_title(f"{shape_name(row)} (layers × heads), seed {row.config.training.seed}", fontsize=11)
        fallen, risen = fell_before_jump(row)
        if samples(row) is not None and fallen is not None and risen is not None:
            axes.axvline(fallen, color=colour(1), linewidth=0.9, linestyle=":")
            axes.axvline(risen, color="0.55", linewidth=0.9, linestyle=":")
    panels[0][-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Say which happens first, and how low entropy falls where nothing is learned."""
    return [Finding("Entropy falls as accuracy rises.", f"{'; '.join(map(_found, pool_cells(rows)))}.")]


def _found(cell: Cell) -> str:
    learned = [fell_before_jump(row) for row in cell.rows if samples(row) is not None]
    steps = ", ".join(f"{fallen} and {risen}" for fallen, risen in learned) or "–"
    failed = sorted(lowest_entropy(row) for row in cell.rows if samples(row) is None)
    low = f"; lowest entropy of the seeds that did not learn {failed[0]:.2f}–{failed[-1]:.2f}" if failed else ""
    return (
        f"{shape_name(cell.rows[0])}: {cell.reached} of {len(cell.rows)} seeds learned, entropy half down and accuracy "
        f"half up at steps {steps}{low}"
    )
