"""W, Figure 8: attention of a decoder with two layers and two heads, trained with chain of thought."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_map
from parityscope.papers.w.settings import (
    DecoderRow,
    ShownDecoder,
    attention_on_secret,
    narrow,
    paper,
    smoke,
    training_table,
)

ID = "W-figure-8"
TITLE = "W, Figure 8: two layers, two heads"
TEXT = (
    "Attention of the positions that predict, on one held-out input, for each layer and head of a decoder trained with "
    "chain of thought; squares mark the secret bit each next token depends on. The caption says (20, 6), the authors' "
    "code (40, 20); paper scale has both, reference scale (20, 6) and the demo (12, 4), at width 64."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 8, "reference": 30, "paper": 5e4}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke("2 × 2", 8, 4, layers=2, heads=2)],
    "demo": [narrow("2 × 2", 12, 4, layers=2, heads=2, batch=128, width=48, held_out=256, steps=300, extra_steps=20)],
    "reference": [narrow("2 × 2", 20, 6, layers=2, heads=2, steps=400, extra_steps=50)],
    "paper": [paper("2 × 2", n, k, layers=2, heads=2, extra_steps=2000) for n, k in ((40, 20), (20, 6))],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw one map per layer and head."""
    row = rows[0]
    layers, heads = row.config.training.layers, row.config.training.heads
    figure, panels = new_figure(6.4 * heads, 2.9 * layers, layers, heads, squeeze=False, sharex=True, sharey=True)
    for layer in range(layers):
        for head in range(heads):
            image = draw_map(panels[layer][head], row, layer, head)
            panels[layer][head].set_title(f"layer {layer + 1}, head {head + 1}", fontsize=11)
            panels[layer][head].label_outer()
    figure.colorbar(image, ax=panels, label="attention", shrink=0.7, pad=0.01)
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Say how much attention each layer puts on the secret, and how uniform the second one is."""
    row = rows[0]
    on_secret = attention_on_secret(row)
    shares = [f"layer {layer + 1}: {float(values.mean()):.2f}" for layer, values in enumerate(on_secret)]
    attended = int((on_secret[0] > 0.5).sum())
    final = row.arrays["entropy"][-1]
    entropies = [f"layer {layer + 1}: {float(final[layer].mean()):.2f}" for layer in range(len(final))]
    return [
        Finding(
            "In the first layer every secret bit is attended to by at least one head.",
            f"{attended} of {len(on_secret[0])} chain positions put more than half of some first-layer head on their "
            f"secret bit; best head's average attention there, {', '.join(shares)}.",
        ),
        Finding(
            "The second layer's attention is almost uniform.",
            f"Normalised entropy, averaged over heads: {', '.join(entropies)} (1 is uniform).",
        ),
    ]
