"""How well value and gradient of H1's risk are certified, against processor time: the spectral engine and the lattice.

Run: python benchmarks/certified.py. Writes docs/images/certified.png and prints the table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import torch

mpl.use("Agg")
import matplotlib.pyplot as plt

from parityscope.models import AdditiveScore, ZigZag
from parityscope.problems import Parity
from parityscope.risk import population_risk

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "certified.png"
SIZES, K = (50, 64, 100, 200, 1000), 3
# What is asked of the gradient; the first asks nothing. The lattice is asked by the tolerance of its value.
GRADIENTS, VALUES = (None, 1e-5, 1e-6, 1e-7), (1e-7, 1e-9)


class Weights(torch.nn.Module):
    """Free weights behind H1's readout."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(weights)

    def additive_score(self) -> AdditiveScore:
        return AdditiveScore(self.weights, torch.zeros((), dtype=torch.float64), ZigZag(K))


class Point(NamedTuple):
    """One call, and its processor time: the scan has two threads."""

    n: int
    attention: str
    engine: str
    seconds: float
    value: float
    gradient: float


def attentions(n: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield even, uneven and half-trained attention over n positions, of which the first three are hidden."""
    draw = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    hidden = (torch.arange(n) < K).double()
    yield "even", torch.full((n,), K / n, dtype=torch.float64)
    for spread in (0.5, 1.0, 2.0, 3.0):
        yield f"log-normal {spread:g}", K * torch.softmax(spread * draw, 0)
    yield "half-trained", 0.5 * hidden + 0.5 * K * torch.softmax(0.5 * draw, 0)
    yield "one-hot and dust", 0.97 * hidden + 0.03 * K * torch.softmax(draw, 0)


def points() -> Iterator[Point]:
    """Yield every call; even attention, whose weights are equal, is counted by the grouped engine."""
    for n in SIZES:
        for attention, weights in attentions(n):
            asked = [{"engine": "spectral", "gradient_tolerance": wanted} for wanted in GRADIENTS]
            asked += [{"engine": "lattice", "tolerance": wanted} for wanted in VALUES]
            for how in [{"engine": "grouped"}] if attention == "even" else asked:
                start = time.process_time()
                risk = population_risk(Weights(weights), Parity(n, tuple(range(K))), **how)
                seconds = time.process_time() - start
                gradient = math.inf if risk.gradient_bound is None else float(risk.gradient_bound)
                yield Point(n, attention, risk.engine, seconds, float(risk.error_bound), gradient)


def draw(measured: list[Point]) -> None:
    """Draw both bounds against seconds, one colour per n and one mark per engine."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), sharex=True, layout="constrained")
    marks = {"spectral": "o", "lattice": "x", "grouped": "s"}
    for panel, name in zip(panels, ("value", "gradient"), strict=True):
        for n, colour in zip(SIZES, plt.colormaps["viridis"](torch.linspace(0, 0.9, len(SIZES)).tolist()), strict=True):
            for engine, mark in marks.items():
                mine = [point for point in measured if (point.n, point.engine) == (n, engine)]
                panel.scatter(
                    [point.seconds for point in mine],
                    [getattr(point, name) for point in mine],
                    color=colour,
                    marker=mark,
                    s=22,
                    linewidths=1.2,
                )
        panel.set(xscale="log", yscale="log", xlabel="seconds of processor time", ylabel=f"proved bound on the {name}")
        panel.grid(alpha=0.3)
    colours = [plt.Line2D([], [], color=c, lw=4) for c in plt.colormaps["viridis"](torch.linspace(0, 0.9, 5).tolist())]
    panels[0].legend(colours, [f"n = {n}" for n in SIZES], fontsize=8, loc="upper right")
    shapes = [plt.Line2D([], [], color="black", marker=mark, lw=0) for mark in marks.values()]
    panels[1].legend(shapes, list(marks), fontsize=8, loc="lower left")
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    found = []
    for point in points():
        found.append(point)
        print(
            f"{point.n:5d}  {point.attention:<17} {point.engine:<9} {point.seconds:7.2f} s"
            f"  value {point.value:.1e}  gradient {point.gradient:.1e}",
            flush=True,
        )
    draw(found)
