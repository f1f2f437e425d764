"""Which of several interactions are one: a conjunction shows as main effects, but its columns act together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from parityscope.fit.interactions.joint import Part, table_of
from parityscope.fit.interactions.rules import ROWS_PER_CELL, Interaction

if TYPE_CHECKING:
    from parityscope.fit.search import Search

_RANK = 1e-10
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
    Several questions about the same columns are one interaction anyway.

    >>> from parityscope.fit.bits.bits import Bit
    >>> from parityscope.fit.interactions.rules import Interaction
    >>> parts = [Part(Interaction((Bit(c, 0.5),), ((0.0, 1.0),)), table=False) for c in (0, 1, 2)]
    >>> random = np.random.RandomState(0)
    >>> values = {c: random.randint(2, size=600) for c in (0, 1, 2)}
    >>> both = (values[0] & values[1]) ^ (random.rand(600) < 0.1)
    >>> groups_of(parts, values, np.where(both, 1, -1), alpha=0.01)
    [(0, 1), (2,)]
    """
    groups = _same_columns(parts, values)
    while len(groups) > 1:
        level = alpha / math.comb(len(groups), 2)
        scored = []
        for one, other in combinations(groups, 2):
            joined = tuple(sorted((*one, *other)))
            columns = _columns(parts, joined)
            small = most_columns is None or len(columns) <= most_columns
            if small and _enough_rows(parts, joined, values):
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

    >>> from parityscope.fit.bits.bits import Bit
    >>> from parityscope.fit.interactions.rules import Interaction
    >>> parts = [Part(Interaction((Bit(c, 0.5),), ((0.0, 1.0),)), table=False) for c in (4, 7)]
    >>> part_of(parts, (0, 1)).interaction.shape, part_of(parts, (1,)) is parts[1]
    ((2, 2), True)
    """
    return parts[group[0]] if len(group) == 1 else Part(table_of([parts[place] for place in group]), table=True)


def beyond_main_effects(part: Part, values: Mapping[int, ndarray], search: Search) -> bool:
    """Say whether the table of some columns explains more than a sum of their main effects, at the search's alpha.

    >>> from parityscope.fit.bits.bits import Bit
    >>> from parityscope.fit.clock import Clock
    >>> from parityscope.fit.interactions.rules import Interaction
    >>> from parityscope.fit.search import Search
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
    single = [_cells(Part(Interaction((bit,), (levels,)), table=True), values) for bit, levels in pairs]
    sum_left, rank = _left(single, search.labels)
    return _f_test(sum_left, rank, *_left([_cells(part, values)], search.labels), len(search.labels)) <= search.alpha


def _same_columns(parts: Sequence[Part], values: Mapping[int, ndarray]) -> list[Group]:
    """Return the places of parts by their columns, each for itself where the table of some has too many cells.

    >>> from parityscope.fit.bits.bits import Bit
    >>> parts = [Part(Interaction((Bit(0, threshold=cut),), (None,)), table=False) for cut in (-1.0, 1.0)]
    >>> _same_columns(parts, {0: np.linspace(-2, 2, 40)})
    [(0, 1)]
    """
    by_columns: dict[frozenset[int], Group] = {}
    for place in range(len(parts)):
        columns = frozenset(_columns(parts, (place,)))
        by_columns[columns] = (*by_columns.get(columns, ()), place)
    groups: list[Group] = []
    for group in by_columns.values():
        groups.extend([group] if _enough_rows(parts, group, values) else [(place,) for place in group])
    return sorted(groups)


def _enough_rows(parts: Sequence[Part], group: Group, values: Mapping[int, ndarray]) -> bool:
    """Say whether the cells of a joint table that occur have enough rows on average."""
    cells = _cells(part_of(parts, group), values)
    return len(group) == 1 or ROWS_PER_CELL * (int(cells.max()) + 1) <= len(cells)


def _columns(parts: Sequence[Part], group: Group) -> set[int]:
    return {bit.column for place in group for bit in parts[place].interaction.bits}


def _beyond_the_sum(
    parts: Sequence[Part], one: Group, other: Group, values: Mapping[int, ndarray], labels: ndarray
) -> float:
    """Return the p-value of an F-test: the joint table against a sum of the two, 0 where a part is in the other's."""
    table = _cells(part_of(parts, tuple(sorted((*one, *other)))), values)
    first, second = (_cells(part_of(parts, group), values) for group in (one, other))
    left_by_sum, rank = _left([first, second], labels)
    left_by_table, most = _left([table], labels)
    if most == rank:
        # Nothing is left to explain: the one is contained in the other's table.
        return 0.0 if most in (int(first.max()) + 1, int(second.max()) + 1) else 1.0
    return _f_test(left_by_sum, rank, left_by_table, most, len(labels))


def _f_test(left_by_sum: float, rank: int, left_by_table: float, most: int, rows: int) -> float:
    """Return the p-value of what a table leaves against what a sum leaves."""
    if most <= rank or rows <= most:
        return 1.0
    if left_by_table < 1e-9 * rows:
        return 0.0 if left_by_sum > 1e-6 * rows else 1.0
    ratio = (left_by_sum - left_by_table) / (most - rank) / (left_by_table / (rows - most))
    return _f_tail(ratio, most - rank, rows - most)


def _cells(part: Part, values: Mapping[int, ndarray]) -> Int[ndarray, " rows"]:
    """Return the cell of every row, numbered from 0, those that occur only; a parity has two."""
    interaction = part.interaction
    code = interaction.cells(values) if part.table else interaction.chi(values)
    return np.unique(code, return_inverse=True)[1]


def _left(factors: Sequence[Int[ndarray, " rows"]], labels: ndarray) -> tuple[float, int]:
    """Return the sum of squares that the best sum of functions of some factors leaves of ±1 labels, and its rank.

    By the normal equations, whose matrix counts the rows of every two cells: that is cheap however many rows there are.

    >>> _left([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], np.array([1, 1, -1, 1]))  # 1 of 4 squares is left
    (1.0, 3)
    """
    sizes = [int(cells.max()) + 1 for cells in factors]
    if len(factors) == 1:
        sums, rows = np.bincount(factors[0], weights=labels), np.bincount(factors[0])
        return float(len(labels) - (sums**2 / rows).sum()), sizes[0]
    counts = [
        [np.bincount(a * m + b, minlength=n * m).reshape(n, m) for b, m in zip(factors, sizes, strict=True)]
        for a, n in zip(factors, sizes, strict=True)
    ]
    sums = np.concatenate([np.bincount(cells, weights=labels) for cells in factors])
    # Of a matrix of counts an eigenvalue is 0 or far above the rounding of the largest, which is at most all rows.
    eigenvalues, vectors = np.linalg.eigh(np.block(counts).astype(float))
    kept = eigenvalues > _RANK * len(labels)
    explained = ((vectors.T @ sums)[kept] ** 2 / eigenvalues[kept]).sum()
    return round(float(len(labels) - explained), 9), int(kept.sum())


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
