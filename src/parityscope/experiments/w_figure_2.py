"""W, Figure 2: samples needed over layers × heads × k, with and without chain of thought."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from parityscope.experiments.contract import Finding, Row, Scale
from parityscope.experiments.w_training import (
    PAPER_RATES,
    Decoder,
    best_by,
    budget,
    growth,
    laptop,
    paper,
    run,
    samples,
    smoke,
    training_table,
    with_chain,
)
from parityscope.figures import HEAT, new_figure

__all__ = ["CONFIGS", "COST", "ID", "TEXT", "TITLE", "findings", "plot", "run", "table"]

ID = "W-figure-2"
TITLE = "W, Figure 2: layers and heads against hidden bits"
TEXT = (
    "Training examples until every held-out token is right, for every shape (layers × heads) and number of hidden bits,"
    " with chain of thought above and without below; colour is the logarithm, > means that the budget ended first. The "
    "paper uses n = 30 and picks the best of three learning rates; laptop scale uses n = 12, width 64 and one rate."
)
COST: dict[Scale, float] = {"smoke": 2, "laptop": 40, "paper": 4e6}


def _configs(
    ks: Sequence[int], shapes: Sequence[tuple[int, int]], n: int, steps: tuple[int, int], **changes: int
) -> list[Decoder]:
    return [
        Decoder(
            label=f"{layers} × {heads}",
            training=laptop(
                n, k, chain_of_thought=chain, layers=layers, heads=heads, steps=steps[0 if chain else 1], **changes
            ),
        )
        for chain in (True, False)
        for layers, heads in shapes
        for k in ks
    ]


CONFIGS: dict[Scale, list[Decoder]] = {
    "smoke": [
        Decoder(label=f"{layers} × 1", training=smoke(k=k, chain_of_thought=chain, layers=layers))
        for chain in (True, False)
        for layers in (1, 2)
        for k in (1, 2)
    ],
    "laptop": _configs((1, 2, 3), ((1, 1), (1, 4), (2, 4)), 12, (400, 400), held_out=512, evaluate_every=20),
    "paper": [
        Decoder(
            label=f"{layers} × {heads}",
            training=paper(30, k, chain_of_thought=chain, layers=layers, heads=heads, learning_rate=rate),
        )
        for chain in (True, False)
        for layers in (1, 2, 3, 4)
        for heads in (1, 2, 3, 4)
        for k in (1, 2, 3, 4)
        for rate in PAPER_RATES
    ],
}


def plot(rows: Sequence[Row]) -> Figure:
    """Draw shapes × k as two heat maps with the counts written in."""
    shapes = list(dict.fromkeys(row.config["label"] for row in rows))
    ks = sorted({row.config["training"]["k"] for row in rows})
    figure, panels = new_figure(2.2 + 1.15 * len(shapes), 1.6 + 0.75 * 2 * len(ks), 2, 1, squeeze=False)
    counts = [math.log10(samples(row) or budget(row)) for row in rows]
    for axes, chain in zip(panels[:, 0], (True, False), strict=True):
        grid = [[float("nan")] * len(shapes) for _ in ks]
        for row in best_by(with_chain(rows, chain), "layers", "heads", "k").values():
            x, y = shapes.index(row.config["label"]), ks.index(row.config["training"]["k"])
            count = samples(row)
            grid[y][x] = math.log10(count or budget(row))
            text = f"> {budget(row) / 1000:.0f}k" if count is None else f"{count / 1000:.1f}k"
            middle = grid[y][x] > (min(counts) + max(counts)) / 2
            axes.text(x, y, text, ha="center", va="center", color="black" if middle else "white", fontsize=10)
        image = axes.imshow(grid, cmap=HEAT, aspect="auto", vmin=min(counts), vmax=max(counts) + 1e-9)
        axes.set(yticks=range(len(ks)), yticklabels=[f"k = {k}" for k in ks], xticks=range(len(shapes)))
        axes.set_xticklabels(shapes)
        axes.set_title("with CoT" if chain else "without CoT")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    panels[-1, 0].set_xlabel("layers × heads")
    figure.colorbar(image, ax=panels, label="log₁₀ of training examples", shrink=0.7)
    return figure


table = training_table


def findings(rows: Sequence[Row]) -> list[Finding]:
    """Count the shapes where CoT needs fewer samples, and compare growth per bit."""
    chain = best_by(with_chain(rows, True), "layers", "heads", "k")
    answer = best_by(with_chain(rows, False), "layers", "heads", "k")
    hard = [key for key in chain if key[2] > 1]
    fewer = sum((samples(chain[key]) or math.inf) < (samples(answer[key]) or math.inf) for key in hard)
    factors = {True: [], False: []}  # type: dict[bool, list[str]]
    for which, best in ((True, chain), (False, answer)):
        for shape in dict.fromkeys(key[:2] for key in best):
            points = [(key[2], float(samples(r) or budget(r))) for key, r in best.items() if key[:2] == shape]
            factors[which].append(f"{shape[0]} × {shape[1]}: {growth(points) or float('nan'):.1f}")
    return [
        Finding(
            "Training with CoT consistently needs fewer samples.",
            f"In {fewer} of {len(hard)} pairs of shape and k > 1 (for k = 1 the two tasks are the same).",
        ),
        Finding(
            "For every shape the samples without CoT grow exponentially with k; CoT is an exponential improvement.",
            f"Factor per bit without CoT (budgets that ended counted as reached, so lower bounds): "
            f"{'; '.join(factors[False])}. With CoT: {'; '.join(factors[True])}.",
        ),
    ]
