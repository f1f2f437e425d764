"""What it takes to learn a parity: methods × sizes, the fewest examples of each, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import ClassVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.drawing import new_figure
from parityscope.papers.cells import draw_heat_map, ink_on
from parityscope.papers.figure import SCALES, Finding, Scale, TableColumn, fresh, table_of
from parityscope.papers.own.compare.method import (
    LEARNED,
    SUPERVISIONS,
    Budget,
    Method,
    Supervision,
    Unsuitable,
    fewest_examples,
    fresh_trials,
)
from parityscope.papers.own.compare.methods import METHODS, fourier_gap
from parityscope.problems import Parity, draw_problems
from parityscope.records import Config, Numbers, Result, Row
from parityscope.records.code import code_of_value
from parityscope.training.parts import OwnPart, PartField

ID = "compare"
TITLE = "What does it take to learn a parity?"
TEXT = (
    "The fewest examples with which each method learns the parity of k hidden bits of n, without noise and with 10 % "
    "of all labels and steps flipped. The number is chosen on eight other seeds, doubling from 32 until all eight "
    "classify more than 99 % of 2000 fresh inputs correctly; success is then counted on five fresh seeds (below the "
    "number where not all of them learn). Every method is told k. Methods below a line are also shown intermediate "
    "values: the partial products of a chain (W), or the nodes of a binary tree over the hidden bits (K). Grey: not "
    "within the budget of one training, 2¹⁸ examples, 3·10¹¹ multiply–adds and 4 processor seconds, and the largest "
    "number that was tried. A cross: the method is not made for this k. Colour: examples, on a logarithmic scale."
)
COST: dict[Scale, float] = {"smoke": 3, "demo": 15, "reference": 900}
_NOISES = (0.0, 0.1)


class CellNumbers(Numbers):
    """What a method needed and how it did on fresh seeds; of the last attempt where none was within the budget."""

    examples: int | None = None
    largest: int = 0  # that was tried
    accuracy: tuple[float, ...] = ()  # of fresh seeds
    gradient_steps: int = 0
    parameters: int = 0
    multiply_adds: float | None = None
    seconds: float = 0.0
    unsuitable: str | None = None

    @property
    def right(self) -> int:
        """How many fresh seeds learned."""
        return sum(one > LEARNED for one in self.accuracy)


class Cell(Config):
    """A method at one size: the table's of this name, or a function of one's own."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = CellNumbers

    method: str
    own: PartField | None = None
    supervision: Supervision
    n: int
    k: int
    noise: float
    seeds: tuple[int, ...]
    most_examples: int
    most_multiply_adds: float
    most_seconds: float

    def run(self) -> Result:
        """Find the fewest examples on other seeds, then count on fresh ones."""
        return Result(_measured(self, self._method()))

    def code(self) -> str:
        """Return a hash of what measures and of this method alone."""
        return code_of_value([_measured, self._method().solve])

    def _method(self) -> Method:
        # By the module's name, so that a row depends on its own method and not on all of the table.
        listed = import_module("parityscope.papers.own.compare.methods")
        return listed.named_method(self.method) if self.own is None else Method(self.own.value, self.supervision)


def _measured(cell: Cell, method: Method) -> CellNumbers:
    def problem_of(seed: int) -> Parity:
        return draw_problems(cell.n, cell.k, [seed], noise=cell.noise)[0]

    budget = Budget(cell.most_examples, cell.most_multiply_adds, cell.most_seconds)
    try:
        climb = fewest_examples(method, problem_of, budget)
    except Unsuitable as reason:
        return CellNumbers(unsuitable=str(reason))
    trials = [] if climb.examples is None else fresh_trials(method, problem_of, climb.examples, cell.seeds)
    shown = trials or [climb.last]
    return CellNumbers(
        examples=climb.examples,
        largest=climb.largest,
        accuracy=tuple(one.accuracy for one in trials),
        gradient_steps=max(one.answer.gradient_steps for one in shown),
        parameters=shown[0].answer.parameters,
        multiply_adds=shown[-1].answer.multiply_adds,
        seconds=sum(one.seconds for one in shown) / len(shown),
    )


_Row = Row[Cell, CellNumbers]


