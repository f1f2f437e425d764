"""W, Figure 8: attention of a decoder with two layers and two heads, trained with chain of thought."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_map
from parityscope.papers.w.settings import (
    FRESH,
    DecoderRow,
    ShownDecoder,
    attention_on_secret,
    laptop,
    narrow,
    smoke,
    training_table,
)

ID = "W-figure-8"
TITLE = "W, Figure 8: two layers, two heads"
TEXT = (
    "Attention of the positions that predict, on one held-out input, for each layer and head of a decoder trained with "
    "chain of thought, of the first of five seeds; squares mark the secret bit each next token depends on. The caption "
    "says (20, 6), the authors' code (40, 20); reference scale has (20, 6) at width 128, the demo (12, 4) at 48."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 8, "reference": 100}
_SHAPE = {"layers": 2, "heads": 2}
_SHORTER = {"batch": 128, "width": 48, "held_out": 256, "steps": 300, "extra_steps": 20}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [smoke("2 × 2", 8, 4, **_SHAPE).with_maps()],
    "demo": [narrow("2 × 2", 12, 4, **_SHAPE, **_SHORTER).with_maps()],
    "reference": [
        laptop("2 × 2", 20, 6, **_SHAPE, steps=600, extra_steps=50, held_out=512, seed=seed).with_maps()
        for seed in FRESH
    ],
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
    """Say how much attention each layer puts on the secret, and how uniform the second one is, seed by seed."""
    attended = [f"{int((attention_on_secret(row)[0] > 0.5).sum())} of {row.config.training.k}" for row in rows]
    shares = [" and ".join(f"{float(values.mean()):.2f}" for values in attention_on_secret(row)) for row in rows]
    entropies = [" and ".join(f"{float(layer.mean()):.2f}" for layer in row.arrays["entropy"][-1]) for row in rows]
    return [
        Finding(
            "In the first layer every secret bit is attended to by at least one head.",
            f"Chain positions that put more than half of some first-layer head on their secret bit, by seed: "
            f"{'; '.join(attended)}; the best head's average attention there in the first and second layer: "
            f"{'; '.join(shares)}.",
        ),
        Finding(
            "The second layer's attention is almost uniform.",
            f"Normalised entropy of the first and second layer, averaged over heads, by seed: {'; '.join(entropies)} "
            "(1 is uniform).",
        ),
    ]
