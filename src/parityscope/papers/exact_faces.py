"""Faces of a code in fractions: a route that does not round, for codes of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[int | Fraction]


def null_space(rows: Sequence[Row], columns: int) -> list[list[Fraction]]:
    """Return a basis of all x with Σ_i x_i·row[i] = 0 for every row, by elimination."""
    work, pivots = [[Fraction(number) for number in row] for row in rows], list[int]()
    for column in range(columns):
        done = len(pivots)
        place = next((i for i in range(done, len(work)) if work[i][column]), None)
        if place is None:
            continue
        work[done], work[place] = work[place], work[done]
        _eliminate(work, done, column)
        pivots.append(column)
    free = [column for column in range(columns) if column not in pivots]
    basis = []
    for column in free:
        vector = [Fraction(int(i == column)) for i in range(columns)]
        for i, pivot in enumerate(pivots):
            vector[pivot] = -work[i][column]
        basis.append(vector)
    return basis


def _eliminate(work: list[list[Fraction]], row: int, column: int) -> None:
    """Make a column 1 in one row and 0 in all others."""
    divisor = work[row][column]
    work[row] = [number / divisor for number in work[row]]
    for i, other in enumerate(work):
        if i != row and other[column]:
            factor = other[column]
            work[i] = [a - factor * b for a, b in zip(other, work[row], strict=True)]


def is_exact_face(code: Sequence[Row], support: Sequence[int]) -> bool:
    """Say whether the positions of a support are a face of conv{p_j}, exactly.

    They are iff the flat through them misses the polytope of the others: iff 0 is no mean of the others, taken modulo
    the flat.
    """
    first, *rest = ([Fraction(number) for number in code[b]] for b in support)
    numbers = len(first)
    across = null_space([[a - b for a, b in zip(one, first, strict=True)] for one in rest], numbers)
    others = [
        [sum(((a - b) * n for a, b, n in zip(row, first, normal, strict=True)), Fraction(0)) for normal in across]
        for j, row in enumerate(code)
        if j not in support
    ]
    return not (others and _mean_is_zero(others))


def _mean_is_zero(points: Sequence[Row]) -> bool:
    """Say whether 0 is a mean of points with shares ≥ 0: the first phase of the simplex method, by Bland's rule."""
    size = len(points)
    rows = [[Fraction(number) for number in (*coordinate, 0)] for coordinate in zip(*points, strict=True)]
    rows.append([Fraction(1)] * (size + 1))
    basis, missing = (
        list(range(size, size + len(rows))),
        [sum(column, Fraction(0)) for column in zip(*rows, strict=True)],
    )
    rows.append(missing)  # what the equations miss, and how each share would lessen it
    while (enter := next((j for j in range(size) if rows[-1][j] > 0), None)) is not None:
        *_, leave = min((row[-1] / row[enter], basis[i], i) for i, row in enumerate(rows[:-1]) if row[enter] > 0)
        _eliminate(rows, leave, enter)
        basis[leave] = enter
    return rows[-1][-1] == 0


def radon_support(code: Sequence[Row], k: int) -> tuple[int, ...]:
    """Return k positions that are no face of a code with r ≤ min(2k − 1, n − 2) numbers, found by Radon's theorem.

    r + 2 codes have a relation Σ x_j(p_j, 1) = 0. The fewer of its positive and negative positions are at most k; their
    hull meets that of the others, so that no set that holds them all, and not all of the others, is a face.
    """
    n, r = len(code), len(code[0])
    some = [[Fraction(number) for number in (*row, 1)] for row in code[: r + 2]]
    relation = null_space(list(zip(*some, strict=True)), len(some))[0]
    signs = [{j for j, x in enumerate(relation) if sign * x > 0} for sign in (1, -1)]
    held, others = sorted(signs, key=len)
    missed = max(others)
    rest = [j for j in range(n) if j not in held and j != missed]
    return tuple(sorted([*held, *rest[: k - len(held)]]))
