"""Gaussian elimination over GF(2) on random subsets of columns: exact without noise, by sampling with a little.

One sample takes m of the n columns and as many random rows as there are unknowns (the columns and a constant, since
labels may be the parity or its negation) and a few more. It finds a parity of k columns when all k are among the m,
with probability C(n − k, m − k)/C(n, m) ≈ (m/n)^k, and all m + 1 equations that were used are clean, with probability
Π (A − i)/(N − i) for A of N rows that agree with it, ≈ (1 − η)^m. About m = k/η columns are best, which costs (ηn/k)^k
samples (the domain reduction of Chen, Shu, Zhou, arXiv 2407.19215; the construction here is ours). Only samples of full
rank are counted: which rows are independent does not depend on the labels. Samples are drawn anew, so that their
probabilities of missing multiply: `EliminationBooks` keeps the product for every size and correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from numpy import ndarray

from parityscope.fit.bits.encoding import BitTable
from parityscope.fit.bits.packed import TwoClasses, count_seconds
from parityscope.fit.clock import Budget
from parityscope.fit.evidence.evidence import log_choose
from parityscope.fit.solvers.collision_plan import GRID
from parityscope.fit.solvers.scan import BitSet

_SPARE_ROWS = 24  # random rows beyond the unknowns: the system has full rank but for a chance of 2^−24
_BATCH_WORDS = 2**17
# Nominal: of a step for all systems together, per word, per bit that is read, of a sample, and of a sparse solution.
_STEP_SECONDS, _WORD_SECONDS, _BIT_SECONDS, _SAMPLE_SECONDS = 31e-6, 2.7e-9, 7.5e-9, 150e-6
_SET_SECONDS = 75e-6
_LEAST_CHANCE = 1e-280  # below, the number of samples is no number


def solve(
    rows: UInt8[ndarray, "systems rows unknowns"], right: UInt8[ndarray, "systems rows"]
) -> tuple[UInt8[ndarray, "systems unknowns"], Bool[ndarray, " systems"], Bool[ndarray, " systems"]]:
    """Return a solution of the independent equations of each system over GF(2), free unknowns 0, and two tests.

    The first says whether the unknowns have full rank, the second whether no equation contradicts the others: a label
    that is a parity without noise never does, any other one with probability 1/2 for each equation to spare.
    """
    systems, count, unknowns = rows.shape
    words = -(-(unknowns + 1) // 64)
    packed = np.zeros((systems, count, 8 * words), dtype=np.uint8)
    together = np.packbits(np.concatenate([rows, right[:, :, None]], axis=2), axis=2, bitorder="little")
    packed[:, :, : together.shape[2]] = together
    matrix = packed.view(np.dtype("<u8"))
    each = np.arange(systems)
    free = np.ones((systems, count), dtype=bool)
    pivots = np.full((systems, unknowns), -1)
    for unknown in range(unknowns):
        word, bit = unknown // 64, np.uint64(unknown % 64)
        ones = ((matrix[:, :, word] >> bit) & np.uint64(1)).astype(bool)
        candidates = ones & free
        pivot = candidates.argmax(axis=1)
        has = candidates[each, pivot]
        pivots[has, unknown] = pivot[has]
        free[each[has], pivot[has]] = False
        ones[each, pivot] = False
        ones &= has[:, None]
        # Words before this one have no more than their own pivots left in the pivot's row.
        row = matrix[each, pivot, word:]
        np.bitwise_xor(matrix[:, :, word:], row[:, None, :] * ones[:, :, None], out=matrix[:, :, word:])
    word, bit = unknowns // 64, np.uint64(unknowns % 64)
    value = ((matrix[:, :, word] >> bit) & np.uint64(1)).astype(np.uint8)
    solved = pivots >= 0
    solution = np.where(solved, value[each[:, None], np.maximum(pivots, 0)], 0).astype(np.uint8)
    return solution, np.asarray(solved.all(axis=1)), ~np.any(free & (value > 0), axis=1)


@dataclass
class EliminationBooks:
    """The logarithm of the probability that all samples missed a parity, by size and by correlation of GRID."""

    columns: int
    rows: int
    sizes: tuple[int, ...]
    log_missed: dict[int, Float[ndarray, " grid"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.most = min(self.columns, self.rows - 1 - _SPARE_ROWS)  # columns that a sample may have

    def chance(self, k: int, unknown_columns: int) -> Float[ndarray, " grid"]:
        """Return the probability that one sample finds a parity of k columns, for every correlation."""
        return _chance(self.columns, self.rows, k, unknown_columns)

    def enter(self, unknown_columns: int, samples: int) -> None:
        """Enter samples of full rank; where there was none, as with rare columns, the next have fewer columns."""
        if samples == 0:
            self.most = min(self.most, int(unknown_columns / math.sqrt(2)))
        for k in self.sizes:
            gain = samples * np.log1p(-np.minimum(self.chance(k, unknown_columns), 1 - 1e-15))
            self.log_missed[k] = self.log_missed.get(k, np.zeros(len(GRID))) + gain

    def reached(self, k: int, missed: float) -> float:
        """Return the correlation from which on parities of k columns are missed with at most this probability."""
        good = self.log_missed.get(k, np.zeros(len(GRID))) <= math.log(missed)
        below = np.flatnonzero(~good)
        start = 0 if not len(below) else int(below[-1]) + 1
        return float(GRID[start]) if start < len(GRID) else 2.0


@lru_cache(maxsize=4096)
def _chance(all_columns: int, all_rows: int, k: int, unknown_columns: int) -> Float[ndarray, " grid"]:
    if not k <= unknown_columns <= all_columns or unknown_columns + 1 > all_rows:
        return np.zeros(len(GRID))
    inside = log_choose(all_columns - k, float(unknown_columns - k)) - log_choose(all_columns, float(unknown_columns))
    agree = np.floor((1 + GRID) / 2 * all_rows + 1e-9)
    steps = np.arange(unknown_columns + 1)[:, None]
    with np.errstate(divide="ignore"):
        clean = np.log(np.clip(agree - steps, 0, None) / (all_rows - steps)).sum(axis=0)
    return np.exp(float(inside) + clean)


def sample_seconds(unknown_columns: int) -> float:
    """Return roughly how long one sample takes when many are solved together."""
    rows = unknown_columns + 1 + _SPARE_ROWS
    words = (unknown_columns + 2) / 64 + 1
    systems = max(1, _BATCH_WORDS // int(rows * words))
    per_unknown = _STEP_SECONDS / systems + rows * (0.7 * words + 3) * _WORD_SECONDS
    return _SAMPLE_SECONDS + unknown_columns * per_unknown + rows * unknown_columns * _BIT_SECONDS


@dataclass
class Eliminator:
    """Samples of equations, to be continued."""

    table: BitTable
    rows: TwoClasses
    max_k: int
    random: np.random.RandomState
    best: BitSet | None = None
    solved: int = 0
    consistent: bool = False  # whether the equations of the last samples allow a parity without noise

    def __post_init__(self) -> None:
        columns = max(1, self.table.columns)
        self.books = EliminationBooks(columns, self.rows.rows, tuple(range(1, min(self.max_k, columns) + 1)))

    @cached_property
    def generators(self) -> Int[ndarray, " generators"]:
        """The bits whose sums are all bits: of a category, the single values."""
        return np.array([i for i, bit in enumerate(self.table.bits) if len(bit.levels) <= 1], dtype=int)

    @cached_property
    def _by_column(self) -> list[ndarray]:
        owner = self.table.owner[self.generators]
        return np.split(self.generators, np.flatnonzero(np.diff(owner)) + 1)

    @cached_property
    def _bytes(self) -> UInt8[ndarray, "bits eights"]:
        return np.ascontiguousarray(self.rows.words.T).astype("<u8", copy=False).view(np.uint8)

    def _answers(self, rows: ndarray, bits: ndarray) -> UInt8[ndarray, "rows bits"]:
        place = self.rows.places(rows)
        some: ndarray = (self._bytes[np.ix_(bits, place // 8)] >> (place % 8).astype(np.uint8)) & np.uint8(1)
        return some.T

    def run(self, columns: int, *, samples: int, budget: Budget) -> None:
        """Solve samples of so many columns; a parity without any disagreement ends it."""
        labels = np.repeat(np.array([1, 0], dtype=np.uint8), [self.rows.first, self.rows.second])
        while samples > 0 and budget.left > 0:
            chosen = [self._draw(columns) for _ in range(min(samples, self._together(columns)))]
            unknowns = max(len(some) for some in chosen)
            count = min(self.rows.rows, unknowns + 1 + _SPARE_ROWS)
            system = np.zeros((len(chosen), count, unknowns + 1), dtype=np.uint8)
            right = np.zeros((len(chosen), count), dtype=np.uint8)
            for place, some in enumerate(chosen):
                rows = _different(self.random, self.rows.rows, count)
                system[place, :, : len(some)] = self._answers(rows, some)
                system[place, :, -1] = 1
                right[place] = labels[rows]
            solution, full_rank, consistent = solve(system, right)
            self.consistent = bool(consistent.any())
            weighed = self._weigh(chosen, solution)
            if len(self.generators) == self.table.columns:
                self.books.enter(columns, int(full_rank.sum()))
            samples -= len(chosen)
            budget.charge(len(chosen) * sample_seconds(unknowns) + weighed * self._set_seconds)
            self.solved += len(chosen)
            budget.report(f"equations of {columns} columns")
            if self.best is not None and abs(self.best.strength) > 1 - 1e-12:
                return

    def _draw(self, columns: int) -> ndarray:
        which = self.random.permutation(len(self._by_column))[:columns]
        return np.concatenate([self._by_column[i] for i in which.tolist()])

    def _together(self, columns: int) -> int:
        unknowns = columns * len(self.generators) / max(1, len(self._by_column))
        return max(1, int(_BATCH_WORDS / ((unknowns + 25) * (unknowns / 64 + 1))))

    @property
    def _set_seconds(self) -> float:
        return _SET_SECONDS + count_seconds(1, self.max_k, len(self.rows.words))

    def _weigh(self, chosen: list[ndarray], solution: ndarray) -> int:
        """Count the sparse solutions on all rows; return how many there were."""
        sparse: dict[int, list[tuple[int, ...]]] = {}
        weights = solution[:, :-1].sum(axis=1, dtype=np.int64)
        for place in np.flatnonzero((weights > 0) & (weights <= 2 * self.max_k)).tolist():
            members = np.flatnonzero(solution[place, :-1])
            bits = _as_bits(self.table, chosen[place][members[members < len(chosen[place])]], self.max_k)
            if bits:
                sparse.setdefault(len(bits), []).append(bits)
        for sets in sparse.values():
            each = np.array(list(dict.fromkeys(sets)))
            strength = self.rows.strength(*self.rows.odd(each))
            best = int(np.abs(strength).argmax())
            if self.best is None or abs(strength[best]) > abs(self.best.strength):
                self.best = BitSet(tuple(each[best].tolist()), float(strength[best]))
        return sum(map(len, sparse.values()))


def _different(random: np.random.RandomState, most: int, count: int) -> Int[ndarray, " count"]:
    """Return different numbers below `most`: of many, repetitions are drawn again, which is cheaper than to permute."""
    if 8 * count > most:
        return random.choice(most, count, replace=False)
    drawn = random.randint(most, size=count)
    while len(again := np.setdiff1d(np.arange(count), np.unique(drawn, return_index=True)[1])):
        drawn[again] = random.randint(most, size=len(again))
    return drawn


def best_columns(books: EliminationBooks, k: int, rho: float, missed: float) -> tuple[int, float, float]:
    """Return how many columns a sample should have, how many samples bring the miss to `missed`, and their seconds."""
    here = int(np.argmin(np.abs(GRID - rho)))
    done = float(books.log_missed.get(k, np.zeros(len(GRID)))[here])
    needed = done - math.log(missed)
    best = (books.most, math.inf, math.inf)
    for columns in sorted(
        {max(k, round(books.most * 2 ** (-step / 2))) for step in range(16)} if books.most >= k else ()
    ):
        chance = float(books.chance(k, columns)[here])
        samples = (
            math.ceil(max(0.0, needed) / -math.log1p(-min(chance, 1 - 1e-15))) if chance > _LEAST_CHANCE else math.inf
        )
        seconds = samples * sample_seconds(columns)
        if seconds < best[2]:
            best = (columns, samples, seconds)
    return best


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
