"""Scores and problems broadcast to one flat run axis, and gradients attached on the way back."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models.additive import AdditiveScore
from parityscope.risk.law import Law


class Mean(NamedTuple):
    """E[L] of every run, its gradient by weight (runs, n) and by offset (runs,) if asked for, and a proved error."""

    value: Tensor
    by_weight: Tensor | None
    by_offset: Tensor | None
    error_bound: Tensor | float = 0.0


class Runs(NamedTuple):
    """What an engine works on: weights, offset and hidden mask of every run."""

    weights: Float[Tensor, "runs n"]
    offset: Float[Tensor, " runs"]
    mask: Bool[Tensor, "runs n"]
    shape: torch.Size

    @classmethod
    def of(cls, score: AdditiveScore, law: Law) -> Runs:
        """Broadcast a score against the problems."""
        shape = torch.broadcast_shapes(score.weights.shape[:-1], score.offset.shape, law.mask.shape[:-1])
        weights = score.weights.expand(*shape, law.n).reshape(-1, law.n)
        offset = score.offset.to(weights.dtype).expand(shape).reshape(-1)
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
        if mean.by_weight is not None and mean.by_offset is not None:
            value = value + ((self.weights - self.weights.detach()) * mean.by_weight.to(device)).sum(-1)
            value = value + (self.offset - self.offset.detach()) * mean.by_offset.to(device)
        return value.reshape(self.shape)
