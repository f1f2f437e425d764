"""The next interaction, once some are known: other columns, or another question about the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from parityscope.fit.bits.bits import Bit, best_cut
from parityscope.fit.evidence.conditional import conditional_log_p
from parityscope.fit.evidence.evidence import clearly_better, phi, reaches
from parityscope.fit.interactions.candidates import Candidate
from parityscope.fit.interactions.joint import Part, held_out_log_likelihood
from parityscope.fit.interactions.rules import PRIOR_ROWS, Interaction, prefers_table
from parityscope.fit.search import BEYOND_DOUBLE_CHECK, Search

_ROWS_PER_CELL = 10
_WORTH_A_LOOK = np.log(0.5)


def next_one(search: Search, parts: Sequence[Part], known: set[tuple[Bit, ...]]) -> Candidate | None:
    """Return the candidate with the strongest evidence beyond the known ones, if any is believed.

    Columns may come again with other questions: two values of a text, both ends of an interval. A candidate of several
    columns has to predict clearly better than without one of them; otherwise it is told without it.

    >>> from parityscope.fit.clock import Clock
    >>> random = np.random.RandomState(0)
    >>> X = random.randn(1000, 3)
    >>> labels = np.where(abs(X[:, 1]) < 0.5, 1, -1).astype(np.int8)
    >>> search = Search.of(X, labels, [1, 2], False, 0.01, Clock(30.0), random)
    >>> end = Interaction((Bit(1, threshold=0.5),), (None,))
    >>> [round(bit.threshold, 1) for bit in next_one(search, [Part(end, table=False)], {end.bits}).interaction.bits]
    [-0.5]
    """
    # One that others drown may stand out once they are known.
    judged = (one for one in search.judged if one.log_p < _WORTH_A_LOOK)
    pool = [one for one in (*judged, *other_questions(search, parts)) if one.interaction.bits not in known]
    cells = cells_of(search, parts)
    scored = sorted(((conditional(search, one, cells), one.k, one.support, one) for one in pool), key=lambda s: s[:3])
    before = None
    for log_p, _, _, candidate in scored:
        if not reaches(log_p, search.alpha):
            return None
        before = held_out(search, parts) if before is None else before
        after = held_out(search, [*parts, part_for(search, candidate)])
        surely = reaches(log_p, BEYOND_DOUBLE_CHECK * search.alpha) and not clearly_better(before, than=after)
        if surely or clearly_better(after, before):
            return needed(search, candidate, parts)
    return None


def needed(search: Search, candidate: Candidate, parts: Sequence[Part] = ()) -> Candidate:
    """Return a candidate without the columns that it does not need beyond the known parts: it predicts as well.

    >>> from parityscope.fit.clock import Clock
    >>> from parityscope.fit.solvers.exhaustive import BitSet
    >>> random = np.random.RandomState(0)
    >>> X = np.column_stack([random.randint(2, size=800), random.rand(800) < 0.004])  # the second hardly ever differs
    >>> labels = (1 - 2 * (X[:, 0] ^ (random.rand(800) < 0.1))).astype(np.int8)
    >>> search = Search.of(X, labels, [1, 2], False, 0.01, Clock(30.0), random)
    >>> alone, both = (search.judge("exhaustive", BitSet(bits, 0.8)) for bits in ((0,), (0, 1)))
    >>> needed(search, both).support
    (0,)
    """
    # Only sizes that were searched are paid for.
    if candidate.table or candidate.k - 1 not in {one.k for one in search.judged}:
        return candidate
    cells, before = cells_of(search, parts), held_out(search, parts)
    after = held_out(search, [*parts, part_for(search, candidate)])
    within = [one for one in search.judged if set(one.support) < set(candidate.support)]
    parts_of_it = [_without(search, candidate, place) for place in range(candidate.k)]
    fewer = [(conditional(search, one, cells), one.k, one) for one in (*parts_of_it, *within)]
    believed = [one for one in fewer if reaches(one[0], search.alpha)]
    # A question that sets a training row or two apart gains next to nothing in every row: surely, but not worth a word.
    worth_it = after - 2 * PRIOR_ROWS / search.train
    for _, _, smaller in sorted(believed, key=lambda one: one[:2]):
        instead = held_out(search, [*parts, part_for(search, smaller)])
        if not clearly_better(before, than=instead) and not clearly_better(worth_it, than=instead):
            return needed(search, smaller, parts)
    return candidate


def _without(search: Search, candidate: Candidate, place: int) -> Candidate:
    bits, levels = candidate.interaction.bits, candidate.interaction.levels
    smaller = Interaction(bits[:place] + bits[place + 1 :], levels[:place] + levels[place + 1 :])
    return search.weighed(smaller, candidate.solver)


def other_questions(search: Search, parts: Sequence[Part]) -> Iterator[Candidate]:
    """Yield known interactions with another question about one of their columns: that which explains most.

    The solvers move every threshold to where it is best alone, so that a second one of the same column is never met.

    >>> from parityscope.fit.clock import Clock
    >>> X = np.repeat(np.arange(8.0), 50)[:, None]
    >>> labels = np.where((X[:, 0] == 2) | (X[:, 0] == 5), 1, -1).astype(np.int8)
    >>> random = np.random.RandomState(0)
    >>> search = Search.of(X, labels, [1], False, 0.01, Clock(30.0), random, unordered=frozenset({0}))
    >>> known = Part(Interaction((Bit(0, levels=(2.0,)),), (None,)), table=False)
    >>> [one.interaction.bits[0].levels for one in other_questions(search, [known])]
    [(5.0,)]
    """
    left = _left(search, parts)
    for part in parts:
        interaction = part.interaction
        for place, (bit, levels) in enumerate(zip(interaction.bits, interaction.levels, strict=True)):
            others = interaction.bits[:place] + interaction.bits[place + 1 :]
            # Columns of a few values are split in every way by the solvers; a column asked twice is asked once more.
            if levels is None and all(bit.column != other.column for other in others):
                asked = _best_question(search, bit, others, left)
                bits = (*interaction.bits[:place], asked, *interaction.bits[place + 1 :])
                yield search.weighed(replace(interaction, bits=bits), "exhaustive")


def _best_question(search: Search, bit: Bit, others: Sequence[Bit], left: Float[ndarray, " training_rows"]) -> Bit:
    """Return the question about a bit's column whose parity with the others goes best with what is left to explain."""
    values, rest = search.X[search.order, bit.column][: search.train], np.ones(search.train, dtype=np.int8)
    for other in others:
        rest = rest * other.signs(search.X[search.order, other.column][: search.train])
    if bit.threshold is not None:
        return Bit(bit.column, threshold=best_cut(values, rest, left, bit.threshold))
    asked = [one for one in search.table.bits if one.column == bit.column]
    signs = np.stack([one.signs(values) * rest for one in asked]).astype(float)
    strength = np.abs(phi(signs @ left, signs.sum(axis=1), float(left.sum()), search.train))
    return asked[int(np.argmax(strength))]


