"""Who wins among equals: rules for ties, so that no processor's way of rounding decides.

Processors add the same numbers in different orders, and what is equal in exact arithmetic then differs in its last
digits. A bare `>`, `argmax` or `topk` would decide by them. Every choice among numbers that may be equal goes through
this file instead: numbers closer than rounding can tell are equal, and among equals the first position wins.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

# A score this close to a kink of the readout lies on it (3 · (1/6) misses ½ by a rounding), and on a kink the side to
# its right counts. Scores are sums of a few dozen weights of size 1 in double precision, and 1e-12 is 4500 roundings.
SCORE_TIE = 1e-12


def tolerance(dtype: torch.dtype) -> float:
    """Return how far two numbers of size 1 may lie apart and still count as equal: ε^{2/3}.

    A sum of N terms is known to N roundings of size ε at worst, so this covers N = ε^{−1/3} of them: 165 000 in double
    precision, 200 in single. Different numbers of a real computation are hardly ever as close.
    """
    return float(torch.finfo(dtype).eps ** (2 / 3))


def predicts_plus(prediction: Float[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Say which predictions mean the label +1; one that is 0 up to rounding means −1."""
    return prediction > tolerance(prediction.dtype)


def largest(values: Float[Tensor, "*batch n"], k: int) -> Int64[Tensor, "*batch k"]:
    """Return the positions of the k largest values, ascending; of equal values the first positions are taken."""
    values = _comparable(values)
    last, slack = values.topk(k, dim=-1).values[..., -1:], _slack(values)
    above = values > last + slack
    equal = ~above & (values >= last - slack)
    free = k - above.sum(-1, keepdim=True)
    chosen = above | (equal & (equal.cumsum(-1) <= free))
    return chosen.nonzero()[:, -1].reshape(*values.shape[:-1], k)


def first_largest(values: Float[Tensor, "*batch n"]) -> Int64[Tensor, "*batch"]:
    """Return the position of the largest value, the first one among equals."""
    values = _comparable(values)
    top = values.amax(-1, keepdim=True)
    return (values >= top - _slack(values)).to(torch.uint8).argmax(-1)


def ranked(values: Float[Tensor, " n"]) -> Int64[Tensor, " n"]:
    """Return the positions from the largest value to the smallest, equals in their own order."""
    ordered, order = _comparable(values).sort(descending=True, stable=True)
    level = torch.zeros_like(order)
    level[order[1:]] = (-ordered.diff() > _slack(ordered)).cumsum(0)
    return level.argsort(stable=True)


def _comparable(values: Tensor) -> Tensor:
    """Put what is no number below every number."""
    return values.detach().nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)


def _slack(values: Tensor) -> Tensor:
    """Return how far equal values may lie apart: in proportion to the largest of them."""
    size = values.abs().nan_to_num(posinf=0.0).amax(-1, keepdim=True)
    return tolerance(values.dtype) * size
