"""Trainings that differ in their seed only: medians, ranges, how many were reached, and laws fitted to all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, TypeVar

from parityscope.core.statistics import median
from parityscope.papers.w.settings import DecoderRow, budget, samples
from parityscope.training.decoders import DecoderSettings

_Group = TypeVar("_Group", bound=Hashable)
_TWO_SIDED = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Cell:
    """The trainings of one setting, one per seed.

    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> found = [DecoderNumbers.model_construct(samples=(count,)) for count in (500, 900, None)]
    >>> cell = Cell(tuple(Row(smoke("", seed=seed), numbers) for seed, numbers in enumerate(found)))
    >>> cell.reached, cell.median, str(cell)
    (2, 900.0, '900 (500–900; 2 of 3 seeds)')
    """

    rows: tuple[DecoderRow, ...]

    @property
    def needed(self) -> list[int]:
        """The samples of the seeds that got everything right, the fewest first."""
        return sorted(count for row in self.rows if (count := samples(row)) is not None)

    @property
    def reached(self) -> int:
        """How many seeds got everything right."""
        return len(self.needed)

    @property
    def median(self) -> float | None:
        """The median of the samples needed, a seed whose budget ended counting as never; none: that is the median."""
        never = [math.inf] * (len(self.rows) - self.reached)
        middle = median([*self.needed, *never])
        return None if math.isinf(middle) else middle

    @property
    def budget(self) -> int:
        """The samples a training may see."""
        return max(map(budget, self.rows))

    def __str__(self) -> str:
        if not self.needed:
            return f"more than {self.budget:,} ({_seeds(0, len(self.rows))})"
        middle = f"more than {self.budget:,}" if self.median is None else f"{self.median:,.0f}"
        if len(self.rows) == 1:
            return middle
        return f"{middle} ({self.needed[0]:,}–{self.needed[-1]:,}; {_seeds(self.reached, len(self.rows))})"


def _seeds(reached: int, count: int) -> str:
    return f"all {count} seeds" if reached == count else f"{reached} of {count} seeds"


def cells_by(rows: Iterable[DecoderRow], group: Callable[[DecoderSettings], _Group]) -> dict[_Group, Cell]:
    """Return the trainings of every group over their seeds; of several rates the best, as W picks it.

    The best rate is the one that most seeds reach, and of those the one with the lowest median.

    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> def row(rate, seed, count):
    ...     numbers = DecoderNumbers.model_construct(samples=(count,))
    ...     return Row(smoke("", learning_rate=rate, seed=seed), numbers)
    >>> rows = [row(1e-3, 0, 100), row(1e-3, 1, None), row(2e-3, 0, 300), row(2e-3, 1, 300)]
    >>> str(cells_by(rows, lambda training: training.k)[2])
    '300 (300–300; all 2 seeds)'
    """
    by_rate: dict[_Group, dict[float, list[DecoderRow]]] = {}
    for row in rows:
        training = row.config.training
        by_rate.setdefault(group(training), {}).setdefault(training.learning_rate, []).append(row)
    cells = {key: [Cell(tuple(found)) for found in rates.values()] for key, rates in by_rate.items()}
    return {key: min(found, key=_badness) for key, found in cells.items()}


def _badness(cell: Cell) -> tuple[float, float]:
    return -cell.reached / len(cell.rows), cell.median or math.inf


class Law(NamedTuple):
    """A least-squares slope with its 95 % interval, and the share of variance it explains.

    >>> str(Law(2.0, 1.5, 2.5, 0.99))
    '2.00 (1.50–2.50)'
    """

    slope: float
    low: float
    high: float
    explained: float

    def __str__(self) -> str:
        digits = 0 if abs(self.slope) >= 100 else 2
        return f"{self.slope:,.{digits}f} ({self.low:,.{digits}f}–{self.high:,.{digits}f})"


def line(pairs: Sequence[tuple[float, float]]) -> Law | None:
    """Return the line through (x, y): its slope, y per unit of x; none for fewer than three points or one x.

    >>> line([(1, 3.0), (2, 5.0), (3, 7.0)])
    Law(slope=2.0, low=2.0, high=2.0, explained=1.0)
    """
    xs = [x for x, _ in pairs]
    if len(pairs) < 3 or len(set(xs)) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in pairs)
    variance = sum((y - mean_y) ** 2 for _, y in pairs)
    half = _TWO_SIDED * math.sqrt(residual / (len(pairs) - 2) / spread)
    return Law(slope, slope - half, slope + half, 1 - residual / variance if variance else 1.0)


def exponential(pairs: Sequence[tuple[float, float]]) -> Law | None:
    """Return the exponential law through (x, y): the factor of y per unit of x.

    >>> factor = exponential([(1, 3.0), (2, 6.0), (3, 12.0)])
    >>> round(factor.slope, 9), round(factor.high, 9)
    (2.0, 2.0)
    """
    law = line([(x, math.log(y)) for x, y in pairs])
    return None if law is None else Law(math.exp(law.slope), math.exp(law.low), math.exp(law.high), law.explained)


def power_law(pairs: Sequence[tuple[float, float]]) -> Law | None:
    """Return the power law through (x, y): the power of x, 1 for a line through the origin.

    >>> round(power_law([(1, 3.0), (2, 12.0), (4, 48.0)]).slope, 9)
    2.0
    """
    return line([(math.log(x), math.log(y)) for x, y in pairs])


def reached_pairs(cells: Mapping[int, Cell]) -> list[tuple[float, float]]:
    """Return (k, samples) of every seed that got everything right.

    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> rows = [Row(smoke(""), DecoderNumbers.model_construct(samples=(count,))) for count in (500, None)]
    >>> reached_pairs({2: Cell(tuple(rows))})
    [(2.0, 500.0)]
    """
    return [(float(k), float(count)) for k, cell in cells.items() for count in cell.needed]


def spoken_cells(cells: Mapping[int, Cell]) -> str:
    """Return the samples needed for every k in words.

    >>> from parityscope.papers.w.settings import smoke
    >>> from parityscope.records import Row
    >>> from parityscope.runs.decoder import DecoderNumbers
    >>> row = Row(smoke("", steps=100, batch=10), DecoderNumbers.model_construct(samples=(None,)))
    >>> spoken_cells({3: Cell((row,) * 5)})
    'k = 3: more than 1,000 (0 of 5 seeds)'
    """
    return ", ".join(f"k = {k}: {cell}" for k, cell in cells.items())