def _left(search: Search, parts: Sequence[Part]) -> Float[ndarray, " training_rows"]:
    """Return the labels of the training rows beyond the mean of those that the parts do not tell apart."""
    cells, labels = cells_of(search, parts)[: search.train], search.labels[: search.train].astype(float)
    rows = np.bincount(cells)
    return labels - (np.bincount(cells, weights=labels) / np.maximum(rows, 1))[cells]


def part_for(search: Search, candidate: Candidate) -> Part:
    """Return how a candidate takes part in a rule: by its parity, or by all combinations where that predicts better.

    >>> from parityscope.fit.clock import Clock
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 100)
    >>> labels = (2 * (X[:, 0] & X[:, 1]) - 1).astype(np.int8)
    >>> search = Search.of(X, labels, [2], True, 0.01, Clock(30.0), np.random.RandomState(0))
    >>> pair = search.weighed(Interaction((Bit(0, 0.5), Bit(1, 0.5)), ((0.0, 1.0), (0.0, 1.0))), "exhaustive")
    >>> part_for(search, pair).table
    True
    """
    if candidate.table:
        return Part(candidate.interaction, table=True)
    table = candidate.k > 1 or len(candidate.interaction.levels[0] or ()) > 2
    values = search.values(candidate.support)
    return Part(
        candidate.interaction, table and prefers_table(candidate.interaction, values, search.labels, search.train)
    )


def conditional(search: Search, candidate: Candidate, cells: ndarray) -> float:
    """Return the logarithm of a candidate's p-value among rows of the same cell, corrected for the search.

    >>> from parityscope.fit.clock import Clock
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 20)
    >>> labels = (2 * X[:, 0] - 1).astype(np.int8)
    >>> search = Search.of(X, labels, [1], False, 0.01, Clock(30.0), np.random.RandomState(0))
    >>> one = search.weighed(Interaction((Bit(0, 0.5),), ((0.0, 1.0),)), "exhaustive")
    >>> conditional(search, one, np.zeros(80, dtype=int)) < -40, conditional(search, one, (search.labels > 0) * 1)
    (True, 0.0)
    """
    chi = candidate.interaction.chi(search.values(candidate.support))
    return min(0.0, conditional_log_p(chi, search.labels, cells) + search.price(candidate.k))


def cells_of(search: Search, parts: Sequence[Part]) -> ndarray:
    """Return which rows the parts do not tell apart: the same parities, and where it counts the same values.

    >>> from parityscope.fit.clock import Clock
    >>> X, labels = np.array([[0], [0], [1], [1]] * 5), np.array([1, -1] * 10, dtype=np.int8)
    >>> search = Search.of(X, labels, [1], False, 0.01, Clock(30.0), np.random.RandomState(0))
    >>> np.bincount(cells_of(search, [Part(Interaction((Bit(0, 0.5),), ((0.0, 1.0),)), table=False)])).tolist()
    [10, 10]
    """
    code = np.zeros(len(search.labels), dtype=np.int64)
    for part in parts:
        values = search.values(bit.column for bit in part.interaction.bits)
        finer = part.interaction.cells(values) if part.table else (part.interaction.chi(values) < 0).astype(np.int64)
        joined = np.unique(code * (int(finer.max()) + 1) + finer, return_inverse=True)[1]
        if part.table and _ROWS_PER_CELL * (int(joined.max()) + 1) > len(code):
            coarse = (part.interaction.chi(values) < 0).astype(np.int64)
            joined = np.unique(code * 2 + coarse, return_inverse=True)[1]
        code = joined
    return code


def held_out(search: Search, parts: Sequence[Part]) -> Float[ndarray, " held_out"]:
    """Return log P(label) of the held-out rows by the joint rule of these parts.

    >>> from parityscope.fit.clock import Clock
    >>> X, labels = np.array([[0], [0], [1], [1]] * 5), np.array([1, -1] * 10, dtype=np.int8)
    >>> search = Search.of(X, labels, [1], False, 0.01, Clock(30.0), np.random.RandomState(0))
    >>> held_out(search, []).round(3).tolist()
    [-0.693, -0.693, -0.693, -0.693, -0.693, -0.693]
    """
    columns = {bit.column for part in parts for bit in part.interaction.bits}
    return held_out_log_likelihood(parts, search.values(columns), search.labels, search.train)
