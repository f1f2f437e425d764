"""From columns to packed bits: two values as they are, few values by every split, many by a few quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Int8, UInt64
from numpy import ndarray

from parityscope.fit.bits.bits import FEW_LEVELS, Bit, between
from parityscope.fit.bits.packed import TwoClasses, pack, unpack, words_of

_BLOCK_NUMBERS = 2**22  # columns are read in blocks of so many numbers
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd


@dataclass(frozen=True)
class BitTable:
    """The candidate bits of a table in words of 64 rows, rows in runs (`lengths`) that each begin with a new word.

    >>> table = encode(np.array([[0, 0, 7], [1, 2, 7], [0, 1, 7], [1, 0, 7]]), np.arange(4))
    >>> table.owner.tolist(), table.columns, table.constant  # three values can be split in three ways
    ([0, 1, 1, 1], 2, (2,))
    """

    bits: tuple[Bit, ...]
    words: UInt64[ndarray, "words bits"]
    lengths: tuple[int, ...]
    choices: tuple[int, ...]  # how many bits each column could become in the search: 0 where it takes no part
    constant: tuple[int, ...]  # columns with one value
    copies: dict[int, tuple[int, ...]]  # columns that equal (or negate) an earlier one, by that one
    levels: dict[int, tuple[float, ...]]  # the values of columns that have few

    @cached_property
    def owner(self) -> ndarray:
        """The column of every bit."""
        return np.array([bit.column for bit in self.bits], dtype=int)

    @cached_property
    def columns(self) -> int:
        """How many different columns take part."""
        return sum(choice > 0 for choice in self.choices)

    @cached_property
    def signs(self) -> Int8[ndarray, "bits rows"]:
        """The bits as signs, −1 for yes: eight times the memory of the words."""
        return unpack(self.words, self.lengths)

    def two_classes(self, first_run: int) -> TwoClasses:
        """Return the rows of two runs that follow each other, the first class and the second.

        >>> encode(np.array([[0], [1], [1]]), np.arange(3), (1, 2)).two_classes(0).second
        2
        """
        first, second = words_of(self.lengths)[first_run : first_run + 2]
        return TwoClasses(self.words[first.start : second.stop], *self.lengths[first_run : first_run + 2])


@dataclass
class _Collected:
    """What has been read of the columns so far."""

    lengths: tuple[int, ...]
    bits: list[Bit] = field(default_factory=list)
    words: list[ndarray] = field(default_factory=list)  # per bit or block of bits, (words, bits)
    choices: list[int] = field(default_factory=list)
    constant: list[int] = field(default_factory=list)
    copies: dict[int, list[int]] = field(default_factory=dict)
    levels: dict[int, tuple[float, ...]] = field(default_factory=dict)
    seen: dict[tuple[int, ...], int] = field(default_factory=dict)

    def is_copy(self, column: int, fingerprint: tuple[int, ...]) -> bool:
        """Say whether a column repeats an earlier one, and keep a note of it."""
        first = self.seen.setdefault(fingerprint, column)
        if first != column:
            self.copies.setdefault(first, []).append(column)
        return first != column


def encode(
    X: ndarray,
    order: ndarray,
    lengths: Sequence[int] | None = None,
    unordered: frozenset[int] = frozenset(),
    given: frozenset[int] = frozenset(),
) -> BitTable:
    """Return the candidate bits of all columns, rows taken in `order`, in runs of the given lengths.

    Constant columns and repetitions of earlier columns take no part. A column of three or four values offers every
    split of them into two sets; one of more values offers a few quantiles as thresholds (`refine` then tries all).
    Where the numbers are mere names (`unordered`) it offers each value against all others, negative ones excepted.
    Columns that are `given` take no part.
    Columns count as repetitions when 128 bits of hash agree, which chance does once in 10^27 tables of 10^5 columns.

    >>> table = encode(np.array([[0, 0], [1, 2], [0, 1], [1, 0]]), np.arange(4))
    >>> [bit.describe(f"column {bit.column}") for bit in table.bits]
    ['column 0 = 1', 'column 1 = 1', 'column 1 = 2', 'column 1 ∈ {1, 2}']
    >>> table.signs[0].tolist()
    [1, -1, 1, -1]
    """
    runs = tuple(lengths) if lengths is not None else (len(order),)
    collected = _Collected(runs)
    collected.choices = [0] * X.shape[1]
    wide: dict[int, ndarray] = {}
    step = max(1, min(X.shape[1], _BLOCK_NUMBERS // max(1, len(order))))
    for start in range(0, X.shape[1], step):
        block = X[:, start : start + step].T.take(order, axis=1).T  # a column's numbers side by side
        _read_block(collected, block, start, wide)
    scales = len(wide.keys() - unordered)
    pieces = 8 if scales <= 12 else 4 if scales <= 60 else 2
    for column, distinct in wide.items():
        if column in unordered:
            _read_names(collected, X[order, column], column, distinct)
        else:
            _read_wide(collected, X[order, column], column, distinct, pieces)
    words = np.concatenate(collected.words, axis=1) if collected.words else pack(np.empty((len(order), 0), bool), runs)
    by_column = np.argsort([bit.column for bit in collected.bits], kind="stable")
    if wide:
        collected.bits = [collected.bits[i] for i in by_column.tolist()]
        words = words[:, by_column]
    copies = {column: tuple(others) for column, others in collected.copies.items()}
    if given:
        kept = [place for place, bit in enumerate(collected.bits) if bit.column not in given]
        collected.bits, words = [collected.bits[place] for place in kept], words[:, kept]
        collected.choices = [0 if column in given else count for column, count in enumerate(collected.choices)]
    return BitTable(
        tuple(collected.bits),
        np.ascontiguousarray(words),
        runs,
        tuple(collected.choices),
        tuple(collected.constant),
        copies,
        collected.levels,
    )


def _read_block(collected: _Collected, block: ndarray, start: int, wide: dict[int, ndarray]) -> None:
    """Read some columns: those of few values become bits at once, the others are kept for later."""
    low, high = block.min(axis=0), block.max(axis=0)
    if block.dtype.kind == "b" or (block.dtype.kind in "iu" and bool((high.astype(float) - low <= 1).all())):
        two = np.ones(block.shape[1], dtype=bool)
    else:
        two = ((block == low) | (block == high)).all(axis=0)
    words = pack(block == high, collected.lengths)
    hashes = _hashes(words, collected.lengths)
    kept = np.zeros(block.shape[1], dtype=bool)
    constant = low == high
    collected.constant.extend((start + np.flatnonzero(constant)).tolist())
    for offset in np.flatnonzero(two & ~constant).tolist():
        if not collected.is_copy(start + offset, (2, *hashes[offset])):
            kept[offset] = True
            collected.choices[start + offset] = 1
            collected.levels[start + offset] = float(low[offset]), float(high[offset])
    bits = [Bit(start + offset, levels=(float(high[offset]),)) for offset in np.flatnonzero(kept).tolist()]
    packed = [words[:, kept]]
    more = np.flatnonzero(~two)
    if len(more):
        few = _read_few(collected, block[:, more], start + more, bits, packed)
        for offset in more[~few].tolist():
            _keep_wide(collected, np.ascontiguousarray(block[:, offset]), start + offset, wide)
    _add(collected, bits, packed)


def _add(collected: _Collected, bits: list[Bit], packed: list[ndarray]) -> None:
    """Put the bits of a block in the order of columns."""
    words = np.concatenate(packed, axis=1)
    if len(packed) > 1:
        place = np.argsort([bit.column for bit in bits], kind="stable")
        bits, words = [bits[i] for i in place.tolist()], words[:, place]
    collected.bits.extend(bits)
    collected.words.append(words)


def _keep_wide(collected: _Collected, values: ndarray, column: int, wide: dict[int, ndarray]) -> None:
    content = values.astype(float).tobytes()
    if not collected.is_copy(column, (1, hash(content), hash(content[::-1]))):
        wide[column] = np.unique(values)
        collected.choices[column] = len(wide[column]) - 1


def _read_few(
    collected: _Collected, block: ndarray, columns: ndarray, bits: list[Bit], packed: list[ndarray]
) -> Bool[ndarray, " columns"]:
    """Add every split of three or four values into two sets, each once; return which columns have so few values."""
    levels = [block.min(axis=0)]
    high = block.max(axis=0)
    for _ in range(FEW_LEVELS - 1):
        levels.append(np.where(block > levels[-1], block, high).min(axis=0))
    few = levels[-1] == high
    three = few & (levels[-2] == high)
    for count, chosen in ((3, np.flatnonzero(three)), (4, np.flatnonzero(few & ~three))):
        if not len(chosen):
            continue
        values = [level[chosen] for level in levels[:count]]
        singles = [pack(block[:, chosen] == level, collected.lengths) for level in values[1:]]
        hashes = [_hashes(single, ()) for single in singles]
        fresh = []
        for place, column in enumerate(columns[chosen].tolist()):
            own = tuple(float(level[place]) for level in values)
            if not collected.is_copy(column, (count, *map(hash, own), *(h for some in hashes for h in some[place]))):
                fresh.append(place)
                collected.choices[column] = 2 ** (count - 1) - 1
                collected.levels[column] = own
        for size in range(1, count):
            for some in combinations(range(count - 1), size):
                names = [(int(columns[chosen[p]]), tuple(float(values[1 + i][p]) for i in some)) for p in fresh]
                bits.extend(Bit(column, levels=own) for column, own in names)
                packed.append(np.bitwise_or.reduce([singles[i][:, fresh] for i in some]))
    return few


def _read_wide(collected: _Collected, values: ndarray, column: int, distinct: ndarray, pieces: int) -> None:
    """Add a column of many values: octiles while that keeps pairs cheap, quartiles or the median for more columns."""
    quantiles = np.quantile(values, np.arange(1, pieces) / pieces, method="lower")
    places = np.unique(np.searchsorted(distinct, quantiles, side="left"))
    thresholds = [between(float(distinct[p]), float(distinct[p + 1])) for p in places if p + 1 < len(distinct)]
    if thresholds:
        collected.bits.extend(Bit(column, threshold=threshold) for threshold in thresholds)
        collected.words.append(pack(values[:, None] > np.array(thresholds), collected.lengths))


def _read_names(collected: _Collected, values: ndarray, column: int, distinct: ndarray) -> None:
    """Add a column whose numbers are mere names: each against all others."""
    names = distinct[distinct >= 0]
    collected.bits.extend(Bit(column, levels=(name,)) for name in names.astype(float).tolist())
    collected.words.append(pack(values[:, None] == names, collected.lengths))
    collected.choices[column] = len(names)


def _hashes(words: UInt64[ndarray, "words bits"], lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return 128 bits of hash of every bit; with `lengths` a bit and its negation have the same."""
    if lengths:
        full = pack(np.ones((sum(lengths), 1), dtype=bool), lengths)
        first = np.flatnonzero(full[:, 0])[:1]
        negate = (words[first[0]] & np.uint64(1)).astype(bool) if len(first) else np.zeros(words.shape[1], dtype=bool)
        words = words ^ (full * negate)
    # Every word is mixed with its place (by the finalizer of splitmix64), and then they are summed.
    places = np.arange(1, len(words) + 1, dtype=np.uint64)[:, None]
    halves = []
    for seed in (_MIX, np.uint64(0x5851F42D4C957F2D)):
        mixed = words + places * seed
        for shift, factor in ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB))):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= factor
        halves.append((mixed ^ (mixed >> np.uint64(31))).sum(axis=0).tolist())
    return list(zip(*halves, strict=True))
