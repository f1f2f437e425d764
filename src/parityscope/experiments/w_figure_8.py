"""W, Figure 8: attention of a decoder with two layers and two heads, trained with chain of thought."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.experiments.contract import Finding, Row, Scale
from parityscope.experiments.w_training import Decoder, draw_map, laptop, paper, run, settings, smoke, training_table
from parityscope.figures import new_figure

__all__ = ["CONFIGS", "COST", "ID", "TEXT", "TITLE", "findings", "plot", "run", "table"]

ID = "W-figure-8"
TITLE = "W, Figure 8: two layers, two heads"
TEXT = (
    "Attention of the positions that predict, on one held-out input, for each layer and head of a decoder trained with "
    "chain of thought; squares mark the secret bit each next token depends on. The caption says (20, 6), the authors' "
    "code (40, 20); paper scale has both, laptop scale (20, 6) at width 64."
)
COST: dict[Scale, float] = {"smoke": 2, "laptop": 25, "paper": 5e4}

CONFIGS: dict[Scale, list[Decoder]] = {
    "smoke": [Decoder(label="2 × 2", training=smoke(8, 4, layers=2, heads=2))],
    "laptop": [Decoder(label="2 × 2", training=laptop(20, 6, layers=2, heads=2, steps=400, extra_steps=50))],
    "paper": [
        Decoder(label="2 × 2", training=paper(n, k, layers=2, heads=2, extra_steps=2000))
        for n, k in ((40, 20), (20, 6))
    ],
}


def plot(rows: Sequence[Row]) -> Figure:
    """Draw one map per layer and head."""
    row = rows[0]
    layers, heads = settings(row)["layers"], settings(row)["heads"]
    figure, panels = new_figure(6.4 * heads, 2.9 * layers, layers, heads, squeeze=False, sharex=True, sharey=True)
    for layer in range(layers):
        for head in range(heads):
            image = draw_map(panels[layer][head], row, layer, head)
            panels[layer][head].set_title(f"layer {layer + 1}, head {head + 1}", fontsize=11)
            panels[layer][head].label_outer()
    figure.colorbar(image, ax=panels, label="attention", shrink=0.7, pad=0.01)
    return figure


table = training_table


def findings(rows: Sequence[Row]) -> list[Finding]:
    """Say how much attention each layer puts on the secret, and how uniform the second one is."""
    row = rows[0]
    n, secret = settings(row)["n"], row.numbers["secret"]
    attention = row.arrays["attention"]
    links = range(len(secret))
    on_secret = [[float(attention[layer, :, n + i, secret[i]].max()) for i in links] for layer in range(len(attention))]
    shares = [f"layer {layer + 1}: {sum(values) / len(values):.2f}" for layer, values in enumerate(on_secret)]
    attended = sum(value > 0.5 for value in on_secret[0])
    final = row.arrays["entropy"][-1]
    entropies = [f"layer {layer + 1}: {float(final[layer].mean()):.2f}" for layer in range(len(final))]
    return [
        Finding(
            "In the first layer every secret bit is attended to by at least one head.",
            f"{attended} of {len(secret)} chain positions put more than half of some first-layer head on their secret "
            f"bit; best head's average attention there, {', '.join(shares)}.",
        ),
        Finding(
            "The second layer's attention is almost uniform.",
            f"Normalised entropy, averaged over heads: {', '.join(entropies)} (1 is uniform).",
        ),
    ]
