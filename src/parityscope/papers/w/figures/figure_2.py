"""W, Figure 2: samples needed over layers × heads × k, with and without chain of thought."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import draw_heat_map
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.settings import (
    ANSWER,
    CHAIN,
    PAPER_RATES,
    DecoderRow,
    ShownDecoder,
    best_by_shape,
    budget,
    chain_wins,
    growth,
    narrow,
    paper,
    samples,
    samples_at_least,
    smoke,
    training_table,
    with_chain,
)

ID = "W-figure-2"
TITLE = "W, Figure 2: layers and heads against hidden bits"
TEXT = (
    "Training examples until every held-out token is right, for every shape (layers × heads) and number of hidden bits,"
    " with chain of thought above and without below; colour is the logarithm, > means that the budget ended first. The "
    "paper uses n = 30 and picks the best of three learning rates; here it is n = 12, width 64 and one rate."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 26, "reference": 48, "paper": 4e6}
_SHORT = {"steps": 400, "held_out": 512, "evaluate_every": 20}
_SHORTER = {**_SHORT, "steps": 200, "batch": 128, "held_out": 256, "width": 48}

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        smoke(f"{layers} × 1", k=k, chain_of_thought=chain, layers=layers)
        for chain in (True, False)
        for layers in (1, 2)
        for k in (1, 2)
    ],
    "demo": [
        narrow(f"{layers} × {heads}", 12, k, chain_of_thought=chain, layers=layers, heads=heads, **_SHORTER)
        for chain in (True, False)
        for layers, heads in ((1, 1), (1, 4), (2, 4))
        for k in (1, 2, 3)
    ],
    "reference": [
        narrow(f"{layers} × {heads}", 12, k, chain_of_thought=chain, layers=layers, heads=heads, **_SHORT)
        for chain in (True, False)
        for layers, heads in ((1, 1), (1, 4), (2, 4))
        for k in (1, 2, 3)
    ],
    "paper": [
        paper(f"{layers} × {heads}", 30, k, chain_of_thought=chain, layers=layers, heads=heads, learning_rate=rate)
        for chain in (True, False)
        for layers in (1, 2, 3, 4)
        for heads in (1, 2, 3, 4)
        for k in (1, 2, 3, 4)
        for rate in PAPER_RATES
    ],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw shapes × k as two heat maps with the counts written in."""
    shapes = list(dict.fromkeys(row.config.label for row in rows))
    ks = sorted({row.config.training.k for row in rows})
    figure, panels = new_figure(2.2 + 1.15 * len(shapes), 1.6 + 0.75 * 2 * len(ks), 2, 1, squeeze=False)
    counts = [math.log10(samples_at_least(row)) for row in rows]
    for axes, chain in zip(panels[:, 0], (True, False), strict=True):
        grid = [[float("nan")] * len(shapes) for _ in ks]
        for row in best_by_shape(with_chain(rows, chain)).values():
            x, y = shapes.index(row.config.label), ks.index(row.config.training.k)
            count = samples(row)
            grid[y][x] = math.log10(samples_at_least(row))
            text = f"> {budget(row) / 1000:.0f}k" if count is None else f"{count / 1000:.1f}k"
            middle = grid[y][x] > (min(counts) + max(counts)) / 2
            axes.text(x, y, text, ha="center", va="center", color="black" if middle else "white", fontsize=10)
        span = min(counts), max(counts) + 1e-9
        image = draw_heat_map(axes, grid, shapes, [f"k = {k}" for k in ks], span=span)
        axes.set_title(CHAIN if chain else ANSWER)
    panels[-1, 0].set_xlabel("layers × heads")
    figure.colorbar(image, ax=panels, label="log₁₀ of training examples", shrink=0.7)
    return figure


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Count the shapes where CoT needs fewer samples, and compare growth per bit."""
    chain = best_by_shape(with_chain(rows, True))
    answer = best_by_shape(with_chain(rows, False))
    fewer, _, pairs = chain_wins(rows)
    factors: dict[bool, list[str]] = {True: [], False: []}
    for which, best in ((True, chain), (False, answer)):
        for shape in dict.fromkeys(key[:2] for key in best):
            points = [(key[2], samples_at_least(row)) for key, row in best.items() if key[:2] == shape]
            factors[which].append(f"{shape[0]} × {shape[1]}: {growth(points) or float('nan'):.1f}")
    return [
        Finding(
            "Training with CoT consistently needs fewer samples.",
            f"In {fewer} of {pairs} pairs of shape and k > 1 (for k = 1 the two tasks are the same).",
        ),
        Finding(
            "For every shape the samples without CoT grow exponentially with k; CoT is an exponential improvement.",
            f"Factor per bit without CoT (budgets that ended counted as reached, so lower bounds): "
            f"{'; '.join(factors[False])}. With CoT: {'; '.join(factors[True])}.",
        ),
    ]
