"""Pairs of columns of a few values by their whole table: what no single split of each column shows well enough.

A weak effect of two genotypes spreads over nine cells. The parity of the best splits has about half of it, and pays for
the choice among all splits. Here a pair is weighed by the chi-square of its table beyond those of its columns, and the
strongest pair by what the same search meets when the labels are dealt to the rows at random.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float32, Int
from numpy import ndarray

from parityscope.fit.evidence.evidence import clearly_better, p_text
from parityscope.fit.interactions.candidates import Candidate
from parityscope.fit.interactions.joint import Part, held_out_log_likelihood
from parityscope.fit.solvers.exhaustive import BitSet

if TYPE_CHECKING:
    from parityscope.fit.search import Search

SHUFFLES = 1999
_TOGETHER = 50
_MOST_SHARE = 0.1  # of the time budget
_OPERATIONS_A_SECOND = 2e9  # of a product of small matrices, roughly


@dataclass(frozen=True)
class StrongestPair:
    """The pair of columns whose table stands out most, and the p-value of the search for it.

    >>> StrongestPair((3, 8), p_value=0.0005, shuffles=1999).columns
    (3, 8)
    """

    columns: tuple[int, int]
    p_value: float  # of the strongest of all pairs: choosing it is paid for
    shuffles: int


def strongest_pair(
    values: Mapping[int, ndarray],
    labels: ndarray,
    random: np.random.RandomState,
    *,
    believed_below: float,
) -> StrongestPair:
    """Return the pair with the strongest table of all columns, each of at most a few values.

    Labels are shuffled until so many shuffles met a stronger pair that a p-value of at most `believed_below` is out of
    reach, 1999 times at most: shuffles with a stronger pair, plus one, over shuffles plus one. That is exact for any
    way in which the columns depend on each other.

    >>> random = np.random.RandomState(0)
    >>> X = random.randint(3, size=(500, 6))
    >>> up = random.rand(500) < np.where((X[:, 1] == 1) ^ (X[:, 4] == 1), 0.7, 0.3)
    >>> found = strongest_pair(dict(enumerate(X.T)), np.where(up, 1, -1), random, believed_below=0.01)
    >>> found.columns, found.p_value
    ((1, 4), 0.0005)
    """
    tables = _Tables.of(values)
    columns, shuffled = list(values), np.asarray(labels) > 0
    seen = tables.beyond_columns(shuffled[None])[0]
    best = int(np.argmax(seen))
    stronger = done = 0
    while done < SHUFFLES and (stronger + 1) / (SHUFFLES + 1) <= believed_below:
        # A few first: most tables without an interaction are done with after them.
        count = min(SHUFFLES - done, _TOGETHER if done else _TOGETHER // 5)
        dealt = np.stack([random.permutation(shuffled) for _ in range(count)])
        stronger += int((tables.beyond_columns(dealt).max(axis=1) >= seen[best] - 1e-6).sum())
        done += count
    pair = columns[int(tables.first[best])], columns[int(tables.second[best])]
    return StrongestPair((min(pair), max(pair)), (stronger + 1) / (done + 1), done)


def seconds(values: Sequence[int], rows: int) -> float:
    """Return roughly how long all shuffles take, from how many values each column has.

    >>> seconds([3] * 20, 400) < 2 < seconds([3] * 300, 400)
    True
    """
    return (SHUFFLES + 1) * (sum(values) ** 2) * (rows / 2 + 40) * 2 / _OPERATIONS_A_SECOND


@dataclass(frozen=True)
class _Tables:
    """Rows by value of every column, and how often every two values occur together."""

    has: Float32[ndarray, "values rows"]
    together: Float[ndarray, "values values"]
    column_of: Float[ndarray, "values columns"]
    first: Int[ndarray, " pairs"]
    second: Int[ndarray, " pairs"]
    degrees: Float[ndarray, " pairs"]

    @classmethod
    def of(cls, values: Mapping[int, ndarray]) -> _Tables:
        distinct = [np.unique(column) for column in values.values()]
        sizes = np.array([len(some) for some in distinct])
        has = np.concatenate(
            [(column == some[:, None]) for column, some in zip(values.values(), distinct, strict=True)]
        ).astype(np.float32)
        first, second = np.triu_indices(len(sizes), 1)
        column_of = np.repeat(np.eye(len(sizes)), sizes, axis=0)
        degrees = (sizes[first] - 1.0) * (sizes[second] - 1.0)
        return cls(has, (has @ has.T).astype(float), column_of, first, second, degrees)

    def beyond_columns(self, labels: ndarray) -> Float[ndarray, "labelings pairs"]:
        """Return how far every pair's chi-square beyond those of its two columns stands out, for each labeling.

        Chi-squares of different degrees of freedom are made comparable by Wilson and Hilferty's cube root.
        """
        share = float(labels[0].mean())
        ups = np.stack([self._ups(one) for one in labels])
        expected = share * self.together
        excess = (ups - expected) ** 2 / np.maximum(expected * (1 - share), 1e-9)
        square = self.column_of.T @ excess @ self.column_of
        single = square[:, np.arange(square.shape[1]), np.arange(square.shape[1])]
        beyond = square[:, self.first, self.second] - single[:, self.first] - single[:, self.second]
        spread = 2 / (9 * self.degrees)
        return (np.cbrt(np.maximum(beyond, 0) / self.degrees) - (1 - spread)) / np.sqrt(spread)

    def _ups(self, labels: ndarray) -> Float[ndarray, "values values"]:
        chosen = self.has[:, labels]
        return (chosen @ chosen.T).astype(float)


def log_p_of(pair: StrongestPair, log_price: float) -> float:
    """Return the logarithm of a pair's p-value after a price.

    >>> round(math.exp(log_p_of(StrongestPair((0, 1), 0.0005, 1999), math.log(11))), 6)
    0.0055
    """
    return min(0.0, math.log(pair.p_value) + log_price)


def propose(search: Search) -> Candidate | None:
    """Return the strongest pair table of a search as a candidate, judged; None where there is none to look for.

    Columns of two values have no table beyond their parity, so one of more is needed; and the shuffles must be cheap.

    >>> from parityscope.fit.clock import Clock
    >>> from parityscope.fit.search import Search
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(3, size=(500, 6))
    >>> labels = np.where(random.rand(500) < np.where((X[:, 1] == 1) ^ (X[:, 4] == 1), 0.7, 0.3), 1, -1)
    >>> search = Search.of(X, labels.astype(np.int8), [2], True, 0.01, Clock(30.0), random)
    >>> strongest = propose(search)
    >>> strongest.support, strongest.table
    ((1, 4), True)
    """
    levels, clock = search.table.levels, search.clock
    sizes = [len(some) for some in levels.values()]
    if 2 not in search.sizes or len(sizes) < 2 or max(sizes) < 3:
        return None
    cost, started = seconds(sizes, len(search.labels)), time.perf_counter()
    if cost > min(_MOST_SHARE * clock.seconds, clock.left):
        return None
    clock.report(f"tables of all pairs of {len(sizes)} columns")
    price = search.table_price
    values = search.values(levels)
    believed_below = math.exp(math.log(search.alpha) - price)
    pair = strongest_pair(values, search.labels, search.random, believed_below=believed_below)
    parity = search.judge("exhaustive", _best_split(search, pair.columns))
    part = Part(parity.interaction, table=True)
    fit = held_out_log_likelihood([part], values, search.labels, search.train)
    shares = held_out_log_likelihood([], values, search.labels, search.train)
    log_p = log_p_of(pair, price)
    candidate = replace(
        parity, log_p=log_p, table=True, log_likelihood=fit, replicated=clearly_better(fit, than=shares)
    )
    search.judged.append(candidate)
    verdict = "found" if search.believed(candidate) else "not significant"
    columns = ", ".join(map(str, pair.columns))
    outcome = f"{verdict}: the table of columns {columns}, {p_text(log_p)} from {pair.shuffles} shuffles of the labels"
    search.note("exhaustive", 2, outcome, started)
    return candidate


def _best_split(search: Search, columns: tuple[int, int]) -> BitSet:
    """Return the split of each column whose parity correlates most with the labels of the training rows."""
    first, second = (np.flatnonzero(search.table.owner == column) for column in columns)
    each = np.array(list(product(first.tolist(), second.tolist())))
    strength = search.rows.strength(*search.rows.odd(each))
    best = int(np.abs(strength).argmax())
    return BitSet((int(each[best, 0]), int(each[best, 1])), float(strength[best]))
