"""Exact risk when the weights take few distinct values: enumerate how many of each group are 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from parityscope.errors import InvalidInput
from parityscope.risk.pieces import Pieces

LIMIT = 1 << 22  # count vectors


@dataclass(frozen=True)
class Group:
    """Positions of one weight and one membership; `spread` bounds what merging them costs."""

    weight: float
    members: Tensor  # positions
    support: bool
    spread: float  # sum of |c_j - weight|


def groups(c: Tensor, mask: Tensor, merge: float = 0.0) -> list[Group]:
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
            out.append(Group(mid, members, side, float((c[members] - mid).abs().sum())))
    return out


def cost(parts: list[Group]) -> int:
    """Return the number of count vectors to visit."""
    return math.prod(len(g.members) + 1 for g in parts)


def binomial(n: int) -> Tensor:
    """P(i of n fair bits are 1), each correctly rounded."""
    return torch.tensor([math.comb(n, i) / 2**n for i in range(n + 1)], dtype=torch.float64)


def _spread_out(rows: list[Tensor], product: bool) -> Tensor:
    out = rows[0]
    for row in rows[1:]:
        out = out[..., None] * row if product else out[..., None] + row
    return out


class RunMean(NamedTuple):
    """One run: value, gradient (n,), E[P'(S)], and a bound on the value's error from merging and rounding."""

    value: float
    grad: Tensor
    mean_slope: float
    value_bound: float


def grouped_risk(c: Tensor, mask: Tensor, pieces: Pieces, merge: float = 0.0) -> RunMean:
    """Return the exact E[L(y f(S))] and its gradient for one run with few distinct weights."""
    pieces.check_domain(c[None], c.new_zeros(1))
    parts = groups(c, mask, merge)
    if cost(parts) > LIMIT:
        raise InvalidInput(f"{cost(parts)} count vectors: too many distinct weights for the grouped engine")
    counts = [torch.arange(len(g.members) + 1, dtype=torch.float64) for g in parts]
    sums = _spread_out([g.weight * m for g, m in zip(parts, counts, strict=True)], False)
    prob = _spread_out([binomial(len(g.members)) for g in parts], True)
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
