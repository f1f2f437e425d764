"""Exact risk when the weights take few distinct values: enumerate how many of each group are 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.risk.pieces import Pieces
from parityscope.risk.runs import RunMean

LIMIT = 1 << 22  # count vectors


@dataclass(frozen=True)
class _Group:
    """Positions of one weight and one membership; `spread` bounds what merging them costs."""

    weight: float
    members: Tensor  # positions
    support: bool
    spread: float  # sum of |c_j - weight|


def _groups(c: Tensor, mask: Tensor, merge: float) -> list[_Group]:
    """Positions of equal weight (neighbours within ``merge`` * max|c|) and equal membership."""
    gap = merge * float(c.abs().max())
    out = []
    for side in (True, False):
        where = torch.nonzero(mask == side).flatten()
        where = where[c[where].argsort()]
        if not len(where):
            continue
        bounds = torch.nonzero(c[where].diff() > gap).flatten() + 1
        for members in torch.tensor_split(where, bounds):
            mid = float(c[members].mean()) if gap else float(c[members[0]])
            out.append(_Group(mid, members, side, float((c[members] - mid).abs().sum())))
    return out


def count_vectors(c: Tensor, mask: Tensor, merge: float = 0.0) -> int:
    """Return how many count vectors there are to visit: the product of group size + 1.

    >>> hidden = torch.tensor([True, True, False, False, False])
    >>> count_vectors(torch.full((5,), 0.4), hidden)  # 0 … 2 hidden ones times 0 … 3 others
    12
    """
    return math.prod(len(g.members) + 1 for g in _groups(c, mask, merge))


def _binomial(n: int) -> Tensor:
    """P(i of n fair bits are 1), each correctly rounded."""
    return torch.tensor([math.comb(n, i) / 2**n for i in range(n + 1)], dtype=torch.float64)


def _spread_out(rows: list[Tensor], product: bool) -> Tensor:
    out = rows[0]
    for row in rows[1:]:
        out = out[..., None] * row if product else out[..., None] + row
    return out


def grouped_risk(c: Tensor, mask: Tensor, pieces: Pieces, merge: float = 0.0) -> RunMean:
    """Return the exact E[L(y f(S))] and its gradient for one run with few distinct weights.

    Two hidden bits of weight ½ each behind f(S) = 1 − 2S: only x = (1, 1) is misread, with a hinge loss of 2, and the
    two inputs with S = ½ lose 1 each.

    >>> from parityscope.models import Triangle
    >>> from parityscope.risk.pieces import hinge
    >>> weights, hidden = torch.full((2,), 0.5, dtype=torch.float64), torch.tensor([True, True])
    >>> grouped_risk(weights, hidden, hinge(Triangle(1).piecewise_linear())).value
    1.0
    """
    pieces.check_domain(c[None], c.new_zeros(1))
    vectors = count_vectors(c, mask, merge)
    if vectors > LIMIT:
        raise InvalidInput(f"{vectors} count vectors: too many distinct weights for the grouped engine")
    parts = _groups(c, mask, merge)
    counts = [torch.arange(len(g.members) + 1, dtype=torch.float64) for g in parts]
    sums = _spread_out([g.weight * m for g, m in zip(parts, counts, strict=True)], False)
    prob = _spread_out([_binomial(len(g.members)) for g in parts], True)
    odd = _spread_out([m * g.support for g, m in zip(parts, counts, strict=True)], False).remainder(2).bool()
    value = torch.where(odd, pieces.minus(sums), pieces.plus(sums))
    slope = torch.where(odd, pieces.minus.derivative()(sums), pieces.plus.derivative()(sums))
    grad = torch.zeros_like(c)
    for axis, (g, m) in enumerate(zip(parts, counts, strict=True)):
        other = [i for i in range(len(parts)) if i != axis]
        marginal = (prob * slope).sum(other) if other else prob * slope
        grad[g.members] = (marginal * m).sum() / len(g.members)
    steep = float(slope.abs().max())
    bound = sum(g.spread for g in parts) * steep + 8e-16 * float((prob * value.abs()).sum())
    return RunMean(float((prob * value).sum()), grad, float((prob * slope).sum()), bound + pieces.error)
