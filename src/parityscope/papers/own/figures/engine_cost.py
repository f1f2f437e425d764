"""What an exact population risk costs: time against n for every engine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.models import Cosine, ParityTransformer, ZigZag
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.problems import Parity
from parityscope.records import Config, Numbers, Result, Row
from parityscope.risk import population_risk
from parityscope.risk.cards import AUTO

ID = "engine-cost"
TITLE = "The price of an exact population risk"
TEXT = (
    "CPU time for one value with its gradient (one head of mass 3, zig-zag readout, squared hinge), against the number "
    "of bits. Left, engine by engine: enumeration doubles with every bit, split with every second one; grouped (even "
    "attention), spectral and lattice (weights that differ by about 10 %, log-normal ones) grow slowly with n, and the "
    "closed form (the cosine readout) linearly. Right, the engine chosen automatically for a stated tolerance: "
    "even attention, log-normal attention, and attention that has half of its mass on the hidden bits; a point has the "
    "colour of the chosen engine. Every point has a proved error; the table says which."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 3, "reference": 50}
TIMED = True  # rows are timings: never measured beside other work
Attention = Literal["even", "nearly even", "log-normal", "half-trained"]
_SPREAD: dict[Attention, float] = {"even": 0.0, "nearly even": 0.1, "log-normal": 1.0, "half-trained": 1.0}
_ASKED: tuple[Attention, ...] = ("even", "log-normal", "half-trained")
_LINES = {"even": "-", "log-normal": "--", "half-trained": ":"}


def log_attention(kind: Attention, n: int, k: int) -> Tensor:
    """Return the logarithm of attention on n bits, the first k of them hidden, up to a constant."""
    scores = _SPREAD[kind] * torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    if kind == "half-trained":
        scores[:k] = scores[k:].logsumexp(0) - math.log(k)
    return scores


class EngineTimingNumbers(Numbers):
    """The CPU time of the quickest of several tries, and what was computed in it."""

    seconds: float
    value: float
    error_bound: float
    engine: str


class EngineTiming(Config):
    """One engine at one size, or the one that `auto` takes."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = EngineTimingNumbers

    engine: str
    n: int
    k: int = 3
    attention: Attention = "nearly even"
    tolerance: float = 1e-9
    repeats: int = 3

    def run(self) -> Result:
        """Time one engine, best of several."""
        model = ParityTransformer(
            self.n,
            self.k,
            heads=1,
            temperature=1.0,
            positions=log_attention(self.attention, self.n, self.k)[:, None],
            directions=torch.ones(1, 1, dtype=torch.float64),
            readout=Cosine() if self.engine == "closed-form" else ZigZag(self.k),
        )
        problem = Parity(self.n, tuple(range(self.k)))
        seconds = math.inf
        for _ in range(self.repeats):
            started = time.process_time()
            risk = population_risk(model, problem, engine=self.engine, tolerance=self.tolerance)
            risk.value.backward()
            seconds = min(seconds, time.process_time() - started)
        value, error_bound = risk.value.item(), risk.error_bound.item()
        return Result(EngineTimingNumbers(seconds=seconds, value=value, error_bound=error_bound, engine=risk.engine))


def _timings(sizes: dict[str, Sequence[int]]) -> list[EngineTiming]:
    kinds: dict[str, Attention] = {"grouped": "even", "lattice": "log-normal"}
    return [
        EngineTiming(engine=name, n=n, attention=kinds.get(name, "nearly even"), repeats=1 if name == "lattice" else 3)
        for name, many in sizes.items()
        for n in many
    ]


def _asked(sizes: Sequence[int], tolerance: float) -> list[EngineTiming]:
    """Return every kind of attention at every size, whatever engine answers."""
    return [
        EngineTiming(engine=AUTO, n=n, attention=kind, tolerance=tolerance, repeats=1) for kind in _ASKED for n in sizes
    ]


_Row = Row[EngineTiming, EngineTimingNumbers]

CONFIGS: dict[Scale, list[EngineTiming]] = {
    "smoke": _timings({"enumerate": (8, 10), "split": (8, 12), "grouped": (50,), "closed-form": (10, 100)})
    + _asked((12, 50), 1e-6),
    "demo": _timings(
        {
            "enumerate": (10, 12, 14, 16, 18),
            "split": (10, 14, 18, 22, 26, 30, 34),
            "spectral": (500, 1000),
            "lattice": (60,),
            "grouped": (50, 100, 200, 500, 1000),
            "closed-form": (10, 100, 1000, 10_000, 100_000),
        }
    )
    + _asked((12, 20, 30, 40, 60, 100, 200), 1e-6),
    "reference": _timings(
        {
            "enumerate": (10, 12, 14, 16, 18, 20, 22),
            "split": (10, 14, 18, 22, 26, 30, 34, 38, 42),
            "spectral": (300, 500, 1000, 2000),
            "lattice": (50, 60, 80, 100),
            "grouped": (50, 100, 200, 500, 1000, 2000),
            "closed-form": (10, 100, 1000, 10_000, 100_000),
        }
    )
    + _asked((12, 20, 30, 40, 60, 100, 200, 1000), 1e-9),
}


