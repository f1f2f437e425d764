"""Scores and problems broadcast to one flat run axis, means over all inputs, and gradients attached on the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models.additive import AdditiveScore
from parityscope.risk.law import Law

BoundIs = Literal["proved", "estimated"]


class Mean(NamedTuple):
    """E[L] of every run, its gradient by weight (runs, n) and by offset (runs,), and how far they can be trusted.

    Without `by_weight` the value carries its own gradient, if anybody asked for one. `error_bound` is the value's;
    `gradient_bound` holds for every entry of both gradients, and is infinite where nothing is proved of them.
    """

    value: Tensor
    by_weight: Tensor | None
    by_offset: Tensor | None
    error_bound: Tensor | float = 0.0
    bound_is: BoundIs = "proved"
    gradient_bound: Tensor | float = math.inf

    @classmethod
    def of_runs(cls, rows: Sequence[RunMean]) -> Mean:
        """Stack the means of single runs; the bounds are proved when all of them are.

        >>> one = RunMean(0.5, torch.zeros(3), 0.0, 1e-12, "estimated")
        >>> Mean.of_runs([one, one._replace(bound_is="proved")]).bound_is
        'estimated'
        """
        value, by_offset, error_bound, gradient_bound = (
            torch.tensor(column, dtype=torch.float64)
            for column in zip(
                *((row.value, row.by_offset, row.error_bound, row.gradient_bound) for row in rows), strict=True
            )
        )
        proved = all(row.bound_is == "proved" for row in rows)
        by_weight = torch.stack([row.by_weight for row in rows])
        return cls(value, by_weight, by_offset, error_bound, "proved" if proved else "estimated", gradient_bound)


class RunMean(NamedTuple):
    """The same of one run: E[L], its gradient (n,), the derivative E[L′(S)] by an offset of S, and the bound."""

    value: float
    by_weight: Tensor
    by_offset: float
    error_bound: float
    bound_is: BoundIs = "proved"
    gradient_bound: float = math.inf  # on every entry; infinite where none is proved


_FARTHEST = 1e100  # a power of a score beyond it is no number


def out_of_range(weights: Float[Tensor, "*#runs n"], offset: Float[Tensor, "*#runs"]) -> Bool[Tensor, ...]:
    """Return which runs have diverged: their scores are no numbers, or too large to be raised to a power.

    >>> out_of_range(torch.tensor([[0.5, 1.0], [1e30, 1.0], [torch.nan, 1.0]]), torch.tensor([0.0, 1e30, 0.0]))
    tensor([False, False,  True])
    """
    # Single precision ends below 1e100, and there such a number is infinite already.
    return ~(weights.detach().abs().sum(-1) + offset.detach().abs() <= min(_FARTHEST, torch.finfo(weights.dtype).max))


class Runs(NamedTuple):
    """What an engine works on: weights, offset and hidden mask of every run; a run that diverged has no numbers."""

    weights: Float[Tensor, "runs n"]
    offset: Float[Tensor, " runs"]
    mask: Bool[Tensor, "runs n"]
    shape: torch.Size

    @classmethod
    def of(cls, score: AdditiveScore, law: Law) -> Runs:
        """Broadcast a score against the problems."""
        # numpy's: torch.broadcast_shapes imports sympy, a second on the first call
        shape = torch.Size(np.broadcast_shapes(score.weights.shape[:-1], score.offset.shape, law.mask.shape[:-1]))
        weights = score.weights.expand(*shape, law.n).reshape(-1, law.n)
        offset = score.offset.to(weights.dtype).expand(shape).reshape(-1)
        weights = weights.masked_fill(out_of_range(weights, offset)[:, None], torch.nan)
        mask = law.mask.to(weights.device).expand(*shape, law.n).reshape(-1, law.n)
        return cls(weights, offset, mask, shape)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights, offset and mask, without gradient and on the CPU, where the engines sort and search."""
        return self.weights.detach().cpu(), self.offset.detach().cpu(), self.mask.cpu()

    @property
    def want_gradient(self) -> bool:
        """Whether anybody will ask for a gradient."""
        return torch.is_grad_enabled() and (self.weights.requires_grad or self.offset.requires_grad)

    def with_gradient(self, mean: Mean) -> Tensor:
        """Return the values in the shape of the runs, differentiable through gradients that are already known.

        A linear term that is zero in value carries them.
        """
        device = self.weights.device
        value = mean.value.to(device)
        if mean.by_weight is not None and mean.by_offset is not None and self.want_gradient:
            value = value + ((self.weights - self.weights.detach()) * mean.by_weight.to(device)).sum(-1)
            if self.offset.requires_grad:
                value = value + (self.offset - self.offset.detach()) * mean.by_offset.to(device)
        return value.reshape(self.shape)
