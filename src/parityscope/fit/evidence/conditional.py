"""How sure a further parity is, once others are known: labels are dealt at random within the cells of those."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.fit.evidence.evidence import log_choose

_ROUNDS = 60
_STEEPEST = 40.0
_EXACT_ROWS = 5000
_SMALLEST = 1e-280


def conditional_log_p(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"], cells: ndarray) -> float:
    """Return the logarithm of the two-sided p-value of χ among rows that share a cell (of many rows an upper bound).

    Within a cell, given how often each sign occurs, the count of rows with χ = y = 1 is hypergeometric; over cells the
    counts are independent, so the distribution of their sum is known. Of many rows, and where it is too small for a
    float, Chernoff's bound with the exact moment generating functions is used: valid for any number of rows, and for
    any way in which the columns depend on each other.

    >>> random = np.random.RandomState(0)
    >>> first, second = random.choice(np.array([-1, 1], dtype=np.int8), size=(2, 400))
    >>> labels = np.where(random.rand(400) < 0.5, first, second).astype(np.int8)
    >>> cells = (first > 0).astype(int)
    >>> conditional_log_p(second, labels, cells) < -20, conditional_log_p(first, labels, cells)
    (True, 0.0)
    """
    tails = [_log_tail(sign, labels, cells) for sign in (chi, (-chi).astype(np.int8))]
    return min(0.0, math.log(2) + min(tails))


def _log_tail(chi: ndarray, labels: ndarray, cells: ndarray) -> float:
    """Return log P(Σ counts ≥ what is seen), or a bound of it."""
    rows = np.bincount(cells).astype(float)
    ups, drawn, both = (
        np.bincount(cells, weights=one, minlength=len(rows)) for one in (chi > 0, labels > 0, (chi > 0) & (labels > 0))
    )
    fewest, most = np.maximum(0.0, ups + drawn - rows), np.minimum(ups, drawn)
    terms: list[tuple[ndarray, ndarray]] = []
    for cell in np.flatnonzero(most > fewest):  # elsewhere the count is what it must be
        up, down, draws = ups[cell], rows[cell] - ups[cell], drawn[cell]
        counts = np.arange(fewest[cell], most[cell] + 1)
        log_mass = log_choose(up, counts) + log_choose(down, draws - counts) - log_choose(rows[cell], draws)
        terms.append((counts, log_mass))
    free = most > fewest
    seen, least = float(both[free].sum()), float(most[free].sum())
    mean = float((ups[free] * drawn[free] / rows[free]).sum())
    if seen <= mean + 1e-9:
        return 0.0
    if seen >= least:  # as large as it can be: the tail is one term
        return sum(float(log_mass[-1]) for _, log_mass in terms)
    if len(chi) <= _EXACT_ROWS and (tail := _convolved_tail(terms, seen)) > _SMALLEST:
        return min(0.0, math.log(tail))

    def bound(slope: float) -> float:
        return sum(float(np.logaddexp.reduce(log_mass + slope * counts)) for counts, log_mass in terms) - slope * seen

    return min(0.0, _smallest(bound))


def _convolved_tail(terms: list[tuple[ndarray, ndarray]], seen: float) -> float:
    """Return P(Σ counts ≥ what is seen): every addend is positive, so a small tail is as exact as a large one."""
    mass = np.ones(1)
    least = 0.0
    for counts, log_mass in terms:
        mass = np.convolve(mass, np.exp(log_mass))
        least += float(counts[0])
    return float(mass[round(seen - least) :].sum())


def _smallest(bound: Callable[[float], float]) -> float:
    """Return the least value of a convex function on (0, 40), by golden sections; any value of it is a valid bound."""
    golden = (math.sqrt(5) - 1) / 2
    low, high = 0.0, _STEEPEST
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = bound(left), bound(right)
    for _ in range(_ROUNDS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = bound(right)
        if high - low < 1e-4:
            break
    return float(min(at_left, at_right))
