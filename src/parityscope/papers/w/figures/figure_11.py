"""W, Figure 11: the entropy of every head while parity is learned without chain of thought."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_accuracy, draw_entropy
from parityscope.papers.w.multi_pass import demo_pool, narrow_pool, paper_pool, shape_name, smoke_pool
from parityscope.papers.w.settings import (
    DecoderRow,
    ShownDecoder,
    fell_before_jump,
    samples,
    training_table,
)

ID = "W-figure-11"
TITLE = "W, Figure 11: entropy of every head while learning from a pool"
TEXT = (
    "Normalised attention entropy (Eq. (1)) of every head during training without chain of thought on a small pool, one"
    " panel per layers × heads; the grey line is held-out accuracy. The paper has (20, 6) and 10 000 inputs; here "
    "(16, 4) and 2000 inputs, one layer (the demo: (14, 3) and 600)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 7, "reference": 45, "paper": 4e5}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke_pool(f"1 × {heads}", 24, heads=heads) for heads in (1, 2)],
    "demo": [demo_pool(f"1 × {heads}", 600, heads) for heads in (1, 4)],
    "reference": [narrow_pool(f"1 × {heads}", 2000, heads) for heads in (2, 4)],
    "paper": [paper_pool(f"{layers} × {heads}", 10_000, layers, heads) for layers, heads in ((1, 2), (2, 3), (4, 4))],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw the entropies of one shape per panel, accuracy in grey."""
    figure, panels = new_figure(5.2 * len(rows), 4.2, 1, len(rows), squeeze=False, sharey=True)
    for axes, row in zip(panels[0], rows, strict=True):
        draw_entropy(axes, row)
        draw_accuracy(axes, row, color="0.55", linewidth=2.2, label="accuracy")
        axes.set_title(f"{shape_name(row)} (layers × heads)", fontsize=11)
        fallen, risen = fell_before_jump(row)
        if samples(row) is not None and fallen is not None and risen is not None:
            axes.axvline(fallen, color=colour(1), linewidth=0.9, linestyle=":")
            axes.axvline(risen, color="0.55", linewidth=0.9, linestyle=":")
    panels[0][-1].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Say which happens first."""
    lines = []
    for row in rows:
        fallen, risen = fell_before_jump(row)
        learned = "learned" if samples(row) is not None else "not learned"
        lines.append(f"{shape_name(row)} ({learned}): entropy half down at step {fallen}, accuracy half up at {risen}")
    return [Finding("Entropy falls as accuracy rises.", "; ".join(lines) + ".")]
