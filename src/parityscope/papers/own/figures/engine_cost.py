"""What an exact population risk costs: time against n for every engine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import ClassVar

import torch
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.models import Cosine, ParityTransformer, ZigZag
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import Parity
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_risk

ID = "engine-cost"
TITLE = "The price of an exact population risk"
TEXT = (
    "Time for one value with its gradient (three heads, zig-zag readout, squared hinge, diffuse attention; the "
    "closed form has the cosine readout), against the number of bits. Enumeration doubles with every bit, split with"
    " every second one; grouped (all weights equal) and spectral (weights that differ by about 10 %) grow slowly "
    "with n, and the closed form linearly. Every point is exact to rounding, or has an estimated error below 1e-9."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 2, "reference": 14, "paper": 60}
TIMED = True  # rows are timings: never measured beside other work


class EngineTimingNumbers(Numbers):
    """The time of the quickest of several tries, and what was computed in it."""

    seconds: float
    value: float
    error_bound: float


class EngineTiming(Config):
    """One engine at one size."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = EngineTimingNumbers

    engine: str
    n: int
    k: int = 3
    spread: float = 0.1
    repeats: int = 3

    def run(self) -> Result:
        """Time one engine, best of several."""
        generator = torch.Generator().manual_seed(self.n)
        scores = self.spread * torch.randn(self.n, dtype=torch.float64, generator=generator)
        model = ParityTransformer(
            self.n,
            self.k,
            heads=1,
            temperature=1.0,
            positions=scores[:, None],
            directions=torch.ones(1, 1, dtype=torch.float64),
            readout=Cosine() if self.engine == "closed-form" else ZigZag(self.k),
        )
        problem = Parity(self.n, tuple(range(self.k)))
        seconds = math.inf
        for _ in range(self.repeats):
            started = time.perf_counter()
            risk = population_risk(model, problem, engine=self.engine)
            risk.value.backward()
            seconds = min(seconds, time.perf_counter() - started)
        value, error_bound = risk.value.item(), risk.error_bound.item()
        return Result(EngineTimingNumbers(seconds=seconds, value=value, error_bound=error_bound))


def _timings(sizes: dict[str, Sequence[int]]) -> list[EngineTiming]:
    equal = {"grouped": 0.0}
    return [EngineTiming(engine=name, n=n, spread=equal.get(name, 0.1)) for name, many in sizes.items() for n in many]


_Row = Row[EngineTiming, EngineTimingNumbers]

CONFIGS: dict[Scale, list[EngineTiming]] = {
    "smoke": _timings({"enumerate": (8, 10), "split": (8, 12), "grouped": (50,), "closed-form": (10, 100)}),
    "demo": _timings(
        {
            "enumerate": (10, 12, 14, 16, 18),
            "split": (10, 14, 18, 22, 26, 30, 34),
            "spectral": (500, 1000),
            "grouped": (50, 100, 200, 500, 1000),
            "closed-form": (10, 100, 1000, 10_000, 100_000),
        }
    ),
    "reference": _timings(
        {
            "enumerate": (10, 12, 14, 16, 18, 20, 22),
            "split": (10, 14, 18, 22, 26, 30, 34, 38, 42),
            "spectral": (300, 500, 1000, 2000),
            "grouped": (50, 100, 200, 500, 1000, 2000),
            "closed-form": (10, 100, 1000, 10_000, 100_000),
        }
    ),
    "paper": _timings(
        {
            "enumerate": (*range(10, 27, 2),),
            "split": (*range(10, 49, 2),),
            "spectral": (200, 500, 1000, 2000, 5000),
            "grouped": (50, 100, 200, 500, 1000, 2000),
            "closed-form": (10, 100, 1000, 10_000, 100_000),
        }
    ),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw time against n, both logarithmic, one line per engine."""
    figure, axes = new_figure(8.5, 5)
    for index, name in enumerate(dict.fromkeys(row.config.engine for row in rows)):
        mine = [row for row in rows if row.config.engine == name]
        sizes, seconds = [row.config.n for row in mine], [row.numbers.seconds for row in mine]
        axes.plot(sizes, seconds, "o-", color=colour(index), linewidth=2, markersize=5)
        # The two steep lines run close together: the left one is named on its left.
        side = {"xytext": (-7, 0), "ha": "right"} if name == "enumerate" else {"xytext": (7, 0), "ha": "left"}
        end = (sizes[-1], seconds[-1])
        axes.annotate(name, end, textcoords="offset points", va="center", color=colour(index), **side)
    axes.set(xscale="log", yscale="log", xlabel="bits n", ylabel="seconds, value and gradient")
    left, right = axes.get_xlim()
    axes.set_xlim(left / 2, right * 3)  # room for the names of the outer lines
    axes.grid(True, which="major", linewidth=0.5)
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return every point with its estimated error."""
    header = ["engine", "n", "seconds", "error bound"]
    return Table(
        header,
        [
            [
                row.config.engine,
                str(row.config.n),
                f"{row.numbers.seconds:.2g}",
                f"{row.numbers.error_bound:.0e}",
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Say how fast the two general engines grow."""

    def growth(name: str) -> str:
        mine = sorted((row.config.n, row.numbers.seconds) for row in rows if row.config.engine == name)
        (n0, first), (n1, last) = mine[-2], mine[-1]
        return f"{(last / first) ** (1 / (n1 - n0)):.2f}× per bit at n = {n1} ({last:.2g} s)"

    return [
        Finding(
            "(The papers enumerate or sample.)",
            f"Enumeration grows {growth('enumerate')}, split {growth('split')}.",
        )
    ]
