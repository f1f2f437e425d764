"""Which of several interactions are one: a conjunction shows as main effects, but its columns act together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from parityscope.estimator.joint import Part, table_of
from parityscope.estimator.rules import ROWS_PER_CELL, Interaction

if TYPE_CHECKING:
    from parityscope.estimator.search import Search

Group = tuple[int, ...]  # places of the interactions that belong together, ascending


def groups_of(
    parts: Sequence[Part],
    values: Mapping[int, ndarray],
    labels: ndarray,
    *,
    alpha: float,
    most_columns: int | None = None,
) -> list[Group]:
    """Return which interactions act together: their joint table explains what their sum does not.

    Two are joined when the table of all their columns leaves significantly less of the label's variance than the best
    sum of a function of the one and a function of the other, on the scale of probabilities: there a label that is owed
    now to the one and now to the other, and noise of labels, are sums. The most significant two are joined first.

    >>> from parityscope.estimator.bits import Bit
    >>> from parityscope.estimator.rules import Interaction
    >>> parts = [Part(Interaction((Bit(c, 0.5),), ((0.0, 1.0),)), table=False) for c in (0, 1, 2)]
    >>> random = np.random.RandomState(0)
    >>> values = {c: random.randint(2, size=600) for c in (0, 1, 2)}
    >>> both = (values[0] & values[1]) ^ (random.rand(600) < 0.1)
    >>> groups_of(parts, values, np.where(both, 1, -1), alpha=0.01)
    [(0, 1), (2,)]
    """
    groups: list[Group] = [(place,) for place in range(len(parts))]
    while len(groups) > 1:
        level = alpha / math.comb(len(groups), 2)
        scored = []
        for one, other in combinations(groups, 2):
            joined = tuple(sorted((*one, *other)))
            columns = _columns(parts, joined)
            small = most_columns is None or len(columns) <= most_columns
            if small and ROWS_PER_CELL * math.prod(table_of([parts[i] for i in joined]).shape) <= len(labels):
                p_value = _beyond_the_sum(parts, one, other, values, labels)
                if p_value <= level:
                    scored.append((p_value, one, other))
        if not scored:
            break
        _, one, other = min(scored)
        groups = sorted([group for group in groups if group not in (one, other)] + [tuple(sorted((*one, *other)))])
    return groups


def part_of(parts: Sequence[Part], group: Group) -> Part:
    """Return a group as one part: its only one, or the table of all its columns.

    >>> from parityscope.estimator.bits import Bit
    >>> from parityscope.estimator.rules import Interaction
    >>> parts = [Part(Interaction((Bit(c, 0.5),), ((0.0, 1.0),)), table=False) for c in (4, 7)]
    >>> part_of(parts, (0, 1)).interaction.shape, part_of(parts, (1,)) is parts[1]
    ((2, 2), True)
    """
    return parts[group[0]] if len(group) == 1 else Part(table_of([parts[place] for place in group]), table=True)


def beyond_main_effects(part: Part, values: Mapping[int, ndarray], search: Search) -> bool:
    """Say whether the table of some columns explains more than a sum of their main effects, at the search's alpha.

    >>> from parityscope.estimator.bits import Bit
    >>> from parityscope.estimator.clock import Clock
    >>> from parityscope.estimator.rules import Interaction
    >>> from parityscope.estimator.search import Search
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 25)
    >>> part = Part(Interaction((Bit(0, 0.5), Bit(1, 0.5)), ((0.0, 1.0), (0.0, 1.0))), table=True)
    >>> for label in (X[:, 0] & X[:, 1], X[:, 0]):
    ...     labels, random = (2 * label - 1).astype(np.int8), np.random.RandomState(0)
    ...     search = Search.of(X, labels, [2], True, 0.01, Clock(30.0), random)
    ...     print(beyond_main_effects(part, search.values((0, 1)), search))
    True
    False
    """
    pairs = zip(part.interaction.bits, part.interaction.levels, strict=True)
    single = [_design(Part(Interaction((bit,), (levels,)), table=True), values) for bit, levels in pairs]
    sum_left, rank = _left(np.column_stack(single), search.labels)
    return _f_test(sum_left, rank, *_left(_design(part, values), search.labels), len(search.labels)) <= search.alpha


def _columns(parts: Sequence[Part], group: Group) -> set[int]:
    return {bit.column for place in group for bit in parts[place].interaction.bits}


def _beyond_the_sum(
    parts: Sequence[Part], one: Group, other: Group, values: Mapping[int, ndarray], labels: ndarray
) -> float:
    """Return the p-value of an F-test: the joint table against a sum of the two, 0 where a part is in the other's."""
    joined = tuple(sorted((*one, *other)))
    table = _design(part_of(parts, joined), values)
    first, second = (_design(part_of(parts, group), values) for group in (one, other))
    left_by_sum, rank = _left(np.column_stack([first, second]), labels)
    left_by_table, most = _left(table, labels)
    if most == rank:
        # Nothing is left to explain: the one is contained in the other's table.
        return 0.0 if most in (first.shape[1], second.shape[1]) else 1.0
    return _f_test(left_by_sum, rank, left_by_table, most, len(labels))


def _f_test(left_by_sum: float, rank: int, left_by_table: float, most: int, rows: int) -> float:
    """Return the p-value of what a table leaves against what a sum leaves."""
    if most <= rank or rows <= most:
        return 1.0
    if left_by_table < 1e-9 * rows:
        return 0.0 if left_by_sum > 1e-6 * rows else 1.0
    ratio = (left_by_sum - left_by_table) / (most - rank) / (left_by_table / (rows - most))
    return _f_tail(ratio, most - rank, rows - most)


def _design(part: Part, values: Mapping[int, ndarray]) -> Float[ndarray, "rows cells"]:
    """Return which cell every row lies in, cells that occur only; a parity has two."""
    interaction = part.interaction
    code = interaction.cells(values) if part.table else interaction.chi(values)
    return (code[:, None] == np.unique(code)).astype(float)


def _left(design: ndarray, labels: ndarray) -> tuple[float, int]:
    """Return the sum of squares that a least-squares fit leaves, and the rank of its design."""
    fitted, _, rank, _ = np.linalg.lstsq(design, labels.astype(float), rcond=1e-9)
    return float(((labels - design @ fitted) ** 2).sum()), int(rank)


def _f_tail(ratio: float, above: int, below: int) -> float:
    """Return P(F ≥ ratio) by Paulson's cube-root approximation, good to a few percent of the logarithm.

    >>> round(_f_tail(6.635, 1, 100_000), 3), round(_f_tail(3.32, 4, 100_000), 3)  # 1 % of chi-square/degrees
    (0.01, 0.01)
    """
    if ratio <= 0:
        return 1.0
    a, b = 2 / (9 * above), 2 / (9 * below)
    root = ratio ** (1 / 3)
    score = ((1 - b) * root - (1 - a)) / math.sqrt(b * root**2 + a)
    return 1 - NormalDist().cdf(score) if score < 6 else math.exp(-(score**2) / 2)
