"""Blocks of columns that the rows cannot tell apart: copies, and neighbours that would explain the target as well."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from parityscope.fit.bits.bits import Bit
from parityscope.fit.bits.packed import pack
from parityscope.fit.evidence.evidence import phi
from parityscope.fit.evidence.score import score_test
from parityscope.fit.interactions.interaction import Candidate

if TYPE_CHECKING:
    from parityscope.fit.known import Known

_LEVEL = 0.01
_MOST = 64  # columns of a block that are named
_RESEMBLES = 0.5  # the least correlation of two questions: independent columns may explain as much, but are not alike


def indistinguishable(known: Known, term: Candidate) -> dict[int, tuple[int, ...]]:
    """Return, by column of an accepted term, the columns that could take its place.

    Another column with a question that resembles the term's takes its place when, given the parity with that question,
    the term's own parity adds nothing: its score test is not significant at the level of 1 %. Copies are always there.
    """
    given = known.design(known.model_features(without=term))
    values = known.values(term.support)
    chi = term.interaction.chi(values).astype(float)
    told = {column for one in known.accepted for column in one.support}  # each has evidence of its own
    blocks: dict[int, tuple[int, ...]] = {}
    for bit in term.interaction.bits:
        own = bit.signs(values[bit.column])
        columns = set(known.table.copies.get(bit.column, ()))
        for other in _resembling(known, bit)[:_MOST]:
            swapped = chi * own * other.signs(known.X[known.order, other.column])
            score = score_test(np.column_stack([given, swapped]), chi, known.target)
            if other.column not in told and score.log_p > math.log(_LEVEL):
                columns |= {other.column, *known.table.copies.get(other.column, ())}
        if columns:
            blocks[bit.column] = tuple(sorted(columns)[:_MOST])
    return blocks


def _resembling(known: Known, bit: Bit) -> list[Bit]:
    """Return, of every other column with a question that resembles this one or its negation, the nearest first."""
    away = _resemblance(known, bit)
    nearest: dict[int, tuple[float, Bit]] = {}
    for index in np.flatnonzero(away >= _RESEMBLES).tolist():
        other = known.table.bits[index]
        if other.column != bit.column and away[index] > nearest.get(other.column, (0.0, other))[0]:
            nearest[other.column] = (float(away[index]), other)
    return [other for _, other in sorted(nearest.values(), key=lambda one: (-one[0], one[1].column))]


def _resemblance(known: Known, bit: Bit) -> Float[ndarray, " bits"]:
    """Return how much every question of the table is correlated with this one, without sign."""
    signs = bit.signs(known.X[known.order, bit.column])
    target = pack((signs < 0)[:, None], known.table.lengths)[:, 0]
    differ, ones = np.zeros((2, known.table.words.shape[1]), dtype=np.int64)
    for word, answer in zip(known.table.words, target, strict=True):
        differ += np.bitwise_count(word ^ answer)
        ones += np.bitwise_count(word)
    rows = len(signs)
    return np.abs(phi(rows - 2.0 * differ, rows - 2.0 * ones, float(signs.sum(dtype=np.int64)), rows))
