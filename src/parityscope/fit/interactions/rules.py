"""From a found parity to predictions: class frequencies by parity, or by every combination of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8
from numpy import ndarray

from parityscope.fit.bits.bits import Bit
from parityscope.fit.evidence.evidence import clearly_better

ROWS_PER_CELL = 5  # a table with fewer training rows per cell is not considered
_SHOWN_CELLS = 256
PRIOR_ROWS = 2.0
WORTH_A_TABLE = 0.01  # nats per row: less is smoothing, not structure


class Cell(NamedTuple):
    """One line of a truth table: the values, how many rows have them, and how many of those are of the second class.

    >>> cell = Cell(("0", "1"), rows=40, second_class=36)
    >>> cell.second_class / cell.rows
    0.9
    """

    values: tuple[str, ...]
    rows: int
    second_class: int


@dataclass(frozen=True)
class Interaction:
    """The bits of a parity, and the values of those of its columns that have few."""

    bits: tuple[Bit, ...]
    levels: tuple[tuple[float, ...] | None, ...]

    def chi(self, values: Mapping[int, ndarray]) -> Int8[ndarray, " rows"]:
        """Return the parity sign of every row, from the values of each column.

        >>> pair = Interaction((Bit(0, 0.5), Bit(3, 0.5)), (None, None))
        >>> pair.chi({0: np.array([0, 1, 1]), 3: np.array([0, 0, 1])}).tolist()
        [1, -1, 1]
        """
        return np.prod([bit.signs(values[bit.column]) for bit in self.bits], axis=0, dtype=np.int8)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cases each column has: its values where they are few, otherwise two."""
        return tuple(2 if levels is None else len(levels) for levels in self.levels)

    def cells(self, values: Mapping[int, ndarray]) -> Int[ndarray, " rows"]:
        """Return the number of every row's combination of cases, −1 where a value was never seen."""
        rows = len(values[self.bits[0].column])
        code, known = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=bool)
        for bit, levels, size in zip(self.bits, self.levels, self.shape, strict=True):
            column = values[bit.column]
            if levels is None:
                case = (bit.signs(column) < 0).astype(np.int64)
            else:
                case = np.clip(np.searchsorted(levels, column), 0, size - 1)
                known = known & (np.asarray(levels)[case] == column)
            code = code * size + case
        return np.where(known, code, -1)

    def cell_chi(self) -> Int8[ndarray, " cells"]:
        """Return the parity sign of every combination of cases."""
        cases = [
            np.array([1, -1], dtype=np.int8) if levels is None else bit.signs(np.array(levels))
            for bit, levels in zip(self.bits, self.levels, strict=True)
        ]
        return np.array([math.prod(map(int, signs)) for signs in product(*cases)], dtype=np.int8)

    def case_names(self, names: Mapping[int, str]) -> list[tuple[str, ...]]:
        """Return what to call the cases of each column."""
        return [
            (bit.deny(names[bit.column]), bit.describe(names[bit.column]))
            if levels is None
            else tuple(f"{level:g}" for level in levels)
            for bit, levels in zip(self.bits, self.levels, strict=True)
        ]


@dataclass(frozen=True)
class Rule:
    """P(second class) by parity (even, odd), and by combination of cases where that predicts better."""

    by_parity: Float[ndarray, " two"]
    by_cell: Float[ndarray, " cells"] | None = None

    def probability(self, interaction: Interaction, values: Mapping[int, ndarray]) -> Float[ndarray, " rows"]:
        """Return P(second class) of every row; a combination never seen has that of its parity.

        >>> pair = Interaction((Bit(0, 0.5), Bit(3, 0.5)), (None, None))
        >>> Rule(np.array([0.1, 0.9])).probability(pair, {0: np.array([0, 1, 1]), 3: np.array([0, 0, 1])}).tolist()
        [0.1, 0.9, 0.1]
        """
        parity = self.by_parity[_odd(interaction.chi(values))]
        if self.by_cell is None:
            return parity
        cells = interaction.cells(values)
        return np.where(cells >= 0, self.by_cell[cells], parity)


def fit_rule(interaction: Interaction, values: Mapping[int, ndarray], labels: ndarray, *, table: bool) -> Rule:
    """Return the rule that these rows suggest; cells are shrunk towards their parity by two rows.

    >>> single, values = Interaction((Bit(0, 0.5),), (None,)), {0: np.array([0, 0, 1, 1])}
    >>> fit_rule(single, values, np.array([-1, -1, 1, 1]), table=False).by_parity.tolist()  # (0 + 1)/4, (2 + 1)/4
    [0.25, 0.75]
    """
    by_parity = _frequencies(_odd(interaction.chi(values)), labels, np.full(2, 0.5))
    if not table:
        return Rule(by_parity)
    prior = by_parity[_odd(interaction.cell_chi())]
    return Rule(by_parity, _frequencies(interaction.cells(values), labels, prior))


