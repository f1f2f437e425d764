"""Sums and products over all subsets of m positions, built from two halves: 2^m numbers in about 2^m steps.

Subset number i holds the positions of the one-bits of i, the first position being the most significant.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

_BASE = 8  # sums of at most this many positions by one matrix product


@cache
def _bit_patterns(m: int) -> Tensor:
    """Return all 2^m bit patterns, (2^m, m)."""
    return ((torch.arange(2**m)[:, None] >> torch.arange(m - 1, -1, -1)) & 1).double()


def subset_sums(c: Tensor) -> Tensor:
    """Return the sum of every subset: (R, m) -> (R, 2^m), float64.

    >>> subset_sums(torch.tensor([[10.0, 1.0]], dtype=torch.float64)).tolist()
    [[0.0, 1.0, 10.0, 11.0]]
    """
    m = c.shape[1]
    if m <= _BASE:
        return c @ _bit_patterns(m).T
    left, right = subset_sums(c[:, : m // 2]), subset_sums(c[:, m // 2 :])
    return (left[:, :, None] + right[:, None, :]).flatten(1)


def subset_products(absent: Tensor, present: Tensor) -> Tensor:
    """Return the product of one factor per position, absent or present: (R, m) each -> (R, 2^m).

    >>> subset_products(torch.tensor([[0.75, 0.5]]), torch.tensor([[0.25, 0.5]])).tolist()
    [[0.375, 0.375, 0.125, 0.125]]
    """
    m = absent.shape[1]
    if m == 0:
        return absent.new_ones(absent.shape[0], 1)
    if m == 1:
        return torch.cat([absent, present], 1)
    h = m // 2
    left = subset_products(absent[:, :h], present[:, :h])
    right = subset_products(absent[:, h:], present[:, h:])
    return (left[:, :, None] * right[:, None, :]).flatten(1)


def sums_by_position(d: Tensor, m: int) -> Tensor:
    """Return for every position the sum of d over the subsets that hold it: (R, 2^m) -> (R, m).

    This is the adjoint of `subset_sums`: ⟨subset_sums(c), d⟩ = ⟨c, sums_by_position(d)⟩.

    >>> sums_by_position(torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64), 2).tolist()
    [[7.0, 6.0]]
    """
    if m <= _BASE:
        return d @ _bit_patterns(m)
    grid = d.view(d.shape[0], 1 << (m // 2), -1)
    return torch.cat([sums_by_position(grid.sum(2), m // 2), sums_by_position(grid.sum(1), m - m // 2)], 1)
