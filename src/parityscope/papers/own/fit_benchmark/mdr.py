"""Multifactor dimensionality reduction (Ritchie and others, 2001): every set of k columns by its balanced accuracy.

A combination of values is called high-risk when it is commoner among cases than among controls. So the balanced
accuracy of a set on its own rows is ½ Σ max(share among cases, share among controls) over combinations, and counts
for all sets are products of 0/1 matrices: what the package scikit-MDR computes one set at a time.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput

MOST_VALUES = 8
_KEPT = 50


class RankedSet(NamedTuple):
    """A set of columns and its balanced accuracy.

    >>> RankedSet((1, 4), 0.75).accuracy
    0.75
    """

    columns: tuple[int, ...]
    accuracy: float


def cost(n: int, values: int, k: int, rows: int) -> float:
    """Return the multiplications of a search of all sets of k among n columns of so many values.

    >>> cost(100, 2, 2, 1000)
    40000000.0
    """
    prefixes = 1.0
    for place in range(k - 2):
        prefixes *= (n - place) / (place + 1)
    return prefixes * (n * values) ** min(k, 2) * rows


def best_sets(X: ndarray, y: Int64[ndarray, " rows"], k: int, *, folds: int = 1, seed: int = 0) -> list[RankedSet]:
    """Return up to 50 sets of k columns, the best first.

    With one fold a set is judged on the rows that define its high-risk combinations; with more on the others, the mean
    over folds.

    >>> X = np.random.default_rng(0).integers(3, size=(400, 6))
    >>> y = (X[:, 1] == 1).astype(np.int64) ^ (X[:, 4] == 1)
    >>> [found.columns for found in best_sets(X, y, 2)[:1]], best_sets(X, y, 2)[0].accuracy
    ([(1, 4)], 1.0)
    >>> best_sets(X, y, 2, folds=5)[0]
    RankedSet(columns=(1, 4), accuracy=1.0)
    """
    cells = _one_hot(X)
    fold = np.random.default_rng(seed).permutation(len(X)) % folds
    groups = np.stack([(y == label) & (fold == part) for part in range(folds) for label in (0, 1)])
    n, kept = X.shape[1], list[RankedSet]()
    if k == 1:
        ones = np.ones((1, len(X), 1), dtype=np.float32)
        accuracy = _accuracy(ones, cells, groups, groups.sum(axis=1))[0]
        kept = [RankedSet((column,), float(accuracy[column])) for column in range(n)]
        return sorted(kept, key=lambda one: -one.accuracy)[:_KEPT]
    for prefix in combinations(range(n), k - 2):
        last = prefix[-1] + 1 if prefix else 0
        if last >= n - 1:
            continue
        kept += _pairs_after(prefix, cells, last, groups)
        kept = sorted(kept, key=lambda one: -one.accuracy)[:_KEPT]
    return kept


def _pairs_after(
    prefix: tuple[int, ...],
    cells: Float32[ndarray, "columns rows values"],
    last: int,
    groups: Bool[ndarray, "parts rows"],
) -> list[RankedSet]:
    """Return the best sets that go on from a prefix with two later columns."""
    total = groups.sum(axis=1)
    later = cells[last:]
    accuracy = np.zeros((len(later), len(later)))
    for values in product(range(cells.shape[2]), repeat=len(prefix)):
        rows = np.ones(cells.shape[1], dtype=bool)
        for column, value in zip(prefix, values, strict=True):
            rows &= cells[column, :, value] > 0
        accuracy += _accuracy(later[:, rows], later[:, rows], groups[:, rows], total)
    first, second = np.triu_indices(len(later), 1)
    found = accuracy[first, second]
    best = np.argsort(-found, kind="stable")[:_KEPT]
    return [
        RankedSet((*prefix, last + int(first[place]), last + int(second[place])), float(found[place])) for place in best
    ]


def _accuracy(
    left: Float32[ndarray, "one rows values"],
    right: Float32[ndarray, "other rows more"],
    groups: Bool[ndarray, "parts rows"],
    total: Int64[ndarray, " parts"],
) -> Float[ndarray, "one other"]:
    """Return what these rows add to every pair's balanced accuracy; `groups` are controls and cases of each fold."""
    counts = np.stack([_counts(left[:, rows], right[:, rows]) for rows in groups])
    folds = len(groups) // 2
    controls, cases = counts[0::2], counts[1::2]
    all_controls, all_cases = max(1, total[0::2].sum()), max(1, total[1::2].sum())
    if folds == 1:
        return 0.5 * np.maximum(controls[0] / all_controls, cases[0] / all_cases).sum(axis=(1, 3))
    summed = np.zeros((len(left), len(right)), dtype=np.float32)
    for part in range(folds):
        out, among = total[2 * part], total[2 * part + 1]
        high = (cases.sum(0) - cases[part]) / max(1, all_cases - among) >= (controls.sum(0) - controls[part]) / max(
            1, all_controls - out
        )
        right_share = np.where(high, cases[part] / max(1, among), controls[part] / max(1, out))
        summed += 0.5 * right_share.sum(axis=(1, 3)) / folds
    return summed


def _counts(left: ndarray, right: ndarray) -> Float32[ndarray, "one values other more"]:
    one, rows, values = left.shape
    other, _, more = right.shape
    flat = left.transpose(0, 2, 1).reshape(one * values, rows) @ right.transpose(1, 0, 2).reshape(rows, other * more)
    return flat.reshape(one, values, other, more)


def _one_hot(X: ndarray) -> Float32[ndarray, "columns rows values"]:
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in X.T])
    values = int(codes.max()) + 1
    if values > MOST_VALUES:
        raise InvalidInput(f"a column has {values} values: cut it into at most {MOST_VALUES} first")
    return (codes[:, :, None] == np.arange(values)).astype(np.float32)
