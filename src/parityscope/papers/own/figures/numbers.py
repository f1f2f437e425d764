"""What learning costs, method by method: trained parameters, steps, processor time, and seeds that learned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import Share, median, wilson_share
from parityscope.papers.cells import of_learned
from parityscope.papers.figure import Finding, Scale, TableColumn, fresh, table_of
from parityscope.records import Config, Numbers, Result, Row
from parityscope.runs import training
from parityscope.runs.training import Training, TrainingNumbers

ID = "P-numbers"
TITLE = "What learning costs: parameters, steps and time"
TEXT = (
    "Every method that learns any k of n hidden bits, on the same hidden sets: how many parameters it trains, "
    "the median number of steps, and processor seconds for one seed, on the machine that ran this (building the "
    "position code, training, and measuring what was learned). A run stops at C > 0.996, or after its recipe's steps "
    "(1000 for gradient ascent), and has learned if it recovers the support and classifies nearly all inputs "
    "correctly. Full markers: every seed learned; hollow: some; a cross: none, with the steps and the time that were "
    "spent. The grey line is min(2k, n − 1), what any code needs to hold every set of k with one head. Where a method "
    "has no marker it was not run, which says nothing about it; large sizes have few seeds (see the table). Seeds from "
    "1000 on. All train on the population, whose gradient contains the hidden bits."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 3, "reference": 180}
TIMED = True  # rows are timings: never measured beside other work


class _Method(NamedTuple):
    """A recipe with changes, and how it is drawn.

    >>> _METHODS["concave, 2k harmonics, Newton"].changes
    {'positions': 'harmonics'}
    """

    recipe: str
    changes: dict[str, Any]
    marker: str
    hue: int


_METHODS: dict[str, _Method] = {
    "bounded, k heads": _Method("bounded", {}, "s", 1),
    "concave, 2k log n signs, Newton": _Method("concave", {}, "o", 0),
    "concave, 2k log n signs, L-BFGS": _Method("concave", {"optimiser": "lbfgs"}, "^", 0),
    "concave, 2k log n signs, gradient ascent": _Method("concave", {"optimiser": "armijo"}, "v", 0),
    "concave, 2k harmonics, Newton": _Method("concave", {"positions": "harmonics"}, "*", 2),
    "mirror, 2k log n signs": _Method("mirror", {}, "D", 3),
    "mirror, one number per position": _Method("mirror", {"positions": "orthogonal"}, "P", 3),
    "repaired circle, k heads": _Method("repaired", {}, "h", 4),
    "one-step, 3k log n signs, Gauss–Newton": _Method("one-step", {}, "X", 5),
}


class CostNumbers(Numbers):
    """What a training found, and the processor time it took."""

    learned: tuple[bool, ...]
    steps: tuple[int, ...]
    parameters: int
    cpu_seconds: float  # of all seeds, on the machine of this row

    @property
    def share(self) -> Share:
        """The share of seeds that learned, with Wilson's 95 % interval."""
        return wilson_share(sum(self.learned), len(self.learned))

    @property
    def median_steps(self) -> float:
        """The median of the steps of the seeds that learned; of all where none did."""
        return median(of_learned(self, self.steps) or self.steps)


class Cost(Config):
    """One method at one size; a row of its own, not a training's, because it is timed."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CostNumbers

    method: str
    training: Training

    def run(self) -> Result:
        """Train all seeds, and count processor time."""
        started = time.process_time()
        found = self.training.run().numbers
        seconds = time.process_time() - started
        assert isinstance(found, TrainingNumbers)
        return Result(
            CostNumbers(learned=found.learned, steps=found.steps, parameters=found.parameters, cpu_seconds=seconds)
        )


_Row = Row[Cost, CostNumbers]
_Seeds = dict[tuple[int, int], int]


def _costs(default: _Seeds, **other: _Seeds) -> list[Cost]:
    """Return every method at every size with so many seeds; `other` has those of methods by their short name."""
    chosen = []
    for name, method in _METHODS.items():
        sizes = other.get(_short(name), default)
        for (n, k), seeds in sizes.items():
            trained = training(method.recipe, n, k, seeds=fresh(seeds), **method.changes)
            chosen.append(Cost(method=name, training=trained))
    return chosen


def _short(name: str) -> str:
    """Return the name under which a method's own sizes are given."""
    method = _METHODS[name]
    return "_".join(
        (method.recipe.replace("-", "_"), *(str(value).replace("-", "_") for value in method.changes.values()))
    )