_SIZES: dict[Scale, tuple[Sequence[tuple[int, int]], int, Budget]] = {
    "smoke": (((12, 2),), 2, Budget(2**9, seconds=0.5)),
    "demo": (((20, 3), (32, 8)), 5, Budget(2**14, seconds=0.5)),
    "reference": (((20, 3), (20, 5), (50, 3), (100, 5), (32, 8), (64, 32)), 5, Budget()),
}


def cells(scale: Scale, method: str, supervision: Supervision, own: OwnPart | None = None) -> list[Cell]:
    """Return the line of a method at a scale.

    >>> [(cell.n, cell.k, cell.noise) for cell in cells("smoke", "fit", "labels")]
    [(12, 2, 0.0), (12, 2, 0.1)]
    """
    points, seeds, budget = _SIZES[scale]
    most = {f"most_{what}": value for what, value in budget._asdict().items()}
    return [
        Cell(method=method, own=own, supervision=supervision, n=n, k=k, noise=noise, seeds=tuple(fresh(seeds)), **most)
        for n, k in points
        for noise in _NOISES
    ]


_SLOW = ("bounded", "H1 as coded", "W's decoder", "W's decoder, chain", "K, teacher forcing", "K, self-consistency")
CONFIGS: dict[Scale, list[Cell]] = {
    scale: [
        cell
        for name, method in METHODS.items()
        if scale == "reference" or name not in _SLOW
        for cell in cells(scale, name, method.supervision)
    ]
    for scale in SCALES
}


def _lines(rows: Sequence[_Row]) -> list[str]:
    """Return the methods, those with the least supervision first."""
    ordered = sorted(rows, key=lambda row: SUPERVISIONS.index(row.config.supervision))
    return list(dict.fromkeys(row.config.method for row in ordered))


def _short(count: int) -> str:
    """Return a count in a few characters.

    >>> [_short(count) for count in (32, 4096, 131072)]
    ['32', '4.1k', '130k']
    """
    return f"{float(f'{count / 1000:.2g}'):g}k" if count >= 1000 else f"{count}"


