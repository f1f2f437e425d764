"""Bits in words of 64 rows: a parity is an XOR, and how often it is odd in each class a count of ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int, Int8, UInt64
from numpy import ndarray

from parityscope.fit.evidence.evidence import phi

WORD = 64
_BLOCK = 2**14
_COUNTED = 2**16  # words of sets that are counted together, and stay in the cache
_WORD_SECONDS = 1.2e-9  # nominal, to read a word of one bit


def words_of(lengths: Sequence[int]) -> list[slice]:
    """Return which words hold each of several runs of rows; every run begins with a new word.

    >>> words_of([3, 0, 130])
    [slice(0, 1, None), slice(1, 1, None), slice(1, 4, None)]
    """
    ends = np.cumsum([0, *(-(-length // WORD) for length in lengths)]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def pack(yes: Bool[ndarray, "rows bits"], lengths: Sequence[int]) -> UInt64[ndarray, "words bits"]:
    """Return answers in words, row r of a run as bit r mod 64; what is left of a run's last word is 0.

    >>> pack(np.array([[True], [False], [True]]), [2, 1]).tolist()
    [[1], [1]]
    """
    places = words_of(lengths)
    words = np.zeros((places[-1].stop if places else 0, yes.shape[1]), dtype=np.uint64)
    start = 0
    for place, length in zip(places, lengths, strict=True):
        by_eight = np.packbits(yes[start : start + length], axis=0, bitorder="little")
        for byte in range(8):
            some = by_eight[byte::8].astype(np.uint64) << np.uint64(8 * byte)
            words[place][: len(some)] |= some
        start += length
    return words


def unpack(words: UInt64[ndarray, "words bits"], lengths: Sequence[int]) -> Int8[ndarray, "bits rows"]:
    """Return packed answers as signs, −1 for yes, rows one after the other.

    >>> unpack(pack(np.array([[True], [False], [True]]), [2, 1]), [2, 1]).tolist()
    [[-1, 1, -1]]
    """
    runs = []
    for place, length in zip(words_of(lengths), lengths, strict=True):
        in_bytes = np.ascontiguousarray(words[place].T).astype("<u8", copy=False).view(np.uint8)
        ones = np.unpackbits(in_bytes, axis=1, count=length, bitorder="little").view(np.int8)
        ones *= -2
        ones += 1
        runs.append(ones)
    return np.concatenate(runs, axis=1) if runs else np.empty((words.shape[1], 0), dtype=np.int8)


@dataclass(frozen=True)
class TwoClasses:
    """The bits of the rows of two classes: words of the first class above words of the second.

    >>> signs = np.array([[1, -1, -1, 1], [1, 1, -1, -1]], dtype=np.int8)
    >>> rows = TwoClasses.from_signs(signs, np.array([-1, 1, 1, -1], dtype=np.int8))
    >>> [float(one) for one in rows.strength(*rows.odd(np.array([[0]])))]  # the first bit is 'yes' in the second class
    [-1.0]
    """

    words: UInt64[ndarray, "words bits"]
    first: int  # how many rows are of the first class (label −1)
    second: int

    @staticmethod
    def from_signs(signs: Int8[ndarray, "bits rows"], labels: Int8[ndarray, " rows"]) -> TwoClasses:
        """Return the rows of a table of signs, packed by class."""
        order = np.argsort(labels, kind="stable")
        first = int((labels < 0).sum())
        lengths = [first, len(labels) - first]
        return TwoClasses(pack(signs.T[order] < 0, lengths), *lengths)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.first + self.second

    @property
    def bits(self) -> int:
        """How many bits there are."""
        return int(self.words.shape[1])

    @cached_property
    def boundary(self) -> int:
        """The first word of the second class."""
        return -(-self.first // WORD)

    def odd(self, sets: Int[ndarray, "sets size"]) -> tuple[Int[ndarray, " sets"], Int[ndarray, " sets"]]:
        """Return in how many rows of each class the parity of every set is odd (sign −1)."""
        return count_odd(self.words[: self.boundary], sets), count_odd(self.words[self.boundary :], sets)

    def strength(self, odd_first: ndarray, odd_second: ndarray) -> Float[ndarray, "*shape"]:
        """Return the correlation with the labels of parities that are odd in so many rows of each class."""
        first, second = odd_first.astype(float), odd_second.astype(float)
        agreement = (self.second - 2 * second) - (self.first - 2 * first)
        return phi(agreement, self.rows - 2 * (first + second), float(self.second - self.first), self.rows)

    def places(self, rows: Int[ndarray, " chosen"]) -> Int[ndarray, " chosen"]:
        """Return where rows are among the bits of all words; the second class begins with a new word."""
        return np.where(rows < self.first, rows, rows - self.first + WORD * self.boundary)

    def gathered(self, rows: Int[ndarray, " chosen"]) -> UInt64[ndarray, " bits"]:
        """Return the answers of at most 64 rows, the first as the lowest bit; the second class follows the first.

        >>> signs = np.array([[1, -1, -1, 1], [1, 1, -1, -1]], dtype=np.int8)
        >>> TwoClasses.from_signs(signs, np.array([-1, 1, 1, -1], dtype=np.int8)).gathered(np.array([2, 0])).tolist()
        [1, 0]
        """
        together = np.zeros(self.bits, dtype=np.uint64)
        where = self.places(rows).tolist()
        for start in range(0, self.bits, _BLOCK):  # blocks that stay in the cache
            block = together[start : start + _BLOCK]
            one = np.empty_like(block)
            for place, row in enumerate(where):
                np.bitwise_and(self.words[row // WORD, start : start + _BLOCK], np.uint64(1 << row % WORD), out=one)
                move = place - row % WORD
                shift = np.left_shift if move >= 0 else np.right_shift
                shift(one, np.uint64(abs(move)), out=one)
                np.bitwise_or(block, one, out=block)
        return together


def count_odd(
    words: UInt64[ndarray, "words bits"],
    sets: Int[ndarray, "sets size"],
    labels: UInt64[ndarray, " words"] | None = None,
) -> Int[ndarray, " sets"]:
    """Return in how many rows the parity of every set is odd, or where there are labels differs from them.

    >>> count_odd(np.array([[1, 2, 7]], dtype=np.uint64), np.array([[0, 2], [1, 2]])).tolist()
    [2, 2]
    """
    odd = np.zeros(len(sets), dtype=np.int64)
    members = np.ascontiguousarray(sets.T)
    # Many words of a few sets are one call: one by one, the calls take a hundred times as long as the counting.
    step = max(1, _COUNTED // max(1, len(sets)))
    for start in range(0, len(words), step):
        some = words[start : start + step]
        joined = some.take(members[0], axis=1)
        for member in members[1:]:
            joined ^= some.take(member, axis=1)
        if labels is not None:
            joined ^= labels[start : start + step, None]
        odd += np.bitwise_count(joined).sum(axis=0, dtype=np.int64)
    return odd


def count_seconds(sets: float, size: int, words: float) -> float:
    """Return the nominal seconds of counting so many sets on so many words."""
    return sets * words * (size + 1) * _WORD_SECONDS
