"""What floating point costs: bounds on rounding that docs/explanation/engines.md derives."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from parityscope.risk.pieces.pieces import TIE, Pieces, Piecewise

UNIT = 2.0**-53  # half a unit in the last place: the relative error of one operation


def chain(terms: float) -> int:
    """Return the longest chain of additions inside one call of numpy's pairwise or torch's cascade sum.

    numpy adds blocks of 128 in eight strands (16 + 3 additions) and then pairs of blocks; torch has four levels, each
    of 2^max(4, log2(terms)/4) additions, which is never less.
    """
    if terms <= 64:
        return max(1, math.ceil(terms))
    return 4 << max(4, math.ceil(math.log2(terms) / 4))


class Extent(NamedTuple):
    """How large a piecewise polynomial is on an interval, each piece by the sum of its terms in modulus.

    >>> from parityscope.models.readouts import PiecewiseLinear
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))  # 1 − y(1 − S)
    >>> extent(line, 0, 2).steepest
    1.0
    """

    peak: float  # largest value where a piece applies
    steepest: float  # largest slope there
    total: float  # sum over the pieces of their largest value on the whole interval


@lru_cache(maxsize=256)
def extent(pieces: Pieces, low: float, high: float) -> Extent:
    """Return the extent of both labels' functions for scores between `low` and `high`.

    >>> from parityscope.models import Triangle
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> round(extent(hinge(Triangle(2).piecewise_linear()), 0, 2).peak, 9)  # |ŷ| ≤ 1: a hinge loss is at most 2
    2.0
    """
    sides = [_extent(side, low, high) for side in pieces.sides()]
    return Extent(*(max(column) for column in zip(*sides, strict=True)))


def _extent(side: Piecewise, low: float, high: float) -> Extent:
    joints = [-math.inf, *side.cuts.tolist(), math.inf]
    peak = steepest = total = 0.0
    for left, right, centre, row in zip(
        joints, joints[1:], side.centres.tolist(), side.coefs.abs().tolist(), strict=False
    ):
        a, b = max(left, low - TIE), min(right, high + TIE)
        if a > b:
            continue
        near, far = (max(abs(x - centre), abs(y - centre)) for x, y in ((a, b), (low, high)))
        peak = max(peak, sum(size * near**r for r, size in enumerate(row)))
        steepest = max(steepest, sum(r * size * near ** (r - 1) for r, size in enumerate(row) if r))
        total += sum(size * far**r for r, size in enumerate(row))
    return Extent(peak, steepest, total)


@lru_cache(maxsize=256)
def derivative(pieces: Pieces) -> Pieces:
    """Return the slopes of both labels' functions.

    >>> from parityscope.models.readouts import PiecewiseLinear
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))  # 1 − y(1 − S)
    >>> extent(derivative(line), 0, 2).peak
    1.0
    """
    return replace(pieces, plus=pieces.plus.derivative(), minus=pieces.minus.derivative())


def crossing(pieces: Pieces, moved: float) -> float:
    """Return what it may cost that scores are off by ``moved``, besides the slope: a jump that a score is moved across.

    A score that lies on a joint stays on it while it is moved by less than half of TIE.

    >>> from parityscope.models import ZigZag
    >>> from parityscope.risk.pieces.pieces import accuracy
    >>> signs = accuracy(ZigZag(1).piecewise_linear())
    >>> crossing(signs, 1e-14), crossing(signs, 1e-11)
    (0.0, 1.0)
    """
    return 0.0 if moved < TIE / 2 else max(map(_jumps, pieces.sides()))


def _jumps(side: Piecewise) -> float:
    """Return the sum of the jumps of a function."""
    from_left = Piecewise(side.cuts + 2 * TIE, side.coefs, side.centres)
    return float((side(side.cuts) - from_left(side.cuts)).abs().sum())


def score_rounding(n: int, low: float, high: float) -> float:
    """Return how far rounding moves a score of n weights: (n + 1)u·(Σ|c_j| + |offset|), from the ends of its range.

    >>> score_rounding(20, 0.0, 3.0) < 2e-14
    True
    """
    # Σ|c_j| = high − low, and |offset| is at most the far end.
    return (n + 1) * UNIT * (high - low + max(abs(low), abs(high)))


def gradient_crossing(pieces: Pieces, moved: float) -> float:
    """Return 0, or infinity where the gradient is not known: behind fits, or when a score leaves a joint it lies on.

    >>> from parityscope.models import ZigZag
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> exact = hinge(ZigZag(1).piecewise_linear())
    >>> gradient_crossing(exact, 1e-14), gradient_crossing(exact, 1e-11)
    (0.0, inf)
    """
    return 0.0 if pieces.error == 0 and moved < TIE / 2 else math.inf


def visited_rounding(pieces: Pieces, n: int, terms: float, low: float, high: float) -> float:
    """Bound the rounding of a mean of so many terms, each a score of n weights put into its polynomial.

    >>> from parityscope.models import ZigZag
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> visited_rounding(hinge(ZigZag(3).piecewise_linear(), 2), 12, 2.0**12, 0.0, 3.0) < 1e-11
    True
    """
    size = extent(pieces, low, high)
    degree = max(side.degree for side in pieces.sides())
    # The sum and its terms relative to the largest value, and the scores by the steepest slope (engines.md, "Scores",
    # "Sums").
    return UNIT * (chain(terms) + n + 2 * degree + 4) * size.peak + score_rounding(n, low, high) * size.steepest