def prefers_table(interaction: Interaction, values: Mapping[int, ndarray], labels: ndarray, train: int) -> bool:
    """Say whether the full table, fitted on the training rows, predicts the held-out rows clearly better.

    >>> pair = Interaction((Bit(0, 0.5), Bit(1, 0.5)), ((0.0, 1.0), (0.0, 1.0)))
    >>> a, b = np.array([0, 0, 1, 1] * 200), np.array([0, 1, 0, 1] * 200)
    >>> [prefers_table(pair, {0: a, 1: b}, 2 * bit - 1, train=560) for bit in (a & b, a ^ b)]
    [True, False]
    """
    if ROWS_PER_CELL * math.prod(interaction.shape) > train:
        return False
    by_cell, by_parity = (
        _log_likelihood(_held_out_probability(interaction, values, labels, train, table=table), labels[train:])
        for table in (True, False)
    )
    # On few rows the parity's own smoothing costs about a prior row per class, and a table always wins that back.
    return clearly_better(by_cell, than=by_parity + max(WORTH_A_TABLE, 2 * PRIOR_ROWS / train))


def held_out_accuracy(
    interaction: Interaction, values: Mapping[int, ndarray], labels: ndarray, train: int, *, table: bool
) -> float:
    """Return the accuracy on the held-out rows of the rule fitted on the training rows.

    >>> pair = Interaction((Bit(0, 0.5), Bit(1, 0.5)), ((0.0, 1.0), (0.0, 1.0)))
    >>> a, b = np.array([0, 0, 1, 1] * 50), np.array([0, 1, 0, 1] * 50)
    >>> [held_out_accuracy(pair, {0: a, 1: b}, 2 * (a & b) - 1, train=140, table=table) for table in (False, True)]
    [0.75, 1.0]
    """
    predicted = _held_out_probability(interaction, values, labels, train, table=table) > 0.5
    return float((predicted == (labels[train:] > 0)).mean())


def _held_out_probability(
    interaction: Interaction, values: Mapping[int, ndarray], labels: ndarray, train: int, *, table: bool
) -> Float[ndarray, " held_out"]:
    first = {column: v[:train] for column, v in values.items()}
    rest = {column: v[train:] for column, v in values.items()}
    return fit_rule(interaction, first, labels[:train], table=table).probability(interaction, rest)


def _frequencies(codes: ndarray, labels: ndarray, prior: Float[ndarray, " cells"]) -> Float[ndarray, " cells"]:
    """Return the share of label 1 in every cell, smoothed by two rows of the prior.

    >>> _frequencies(np.array([0, 0, 1]), np.array([1, 1, -1]), np.array([0.5, 0.5])).round(2).tolist()
    [0.75, 0.33]
    """
    rows = np.bincount(codes, minlength=len(prior))
    ups = np.bincount(codes, weights=labels > 0, minlength=len(prior))
    return (ups + PRIOR_ROWS * prior) / (rows + PRIOR_ROWS)


def _log_likelihood(probability: ndarray, labels: ndarray) -> Float[ndarray, " rows"]:
    """Return log P(label) of every row."""
    return np.log(np.where(labels > 0, probability, 1 - probability))


def parity_log_likelihood(chi: ndarray, labels: ndarray, train: int) -> Float[ndarray, " held_out"]:
    """Return log P(label) of the held-out rows by the frequencies of the training rows, parity alone.

    >>> chi = np.array([1, -1] * 10)
    >>> np.exp(parity_log_likelihood(chi, chi, train=16)).round(3).tolist()  # (8 + 1)/(8 + 2)
    [0.9, 0.9, 0.9, 0.9]
    """
    by_parity = _frequencies(_odd(chi[:train]), labels[:train], np.full(2, 0.5))
    return _log_likelihood(by_parity[_odd(chi[train:])], labels[train:])


def truth_table(
    interaction: Interaction, values: Mapping[int, ndarray], labels: ndarray, names: Mapping[int, str]
) -> list[Cell]:
    """Return every combination of cases with its rows; beyond 256 of them only the two parities.

    >>> single = Interaction((Bit(0, threshold=0.5),), (None,))
    >>> truth_table(single, {0: np.array([0.1, 0.2, 0.9])}, np.array([-1, 1, 1]), {0: "heat"})
    [Cell(values=('heat ≤ 0.5',), rows=2, second_class=1), Cell(values=('heat > 0.5',), rows=1, second_class=1)]
    """
    if math.prod(interaction.shape) > _SHOWN_CELLS:
        cases: list[tuple[str, ...]] = [("even",), ("odd",)]
        codes = _odd(interaction.chi(values))
    else:
        cases = list(product(*interaction.case_names(names)))
        codes = interaction.cells(values)
    rows = np.bincount(codes, minlength=len(cases))
    ups = np.bincount(codes, weights=labels > 0, minlength=len(cases)).astype(int)
    return [Cell(case, int(r), int(u)) for case, r, u in zip(cases, rows, ups, strict=True)]


def _odd(chi: ndarray) -> ndarray:
    return (chi < 0).astype(np.int64)
