"""What may act on the target: questions about columns, their parity, and the columns of a regression they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Literal

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray

from parityscope.fit.bits.bits import Bit

Solver = Literal["auto", "attention", "collision", "elimination", "exhaustive"]
SOLVERS: tuple[Solver, ...] = ("auto", "attention", "collision", "elimination", "exhaustive")
Values = Mapping[int, ndarray]
ROWS_PER_PART = 20  # a regression gets at most one column for so many rows
_PIECES = 8  # of a curve through a column of numbers


@dataclass(frozen=True)
class Ramp:
    """0 up to `low`, 1 from `high` on, straight between: ramps side by side make any broken line.

    >>> Ramp(0, 1.0, 3.0).signs(np.array([0.0, 2.0, 5.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    column: int
    low: float
    high: float

    def signs(self, values: ndarray) -> Float[ndarray, " rows"]:
        """Return the height at every value, under the name that a question's answers have."""
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)


Feature = tuple[Bit | Ramp, ...]  # a column of the regression: the product of its factors


def feature_values(feature: Feature, values: Values) -> Float[ndarray, " rows"]:
    """Return a column of the regression.

    >>> feature_values((Bit(0, 0.5), Ramp(1, 0.0, 2.0)), {0: np.array([0, 1]), 1: np.array([1.0, 1.0])}).tolist()
    [0.5, -0.5]
    """
    result = np.ones(len(next(iter(values.values()))))
    for factor in feature:
        result = result * factor.signs(values[factor.column])
    return result


@dataclass(frozen=True)
class Interaction:
    """Questions about different columns whose parity is considered; of one column, a main effect."""

    bits: tuple[Bit, ...]

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending."""
        return tuple(sorted({bit.column for bit in self.bits}))

    def chi(self, values: Values) -> Int8[ndarray, " rows"]:
        """Return the parity sign of every row, from the values of each column.

        >>> Interaction((Bit(0, 0.5), Bit(3, 0.5))).chi({0: np.array([0, 1, 1]), 3: np.array([0, 0, 1])}).tolist()
        [1, -1, 1]
        """
        return np.prod([bit.signs(values[bit.column]) for bit in self.bits], axis=0, dtype=np.int8)


@dataclass(frozen=True)
class Candidate:
    """An interaction that a solver proposes, tested beyond its parts and given the model of that moment."""

    interaction: Interaction
    solver: Solver
    log_p: float  # corrected for the search
    estimate: float = 0.0  # on the scale of log-odds, or of the measured target
    error: float = float("inf")
    attention: Float[ndarray, "heads columns"] | None = None

    @property
    def k(self) -> int:
        """The number of columns."""
        return len(self.interaction.bits)

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending."""
        return self.interaction.support


def curve(column: int, values: ndarray) -> list[Feature]:
    """Return the columns of a regression that stand for any smooth function of a column of many numbers.

    >>> [(one[0].low, one[0].high) for one in curve(0, np.arange(9.0))][:2]
    [(0.0, 1.0), (1.0, 2.0)]
    """
    knots = np.unique(np.quantile(values, np.arange(_PIECES + 1) / _PIECES, method="lower")).astype(float)
    return [(Ramp(column, low, high),) for low, high in pairwise(knots.tolist())]


def own_features(column: int, levels: Sequence[float] | None, values: ndarray) -> list[Feature]:
    """Return what a column may do on its own: an effect of every level, or a broken line.

    >>> own_features(0, (0.0, 1.0, 2.0), np.array([0, 1, 2]))[0]
    (Bit(column=0, threshold=None, levels=(1.0,)),)
    """
    if levels is None:
        return curve(column, values)
    return [(Bit(column, levels=(float(level),)),) for level in levels[1:]]


def parts_of(interaction: Interaction, own: Mapping[int, list[Feature]], rows: int, known: int) -> list[Feature]:
    """Return the columns of a regression that stand for the effects of smaller sets than the interaction.

    Whatever each column may do on its own comes first, then the parities of two questions, of three, and so on: as far
    as the rows allow a column each, given how many are taken already (`known`).

    >>> triple = Interaction((Bit(0, 0.5), Bit(1, 0.5), Bit(2, 0.5)))
    >>> own = {column: [(Bit(column, 0.5),)] for column in range(3)}
    >>> len(parts_of(triple, own, rows=1000, known=1)), len(parts_of(triple, own, rows=80, known=1))
    (6, 3)
    """
    most = max(len(interaction.bits), rows // ROWS_PER_PART - known)
    chosen: list[Feature] = [(bit,) for bit in interaction.bits] if len(interaction.bits) > 1 else []
    more = [feature for bit in interaction.bits for feature in own[bit.column] if feature not in chosen]
    if len(chosen) + len(more) <= most:
        chosen += more
    for size in range(2, len(interaction.bits)):
        some = list(combinations(interaction.bits, size))
        if len(chosen) + len(some) > most:
            break
        chosen += some
    return chosen


def interaction_features(interaction: Interaction, levels: Mapping[int, Sequence[float]], rows: int) -> list[Feature]:
    """Return the columns of a regression that a found interaction gets.

    Columns of a few values act by all of them: two genotypes together have four degrees of freedom, of which the best
    split of each is one. Elsewhere it is the parity that was found.

    >>> pair = Interaction((Bit(0, levels=(1.0,)), Bit(1, levels=(1.0, 2.0))))
    >>> len(interaction_features(pair, {0: (0.0, 1.0), 1: (0.0, 1.0, 2.0)}, rows=500))
    2
    """
    each = [
        [Bit(bit.column, levels=(level,)) for level in levels[bit.column][1:]] if bit.column in levels else [bit]
        for bit in interaction.bits
    ]
    if len(interaction.bits) > 1 and np.prod([len(some) for some in each]) * ROWS_PER_PART <= rows:
        return [tuple(some) for some in product(*each)]
    return [interaction.bits]
