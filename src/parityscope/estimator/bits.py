"""From columns to bits: two values as they are, few values by every split, many by learned thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.estimator.evidence import phi

FEW_LEVELS = 4  # as many distinct values make a category, more make a scale
_BLOCK = 64  # columns transposed at a time
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


@dataclass(frozen=True)
class BitTable:
    """The candidate bits of a table as signs, one row per bit; training rows come first.

    >>> table = encode(np.array([[0, 0, 7], [1, 2, 7], [0, 1, 7], [1, 0, 7]]), np.arange(4))
    >>> table.owner.tolist(), table.columns, table.constant  # three values can be split in three ways
    ([0, 1, 1, 1], 2, (2,))
    """

    bits: tuple[Bit, ...]
    signs: Int8[ndarray, "bits rows"]
    choices: tuple[int, ...]  # how many bits each column could become in the search: 0 where it takes no part
    constant: tuple[int, ...]  # columns with one value
    copies: dict[int, tuple[int, ...]]  # columns that equal (or negate) an earlier one, by that one
    levels: dict[int, tuple[float, ...]]  # the values of columns that have few

    @property
    def owner(self) -> ndarray:
        """The column of every bit."""
        return np.array([bit.column for bit in self.bits], dtype=int)

    @property
    def columns(self) -> int:
        """How many different columns take part."""
        return sum(choice > 0 for choice in self.choices)


def encode(X: ndarray, order: ndarray) -> BitTable:
    """Return the candidate bits of all columns, rows taken in `order`.

    Constant columns and repetitions of earlier columns take no part. A column of three or four values offers every
    split of them into two sets; one of more values offers a few quantiles as thresholds (`refine` then tries all).

    >>> table = encode(np.array([[0, 0], [1, 2], [0, 1], [1, 0]]), np.arange(4))
    >>> [bit.describe(f"column {bit.column}") for bit in table.bits]
    ['column 0 = 1', 'column 1 = 1', 'column 1 = 2', 'column 1 ∈ {1, 2}']
    >>> table.signs[0].tolist()
    [1, -1, 1, -1]
    """
    kept: dict[int, ndarray] = {}
    constant: list[int] = []
    copies: dict[int, list[int]] = {}
    seen: dict[tuple[bool, bytes], int] = {}
    for start in range(0, X.shape[1], _BLOCK):
        for offset, values in enumerate(np.ascontiguousarray(X[:, start : start + _BLOCK].T)):
            column, distinct = start + offset, _distinct(values)
            if len(distinct) == 1:
                constant.append(column)
                continue
            first = seen.setdefault(_fingerprint(values, distinct), column)
            if first == column:
                kept[column] = distinct
            else:
                copies.setdefault(first, []).append(column)
    wide = sum(len(distinct) > FEW_LEVELS for distinct in kept.values())
    bits = [bit for column, distinct in kept.items() for bit in _candidates(X, column, distinct, wide)]
    signs = np.empty((len(bits), len(order)), dtype=np.int8)
    for index, bit in enumerate(bits):
        signs[index] = bit.signs(X[order, bit.column])
    choices = [0] * X.shape[1]
    for column, distinct in kept.items():
        choices[column] = _splits(len(distinct))
    levels = {column: tuple(map(float, d)) for column, d in kept.items() if len(d) <= FEW_LEVELS}
    tied = {column: tuple(others) for column, others in copies.items()}
    return BitTable(tuple(bits), signs, tuple(choices), tuple(constant), tied, levels)


def refine(bits: tuple[Bit, ...], values: Mapping[int, ndarray], labels: Int8[ndarray, " rows"]) -> tuple[Bit, ...]:
    """Return the bits with every threshold moved to where the parity agrees best with the labels.

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
    """Return the cut t for which sign(t − x)·others correlates most with the labels."""
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
    return float(_between(low, high))


def _distinct(values: ndarray) -> ndarray:
    """Return the sorted distinct values, without sorting when there are only two."""
    low, high = values.min(), values.max()
    if low == high:
        return np.array([low])
    if bool(((values == low) | (values == high)).all()):
        return np.array([low, high])
    return np.unique(values)


def _fingerprint(values: ndarray, distinct: ndarray) -> tuple[bool, bytes]:
    """Return what two columns share exactly when no parity can tell them apart: equal, or two-valued and negated."""
    if len(distinct) > 2:
        return False, values.astype(float).tobytes()
    high = values == distinct[1]
    return True, np.packbits(high ^ high[0]).tobytes()


def _splits(distinct: int) -> int:
    return 2 ** (distinct - 1) - 1 if distinct <= FEW_LEVELS else distinct - 1


def _candidates(X: ndarray, column: int, distinct: ndarray, wide: int) -> list[Bit]:
    if len(distinct) <= FEW_LEVELS:
        # Sets without the lowest value: every split once.
        rest = [float(level) for level in distinct[1:]]
        return [Bit(column, levels=some) for size in range(1, len(rest) + 1) for some in combinations(rest, size)]
    # Octiles while that keeps pairs cheap, quartiles or the median for more columns.
    pieces = 8 if wide <= 12 else 4 if wide <= 60 else 2
    quantiles = np.quantile(X[:, column], np.arange(1, pieces) / pieces, method="lower")
    places = np.unique(np.searchsorted(distinct, quantiles, side="left"))
    return [
        Bit(column, threshold=float(_between(float(distinct[place]), float(distinct[place + 1]))))
        for place in places
        if place + 1 < len(distinct)
    ]


def _between(low: float, high: float) -> float:
    """Return a number t with low ≤ t < high: the middle, unless rounding or overflow spoils it."""
    middle = low + (high - low) / 2
    return middle if low <= middle < high else low
