"""Sums and products over all subsets of m positions, built from two halves: 2^m numbers in about 2^m steps.

Subset number i holds the positions of the one-bits of i, the first position being the most significant. Plain numpy:
the arrays are often small, and a call of numpy costs a fraction of a call of torch.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_BASE = 8  # sums of at most this many positions by one matrix product


def subset_count(bits: float) -> float:
    """Return 2^bits, or 1e301 beyond that: sizes that nobody visits are still compared.

    >>> subset_count(3), subset_count(1e5) > 1e300
    (8.0, True)
    """
    return 2.0 ** min(bits, 1000.0)


@cache
def _bit_patterns(m: int) -> Floats:
    """Return all 2^m bit patterns, (2^m, m)."""
    return ((np.arange(2**m)[:, None] >> np.arange(m - 1, -1, -1)) & 1).astype(np.float64)


def subset_sums(c: Floats) -> Floats:
    """Return the sum of every subset: (R, m) -> (R, 2^m)."""
    m = c.shape[1]
    if m <= _BASE:
        return c @ _bit_patterns(m).T
    left, right = subset_sums(c[:, : m // 2]), subset_sums(c[:, m // 2 :])
    return (left[:, :, None] + right[:, None, :]).reshape(len(c), -1)


def subset_products(absent: Floats, present: Floats) -> Floats:
    """Return the product of one factor per position, absent or present: (R, m) each -> (R, 2^m)."""
    m = absent.shape[1]
    if m == 0:
        return np.ones((len(absent), 1))
    if m == 1:
        return np.concatenate([absent, present], 1)
    h = m // 2
    left = subset_products(absent[:, :h], present[:, :h])
    right = subset_products(absent[:, h:], present[:, h:])
    return (left[:, :, None] * right[:, None, :]).reshape(len(absent), -1)


def sums_by_position(d: Floats, m: int) -> Floats:
    """Return for every position the sum of d over the subsets that hold it: (R, 2^m) -> (R, m).

    This is the adjoint of `subset_sums`: ⟨subset_sums(c), d⟩ = ⟨c, sums_by_position(d)⟩.
    """
    if m <= _BASE:
        return d @ _bit_patterns(m)
    grid = d.reshape(len(d), 1 << (m // 2), -1)
    return np.concatenate([sums_by_position(grid.sum(2), m // 2), sums_by_position(grid.sum(1), m - m // 2)], 1)
