"""Gaussian elimination over GF(2) on packed bits: exact and fast without noise, by sampling rows with a little."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int8, UInt8
from numpy import ndarray

from parityscope.estimator.bits import BitTable
from parityscope.estimator.evidence import correlation
from parityscope.estimator.exhaustive import BitSet

_SPARE_ROWS = 24  # random rows beyond the unknowns: the system has full rank but for a chance of 2^−24
MOST_SAMPLES = 200


def solve(rows: UInt8[ndarray, "rows unknowns"], right: UInt8[ndarray, " rows"]) -> UInt8[ndarray, " unknowns"]:
    """Return a solution s of the first independent equations rows·s = right over GF(2), free unknowns 0.

    Later equations that contradict it are not looked at: the caller tests a solution on all the data.

    >>> solve(np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=np.uint8), np.array([1, 0, 1], dtype=np.uint8)).tolist()
    [0, 1, 1]
    """
    count, unknowns = rows.shape
    words = -(-(unknowns + 1) // 64)
    packed = np.zeros((count, 8 * words), dtype=np.uint8)
    together = np.packbits(np.column_stack([rows, right]), axis=1, bitorder="little")
    packed[:, : together.shape[1]] = together
    matrix = packed.view(np.dtype("<u8"))
    pivots: list[int] = []
    for unknown in range(unknowns):
        word, bit = unknown // 64, np.uint64(unknown % 64)
        ones = np.flatnonzero((matrix[:, word] >> bit) & np.uint64(1))
        below = ones[np.searchsorted(ones, len(pivots)) :]
        if not len(below):
            continue
        pivot = below[0]
        row = matrix[pivot].copy()
        matrix[ones[ones != pivot]] ^= row
        matrix[pivot] = matrix[len(pivots)]
        matrix[len(pivots)] = row
        pivots.append(unknown)
        if len(pivots) == count:
            break
    solution = np.zeros(unknowns, dtype=np.uint8)
    word, bit = unknowns // 64, np.uint64(unknowns % 64)
    solution[pivots] = (matrix[: len(pivots), word] >> bit) & np.uint64(1)
    return solution


def find(
    table: BitTable,
    labels: Int8[ndarray, " rows"],
    max_k: int,
    random: np.random.RandomState,
    *,
    samples: int = MOST_SAMPLES,
) -> BitSet | None:
    """Return the parity of at most max_k columns that agrees best with the labels, among those of sampled equations.

    Each sample solves as many random rows as there are unknowns: with label noise η all of them are clean with
    probability (1 − η)^unknowns. A solution without any disagreement ends the search.

    >>> from parityscope.estimator.bits import encode
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(100, 40))
    >>> labels = (1 - 2 * (X[:, [1, 5, 30, 38]].sum(axis=1) % 2)).astype(np.int8)
    >>> find(encode(X, np.arange(100)), labels, 5, random)
    BitSet(bits=(1, 5, 30, 38), strength=1.0)
    """
    generators = _generators(table)
    train = len(labels)
    right = (labels < 0).astype(np.uint8)
    best: BitSet | None = None
    for _ in range(samples):
        rows = random.permutation(train)[: len(generators) + 1 + _SPARE_ROWS]
        columns = random.permutation(len(generators))
        left = (table.signs[np.ix_(generators[columns], rows)] < 0).astype(np.uint8).T
        # The last unknown is the constant: labels may be the parity or its negation.
        solution = solve(np.column_stack([left, np.ones(len(rows), dtype=np.uint8)]), right[rows])
        chosen = _as_bits(table, generators[columns[np.flatnonzero(solution[:-1])]], max_k)
        if not chosen:
            continue
        chi = np.prod(table.signs[list(chosen), :train], axis=0, dtype=np.int8)
        strength = correlation(chi, labels)
        if best is None or abs(strength) > abs(best.strength):
            best = BitSet(chosen, strength)
        if abs(strength) > 1 - 1e-12:
            break
    return best


def _generators(table: BitTable) -> ndarray:
    """Return the bits whose sums are all bits: of a category, the single values."""
    return np.array([i for i, bit in enumerate(table.bits) if len(bit.levels) <= 1], dtype=int)


def _as_bits(table: BitTable, generators: ndarray, max_k: int) -> tuple[int, ...]:
    """Return the sum of some generators with one bit per column, or nothing when that is not possible."""
    by_column: dict[int, list[int]] = {}
    for index in generators.tolist():
        by_column.setdefault(table.bits[index].column, []).append(index)
    if not 1 <= len(by_column) <= max_k:
        return ()
    chosen = []
    for column, indices in by_column.items():
        if len(indices) == 1:
            chosen.append(indices[0])
            continue
        values = {level for index in indices for level in table.bits[index].levels}
        sums = [
            i for i, bit in enumerate(table.bits) if bit.column == column and bit.levels and set(bit.levels) == values
        ]
        if not sums:
            return ()  # two thresholds of one column: an interval, which no single bit is
        chosen.append(sums[0])
    return tuple(sorted(chosen))
