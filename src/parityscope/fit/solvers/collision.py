"""Rounds of the collision search: deal the columns, key the half-sets, join, filter, count. See `collision_plan`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from jaxtyping import Int, UInt32, UInt64
from numpy import ndarray

from parityscope.fit.bits.packed import TwoClasses, count_odd, count_seconds
from parityscope.fit.clock import Budget
from parityscope.fit.solvers.collision_plan import (
    CALL_SECONDS,
    MOST_COLLISIONS,
    PASSED_SECONDS,
    Books,
    Plan,
    filter_limit,
    gather_seconds,
    halved,
    round_seconds,
)
from parityscope.fit.solvers.scan import BitSet

_CHUNK = 2**18
_MOST_KEY_BITS = 20  # the table of buckets then takes four megabytes
_KEPT = 64
_DRAW_SECONDS = 27e-9  # nominal, to draw a row


@dataclass
class Collider:
    """A collision search for parities of k columns, to be continued round by round."""

    rows: TwoClasses
    owner: Int[ndarray, " bits"]
    books: Books
    random: np.random.RandomState
    floor: float  # weaker parities are not kept
    found: dict[tuple[int, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns, first = np.unique(self.owner, return_index=True)
        self._columns = len(columns)
        self._several = self._columns < len(self.owner)
        self._work = 0.0  # nominal seconds that are not charged yet
        self._place = np.repeat(np.arange(self._columns), np.diff(np.append(first, len(self.owner))))

    @property
    def best(self) -> list[BitSet]:
        """The strongest parities met so far."""
        ordered = sorted(self.found.items(), key=lambda one: (-abs(one[1]), one[0]))
        return [BitSet(bits, strength) for bits, strength in ordered[:_KEPT]]

    def split(self, plan: Plan) -> float:
        """Return the probability that the columns of a parity fall on the two sides as a plan needs them."""
        if plan.k == 2 and not self._several:
            return 0.5
        total = 1.0
        for i in range(plan.k):
            total *= (self._columns - i) / (i + 1)
        return plan.split / total

    def run(self, plan: Plan, *, missed: float, budget: Budget, until_found: bool = True) -> None:
        """Do rounds until parities of the plan's correlation are missed with at most `missed`, or time is over.

        With `until_found` a parity above the floor that was not known before ends it too.
        """
        known, split = len(self.found), self.split(plan)
        while self.books.rounds_for(plan, split, missed) > 0 and budget.left > 0:
            needed = self.books.rounds_for(plan, split, missed)
            rounds: list[tuple[int, float]] = []
            for key_rows in self._epoch(plan, min(self.books.rounds_per_epoch(plan), int(needed) + 1)):
                if key_rows:
                    rounds.append((key_rows, split))
                budget.charge(self._work)
                self._work = 0.0
                budget.report(f"parities of {plan.k} columns with correlation {plan.rho:g}")
                if budget.left < 0 or (until_found and len(self.found) > known):
                    break
            if not rounds:
                return
            self.books.close_epoch(rounds, plan.rho)
            if until_found and len(self.found) > known:
                return

    def _epoch(self, plan: Plan, most: int) -> Iterator[int]:
        """Do rounds on disjoint rows; yield how many rows each key had, 0 for a round that was given up."""
        free = [self.random.permutation(self.rows.first), self.rows.first + self.random.permutation(self.rows.second)]
        draws = halved(64 * plan.filter_words)
        chosen = np.concatenate(
            [
                self.random.choice(self.rows.first, draws[0], replace=False),
                self.rows.first + self.random.choice(self.rows.second, draws[1], replace=False),
            ]
        )
        self._work += 2 * self.rows.rows * _DRAW_SECONDS + gather_seconds(len(chosen), self.rows.bits)
        self.random.shuffle(chosen)  # every word a mixture of both classes, its share that of a draw
        sieve = _Sieve(
            np.array([self.rows.gathered(some) for some in np.split(chosen, plan.filter_words)]),
            np.array([_packed_labels(some >= self.rows.first) for some in np.split(chosen, plan.filter_words)]),
            plan.quick_words,
            *(
                filter_limit(plan.rho, self.rows.first, self.rows.second, 64 * words, self.books.uneven)
                for words in (plan.quick_words, plan.filter_words)
            ),
        )
        used = [0, 0]
        for _ in range(most):
            key_rows = self._round(plan, free, used, sieve)
            if key_rows is None:
                return
            yield key_rows

    def _round(self, plan: Plan, free: list[ndarray], used: list[int], sieve: _Sieve) -> int | None:
        """Do one round; return the rows of its key, 0 when buckets overfill, None when rows have run out."""
        sides = self._deal(plan)
        chosen = self._draw(free, used, plan.key_bits + 1)
        if chosen is None:
            return None
        while True:
            keys, labels = self._keys(chosen)
            halves = [_joined(keys[bits], half) for bits, half in zip(sides, plan.halves, strict=True)]
            halves[1] ^= np.uint32(labels)
            join, key_bits = _Join.of(halves[0], halves[1], len(chosen) - 1), len(chosen) - 1
            counts = [len(half) for half in halves]
            self._work += round_seconds(counts, join.collisions, key_bits, plan.quick_words, self.rows.bits)
            if join.collisions <= 2 * MOST_COLLISIONS:
                break
            more = self._draw(free, used, 4) if len(chosen) + 3 <= _MOST_KEY_BITS else None
            if more is None:
                return 0
            chosen = np.concatenate([chosen, more])
        if join.collisions:
            quick = [
                [_joined(word[bits], half) for word in sieve.words[: sieve.quick]]
                for bits, half in zip(sides, plan.halves, strict=True)
            ]
            for pair in join.pairs():
                passed = sieve.quickly(quick, pair)
                self._work += sieve.seconds(len(passed), plan.k)
                members = [
                    bits[_members(len(bits), half, some[passed])]
                    for bits, half, some in zip(sides, plan.halves, pair, strict=True)
                ]
                self._look(sieve.thoroughly(np.concatenate(members, axis=1)))
        return len(chosen)

    def _deal(self, plan: Plan) -> list[ndarray]:
        """Return the bits of the columns that a round deals to either side."""
        if plan.k == 2 and not self._several:
            # Half-sets are single columns: a coin for each is quicker than a permutation, and as good.
            coins = np.unpackbits(np.frombuffer(self.random.bytes(-(-self._columns // 8)), dtype=np.uint8))
            heads = coins[: self._columns].view(bool)
            return [np.flatnonzero(heads), np.flatnonzero(~heads)]
        dealt = self.random.permutation(self._columns)[: sum(plan.sides)]
        sides = [dealt[: plan.sides[0]], dealt[plan.sides[0] :]]
        if not self._several:
            return sides
        return [np.flatnonzero(np.bincount(side, minlength=self._columns)[self._place]) for side in sides]

    def _draw(self, free: list[ndarray], used: list[int], count: int) -> ndarray | None:
        """Return rows that no key has used, half of either class; None when there are not enough."""
        # Where the first class had one row less last time, it has one more now.
        draws = halved(count + 1)[::-1] if (used[1] - used[0]) % 2 else halved(count)
        draws = (draws[0], count - draws[0])
        if any(start + draw > len(rows) for start, draw, rows in zip(used, draws, free, strict=True)):
            return None
        chosen = [rows[start : start + draw] for start, draw, rows in zip(used, draws, free, strict=True)]
        used[0] += draws[0]
        used[1] += draws[1]
        return np.concatenate(chosen)

    def _keys(self, chosen: ndarray) -> tuple[UInt32[ndarray, " bits"], int]:
        """Return every bit's answers to some rows relative to the first of them, and the labels' in the same way.

        Relative to a row, a parity and its negation have the same key.
        """
        bits = self.rows.gathered(chosen)
        flip = (bits & np.uint64(1)) * np.uint64(2 ** len(chosen) - 1)
        labels = (chosen >= self.rows.first) ^ (chosen[0] >= self.rows.first)
        return ((bits ^ flip) >> np.uint64(1)).astype(np.uint32), int(_packed_labels(labels)) >> 1

    def _look(self, sets: Int[ndarray, "sets size"]) -> None:
        """Count what passed the filter on all rows, and keep the strong ones."""
        if self._several and len(sets):
            owners = np.sort(self.owner[sets], axis=1)
            sets = sets[(owners[:, 1:] != owners[:, :-1]).all(axis=1)]
        if not len(sets):
            return
        strength = self.rows.strength(*self.rows.odd(sets))
        self._work += CALL_SECONDS + count_seconds(len(sets), sets.shape[1], len(self.rows.words))
        for place in np.flatnonzero(np.abs(strength) >= self.floor).tolist():
            self.found[tuple(sorted(sets[place].tolist()))] = float(strength[place])
        if len(self.found) > 64 * _KEPT:
            self.found = {one.bits: one.strength for one in self.best}


@dataclass(frozen=True)
class _Sieve:
    """Filter rows in words, their labels, and how many of them may disagree: quickly by some words, then by all."""

    words: UInt64[ndarray, "words bits"]
    labels: UInt64[ndarray, " words"]
    quick: int
    quick_limit: int
    limit: int

    def seconds(self, passed: int, k: int) -> float:
        """Return the nominal seconds that collisions take which the first words let pass."""
        return passed * PASSED_SECONDS + (len(self.words) > self.quick) * count_seconds(passed, k, len(self.words))

    def quickly(self, halves: list[list[ndarray]], pair: tuple[ndarray, ndarray]) -> ndarray:
        """Return which collisions pass the first words, from the words of the half-sets."""
        left, right = pair
        odd = np.zeros(len(left), dtype=np.uint16)
        for first, second, labels in zip(*halves, self.labels[: self.quick], strict=True):
            joined = first[left]
            joined ^= second[right]
            joined ^= labels
            odd += np.bitwise_count(joined)
        return np.flatnonzero((odd <= self.quick_limit) | (odd >= 64 * self.quick - self.quick_limit))

    def thoroughly(self, sets: Int[ndarray, "sets size"]) -> Int[ndarray, "passed size"]:
        """Return the sets that pass all words."""
        if len(self.words) == self.quick or not len(sets):
            return sets
        odd = count_odd(self.words, sets, self.labels)
        return sets[(odd <= self.limit) | (odd >= 64 * len(self.words) - self.limit)]


def _packed_labels(second: ndarray) -> np.uint64:
    return np.uint64(sum(1 << place for place, yes in enumerate(second.tolist()) if yes))


@dataclass(frozen=True)
class _Join:
    """Two lists of keys, one of them sorted into buckets."""

    order: ndarray  # of the sorted list, bucket by bucket
    others: ndarray  # places in the other list whose bucket is not empty
    starts: ndarray  # of their buckets
    counts: ndarray
    swapped: bool

    @staticmethod
    def of(first: UInt32[ndarray, " left"], second: UInt32[ndarray, " right"], key_bits: int) -> _Join:
        swapped = len(second) < len(first)  # the shorter list is sorted
        if swapped:
            first, second = second, first
        sizes = np.bincount(first, minlength=2**key_bits)
        others = np.flatnonzero((sizes > 0)[second])
        second = second[others]
        starts = np.cumsum(sizes) - sizes
        return _Join(_sorted(first, key_bits), others, starts[second], sizes[second], swapped)

    @property
    def collisions(self) -> int:
        return int(self.counts.sum())

    def pairs(self) -> Iterator[tuple[ndarray, ndarray]]:
        """Yield places in the first and in the second list whose keys are equal, some at a time."""
        total = np.cumsum(self.counts)
        cuts = np.searchsorted(total, np.arange(_CHUNK, int(total[-1]) + _CHUNK, _CHUNK), side="left") + 1
        low = 0
        for high in np.unique(np.minimum(cuts, len(total))).tolist():
            counts = self.counts[low:high]
            before = np.cumsum(counts) - counts
            other = np.repeat(self.others[low:high], counts)
            one = self.order[np.arange(len(other)) + np.repeat(self.starts[low:high] - before, counts)]
            yield (other, one) if self.swapped else (one, other)
            low = high


def _sorted(keys: UInt32[ndarray, " keys"], key_bits: int) -> ndarray:
    """Return the order of keys by radix: numpy sorts 16 bits in linear time."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if key_bits > 16:
        order = order[np.argsort((keys >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
    return order


def _joined(values: ndarray, size: int) -> ndarray:
    """Return the XOR of every set of `size` values, sets in the order of their members."""
    if size == 1:
        return values.copy()
    count = len(values)
    if size == 2:
        first, second = _pairs(count)
        return values[first] ^ values[second]
    pairs = _joined(values, 2)
    sets = np.empty(count * (count - 1) * (count - 2) // 6, dtype=values.dtype)
    start = 0
    for one in range(count - 2):
        rest = count - one - 1
        some = pairs[len(pairs) - rest * (rest - 1) // 2 :]
        np.bitwise_xor(values[one], some, out=sets[start : start + len(some)])
        start += len(some)
    return sets


@lru_cache(maxsize=8)
def _pairs(count: int) -> tuple[ndarray, ndarray]:
    first, second = np.triu_indices(count, 1)
    return first, second


def _members(count: int, size: int, places: ndarray) -> Int[ndarray, "sets size"]:
    """Return the members of sets by their place in the order of `_joined`.

    >>> _members(5, 3, np.array([0, 9])).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    if size == 1:
        return places[:, None]
    first, second = _pairs(count)
    if size == 2:
        return np.column_stack([first[places], second[places]])
    rest = np.arange(count - 1, -1, -1)
    ends = np.cumsum(rest * (rest - 1) // 2)
    one = np.searchsorted(ends, places, side="right")
    within = places - (ends[one] - rest[one] * (rest[one] - 1) // 2)
    pair = len(first) - rest[one] * (rest[one] - 1) // 2 + within
    return np.column_stack([one, first[pair], second[pair]])
