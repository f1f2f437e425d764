"""Every support: XOR and counts of ones, a block of sets at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from parityscope.fit.bits.packed import TwoClasses
from parityscope.fit.clock import Clock
from parityscope.fit.evidence.ranking import strongest

KEPT = 32
_BLOCK_SETS = 2**15  # counts of so many sets stay in the cache
_SET_SECONDS, _WORD_SECONDS, _CALL_SECONDS = 20e-9, 1.4e-9, 6e-6


class BitSet(NamedTuple):
    """Indices of the bits of a parity, and its correlation with the labels.

    >>> max([BitSet((0,), 0.3), BitSet((1, 2), -0.8)], key=lambda one: abs(one.strength)).bits  # either sign will do
    (1, 2)
    """

    bits: tuple[int, ...]
    strength: float


def seconds(bits: int, k: int, rows: int) -> float:
    """Return roughly how long a search over all k-sets takes: every set costs its words, and a little more.

    >>> seconds(1000, 2, 1400) < 0.1 < seconds(1000, 3, 1400) < 60 < seconds(1000, 4, 1400)
    True
    """
    words = rows / 64 + 2
    sets = math.comb(bits, k)
    return sets * (_SET_SECONDS + words * _WORD_SECONDS) + words * (k + sets / _BLOCK_SETS) * _CALL_SECONDS


def of_size(
    rows: TwoClasses, k: int, owner: ndarray, *, kept: int = KEPT, clock: Clock | None = None
) -> list[BitSet] | None:
    """Return the strongest parities of k bits that belong to k different columns; None when time ran out.

    Sets of k − 1 bits with the same last bit are joined with every bit above it. Counts of odd rows in either class
    give the exact correlation, also of parities that split the rows unevenly.

    >>> signs = np.random.RandomState(0).choice(np.array([-1, 1], dtype=np.int8), size=(30, 200))
    >>> rows = TwoClasses.from_signs(signs, signs[5] * signs[11] * signs[28])
    >>> of_size(rows, 3, owner=np.arange(30))[0]
    BitSet(bits=(5, 11, 28), strength=1.0)
    """
    if k == 1:
        sets = np.arange(rows.bits)[:, None]
        return _merge([], sets, rows.strength(*rows.odd(sets)), kept)
    best: list[BitSet] = []
    shared = len(np.unique(owner)) < len(owner)
    for done, (all_prefixes, start) in enumerate(_prefixes(rows.bits, k - 1)):
        if clock is not None and clock.left < 0:
            return None
        if clock is not None and done % 64 == 0:
            clock.report(f"all parities of {k} columns")
        prefixes = all_prefixes
        if shared and k > 2:
            ordered = np.sort(owner[prefixes], axis=1)
            prefixes = prefixes[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]
        floor = abs(best[-1].strength) if len(best) == kept else 0.0
        first, second = _joined(rows, prefixes, start)
        promising = rows.reaching(first, second, floor)
        promising &= np.arange(start, rows.bits) > prefixes[:, -1:]
        if shared:
            promising &= (owner[start:] != owner[prefixes][:, :, None]).all(axis=1)
        which, above = np.nonzero(promising)
        if len(which):
            strength = rows.strength(first[which, above], second[which, above])
            # Not only the stronger ones: an equal one may come first in the order of bits.
            good = np.flatnonzero((np.abs(strength) >= floor) & (strength != 0))
            sets = np.column_stack([prefixes[which[good]], above[good] + start])
            best = _merge(best, sets, strength[good], kept)
    return best


def _prefixes(bits: int, size: int) -> Iterator[tuple[ndarray, int]]:
    """Yield sets of `size` bits, those with about the same last bit together, and the first bit above any of them."""
    low = size - 1
    while low < bits - 1:
        above = bits - low - 1
        together = max(1, _BLOCK_SETS // above)
        each = math.comb(low, size - 1)
        # Few sets end in the same bit: neighbours share a block, and what is not above them is masked.
        span = min(max(1, min(together // each, above // 4)), bits - 1 - low)
        lasts = range(low, low + span)
        ending = ((*lower, last) for last in lasts for lower in combinations(range(last), size - 1))
        while some := list(islice(ending, together)):
            yield np.array(some, dtype=np.int64), low + 1
        low += span


def _joined(rows: TwoClasses, prefixes: ndarray, start: int) -> tuple[ndarray, ndarray]:
    """Return in how many rows of each class every prefix joined with every bit from `start` on is odd."""
    shape = len(prefixes), rows.bits - start
    joined = np.empty(shape, dtype=np.uint64)
    ones = np.empty(shape, dtype=np.uint8)
    counts = []
    for words in (rows.words[: rows.boundary], rows.words[rows.boundary :]):
        count = np.zeros(shape, dtype=np.uint16 if 64 * len(words) < 2**16 else np.uint32)
        for word in words:
            prefix = np.bitwise_xor.reduce(word[prefixes], axis=1)
            np.bitwise_xor(prefix[:, None], word[start:], out=joined)
            np.bitwise_count(joined, out=ones)
            np.add(count, ones, out=count)
        counts.append(count)
    return counts[0], counts[1]


def _merge(best: list[BitSet], sets: ndarray, strength: ndarray, kept: int) -> list[BitSet]:
    """Return the best of both, equals in the order of their bits."""
    order = np.lexsort(sets.T[::-1]) if len(sets) > 1 else np.arange(len(sets))
    sets, strength = sets[order], strength[order]
    chosen = strongest(strength, kept)
    new = [BitSet(tuple(sets[i].tolist()), float(strength[i])) for i in chosen if strength[i] != 0]
    return sorted([*best, *new], key=lambda one: (-abs(one.strength), one.bits))[:kept]
