"""Which solver is tried when, and which of the answers is believed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray

from parityscope.estimator import elimination, exhaustive
from parityscope.estimator.bits import BitTable, refine
from parityscope.estimator.evidence import (
    clearly_better,
    corrected_log_p,
    correlation,
    exact_log_p,
    p_text,
    reaches,
    replicates,
    rows_needed,
)
from parityscope.estimator.exhaustive import BitSet
from parityscope.estimator.rules import Interaction, parity_log_likelihood

Solver = Literal["auto", "attention", "elimination", "exhaustive"]
SOLVERS: tuple[Solver, ...] = ("auto", "attention", "elimination", "exhaustive")
_CHEAP = 5e9  # multiplications of an exhaustive search that are not worth avoiding: less than a second
_FREE = 1e9
_DOMINANT = 0.5  # squared correlations of different parities add up to 1 at most: above this none can be stronger


def rows_wanted(bits: int, k: int) -> float:
    """Return how many noiseless rows attention needs, roughly: n^{k−1} log n, the rate of gradient learning.

    The factor 4 is a rule of thumb that decides only whether a training is worth trying; it was not fitted here.

    >>> round(rows_wanted(100, 2))
    1842
    """
    return 4 * float(bits) ** (k - 1) * math.log(max(2, bits))


@dataclass(frozen=True)
class Candidate:
    """A parity that a solver proposes, judged: exact corrected p-value, and how it does on held-out rows.

    >>> from parityscope.estimator.bits import Bit
    >>> pair = Interaction((Bit(1, 0.5), Bit(6, 0.5)), (None, None))
    >>> candidate = Candidate(pair, "exhaustive", 0.8, log_p=-40.0, replicated=True, log_likelihood=np.zeros(3))
    >>> candidate.k, candidate.support
    (2, (1, 6))
    """

    interaction: Interaction
    solver: Solver
    strength: float  # correlation with the labels on training rows
    log_p: float
    replicated: bool
    log_likelihood: Float[ndarray, " held_out"]
    attention: Float[ndarray, "heads columns"] | None = None

    @property
    def k(self) -> int:
        """The number of columns."""
        return len(self.interaction.bits)

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending."""
        return tuple(bit.column for bit in self.interaction.bits)


@dataclass(frozen=True)
class Attempt:
    """One line of the search's diary: what was tried, or why it was not.

    >>> Attempt("exhaustive", 5, "not tried: 2e+13 multiplications exceed the budget 2e+10").seconds
    0.0
    """

    solver: Solver
    k: int | None
    outcome: str
    seconds: float = 0.0