def _draw(ax: Axes, rows: Sequence[_Row], lines: Sequence[str], span: tuple[float, float]) -> None:
    sizes = list(dict.fromkeys((row.config.n, row.config.k) for row in rows))
    grid = [[math.nan] * len(sizes) for _ in lines]
    for row in rows:
        x, y = sizes.index((row.config.n, row.config.k)), lines.index(row.config.method)
        numbers = row.numbers
        if numbers.examples is None:
            beyond = "×" if numbers.unsuitable else f"> {_short(numbers.largest)}"
            ax.text(x, y, beyond, ha="center", va="center", color="grey", fontsize=8)
            continue
        grid[y][x] = -math.log10(numbers.examples)
        missed = "" if numbers.right == len(numbers.accuracy) else f"\n{numbers.right}/{len(numbers.accuracy)}"
        ink = ink_on((grid[y][x] - span[0]) / (span[1] - span[0]))
        ax.text(x, y, _short(numbers.examples) + missed, ha="center", va="center", color=ink, fontsize=9)
    draw_heat_map(ax, grid, [f"n = {n}\nk = {k}" for n, k in sizes], lines, span=span)


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw the fewest examples of every method and size, a panel for each noise."""
    lines, noises = _lines(rows), list(dict.fromkeys(row.config.noise for row in rows))
    counts = [math.log10(row.numbers.examples) for row in rows if row.numbers.examples is not None] or [1.0]
    sizes = len({(row.config.n, row.config.k) for row in rows})
    figure, axes = new_figure(
        3 + 0.85 * sizes * len(noises), 1.6 + 0.42 * len(lines), 1, len(noises), sharey=True, squeeze=False
    )
    shown = {row.config.method: row.config.supervision for row in rows}
    for ax, noise in zip(axes[0], noises, strict=True):
        some = [row for row in rows if row.config.noise == noise]
        _draw(ax, some, lines, (-max(counts) - 0.5, -min(counts)))
        ax.set_title(f"{noise:.0%} noise" if noise else "no noise")
        for place, (above, below) in enumerate(pairwise(lines)):
            if shown[above] != shown[below]:
                ax.axhline(place + 0.5, linewidth=1.5, color="grey")
    return figure


def _examples(row: _Row) -> str:
    numbers = row.numbers
    return numbers.unsuitable or (f"{numbers.examples:,}" if numbers.examples else f"> {numbers.largest:,}")


def _learned(row: _Row) -> str | None:
    return f"{row.numbers.right}/{len(row.numbers.accuracy)}" if row.numbers.accuracy else None


table = table_of(
    TableColumn("method", lambda row: row.config.method),
    TableColumn("shown", lambda row: row.config.supervision.removeprefix("labels and a ")),
    TableColumn("n", lambda row: row.config.n),
    TableColumn("k", lambda row: row.config.k),
    TableColumn("noise", lambda row: row.config.noise, ".0%"),
    TableColumn("examples", _examples),
    TableColumn("steps", lambda row: row.numbers.gradient_steps, ","),
    TableColumn("parameters", lambda row: row.numbers.parameters, ","),
    TableColumn("multiply–adds", lambda row: row.numbers.multiply_adds, ".1e"),
    TableColumn("seconds", lambda row: row.numbers.seconds, ".2g"),
    TableColumn("learned", _learned),
)


def _learns(row: _Row) -> bool:
    return 2 * row.numbers.right > len(row.numbers.accuracy)


def _best(rows: Sequence[_Row], noise: float) -> str:
    """Say which of these methods needs fewest examples at every size, of those with which most fresh seeds learned."""
    some, said = [row for row in rows if row.config.noise == noise], list[str]()
    for n, k in dict.fromkeys((row.config.n, row.config.k) for row in some):
        able = [row for row in some if (row.config.n, row.config.k) == (n, k) and _learns(row)]
        best = min(able, key=lambda row: row.numbers.examples or 0, default=None)
        said.append(f"({n}, {k}) " + (f"{best.config.method} {best.numbers.examples:,}" if best else "none"))
    return "; ".join(said)


def _operations(rows: Sequence[_Row]) -> str:
    """Say what one training took, of the methods that most fresh seeds learned with, fewest first."""
    able = [row for row in rows if _learns(row)]
    counted = sorted((row.numbers.multiply_adds, row.config.method) for row in able if row.numbers.multiply_adds)
    others = [f"{row.config.method} not counted" for row in able if not row.numbers.multiply_adds]
    return "; ".join([*(f"{method} {operations:.1e}" for operations, method in counted), *others]) or "none"


def _against_gap(rows: Sequence[_Row]) -> str:
    """Set what an MLP needs beside one over the square of the Fourier gap."""
    said = []
    for row in rows:
        if row.config.method == "MLP, SGD" and not row.config.noise:
            gap = fourier_gap(row.config.n, row.config.k)
            said.append(f"({row.config.n}, {row.config.k}) {1 / gap**2:.2g}, needed {_examples(row)}")
    return "; ".join(said)


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Say who needs fewest examples by what is shown and how it learns, and what the Fourier gap says of an MLP."""
    groups = {
        f"{shown}, {how}": [
            row
            for row in rows
            if (row.config.supervision == "labels") == alone and (row.numbers.gradient_steps > 0) == by_gradients
        ]
        for shown, alone in (("from labels alone", True), ("where steps are shown", False))
        for how, by_gradients in (("without gradients", False), ("by gradients", True))
    }
    n, k = max(((row.config.n, row.config.k) for row in rows), key=lambda size: size[1])
    fewest = [
        Finding(f"(Our question.) Fewest examples {which}, {noise:.0%} noise", _best(some, noise))
        for which, some in groups.items()
        for noise in _NOISES
    ]
    return [
        *fewest,
        Finding(
            f"(Our question.) Multiply–adds of one training with that many examples, ({n}, {k}), 0% noise",
            _operations([row for row in rows if (row.config.n, row.config.k, row.config.noise) == (n, k, 0.0)]),
        ),
        Finding(
            "Barak and others (2022): a neuron's first gradient tells hidden bits from others by the Fourier gap γ of "
            "a threshold function, so it takes about 1/γ² examples; an MLP",
            _against_gap(rows),
        ),
    ]
