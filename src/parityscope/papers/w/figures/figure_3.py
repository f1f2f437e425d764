"""W, Figure 3: samples needed with chain of thought for large k, and where the trained decoder looks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.papers.figure import Finding, Scale
from parityscope.papers.w.figures.drawing import draw_map, draw_unreached
from parityscope.papers.w.settings import (
    PAPER_RATES,
    DecoderRow,
    ShownDecoder,
    best_by_k,
    budget,
    looking_right,
    narrow,
    paper,
    samples,
    smoke,
    solved,
    spoken,
    spoken_by_k,
    training_table,
)

ID = "W-figure-3"
TITLE = "W, Figure 3: many hidden bits with chain of thought, and sparse attention"
TEXT = (
    "Left: training examples until every held-out token is right, one layer and one head with chain of thought, against"
    " k; the line is the least-squares one, a triangle means that the budget ended first. Right: attention of the "
    "positions that predict, on one held-out input after the stated number of extra steps; squares mark the secret bit "
    "each next token depends on. The paper has n = 100 on the left; here n = 40 (the demo: 16)."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 23, "reference": 113, "paper": 1e6}
COUNT, MAP = "samples", "attention map"

CONFIGS: dict[Scale, list[ShownDecoder]] = {
    "smoke": [
        *(smoke(COUNT, 8, k) for k in (2, 4)),
        smoke(MAP, 8, 4, extra_steps=5),
    ],
    "demo": [
        *(narrow(COUNT, 16, k, steps=400, heads=4, held_out=512) for k in (2, 4, 8, 16)),
        narrow(MAP, 16, 8, steps=400, decay=False, extra_steps=100, held_out=512),
    ],
    "reference": [
        *(narrow(COUNT, 40, k, steps=400) for k in (5, 10, 20, 40)),
        narrow(MAP, 40, 20, steps=400, decay=False, extra_steps=200),
    ],
    "paper": [
        *(paper(COUNT, 100, k, learning_rate=rate) for k in (20, 40, 60, 80, 100) for rate in PAPER_RATES),
        paper(MAP, 40, 20, extra_steps=2000),
    ],
}


def plot(rows: Sequence[DecoderRow]) -> Figure:
    """Draw samples against k beside the attention map."""
    figure, (left, right) = new_figure(13, 4.8, 1, 2, width_ratios=(1, 1.5))
    best = best_by_k([row for row in rows if row.config.label == COUNT])
    done = solved(best.values())
    if done:
        ks = [row.config.training.k for row in done]
        left.plot(ks, [samples(row) for row in done], "o", color=colour(0), label="measured")
        line = _line(done)
        if line is not None:
            left.plot(ks, [line[0] + line[1] * k for k in ks], color=colour(1), label="least-squares line")
        left.legend()
    draw_unreached(left, best.values(), 0)
    left.set(xlabel="hidden bits k", ylabel="training examples until perfect")
    left.set_ylim(bottom=0)
    shown = next(row for row in rows if row.config.label == MAP)
    image = draw_map(right, shown)
    mean = shown.numbers.secret_attention
    right.set_title(f"{mean:.2f} of the attention on the secret bit, on average; step {shown.numbers.steps}")
    figure.colorbar(image, ax=right, label="attention", pad=0.01)
    return figure


def _line(rows: Sequence[DecoderRow]) -> tuple[float, float, float] | None:
    """Return intercept, slope and the share of variance of the least-squares line of samples on k."""
    if len(rows) < 3:
        return None
    k = torch.tensor([float(row.config.training.k) for row in rows], dtype=torch.float64)
    y = torch.tensor([float(samples(row) or 0) for row in rows], dtype=torch.float64)
    slope = ((k - k.mean()) * (y - y.mean())).sum() / ((k - k.mean()) ** 2).sum()
    intercept = y.mean() - slope * k.mean()
    residual = ((y - intercept - slope * k) ** 2).sum() / ((y - y.mean()) ** 2).sum().clamp(min=1e-9)
    return float(intercept), float(slope), 1 - float(residual)


table = training_table


def findings(rows: Sequence[DecoderRow]) -> list[Finding]:
    """Fit the line, and read the attention map."""
    best = best_by_k([row for row in rows if row.config.label == COUNT])
    line = _line(solved(best.values()))
    fit = "too few points for a line" if line is None else f"{line[1]:.0f} examples per bit, R² = {line[2]:.2f}"
    shown = next(row for row in rows if row.config.label == MAP)
    return [
        Finding(
            "The samples needed with CoT grow approximately linearly with k.",
            f"{spoken_by_k(best)}; {fit}.",
        ),
        Finding(
            "The i-th token of the chain predominantly attends to the i-th secret bit.",
            f"{looking_right(shown)} of {len(shown.numbers.secret)} chain positions look most at their secret bit; "
            f"on average {shown.numbers.secret_attention:.2f} of the attention is there, after "
            f"{shown.numbers.steps} steps (perfect from {spoken(samples(shown), budget(shown))} examples on).",
        ),
    ]