@dataclass
class Search:
    """A search on one table: `order` puts the training rows first, in the bit table and in the labels too.

    >>> from parityscope.estimator.bits import encode
    >>> random, order = np.random.RandomState(0), np.arange(300)
    >>> X = random.randint(2, size=(300, 8))
    >>> labels = (1 - 2 * (X[:, 1] ^ X[:, 6] ^ (random.rand(300) < 0.1))).astype(np.int8)
    >>> search = Search(X, order, encode(X, order), labels, 210, [1, 2, 3], False, 0.01, 1e9, random)
    >>> search.run("auto").support, [attempt.solver for attempt in search.attempts[:2]]
    ((1, 6), ['elimination', 'exhaustive'])
    """

    X: ndarray
    order: ndarray
    table: BitTable
    labels: Int8[ndarray, " rows"]
    train: int
    sizes: Sequence[int]
    k_is_known: bool
    alpha: float
    budget: float
    random: np.random.RandomState
    attempts: list[Attempt] = field(default_factory=list)
    judged: list[Candidate] = field(default_factory=list)
    scored: set[int] = field(default_factory=set)  # sizes of which every support was scored

    @property
    def _signs(self) -> ndarray:
        return self.table.signs[:, : self.train]

    @property
    def _labels(self) -> ndarray:
        return self.labels[: self.train]

    @property
    def searched(self) -> list[int]:
        """The sizes of which some solver proposed a candidate."""
        return sorted({candidate.k for candidate in self.judged})

    @property
    def found(self) -> Candidate | None:
        """The answer so far: of the believed candidates the smallest that no larger one clearly beats.

        Of equally strong ones the first in the order of columns is asked first.
        """
        answer: Candidate | None = None
        believed = filter(self._believed, self.judged)
        for candidate in sorted(believed, key=lambda one: (one.k, -abs(one.strength), one.support)):
            if answer is None or clearly_better(candidate.log_likelihood, answer.log_likelihood):
                answer = candidate
        return answer

    def run(self, solver: Solver) -> Candidate | None:
        """Search with one solver, or with the cheapest that can succeed first, then the others."""
        if not self.sizes or not self.table.bits:
            return None
        if solver == "elimination":
            self._eliminate()
        elif solver == "exhaustive":
            self._exhaust(thrifty=True)
        elif solver == "attention":
            for k in self._attention_sizes():
                self._attend(k)
        else:
            self._run_auto()
        return self.found

    def _run_auto(self) -> None:
        # Without noise one solution of the equations is the answer; it costs next to nothing to ask.
        self._eliminate(samples=2)
        found = self.found
        if found is not None and self._settled():
            # Columns that depend on each other allow many solutions: a smaller one is looked for while that is free.
            self._exhaust([k for k in self.sizes if k < found.k and self._exhaustive_cost(k) < _FREE])
            return
        self._exhaust(thrifty=True)
        # Where every support was scored, nobody else can do better.
        if self.found is None and not self.scored.issuperset(self.sizes):
            self._eliminate()
            for k in self._attention_sizes():
                if self.found is None and k not in self.scored:
                    self._attend(k)

    def _eliminate(self, samples: int | None = None) -> None:
        """Solve the equations of random rows."""
        started = time.perf_counter()
        samples = samples or self._affordable_samples()
        best = elimination.find(self.table, self._labels, max(self.sizes), self.random, samples=samples)
        if best is None or len(best.bits) not in self.sizes:
            outcome = f"no sparse solution in {samples} samples of equations"
            self._note("elimination", None, outcome, started)
        else:
            self._judge("elimination", best, started)

    def _exhaust(self, sizes: Sequence[int] | None = None, *, thrifty: bool = False) -> None:
        """Score every support, sizes ascending, as far as the budget goes; `thrifty` stops once it is settled."""
        sizes = self.sizes if sizes is None else sizes
        if sizes and self._all_at_once(sizes):
            started = time.perf_counter()
            spectrum = exhaustive.all_sizes(self._signs, self._labels, max(sizes))
            self.scored.update(sizes)
            for k in sizes:
                self._judge("exhaustive", spectrum[k][0], started)
                started = time.perf_counter()
            return
        for k in sizes:
            refusal = self._refusal(k, thrifty)
            if refusal is not None:
                self._note("exhaustive", k, f"not tried: {refusal}")
                break
            started = time.perf_counter()
            best = exhaustive.of_size(self._signs, self._labels, k, self.table.owner)
            self.scored.add(k)
            if best:
                self._judge("exhaustive", best[0], started)

    def _refusal(self, k: int, thrifty: bool) -> str | None:
        """Say why an exhaustive search for k columns, and so for more, is not worth it; None when it is."""
        cost = self._exhaustive_cost(k)
        if cost > self.budget:
            return f"{cost:.1g} multiplications exceed the budget {self.budget:.1g}"
        if thrifty and (self._settled() or (cost > _CHEAP and self.found is not None)):
            return "a smaller parity is already established"
        if not self.k_is_known and not self._enough_rows(k):
            return f"even without noise {k} columns could not be told from chance in {len(self.labels)} rows"
        return None

    def _attend(self, k: int) -> None:
        """Train attention on k heads, with restarts until one is believed."""
        from parityscope.estimator import attention  # here, not above: it is the only solver that needs torch

        seed = int(self.random.randint(2**31 - attention.RESTARTS))
        started = time.perf_counter()
        for attended in attention.find(self._signs, self._labels, k, seed, owner=self.table.owner):
            by_column = _summed_by_column(attended.attention, self.table.owner, self.X.shape[1])
            if self._believed(self._judge("attention", attended.scored, started, by_column)):
                return
            started = time.perf_counter()

    def values(self, columns: Iterable[int]) -> dict[int, ndarray]:
        """Return the values of some columns, training rows first."""
        return {column: self.X[self.order, column] for column in columns}

    def _all_at_once(self, sizes: Sequence[int]) -> bool:
        """Say whether the whole spectrum is cheaper than the sizes one by one."""
        bits = len(self.table.bits)
        if bits > exhaustive.WALSH_BITS or bits != self.table.columns:
            return False
        return exhaustive.spectrum_cost(bits) < sum(map(self._exhaustive_cost, sizes))

    def _enough_rows(self, k: int) -> bool:
        needed = rows_needed(self.table.choices, k, self.alpha, k_is_known=self.k_is_known)
        return len(self.labels) >= needed

    def _exhaustive_cost(self, k: int) -> float:
        return exhaustive.cost(len(self.table.bits), k, self.train)

    def _affordable_samples(self) -> int:
        bits = len(self.table.bits)
        return int(max(2, min(elimination.MOST_SAMPLES, 1e9 / (bits * bits * (bits / 64 + 16)))))

    def _attention_sizes(self) -> list[int]:
        """Return the sizes with enough rows for a gradient to see anything; a given k is tried anyway."""
        if self.k_is_known:
            return list(self.sizes)
        tried = [k for k in self.sizes if rows_wanted(len(self.table.bits), k) <= 4 * self.train]
        for k in self.sizes:
            if k not in tried:
                wanted = rows_wanted(len(self.table.bits), k)
                self._note("attention", k, f"not tried: would need about {wanted:.1g} rows, there are {self.train}")
                break
        return tried

    def _settled(self) -> bool:
        found = self.found
        return found is not None and found.strength**2 > _DOMINANT

    def _believed(self, candidate: Candidate) -> bool:
        return reaches(candidate.log_p, self.alpha) and candidate.replicated

    def _judge(self, solver: Solver, scored: BitSet, started: float, attended: ndarray | None = None) -> Candidate:
        """Move the thresholds, then weigh the evidence on all rows (exact, corrected) and on the held-out ones."""
        chosen = sorted((self.table.bits[i] for i in scored.bits), key=lambda bit: bit.column)
        values = self.values(bit.column for bit in chosen)
        bits = refine(tuple(chosen), {c: v[: self.train] for c, v in values.items()}, self._labels)
        interaction = Interaction(bits, tuple(self.table.levels.get(bit.column) for bit in bits))
        chi = interaction.chi(values)
        strength = correlation(chi[: self.train], self._labels)
        oriented = chi if strength >= 0 else -chi
        log_p = exact_log_p(chi, self.labels)
        candidate = Candidate(
            interaction,
            solver,
            strength,
            corrected_log_p(log_p, self.table.choices, len(bits), k_is_known=self.k_is_known),
            replicates(oriented[self.train :], self.labels[self.train :]),
            parity_log_likelihood(chi, self.labels, self.train),
            attended,
        )
        self.judged.append(candidate)
        verdict = (
            "found" if self._believed(candidate) else "not significant" if candidate.replicated else "not confirmed"
        )
        columns = ", ".join(map(str, candidate.support))
        outcome = f"{verdict}: columns {columns}, {p_text(candidate.log_p)}"
        self._note(solver, len(bits), outcome, started)
        return candidate

    def _note(self, solver: Solver, k: int | None, outcome: str, started: float | None = None) -> None:
        seconds = 0.0 if started is None else time.perf_counter() - started
        self.attempts.append(Attempt(solver, k, outcome, seconds))


def _summed_by_column(attention_to_bits: ndarray, owner: ndarray, columns: int) -> Float[ndarray, "heads columns"]:
    summed = np.zeros((len(attention_to_bits), columns))
    np.add.at(summed.T, owner, attention_to_bits.T)
    return summed
