"""Exact risk when the weights take few distinct values: enumerate how many of each group are 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from parityscope.risk.cards import CARDS
from parityscope.risk.engine import MERGE, Job, OnPieces, Refusal, one_by_one
from parityscope.risk.engines.subsets import subset_count
from parityscope.risk.means import Mean, RunMean
from parityscope.risk.pieces.pieces import Pieces
from parityscope.risk.pieces.represent import score_range
from parityscope.risk.pieces.rounding import (
    crossing,
    derivative,
    extent,
    gradient_crossing,
    score_rounding,
    visited_rounding,
)

_LIMIT = 1 << 22  # count vectors
# Seconds, fitted by benchmarks/engine_costs.py: a call, a run, and a count vector.
_CALL, _RUN, _VECTOR = 5e-4, 6e-4, 1.5e-7
_FEW_BITS = 12  # up to here the vectors cost nothing beside the run


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


def _count_vectors(c: Tensor, mask: Tensor, merge: float = 0.0) -> int:
    """Return how many count vectors there are to visit: the product of group size + 1.

    >>> hidden = torch.tensor([True, True, False, False, False])
    >>> _count_vectors(torch.full((5,), 0.4), hidden)  # 0 … 2 hidden ones times 0 … 3 others
    12
    """
    return math.prod(len(g.members) + 1 for g in _groups(c, mask, merge))


@lru_cache(maxsize=64)
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
    """
    pieces.check_domain(c[None], c.new_zeros(1))
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
        # Of m ones among equal positions each holds m/size on average.
        grad[g.members] = (marginal * m).sum() / len(g.members)
    reach = score_range(c, c.new_zeros(()))
    # Merging moves S by at most Σ|c_j − c̄| (engines.md, "Grouped").
    moved, slopes = sum(g.spread for g in parts), derivative(pieces)
    merged, by_slope = (moved * extent(one, *reach).steepest for one in (pieces, slopes))
    moved += score_rounding(len(parts), *reach)
    bound = merged + visited_rounding(pieces, len(parts), prob.numel(), *reach) + pieces.error
    of_gradient = by_slope + visited_rounding(slopes, len(parts), prob.numel(), *reach)
    return RunMean(
        float((prob * value).sum()),
        grad,
        float((prob * slope).sum()),
        bound + crossing(pieces, moved),
        pieces.error_is,
        of_gradient + gradient_crossing(pieces, moved),
    )


class Grouped(OnPieces):
    """Count the ones among positions of equal weight, run by run.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk.law import law_of
    >>> from parityscope.risk.losses import named_loss
    >>> law, loss = law_of(Parity(500, (0, 1, 2))), named_loss("hinge")
    >>> equal = ParityTransformer(500, 3, directions=torch.zeros(1, 2, dtype=torch.float64))
    >>> Grouped().refuses(Job(equal, law, loss)) is None
    True
    >>> Grouped().refuses(Job(ParityTransformer(500, 3), law, loss)).reason
    'is limited to 4194304 count vectors, and these weights take too many distinct values'
    """

    card = CARDS["grouped"]

    def refuses(self, job: Job) -> Refusal | None:
        """Few distinct weights leave few count vectors; there are never more than 2^n."""
        if (refusal := super().refuses(job)) is not None:
            return refusal
        if subset_count(job.n) <= _LIMIT or (_least_vectors(job) <= _LIMIT and _most_vectors(job) <= _LIMIT):
            return None
        reason = f"is limited to {_LIMIT} count vectors, and these weights take too many distinct values"
        return Refusal(reason, too_large=True)

    def cost(self, job: Job) -> float:
        """So much per run, and per count vector; they are not counted where there are certainly too many to pay."""
        if job.n <= _FEW_BITS:
            return self.fit_seconds(job) + _CALL + job.count * _RUN
        least = _least_vectors(job)
        vectors = least if least > subset_count(job.n / 2 + 3) else _most_vectors(job)
        return self.fit_seconds(job) + _CALL + job.count * (_RUN + _VECTOR * vectors)

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        return one_by_one(job, lambda c, mask, pieces: grouped_risk(c, mask, pieces, MERGE))


def _least_vectors(job: Job) -> float:
    """Return a lower bound of the count vectors of some run: d distinct weights leave at least 2^(d-1) (n - d + 2)."""
    return 2.0 ** min(job.distinct - 1, 1000) * (job.n - job.distinct + 2)


def _most_vectors(job: Job) -> float:
    """Return the largest number of count vectors of a run."""
    weights, _, mask = job.runs.tensors
    return float(max(_count_vectors(c, hidden, MERGE) for c, hidden in zip(weights, mask, strict=True)))
