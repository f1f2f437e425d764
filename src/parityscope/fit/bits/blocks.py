"""Blocks of columns that the rows cannot tell apart: copies, and neighbours that would explain the label as well."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray

from parityscope.fit.bits.bits import Bit
from parityscope.fit.bits.packed import pack
from parityscope.fit.evidence.evidence import clearly_better, log_choose, phi
from parityscope.fit.interactions.candidates import Candidate
from parityscope.fit.interactions.rules import Interaction, fit_rule

if TYPE_CHECKING:
    from parityscope.fit.search import Search

_LEVEL = 0.05
_MOST = 64  # columns of a block that are named
_RESEMBLES = 0.5  # the least correlation of two bits: independent columns may explain as much, but are not alike


def indistinguishable(search: Search, candidate: Candidate) -> dict[int, tuple[int, ...]]:
    """Return, by column of a found interaction, the columns that could take its place.

    Another column with a bit that resembles the column's takes its place when the parity with it agrees with the labels
    about as well: of the rows that only one of the two parities names right, the found one has no more than chance
    allows at the level of 5 % (McNemar's exact test on all rows). Where the evidence is that of a table of all values,
    another column that resembles it takes its place when the table with it fits the rows not clearly worse. Copies are
    always among them.

    >>> from parityscope.fit.answer import Question, ask
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(1000, 8))
    >>> X[:, 5] = X[:, 2] ^ (random.rand(1000) < 0.004)  # a neighbour, equal but for a few rows
    >>> noisy = X[:, 0] ^ X[:, 2] ^ (random.rand(1000) < 0.2)
    >>> ask(Question(), X, (1 - 2 * noisy).astype(np.int8), random).interactions[0].block
    {2: (5,)}
    """
    if candidate.table:
        return {
            bit.column: tuple(sorted(others)[:_MOST])
            for place, bit in enumerate(candidate.interaction.bits)
            if (others := _fits_as_well(search, candidate, place))
        }
    chi = candidate.interaction.chi(search.values(candidate.support))
    oriented = chi * search.labels if candidate.strength >= 0 else -chi * search.labels
    blocks: dict[int, tuple[int, ...]] = {}
    for bit in candidate.interaction.bits:
        # What a bit should answer in every row for the parity to be right, given the other columns.
        wanted = oriented * bit.signs(search.X[search.order, bit.column])
        alike = np.flatnonzero(_resemblance(search, bit) >= _RESEMBLES)
        columns = _as_good(search, wanted.astype(np.int8), oriented, alike) - set(candidate.support)
        copies = {other for column in (*columns, bit.column) for other in search.table.copies.get(column, ())}
        if columns | copies:
            blocks[bit.column] = tuple(sorted(columns | copies)[:_MOST])
    return blocks


def _as_good(search: Search, wanted: Int8[ndarray, " rows"], right: ndarray, alike: ndarray) -> set[int]:
    """Return the columns with one of these bits, or its negation, that gives the wanted answers about as often.

    `right` is 1 in the rows that the found parity names right, −1 in the others.
    """
    columns = set()
    for index in alike.tolist():
        bit = search.table.bits[index]
        swapped = wanted * bit.signs(search.X[search.order, bit.column])
        if 2 * int((swapped > 0).sum()) < len(wanted):
            swapped = -swapped
        lost = int((right > 0).sum()) - int((swapped > 0).sum())
        # Two parities differ in at most all rows, so a loss of four standard deviations is beyond chance.
        if lost <= 4 * math.sqrt(len(wanted)) and not _told_apart(lost, int((swapped != right).sum())):
            columns.add(bit.column)
    return columns


def _log_likelihood(interaction: Interaction, values: dict[int, ndarray], labels: ndarray) -> ndarray:
    """Return log P(label) of every row by the table of all rows."""
    second = fit_rule(interaction, values, labels, table=True).probability(interaction, values)
    return np.log(np.where(labels > 0, second, 1 - second))


def _fits_as_well(search: Search, candidate: Candidate, place: int) -> set[int]:
    """Return the columns that resemble one of a table's and fit it about as well: a paired z-test at 5 %."""
    interaction, labels = candidate.interaction, search.labels
    own = interaction.bits[place].column
    fit = _log_likelihood(interaction, search.values(candidate.support), labels)
    columns = set(search.table.copies.get(own, ()))
    for bit in _resembling(search, interaction.bits[place]):
        if bit.column in candidate.support:
            continue
        bits = (*interaction.bits[:place], bit, *interaction.bits[place + 1 :])
        levels = (*interaction.levels[:place], search.table.levels.get(bit.column), *interaction.levels[place + 1 :])
        swapped = Interaction(bits, levels)
        other = _log_likelihood(swapped, search.values(one.column for one in bits), labels)
        if not clearly_better(fit, than=other):
            columns |= {bit.column, *search.table.copies.get(bit.column, ())}
    return columns


def _resembling(search: Search, bit: Bit) -> list[Bit]:
    """Return, of every other column with a bit that resembles this one or its negation, the nearest."""
    away = _resemblance(search, bit)
    nearest: dict[int, tuple[float, Bit]] = {}
    for index in np.flatnonzero(away >= _RESEMBLES).tolist():
        other = search.table.bits[index]
        if other.column != bit.column and away[index] > nearest.get(other.column, (0.0, other))[0]:
            nearest[other.column] = (float(away[index]), other)
    return [other for _, other in nearest.values()]


def _resemblance(search: Search, bit: Bit) -> Float[ndarray, " bits"]:
    """Return how much every bit of the table is correlated with this one, without sign."""
    signs = bit.signs(search.X[search.order, bit.column])
    target = pack((signs < 0)[:, None], search.table.lengths)[:, 0]
    differ, ones = np.zeros((2, search.table.words.shape[1]), dtype=np.int64)
    for word, answer in zip(search.table.words, target, strict=True):
        differ += np.bitwise_count(word ^ answer)
        ones += np.bitwise_count(word)
    rows = len(signs)
    return np.abs(phi(rows - 2.0 * differ, rows - 2.0 * ones, float(signs.sum(dtype=np.int64)), rows))


def _told_apart(lost: int, discordant: int) -> bool:
    """Say whether one parity is right in so many more of the discordant rows that a coin would not do it at 5 %.

    >>> _told_apart(4, 4), _told_apart(5, 5)  # 1 in 16, and 1 in 32
    (False, True)
    """
    if lost <= 0:
        return False
    wins = np.arange((discordant + lost) // 2, discordant + 1, dtype=float)
    return float(np.exp(log_choose(discordant, wins) - discordant * math.log(2)).sum()) <= _LEVEL
