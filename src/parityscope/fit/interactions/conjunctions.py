"""Conjunctions: the label is another one where k questions are answered in one way, whatever it is elsewhere.

Such a table spreads over all parities of its columns, each of them weak; the conjunction itself is one strong sign,
with an exact p-value of its own. Disjunctions are conjunctions of the opposite answers.
"""

from __future__ import annotations

import math
import time
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from parityscope.fit.evidence.evidence import (
    correlation,
    exact_log_p,
    log_family,
    p_text,
    phi,
    reaches,
    replicates,
)
from parityscope.fit.evidence.ranking import strongest
from parityscope.fit.interactions.candidates import Candidate
from parityscope.fit.interactions.grouping import beyond_main_effects
from parityscope.fit.interactions.joint import Part
from parityscope.fit.interactions.rules import Interaction, parity_log_likelihood

if TYPE_CHECKING:
    from parityscope.fit.search import Search

LARGEST = 4
_BEAM = 24
_MOST_NUMBERS = 10_000_000  # literals times rows: a tenth of a second


class _Literals(NamedTuple):
    """Every bit and its opposite, on the training rows: `holds[i]` and `holds[bits + i]` are opposite answers."""

    holds: Float[ndarray, "literals rows"]
    owner: ndarray


def propose(search: Search) -> list[Candidate]:
    """Judge the strongest conjunction of each size that was asked for; return those that can be believed.

    Sets of questions grow one by one, the strongest few of each size, on the training rows. How they were met does not
    matter for the p-value, which is that of all rows times the number of all conjunctions. Beyond that every question
    has to matter among the rows in which the others hold, the table must not be a sum of main effects, and the label
    must agree more with the conjunction than with what was found before: two parities have conjunctions as well.

    >>> from parityscope.fit.clock import Clock
    >>> from parityscope.fit.search import Search
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(400, 40))
    >>> noisy = (X[:, 3] & X[:, 8] & (1 - X[:, 21])) ^ (random.rand(400) < 0.1)
    >>> search = Search.of(X, (2 * noisy - 1).astype(np.int8), [3], True, 0.01, Clock(30.0), random)
    >>> [one.support for one in propose(search)]
    [(3, 8, 21)]
    """
    sizes = [k for k in search.sizes if 2 <= k <= LARGEST]
    bits = len(search.table.bits)
    if not sizes or search.table.columns < 2 or 2 * bits * search.train > _MOST_NUMBERS:
        return []
    search.clock.report(f"conjunctions of {search.table.columns} columns")
    yes = (search.table.signs[:, : search.train] < 0).astype(np.float32)
    literals = _Literals(np.concatenate([yes, 1 - yes]), np.tile(search.table.owner, 2))
    started, sets = time.perf_counter(), _grown(literals, np.empty((1, 0), dtype=int), search)
    believed = []
    for k in range(2, max(sizes) + 1):
        if not len(sets):
            break
        sets = _grown(literals, sets, search)
        if k in sizes and len(sets) and (candidate := _judged(search, sets[0], started)) is not None:
            believed.append(candidate)
        started = time.perf_counter()
    return believed


def _grown(literals: _Literals, sets: ndarray, search: Search) -> ndarray:
    """Return the strongest conjunctions with one literal more, a row of literals each."""
    ups = (search.labels[: search.train] > 0).astype(np.float32)
    inside = np.stack([literals.holds[some].prod(axis=0) for some in sets])
    rows = literals.holds @ inside.T
    right = literals.holds @ (inside * ups).T
    total = float(ups.sum())
    agreement = 4 * right - 2 * rows - 2 * total + search.train  # Σχy for χ = 1 inside and −1 outside
    strength = phi(agreement, 2.0 * rows - search.train, 2 * total - search.train, search.train)
    for place, some in enumerate(sets):
        strength[np.isin(literals.owner, literals.owner[some]), place] = 0.0
    best = strongest(strength.ravel(), _BEAM * (sets.shape[1] + 1))
    new, old = np.unravel_index(best[np.abs(strength.ravel()[best]) > 0], strength.shape)
    grown = np.sort(np.column_stack([sets[old], new]), axis=1)
    _, first = np.unique(grown, axis=0, return_index=True)
    return grown[np.sort(first)][:_BEAM]


def _judged(search: Search, literals: ndarray, started: float) -> Candidate | None:
    bits = len(search.table.bits)
    chosen = sorted(((search.table.bits[i % bits], i < bits) for i in literals), key=lambda one: one[0].column)
    interaction = Interaction(
        tuple(bit for bit, _ in chosen), tuple(search.table.levels.get(bit.column) for bit, _ in chosen)
    )
    values = search.values(bit.column for bit, _ in chosen)
    holds = np.stack([(bit.signs(values[bit.column]) < 0) == yes for bit, yes in chosen])
    chi = np.where(holds.all(axis=0), 1, -1).astype(np.int8)
    log_p = min(0.0, exact_log_p(chi, search.labels) + price(search, len(chosen)))
    part, train = Part(interaction, table=True), search.train
    strength = correlation(chi[:train], search.labels[:train])
    oriented = chi if strength >= 0 else -chi
    candidate = Candidate(
        interaction,
        "exhaustive",
        strength,
        log_p,
        replicates(oriented[train:], search.labels[train:]),
        # As for parities: two frequencies, those of rows inside and outside.
        parity_log_likelihood(chi, search.labels, train),
        table=True,
    )
    found = search.found
    stronger = found is None or abs(strength) > abs(found.strength)
    good = stronger and search.believed(candidate) and _all_matter(search, holds)
    good = good and beyond_main_effects(part, values, search)
    if good:
        columns = ", ".join(map(str, candidate.support))
        search.note("exhaustive", candidate.k, f"found: a conjunction of columns {columns}, {p_text(log_p)}", started)
        search.judged.append(candidate)
    return candidate if good else None


def price(search: Search, k: int) -> float:
    """Return the logarithm of what the p-value of a conjunction of k questions is multiplied by.

    >>> from parityscope.fit.clock import Clock
    >>> from parityscope.fit.search import Search
    >>> X, labels = np.arange(20).reshape(10, 2) % 3 % 2, np.array([1, -1] * 5, dtype=np.int8)
    >>> search = Search.of(X, labels, [2], True, 0.01, Clock(30.0), np.random.RandomState(0))
    >>> round(math.exp(price(search, 2)))  # 2 · 2 conjunctions, with 3 % of alpha
    133
    """
    sizes = 0.0 if search.k_is_known else math.log(k * (k + 1))
    return log_family([2 * choice for choice in search.table.choices], k) + sizes + search.conjunction_price


def _all_matter(search: Search, holds: Bool[ndarray, "literals rows"]) -> bool:
    """Say whether every question matters where the others hold, after paying for the choice among all questions."""
    log_choices = math.log(2 * max(1, sum(search.table.choices)))
    for others in combinations(range(len(holds)), len(holds) - 1):
        (left_out,) = set(range(len(holds))) - set(others)
        inside = holds[list(others)].all(axis=0)
        chi = np.where(holds[left_out, inside], 1, -1).astype(np.int8)
        if not inside.any() or not reaches(exact_log_p(chi, search.labels[inside]) + log_choices, search.alpha):
            return False
    return True
