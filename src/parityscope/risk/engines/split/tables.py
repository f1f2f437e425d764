"""Sorted sums of half the bits, and the mean over all 2^n scores where so few are left that cutting does not pay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from parityscope.risk.engines.subsets import Floats, subset_products, subset_sums, sums_by_position
from parityscope.risk.means import Mean
from parityscope.risk.pieces.pieces import Pieces

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tables:
    """Everything that depends on c but not on the loss.

    >>> import torch
    >>> c, hidden = torch.tensor([[0.5, 0.25, 0.125]]).double(), torch.tensor([[True, False, False]])
    >>> tables = prepare(c, torch.zeros(1).double(), hidden)
    >>> tables.mt, tables.sums.tolist()  # sums of positions 2 and 1 about their middle, sorted
    (2, [[-0.1875, -0.0625, 0.0625, 0.1875]])
    """

    order: Ranks  # (R, n) positions: table side, query side, pivot last
    mt: int  # positions on the table side
    sums: Floats  # (R, T) sorted table sums, relative to origin
    place: Ranks  # (R, T) subset index of each sorted sum
    weight: Floats | None  # (R, T) probabilities in sorted order; None: uniform bits
    query: Floats  # (R, 2, Q) query sums per label plus origin, descending
    query_place: Ranks  # (R, 2, Q)
    query_weight: Floats | None  # (R, 2, Q)
    pivot_bit: Floats  # (R, Q) pivot's bit for label +1, by subset index


def table_size(n: int, k: int) -> int:
    """Return how many positions stand on the table side: sorting a sum is cheaper than looking one up.

    >>> [table_size(20, k) for k in (3, 15)]
    [11, 5]
    """
    return max(0, min(n - k, n // 2 + 1))


def pick(x: Floats, index: Ranks) -> Floats:
    """Return x[r, index[r, …]] for every run r.

    >>> pick(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 1, 0], [0, 1, 0]])).tolist()
    [[2.0, 2.0, 1.0], [3.0, 4.0, 3.0]]
    """
    return x.reshape(-1).take(_flat(index, x.shape[1]))


def put_back(x: Floats, index: Ranks) -> Floats:
    """Undo `pick` by a permutation of the last axis.

    >>> order = np.array([[2, 0, 1]])
    >>> put_back(pick(np.array([[5.0, 6.0, 7.0]]), order), order).tolist()
    [[5.0, 6.0, 7.0]]
    """
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.size)
    out[_flat(index.reshape(rows.shape), rows.shape[1])] = rows
    return out.reshape(x.shape)


def _flat(index: Ranks, width: int) -> Ranks:
    if len(index) == 1:
        return index
    return index + width * np.arange(len(index)).reshape(-1, *(1,) * (index.ndim - 1))


def prepare(c: Tensor, offset: Tensor, mask: Tensor, p: Tensor | None = None) -> Tables:
    """Tabulate both sides; c (R, n) float64, mask (R, n) bool with at least one True per row.

    >>> import torch
    >>> c, hidden = torch.tensor([[0.5, 0.25, 0.125]]).double(), torch.tensor([[True, False, False]])
    >>> tables = prepare(c, torch.zeros(1).double(), hidden)
    >>> tables.query.tolist()  # the hidden bit is 0 for label +1 and 1 for label -1
    [[[0.1875], [0.6875]]]
    """
    weights, hidden = c.numpy(), mask.numpy()
    mt = table_size(weights.shape[1], int(hidden.sum(1).max()))
    order = np.where(hidden, np.inf, np.abs(weights)).argsort(1, kind="stable")
    cs = pick(weights, order)
    sums = subset_sums(cs[:, :mt])
    place = sums.argsort(1)
    sums = pick(sums, place)
    origin = 0.5 * (sums[:, :1] + sums[:, -1:])
    odd = subset_sums(pick(hidden.astype(np.float64), order)[:, mt:-1]) % 2
    flag = np.stack([odd, 1 - odd], 1)  # pivot's bit for label +1, -1
    base = subset_sums(cs[:, mt:-1]) + (origin + offset.numpy()[:, None])
    negated = flag * -cs[:, -1:, None]
    negated -= base[:, None]
    query_place = negated.argsort(2)
    query = -pick(negated.reshape(-1, negated.shape[2]), query_place.reshape(-1, negated.shape[2]))
    weight = query_weight = None
    if p is not None:
        ps = pick(p.numpy(), order)
        weight = pick(subset_products(1 - ps[:, :mt], ps[:, :mt]), place)
        last = ps[:, -1:, None]
        both = (1 - last + flag * (2 * last - 1)) * subset_products(1 - ps[:, mt:-1], ps[:, mt:-1])[:, None]
        query_weight = pick(both.reshape(-1, both.shape[2]), query_place.reshape(-1, both.shape[2])).reshape(both.shape)
    return Tables(order, mt, sums - origin, place, weight, query.reshape(negated.shape), query_place, query_weight, odd)


MOST_SCORES = 1 << 13  # runs x scores up to which visiting each takes less time than sorting half of them
_SCORES_AT_ONCE = 1 << 14  # runs x scores, small enough to stay in the cache


def all_scores_mean(weights: Tensor, offset: Tensor, mask: Tensor, pieces: Pieces, bias: float) -> Mean:
    """Return E[L(y f(S))] and its gradient for R runs: weights (R, n), offset (R,), mask (R, n).

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips: the mean is 1 + E[yS], its gradient E[y x_j].

    >>> from parityscope.models.readouts import PiecewiseLinear
    >>> from parityscope.risk.pieces.pieces import hinge
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