def _by_auto(rows: Sequence[_Row]) -> list[_Row]:
    return [row for row in rows if row.config.engine == AUTO]


def _side_of(name: str) -> dict[str, Any]:
    """Return where a line's name stands: the steep ones end side by side."""
    if name in ("split", "lattice"):
        return {"xytext": (0, 7 if name == "split" else 20), "ha": "center", "va": "bottom"}
    return {
        "xytext": (-7, 0) if name == "enumerate" else (7, 0),
        "ha": "right" if name == "enumerate" else "left",
        "va": "center",
    }


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw time against n, both logarithmic: one line per engine, and one per kind of attention."""
    figure, (left, right) = new_figure(13.5, 5, 1, 2, sharey=True)
    named = [row for row in rows if row.config.engine != AUTO]
    hues = {name: colour(index % 6) for index, name in enumerate(dict.fromkeys(row.config.engine for row in named))}
    for name, hue in hues.items():
        mine = [row for row in named if row.config.engine == name]
        sizes, seconds = [row.config.n for row in mine], [row.numbers.seconds for row in mine]
        left.plot(sizes, seconds, "o-", color=hue, linewidth=2, markersize=5)
        left.annotate(name, (sizes[-1], seconds[-1]), textcoords="offset points", color=hue, **_side_of(name))
    left.set(xscale="log", ylabel="CPU seconds, value and gradient")
    start, end = left.get_xlim()
    left.set_xlim(start / 2, end * 3)  # room for the names of the outer lines
    left.set_title("engine by engine", fontsize=11)
    _draw_asked(right, _by_auto(rows), hues)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="bits n")
        axes.grid(True, which="major", linewidth=0.5)
    return figure


def _draw_asked(axes: Axes, rows: Sequence[_Row], hues: dict[str, str]) -> None:
    for kind in _ASKED:
        mine = [row for row in rows if row.config.attention == kind]
        sizes, seconds = [row.config.n for row in mine], [row.numbers.seconds for row in mine]
        axes.plot(sizes, seconds, _LINES[kind], color="#888888", linewidth=1.5, label=kind, zorder=1)
        axes.scatter(sizes, seconds, s=34, color=[hues.get(row.numbers.engine, "#888888") for row in mine], zorder=2)
    axes.legend(title="attention", loc="upper left", fontsize=9)
    axes.set_title(f"whichever answers to {rows[0].config.tolerance:.0e}", fontsize=11)


table = table_of(
    TableColumn("requested engine", lambda row: row.config.engine),
    TableColumn("attention", lambda row: row.config.attention),
    TableColumn("n", lambda row: row.config.n),
    TableColumn("engine used", lambda row: row.numbers.engine),
    TableColumn("seconds", lambda row: row.numbers.seconds, ".2g"),
    TableColumn("error bound", lambda row: row.numbers.error_bound, ".0e"),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Say how fast the two general engines grow, and how far any attention is answered."""

    def growth(name: str) -> str:
        mine = sorted((row.config.n, row.numbers.seconds) for row in rows if row.config.engine == name)
        (n0, first), (n1, last) = mine[-2], mine[-1]
        return f"{(last / first) ** (1 / (n1 - n0)):.2f}× per bit at n = {n1} ({last:.2g} s)"

    asked = _by_auto(rows)
    slowest = max(asked, key=lambda row: row.numbers.seconds)
    return [
        Finding(
            "(The papers enumerate or sample.)",
            f"Enumeration grows {growth('enumerate')}, split {growth('split')}.",
        ),
        Finding(
            "(No engine alone covers every n.)",
            f"Even, log-normal and half-trained attention at n = {min(row.config.n for row in asked)} to "
            f"{max(row.config.n for row in asked)}: {len(asked)} risks, all computed with an error of at most "
            f"{max(row.numbers.error_bound for row in asked):.0e}; the slowest, {slowest.config.attention} at n = "
            f"{slowest.config.n}, takes {slowest.numbers.seconds:.2g} s by {slowest.numbers.engine}.",
        ),
    ]
