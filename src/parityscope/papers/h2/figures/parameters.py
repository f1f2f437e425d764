"""The fewest trainable numbers per head with which one step works, against d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import median
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.papers.h2.one_gradient import fitted_exponent, smallest_code
from parityscope.records import Config, Numbers, Result, Row
from parityscope.theory import polylog_numbers

ID = "H2-parameters"
TITLE = "Parameters against d"
TEXT = (
    "The smallest number r of random signs per position, and so of trainable numbers per head, with which the best"
    " single step from uniform attention loses less than 0.5 on every input: every seed and the median. Dashed: the"
    " ⌈log² d⌉ of our reading of H2. Dotted: 2 log₂ d; the two hidden codes agree with each other in about r/2 signs,"
    " and another position draws level with them only by agreeing in all of those. A network that sees every bit has"
    " at least d parameters."
)
COST: dict[Scale, float] = {"smoke": 0.5, "demo": 3, "reference": 22, "paper": 120}


class SmallestCodeNumbers(Numbers):
    """The fewest numbers per head of every seed; none where `most` were too few."""

    smallest: tuple[int | None, ...]
    most: int

    @property
    def median(self) -> float:
        """The median over seeds, infinite where most of them need more than was tried."""
        return median(math.inf if r is None else r for r in self.smallest)


class SmallestCode(Config):
    """The search at one d, with some seeds."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = SmallestCodeNumbers

    n: int
    seeds: int

    def run(self) -> Result:
        """Find the smallest code of every seed."""
        most = 16 * math.ceil(math.log(self.n))
        found = [smallest_code(self.n, seed, most) for seed in range(self.seeds)]
        return Result(SmallestCodeNumbers(smallest=tuple(found), most=most))


_Row = Row[SmallestCode, SmallestCodeNumbers]

CONFIGS: dict[Scale, list[SmallestCode]] = {
    "smoke": [SmallestCode(n=100, seeds=3), SmallestCode(n=1000, seeds=3)],
    "demo": [
        *(SmallestCode(n=n, seeds=9) for n in (100, 300, 1000, 3000, 10_000)),
        SmallestCode(n=30_000, seeds=5),
        SmallestCode(n=100_000, seeds=3),
    ],
    "reference": [
        *(SmallestCode(n=n, seeds=15) for n in (100, 300, 1000, 3000, 10_000)),
        SmallestCode(n=30_000, seeds=9),
        SmallestCode(n=100_000, seeds=5),
        SmallestCode(n=1_000_000, seeds=2),
    ],
    "paper": [*(SmallestCode(n=n, seeds=31) for n in (100, 1000, 10_000, 100_000)), SmallestCode(n=1_000_000, seeds=9)],
}


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw r against d on a logarithmic d axis."""
    figure, axes = new_figure(7.5, 4.2)
    sizes = [row.config.n for row in rows]
    for row in rows:
        known = [r for r in row.numbers.smallest if r is not None]
        axes.plot([row.config.n] * len(known), known, "o", color=colour(0), alpha=0.35, markersize=4)
    axes.plot(sizes, [row.numbers.median for row in rows], "o-", color=colour(0), label="smallest r, median")
    axes.plot(sizes, [polylog_numbers(n) for n in sizes], "--", color=colour(1), label="⌈log² d⌉")
    axes.plot(sizes, [2 * math.log2(n) for n in sizes], ":", color=colour(2), label="2 log₂ d")
    axes.set(xscale="log", xlabel="d", ylabel="numbers per head r", ylim=(0, None))
    axes.legend(loc="upper left")
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return every size."""
    return Table(
        ["d", "seeds", "smallest r, median", "range", "⌈log² d⌉", "2 log₂ d"],
        [
            [
                str(row.config.n),
                str(row.config.seeds),
                f"{row.numbers.median:g}",
                f"{min(known)} to {max(known)}" if (known := [r for r in row.numbers.smallest if r]) else "–",
                str(polylog_numbers(row.config.n)),
                f"{2 * math.log2(row.config.n):.0f}",
            ]
            for row in rows
        ],
    )


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Fit the growth in log d."""
    power = fitted_exponent([math.log(row.config.n) for row in rows], [row.numbers.median for row in rows])
    last = rows[-1]
    return [
        Finding(
            "O(polylog d) trainable parameters suffice.",
            f"The smallest r grows like (log d)^{power:.2f} and reaches {last.numbers.median:g} numbers per head at"
            f" d = {last.config.n:,}, where 2 log₂ d is {2 * math.log2(last.config.n):.0f} and ⌈log² d⌉ is"
            f" {polylog_numbers(last.config.n)}.",
        )
    ]