_SMALL = {(20, 3): 32, (100, 5): 32}
_LARGE: _Seeds = {**_SMALL, (1000, 10): 32, (10_000, 10): 8, (100_000, 20): 2}
CONFIGS: dict[Scale, list[Cost]] = {
    "smoke": _costs({(8, 2): 2}, concave_armijo={}, mirror={}),
    "demo": _costs(
        {(20, 3): 4, (100, 5): 4, (1000, 10): 1},
        concave_armijo={},
        concave_harmonics={(20, 3): 4},
        mirror={},
        mirror_orthogonal={(20, 3): 4},
        repaired={(20, 3): 2},
    ),
    "reference": _costs(
        _LARGE,
        bounded={**_SMALL, (1000, 10): 32, (10_000, 10): 4},
        concave_armijo={**_SMALL, (1000, 10): 8},
        concave_harmonics={**_SMALL, (1000, 10): 4},
        mirror={**_SMALL, (1000, 10): 4},
        mirror_orthogonal={**_SMALL, (1000, 10): 4},
        repaired=_SMALL,
        one_step={**_SMALL, (1000, 10): 32, (10_000, 10): 8, (100_000, 20): 1},
    ),
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw parameters, steps and seconds against the sizes."""
    sizes = list(dict.fromkeys(sorted(map(_size, rows))))
    figure, panels = new_figure(13.5, 5.6, 1, 3)
    quantities: list[tuple[str, Callable[[_Row], float]]] = [
        ("trained parameters", lambda row: row.numbers.parameters),
        ("median steps", lambda row: row.numbers.median_steps),
        ("processor seconds a seed", lambda row: row.numbers.cpu_seconds / len(row.config.training.seeds)),
    ]
    for axes, (name, value) in zip(panels, quantities, strict=True):
        for index, method in enumerate(_METHODS):
            mine = [row for row in rows if row.config.method == method]
            if mine:
                _draw_method(axes, mine, sizes, value, method, 0.035 * (index - (len(_METHODS) - 1) / 2))
        axes.set_xticks(range(len(sizes)), [f"{_bits(n)}\n{k}" for n, k in sizes])
        axes.set(yscale="log", title=name, xlim=(-0.45, len(sizes) - 0.55))
        axes.annotate("n\nk", (0, 0), (-14, -4.5), "axes fraction", "offset points", ha="right", va="top", fontsize=11)
        axes.grid(axis="y", linewidth=0.6)
    least = [min(2 * k, n - 1) for n, k in sizes]
    panels[0].plot(range(len(sizes)), least, color="#888888", linewidth=5, alpha=0.35, label="min(2k, n − 1)", zorder=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    return figure


def _bits(n: int) -> str:
    power = len(str(n)) - 1
    return str(n) if power < 4 else f"$10^{power}$"


def _draw_method(
    axes: Axes,
    rows: Sequence[_Row],
    sizes: Sequence[tuple[int, int]],
    value: Callable[[_Row], float],
    method: str,
    shift: float,
) -> None:
    drawn = _METHODS[method]
    hue, places = colour(drawn.hue), {size: place + shift for place, size in enumerate(sizes)}
    at = [places[_size(row)] for row in rows]
    axes.plot(at, list(map(value, rows)), "-", color=hue, linewidth=0.8, alpha=0.5)
    axes.plot([], [], drawn.marker, linestyle="-", color=hue, markersize=7, label=method)
    for place, row in zip(at, rows, strict=True):
        share = row.numbers.share
        marker = drawn.marker if share.successes else "x"
        full = hue if share.successes == share.trials else "none"
        axes.plot(place, value(row), marker, color=hue, markerfacecolor=full, markersize=7)


def _size(row: _Row) -> tuple[int, int]:
    return row.config.training.n, row.config.training.k


table = table_of(
    TableColumn("n", lambda row: row.config.training.n),
    TableColumn("k", lambda row: row.config.training.k),
    TableColumn("method", lambda row: row.config.method),
    TableColumn("parameters", lambda row: row.numbers.parameters),
    TableColumn("learned", lambda row: row.numbers.share),
    TableColumn("median steps", lambda row: row.numbers.median_steps, "g"),
    TableColumn("most steps", lambda row: max(row.numbers.steps)),
    TableColumn("CPU seconds a seed", lambda row: row.numbers.cpu_seconds / len(row.config.training.seeds), ".2g"),
    lines=lambda rows: sorted(rows, key=_size),
)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Set the concave head beside the default at the largest size that both have."""
    ours, other = "concave, 2k log n signs, Newton", "bounded, k heads"
    by_method = {method: {_size(row): row for row in rows if row.config.method == method} for method in _METHODS}
    n, k = max(set(by_method[ours]) & set(by_method[other]))
    largest = max(rows, key=lambda row: (row.config.training.n, -row.numbers.parameters))

    def said(row: _Row) -> str:
        of = row.numbers
        return f"{of.parameters} parameters, {of.median_steps:g} steps, {of.share} seeds learned"

    return [
        Finding(
            f"(Ours: min(2k, n − 1) = {min(2 * k, n - 1)} parameters are the least that represent every {k} of {n} "
            "bits.)",
            f"At n = {n}, k = {k} the recipe bounded takes {said(by_method[other][n, k])}; one concave head "
            f"{said(by_method[ours][n, k])}. The largest problem is n = {largest.config.training.n}, "
            f"k = {largest.config.training.k}: {largest.config.method}, {said(largest)}.",
        )
    ]
