"""A bit is a yes/no question about one column; thresholds move to where the parity fits best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.fit.evidence.evidence import phi

FEW_LEVELS = 4  # as many distinct values make a category, more make a scale
_ROUNDS = 5


@dataclass(frozen=True)
class Bit:
    """A yes/no question about one column: x > threshold, or x ∈ levels."""

    column: int
    threshold: float | None = None
    levels: tuple[float, ...] = ()

    def signs(self, values: ndarray) -> Int8[ndarray, " rows"]:
        """Return −1 where the answer is yes and 1 elsewhere, so that products are parities.

        >>> Bit(0, threshold=0.5).signs(np.array([0, 1, 1])).tolist()
        [1, -1, -1]
        """
        if self.threshold is not None:
            yes = values > self.threshold
        else:
            yes = values == self.levels[0] if len(self.levels) == 1 else np.isin(values, self.levels)
        return (1 - 2 * yes.astype(np.int8)).astype(np.int8)

    def describe(self, name: str, spelling: Callable[[float], str] = "{:g}".format) -> str:
        """Return the question as text; `spelling` says how a value is written.

        >>> Bit(3, levels=(1.0, 2.0)).describe("P1")
        'P1 ∈ {1, 2}'
        """
        if len(self.levels) == 1:
            return f"{name} = {spelling(self.levels[0])}"
        if self.threshold is None:
            return f"{name} ∈ {{{', '.join(map(spelling, self.levels))}}}"
        return f"{name} > {self.threshold:.6g}"

    def deny(self, name: str, spelling: Callable[[float], str] = "{:g}".format) -> str:
        """Return the opposite question as text.

        >>> Bit(3, threshold=53.0).deny("pressure"), Bit(3, levels=(1.0,)).deny("P1")
        ('pressure ≤ 53', 'P1 ≠ 1')
        """
        if len(self.levels) == 1:
            return f"{name} ≠ {spelling(self.levels[0])}"
        if self.threshold is None:
            return f"{name} ∉ {{{', '.join(map(spelling, self.levels))}}}"
        return f"{name} ≤ {self.threshold:.6g}"


def refine(bits: tuple[Bit, ...], values: Mapping[int, ndarray], labels: ndarray) -> tuple[Bit, ...]:
    """Return the bits with every threshold moved to where the parity agrees best with the labels or residuals.

    One threshold at a time, the others held, over all cuts between distinct values, until none moves. Bits of
    columns with few values stay.

    >>> values, labels = np.array([0.1, 0.2, 0.8, 0.9]), np.array([1, -1, -1, -1], dtype=np.int8)
    >>> refine((Bit(0, threshold=0.5),), {0: values}, labels)[0].describe("x")
    'x > 0.15'
    """
    current = list(bits)
    for _ in range(_ROUNDS):
        before = tuple(current)
        for index, bit in enumerate(current):
            if bit.threshold is None:
                continue
            others = np.ones(len(labels), dtype=np.int8)
            for other in current[:index] + current[index + 1 :]:
                others *= other.signs(values[other.column])
            current[index] = Bit(bit.column, threshold=_best_cut(values[bit.column], others, labels, bit.threshold))
        if tuple(current) == before:
            break
    return tuple(current)


def _best_cut(values: ndarray, others: ndarray, labels: ndarray, present: float) -> float:
    """Return the cut t for which sign(t − x)·others correlates most with the labels, or with what is left of them.

    >>> _best_cut(np.array([1, 2, 3, 4]), np.ones(4), np.array([0.0, 0.0, -0.5, 0.5]), present=1.5)
    3.5
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order].astype(float)
    cuts = np.flatnonzero(ordered[1:] > ordered[:-1])
    product, rest = (others * labels)[order].astype(float), others[order].astype(float)
    # Rows up to the cut count with sign 1, the others with −1.
    agreement = 2 * np.cumsum(product)[cuts] - product.sum()
    signs_sum = 2 * np.cumsum(rest)[cuts] - rest.sum()
    strength = np.abs(phi(agreement, signs_sum, float(labels.sum()), len(labels)))
    best = int(np.argmax(strength))
    here = np.searchsorted(ordered[cuts], present, side="right") - 1
    if strength[here] >= strength[best]:
        return present
    low, high = ordered[cuts[best]], ordered[cuts[best] + 1]
    return float(between(low, high))


def between(low: float, high: float) -> float:
    """Return a number t with low ≤ t < high: the middle, unless rounding or overflow spoils it.

    >>> between(1.0, 2.0), between(1.0, float(np.nextafter(1.0, 2.0)))
    (1.5, 1.0)
    """
    middle = low + (high - low) / 2
    return middle if low <= middle < high else low
