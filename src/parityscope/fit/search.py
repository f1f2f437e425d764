"""What is known of a table during a search: what was proposed, what of it is believed, what would have been found."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.fit.bits.bits import refine
from parityscope.fit.bits.encoding import BitTable, encode
from parityscope.fit.bits.packed import TwoClasses, log_sets
from parityscope.fit.clock import Clock
from parityscope.fit.evidence.evidence import (
    clearly_better,
    correlation,
    exact_log_p,
    log_family,
    p_text,
    reaches,
    replicates,
    rows_needed,
)
from parityscope.fit.evidence.promise import SOLVER_SHARE, Evidence
from parityscope.fit.interactions.candidates import Attempt, Candidate, Solver
from parityscope.fit.interactions.rules import Interaction, parity_log_likelihood
from parityscope.fit.solvers.collision import Collider
from parityscope.fit.solvers.collision_plan import Books
from parityscope.fit.solvers.elimination import Eliminator
from parityscope.fit.solvers.exhaustive import BitSet

_HELD_OUT = 0.3
_EXPLAINED = 0.96  # a correlation above which hardly a label, one in fifty, is left to explain
_JUDGED = 64  # of one size
_EVEN = 0.2  # a parity of balanced columns has a mean within this
_ALWAYS_JUDGED = 8  # of one size, however weak in the rows that were searched: all rows decide
BEYOND_DOUBLE_CHECK = 0.1  # of alpha: so small a p-value of all rows needs no second one from few held-out rows
# With k given, alpha is shared: its parities, smaller ones that a table of k columns shows as well, and tables.
_OWN_SHARE, _SMALLER_SHARE, _TABLE_SHARE = 0.5, 0.2, 0.3
_CONJUNCTIONS = 0.1  # of what tables have: the p-values of conjunctions are far smaller than those of shuffles
_MOST_SMALLER = 2  # columns


@dataclass
class Search:
    """A search on one table; training rows come first, both in `order` and in the labels, each part by class.

    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(300, 8))
    >>> labels = (1 - 2 * (X[:, 1] ^ X[:, 6] ^ (random.rand(300) < 0.1))).astype(np.int8)
    >>> search = Search.of(X, labels, [1, 2, 3], False, 0.01, Clock(30.0), random)
    >>> pair = [i for i, bit in enumerate(search.table.bits) if bit.column in (1, 6)]
    >>> search.judge("exhaustive", BitSet((pair[0], pair[1]), 0.8)).support, search.found.k
    ((1, 6), 2)
    """

    X: ndarray
    order: ndarray
    table: BitTable
    labels: Int8[ndarray, " rows"]
    train: int
    sizes: Sequence[int]
    k_is_known: bool
    alpha: float
    clock: Clock
    random: np.random.RandomState
    attempts: list[Attempt] = field(default_factory=list)
    judged: list[Candidate] = field(default_factory=list)
    scored: set[int] = field(default_factory=set)  # sizes of which every support was scored
    colliders: dict[int, Collider] = field(default_factory=dict)
    families: dict[int, float] = field(default_factory=dict)
    found_after: float | None = None  # seconds until something was believed
    cut_short: bool = False  # the time was over before all candidates were asked what they add
    left_out: dict[int, float] = field(default_factory=dict)  # sizes that are not finished, and their seconds

    @staticmethod
    def of(
        X: ndarray,
        labels: ndarray,
        sizes: Iterable[int],
        k_is_known: bool,
        alpha: float,
        clock: Clock,
        random: np.random.RandomState,
        unordered: frozenset[int] = frozenset(),
    ) -> Search:
        """Split the rows, and pack the columns."""
        order, lengths = _split(labels, random)
        clock.report(f"reading {X.shape[1]} columns")
        table = encode(X, order, lengths, unordered)
        possible = [k for k in sizes if k <= table.columns]
        return Search(X, order, table, labels[order], sum(lengths[:2]), possible, k_is_known, alpha, clock, random)

    @cached_property
    def rows(self) -> TwoClasses:
        """The training rows."""
        return self.table.two_classes(0)

    @cached_property
    def eliminator(self) -> Eliminator:
        """Samples of equations so far."""
        return Eliminator(self.table, self.rows, max(self.sizes), self.random)

    @cached_property
    def evidence(self) -> Evidence:
        """What a promise depends on besides the solvers."""
        ups, train_ups = int((self.labels > 0).sum()), self.rows.second
        return Evidence(len(self.labels), ups, self.train, train_ups, self.alpha)

    @cached_property
    def skew(self) -> float:
        """The largest |mean| of a bit on the training rows."""
        ones = np.bitwise_count(self.rows.words).sum(axis=0, dtype=np.int64)
        return float(np.abs(1 - 2 * ones / self.rows.rows).max())

    def collider(self, k: int) -> Collider:
        """Return the collision search for parities of k columns."""
        if k not in self.colliders:
            books = Books(self.rows.first, self.rows.second, min(0.9, max(_EVEN, self.skew**k)))
            floor = self.keeping_floor(k)
            self.colliders[k] = Collider(self.rows, self.table.owner, books, self.random, floor, pace=self.pace)
        return self.colliders[k]

    @property
    def pace(self) -> float:
        """How much longer things take here and now than was planned, from the rounds measured so far."""
        paces = [one.pace for one in self.colliders.values()]
        return sum(paces) / len(paces) if paces else 1.0

    @property
    def found(self) -> Candidate | None:
        """The answer so far."""
        return self.answer_among(self.sizes)

    @property
    def smaller(self) -> range:
        """The sizes below a given k in which a table of k columns may show as well."""
        return range(1, min(_MOST_SMALLER + 1, self.sizes[0])) if self.k_is_known and self.sizes else range(0)

    def answer_among(self, sizes: Collection[int]) -> Candidate | None:
        """Return, of the believed candidates of these sizes, the smallest that no larger one clearly beats.

        Of equally strong ones the first in the order of columns is asked first.
        """
        answer: Candidate | None = None
        believed = [one for one in self.judged if one.k in sizes and self.believed(one)]
        asked = set()
        for candidate in sorted(believed, key=lambda one: (one.k, -abs(one.strength), one.support)):
            # One of each size: whoever compares many finds one that looks better by chance.
            if candidate.k in asked:
                continue
            asked.add(candidate.k)
            if answer is None or clearly_better(candidate.log_likelihood, answer.log_likelihood):
                answer = candidate
        return answer

    @property
    def nearest(self) -> Candidate | None:
        """The candidate of the sizes asked for with the smallest p-value, of equals the smallest and strongest."""
        asked = [one for one in self.judged if one.k in self.sizes]
        return min(asked, key=lambda one: (one.log_p, one.k, not one.table, -abs(one.strength)), default=None)

    @property
    def settled(self) -> bool:
        """Whether the answer explains the label but for a few rows."""
        found = self.found
        return found is not None and abs(found.strength) > _EXPLAINED

    def values(self, columns: Iterable[int]) -> dict[int, ndarray]:
        """Return the values of some columns, training rows first."""
        return {column: self.X[self.order, column] for column in columns}

    def price(self, k: int) -> float:
        """Return the logarithm of what the p-value of a parity of k columns is multiplied by."""
        if not self.k_is_known:
            return self.log_family(k) + math.log(k * (k + 1))
        if k in self.smaller:
            return self.log_family(k) + math.log(len(self.smaller) / _SMALLER_SHARE)
        return self.log_family(k) - (math.log(_OWN_SHARE) if k > 1 else 0.0)

    @property
    def table_price(self) -> float:
        """The logarithm of what the p-value of the search for a pair table is multiplied by."""
        return -math.log((1 - _CONJUNCTIONS) * self._table_share)

    @property
    def conjunction_price(self) -> float:
        """The logarithm of what that of a conjunction is multiplied by, besides how many there are."""
        return -math.log(_CONJUNCTIONS * self._table_share)

    @property
    def _table_share(self) -> float:
        """Which part of alpha tables have: with k open what the reciprocals of k(k+1) leave, 1/(largest k + 1)."""
        return _TABLE_SHARE if self.k_is_known else 1 / (max(self.sizes) + 1)

    def log_family(self, k: int) -> float:
        """Return the logarithm of how many parities of k columns could have been found."""
        if k not in self.families:
            self.families[k] = log_family(self.table.choices, k)
        return self.families[k]

    def target(self, k: int) -> float:
        """Return the training correlation below which parities of k columns cannot be told from chance."""
        return max(self.evidence.strongest(log_sets(len(self.table.bits), k)), self.evidence.significant(self.price(k)))

    def keeping_floor(self, k: int) -> float:
        """Return the training correlation from which on a parity may be believed once all rows are looked at."""
        return math.sqrt(max(0.0, 2 * (self.price(k) - math.log(self.alpha)) / len(self.labels)))

    def met(self, k: int) -> float:
        """Return the training correlation from which on a solver meets parities of k columns surely; 2 for none."""
        if k in self.scored:
            return 0.0
        levels = [2.0]
        if k in self.colliders:
            levels.append(self.colliders[k].books.reached(SOLVER_SHARE))
        if "eliminator" in self.__dict__:
            levels.append(self.eliminator.books.reached(k, SOLVER_SHARE))
        return min(levels)

    def hopeless(self, k: int) -> bool:
        """Say whether these rows are too few for k columns: even without noise nothing could be believed."""
        return len(self.labels) < rows_needed(self.price(k), self.alpha)

    def promised(self) -> dict[int, float | None]:
        """Return, for every size, the correlation from which a parity would have been found."""
        return {k: self._promised(k, self._uneven(k)) for k in self.sizes}

    def uneven(self) -> dict[int, float]:
        """Return how uneven a parity may split the rows for the promise to hold, by size: the largest allowed |mean|.

        Sizes whose promise is the same for any parity are left out.
        """
        limits = {k: self._uneven(k) for k in self.sizes}
        colliding = self.colliders.keys() - self.scored  # their books know nearly even parities only
        free = {k for k in limits if k not in colliding and self._promised(k, 1.0) == self._promised(k, limits[k])}
        return {k: limit for k, limit in limits.items() if k not in free}

    def _promised(self, k: int, uneven: float) -> float | None:
        log_parities = log_sets(len(self.table.bits), k)
        return self.evidence.rho(self.met(k), self.price(k), log_parities, uneven)

    def _uneven(self, k: int) -> float:
        """Return for which parities of k columns the promise is computed: nearly even ones, if columns are even."""
        if k not in self.scored and k in self.colliders:
            return self.colliders[k].books.uneven
        return _EVEN if self.table.bits and self.skew**k <= _EVEN else 1.0

    def believed(self, candidate: Candidate) -> bool:
        """Say whether a candidate is significant after the search, and confirmed by the held-out rows.

        The p-value pays for the whole search, so it bounds mistakes alone. The held-out rows are a second look, which
        few rows do not stand for every true one: overwhelming evidence, and that of a table, is believed without.
        """
        sure = candidate.replicated or candidate.table or reaches(candidate.log_p, BEYOND_DOUBLE_CHECK * self.alpha)
        return sure and reaches(candidate.log_p, self.alpha)

    def judge_all(self, solver: Solver, best: Sequence[BitSet], started: float) -> None:
        """Judge the strongest parity that a solver proposes, and others that might be believed too."""
        for place, one in enumerate(best[:_JUDGED]):
            if place < _ALWAYS_JUDGED or abs(one.strength) >= self.keeping_floor(len(one.bits)):
                self.judge(solver, one, started if place == 0 else None)

    def judge(
        self, solver: Solver, scored: BitSet, started: float | None = None, attended: ndarray | None = None
    ) -> Candidate:
        """Move the thresholds, then weigh the evidence on all rows (exact, corrected) and on the held-out ones."""
        chosen = sorted((self.table.bits[i] for i in scored.bits), key=lambda bit: bit.column)
        values = self.values(bit.column for bit in chosen)
        labels = self.labels[: self.train]
        bits = refine(tuple(chosen), {c: v[: self.train] for c, v in values.items()}, labels)
        known = [one for one in self.judged if one.interaction.bits == bits]
        if known and attended is None:
            return known[0]
        interaction = Interaction(bits, tuple(self.table.levels.get(bit.column) for bit in bits))
        candidate = self.weighed(interaction, solver, attended)
        self.judged.append(candidate)
        verdict = (
            "found" if self.believed(candidate) else "not significant" if candidate.replicated else "not confirmed"
        )
        columns = ", ".join(map(str, candidate.support))
        if started is not None or verdict == "found":
            self.note(solver, len(bits), f"{verdict}: columns {columns}, {p_text(candidate.log_p)}", started)
        return candidate

    def weighed(self, interaction: Interaction, solver: Solver, attended: ndarray | None = None) -> Candidate:
        """Return a parity as it stands with its evidence; that the search met it is not entered."""
        chi = interaction.chi(self.values(bit.column for bit in interaction.bits))
        strength = correlation(chi[: self.train], self.labels[: self.train])
        oriented = chi if strength >= 0 else -chi
        return Candidate(
            interaction,
            solver,
            strength,
            min(0.0, exact_log_p(chi, self.labels) + self.price(len(interaction.bits))),
            replicates(oriented[self.train :], self.labels[self.train :]),
            parity_log_likelihood(chi, self.labels, self.train),
            attended,
        )

    def note(self, solver: Solver, k: int | None, outcome: str, started: float | None = None) -> None:
        """Write a line into the diary."""
        seconds = 0.0 if started is None else time.perf_counter() - started
        self.attempts.append(Attempt(solver, k, outcome, seconds))


def _split(labels: ndarray, random: np.random.RandomState) -> tuple[ndarray, tuple[int, int, int, int]]:
    """Return an order of the rows, and how many are for training and held out: both by class, in proportion."""
    train, held_out = [], []
    for sign in (-1, 1):
        rows = random.permutation(np.flatnonzero(labels == sign))
        count = round(_HELD_OUT * len(rows))
        held_out.append(rows[:count])
        train.append(rows[count:])
    runs = [*train, *held_out]
    return np.concatenate(runs), (len(runs[0]), len(runs[1]), len(runs[2]), len(runs[3]))
