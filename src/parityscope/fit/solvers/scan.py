"""Complete scans: the score statistic of every column, of every pair, and of every larger set where that is cheap.

S has a row of signs for every question, r are the residuals of the model and w their variances. Then U = S·r are the
scores of all questions, S·diag(r)·Sᵀ those of all pairs: products of matrices, which processors do best. For a pair
what its two questions explain alone is taken out in closed form, so that a pair is ranked by what it adds to its parts:
otherwise a strong main effect with any rare column would stand before every true pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy import ndarray

from parityscope.fit.bits.encoding import BitTable
from parityscope.fit.bits.packed import unpack, words_of

KEPT = 64
_BLOCK_ROWS = 2**13  # a block of signs and its product stay in the cache
_TILE = 1024  # questions whose pairs are looked at together
_OPERATIONS = 8e10  # single-precision operations in a nominal second
_NUMBERS = 4e8  # numbers read or written one by one in a nominal second
_PREFIX_SECONDS = 1.5e-5  # nominal, of the product of the questions above the others, however few rows it has
_HELD = 3e7  # signs that are kept unpacked: 120 megabytes
_LEAST_LEFT = 12.0  # rows' worth of variance that a pair must have beyond its parts


class BitSet(NamedTuple):
    """Indices of questions, and how strongly their parity is related to what is explained.

    >>> max([BitSet((0,), 0.3), BitSet((1, 2), -0.8)], key=lambda one: abs(one.strength)).bits  # either sign will do
    (1, 2)
    """

    bits: tuple[int, ...]
    strength: float


def seconds(bits: int, k: int, rows: int) -> float:
    """Return the nominal seconds of a scan of all sets of k questions.

    >>> seconds(1000, 2, 2000) < 0.5 < seconds(1000, 3, 2000) < 60 < seconds(1000, 4, 2000)
    True
    """
    if k == 1:
        return 2.0 * bits * rows / _NUMBERS
    prefixes = math.comb(bits, k - 2)
    products = 2 if k == 2 else 1
    # Two of the questions come from a product of those above the others: twice as many as there are sets.
    sets = bits**2 if k == 2 else math.comb(bits, k) * 2 + prefixes * bits
    by_one = sets * (12 if k == 2 else 3) + prefixes * bits * rows / k
    by_prefix = prefixes * _PREFIX_SECONDS if k > 2 else 0.0
    return products * 2 * sets * rows / _OPERATIONS + by_one / _NUMBERS + by_prefix


@dataclass
class Scanner:
    """The signs of a table, to be scanned again and again with other residuals."""

    table: BitTable
    _held: ndarray | None = field(default=None, init=False)

    @property
    def _bits(self) -> int:
        return len(self.table.bits)

    def strongest(self, k: int, residuals: ndarray, variance: ndarray) -> list[BitSet]:
        """Return the strongest sets of k questions about different columns, those of equal strength in order."""
        if k == 1:
            score, _, _ = self.single(residuals, variance)
            return _best(np.arange(self._bits)[:, None], score)
        if k == 2:
            return self._pairs(residuals, variance)
        return self._larger(k, residuals, variance)

    def single(self, residuals: ndarray, variance: ndarray) -> tuple[ndarray, ndarray, ndarray]:
        """Return the standardised score of every question, its score, and its weighted mean."""
        scores = np.zeros((self._bits, 2))
        both = np.column_stack([residuals, variance]).astype(np.float32)
        for start in range(0, self._bits, 8 * _TILE):
            some = slice(start, start + 8 * _TILE)
            for rows, signs in self._blocks(some):
                scores[some] += signs @ both[rows]
        total = float(variance.sum())
        mean = scores[:, 1] / total
        score = scores[:, 0] - mean * float(residuals.sum())
        spread = np.sqrt(np.maximum(total * (1 - mean**2), 0.0))
        return np.divide(score, spread, out=np.zeros(self._bits), where=spread > 1e-6), score, mean

    def _pairs(self, residuals: ndarray, variance: ndarray) -> list[BitSet]:
        total, owner = float(variance.sum()), self.table.owner
        _, score, mean = self.single(residuals, variance)
        least = _LEAST_LEFT * total / len(residuals)
        found: list[BitSet] = []
        starts = range(0, self._bits, _TILE)
        for low, high in ((a, b) for a in starts for b in starts if a <= b):
            first, second = slice(low, low + _TILE), slice(high, high + _TILE)
            by_residual, by_variance = self._products(first, second, residuals, variance)
            z = _beyond_parts(by_residual, by_variance / total, score, mean, first, second, total, least)
            z[owner[first][:, None] == owner[second]] = 0.0
            if low == high:
                z[np.tril_indices(len(z))] = 0.0
            places = strongest(z.ravel(), KEPT)
            i, j = np.unravel_index(places, z.shape)
            found += _best(np.column_stack([i + low, j + high]), z[i, j])
        return sorted(found, key=lambda one: (-abs(one.strength), one.bits))[:KEPT]

    def _products(
        self, first: slice, second: slice, residuals: ndarray, variance: ndarray
    ) -> tuple[Float[ndarray, "first second"], Float[ndarray, "first second"]]:
        shape = len(range(*first.indices(self._bits))), len(range(*second.indices(self._bits)))
        by_residual, by_variance = np.zeros(shape), np.zeros(shape)
        left, spread = residuals.astype(np.float32), variance.astype(np.float32)
        for (rows, one), (_, other) in zip(self._blocks(first), self._blocks(second), strict=True):
            by_residual += (one * left[rows]) @ other.T
            by_variance += (one * spread[rows]) @ other.T
        return by_residual, by_variance

    def _larger(self, k: int, residuals: ndarray, variance: ndarray) -> list[BitSet]:
        """Return the strongest by |U| alone: sets that split the rows evenly."""
        owner, scale = self.table.owner, math.sqrt(float(variance.sum()))
        found: list[BitSet] = []
        floor = 0.0
        left = residuals.astype(np.float32)
        blocks = list(self._blocks()) if self._held is not None or self._holds() else None
        column_of = owner.tolist()
        for prefix in combinations(range(self._bits - 2), k - 2):
            if len({column_of[bit] for bit in prefix}) < k - 2:
                continue  # two questions about one column
            above = slice(prefix[-1] + 1, None)
            sums = np.zeros((self._bits - prefix[-1] - 1,) * 2, dtype=np.float32)
            for rows, signs in blocks if blocks is not None else self._blocks():
                weighted = signs[list(prefix)].prod(axis=0) * left[rows]
                sums += (signs[above] * weighted) @ signs[above].T
            sums[np.tril_indices(len(sums))] = 0.0
            size = np.abs(sums)
            if float(size.max(initial=0.0)) <= floor:
                continue
            i, j = np.nonzero(size > floor)
            sets = np.column_stack([np.tile(prefix, (len(i), 1)), i + prefix[-1] + 1, j + prefix[-1] + 1])
            owners = np.sort(owner[sets], axis=1)
            good = (owners[:, 1:] != owners[:, :-1]).all(axis=1)
            found += _best(sets[good], sums[i, j][good] / scale)
            if len(found) > 4 * KEPT:
                found = sorted(found, key=lambda one: (-abs(one.strength), one.bits))[:KEPT]
                floor = abs(found[-1].strength) * scale
        return sorted(found, key=lambda one: (-abs(one.strength), one.bits))[:KEPT]

    def _holds(self) -> bool:
        return self._bits * sum(self.table.lengths) <= _HELD

    def _blocks(self, some: slice = slice(None)) -> Iterator[tuple[slice, Float32[ndarray, "bits rows"]]]:
        """Yield blocks of rows with the signs of some questions, all unless told."""
        if self._held is None and self._holds():
            self._held = unpack(self.table.words, self.table.lengths).astype(np.float32)
        start = 0
        for place, length in zip(words_of(self.table.lengths), self.table.lengths, strict=True):
            for low in range(0, length, _BLOCK_ROWS):
                rows = slice(start + low, start + min(length, low + _BLOCK_ROWS))
                if self._held is not None:
                    yield rows, self._held[some, rows]
                else:
                    words = self.table.words[place, some][low // 64 : -(-min(length, low + _BLOCK_ROWS) // 64)]
                    yield rows, unpack(words, [rows.stop - rows.start]).astype(np.float32)
            start += length


def _beyond_parts(
    by_residual: ndarray,
    by_variance: ndarray,
    score: ndarray,
    mean: ndarray,
    first: slice,
    second: slice,
    total: float,
    least: float,
) -> Float[ndarray, "first second"]:
    """Return the standardised score of every pair z = ab after weighted least squares on 1, a and b.

    With ⟨·⟩ the mean weighted by variances: cov(z, a) = ⟨b⟩ − ⟨ab⟩⟨a⟩, because a² = 1, and likewise for b.
    """
    a, b = mean[first][:, None], mean[second][None, :]
    own_a, own_b, shared = 1 - a**2, 1 - b**2, by_variance - a * b
    with_a, with_b = b - by_variance * a, a - by_variance * b
    determinant = own_a * own_b - shared**2
    safe = np.where(determinant > 1e-6, determinant, 1.0)
    on_a = (with_a * own_b - with_b * shared) / safe
    on_b = (with_b * own_a - with_a * shared) / safe
    left = total * (1 - by_variance**2 - on_a * with_a - on_b * with_b)
    beyond = by_residual - on_a * score[first][:, None] - on_b * score[second][None, :]
    good = (determinant > 1e-6) & (left > least)
    return np.where(good, beyond / np.sqrt(np.where(good, left, 1.0)), 0.0)


def _best(sets: ndarray, strength: ndarray) -> list[BitSet]:
    """Return the strongest of some sets, equals in the order of their questions."""
    order = np.lexsort(sets.T[::-1]) if len(sets) > 1 else np.arange(len(sets))
    sets, strength = sets[order], strength[order]
    chosen = strongest(strength, KEPT)
    return [BitSet(tuple(sets[i].tolist()), float(strength[i])) for i in chosen.tolist() if strength[i] != 0]


def strongest(strength: Float[ndarray, " candidates"], count: int) -> Int64[ndarray, " kept"]:
    """Return the places of the `count` largest |strength|, strongest first, equals in their own order."""
    size = np.abs(strength)
    places = np.arange(len(size))
    if len(size) > count:
        # Everything as strong as the last one kept stays, so that the order decides among equals.
        places = np.flatnonzero(size >= np.partition(size, len(size) - count)[len(size) - count])
    return places[np.argsort(-size[places], kind="stable")[:count]]
