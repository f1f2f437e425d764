"""The mean of a piecewise polynomial over all 2^n scores, each visited once: for so few that cutting does not pay."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from parityscope.risk.pieces import Pieces
from parityscope.risk.runs import Mean
from parityscope.risk.subsets import Floats, subset_products, subset_sums, sums_by_position

MOST_SCORES = 1 << 13  # runs x scores up to which visiting each takes less time than sorting half of them
_SCORES_AT_ONCE = 1 << 14  # runs x scores, small enough to stay in the cache


def all_scores_mean(weights: Tensor, offset: Tensor, mask: Tensor, pieces: Pieces, bias: float) -> Mean:
    """Return E[L(y f(S))] and its gradient for R runs: weights (R, n), offset (R,), mask (R, n).

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips: the mean is 1 + E[yS], its gradient E[y x_j].

    >>> from parityscope.models.piecewise_linear import PiecewiseLinear
    >>> from parityscope.risk.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))
    >>> c, hidden = torch.full((1, 4), 0.25, dtype=torch.float64), torch.arange(4)[None] == 3
    >>> mean = all_scores_mean(c, torch.zeros(1).double(), hidden, line, bias=0.5)
    >>> mean.value.item(), mean.by_weight.tolist()
    (0.875, [[0.0, 0.0, 0.0, -0.5]])
    """
    c, b, hidden = weights.numpy(), offset.numpy(), mask.numpy()
    runs, n = c.shape
    value, by_weight, by_offset = np.empty(runs), np.empty((runs, n)), np.empty(runs)
    share = np.array([0.5**n]) if bias == 0.5 else _probabilities(n, bias)
    step = max(1, _SCORES_AT_ONCE >> n)
    for start in range(0, runs, step):
        rows = slice(start, start + step)
        odd = subset_sums(hidden[rows].astype(np.float64)) % 2
        losses, slopes = _losses(subset_sums(c[rows]) + b[rows, None], odd, pieces)
        slopes *= share
        value[rows] = (losses * share).sum(1)
        by_weight[rows], by_offset[rows] = sums_by_position(slopes, n), slopes.sum(1)
    return Mean(torch.from_numpy(value), torch.from_numpy(by_weight), torch.from_numpy(by_offset))


@lru_cache(maxsize=16)
def _probabilities(n: int, bias: float) -> Floats:
    return subset_products(np.full((1, n), 1 - bias), np.full((1, n), bias))


def _losses(S: Floats, odd: Floats, pieces: Pieces) -> tuple[Floats, Floats]:
    """Return the polynomial of the label at every score, and its derivative."""
    cuts, table = _stacked(pieces)
    piece = cuts.searchsorted(S, side="right")
    piece += (odd * (len(cuts) + 1)).astype(np.int64)
    centre, *coefs = table
    u = S - centre.take(piece)
    value = coefs[-1].take(piece)
    slope = np.zeros_like(u)
    for row in coefs[-2::-1]:
        slope *= u
        slope += value
        value *= u
        value += row.take(piece)
    return value, slope


@lru_cache(maxsize=64)
def _stacked(pieces: Pieces) -> tuple[Floats, Floats]:
    """Return the cuts of both labels, and rows (centre, coefficients…) of the pieces between them, label +1 first."""
    cuts = np.unique(np.concatenate([side.cuts.numpy() for side in pieces.sides()]))
    degree = max(side.degree for side in pieces.sides())
    table = np.zeros((degree + 2, 2 * (len(cuts) + 1)))
    for label, side in enumerate(pieces.sides()):
        # The piece to the right of each cut; to the left of them all, the first.
        at = np.concatenate([[0], side.cuts.numpy().searchsorted(cuts, side="right")])
        columns = slice(label * len(at), (label + 1) * len(at))
        table[0, columns] = side.centres.numpy()[at]
        table[1 : side.degree + 2, columns] = side.coefs.numpy()[at].T
    return cuts, table
