"""Scores and problems broadcast to one flat run axis, and gradients attached on the way back."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models.additive import AdditiveScore
from parityscope.risk.law import Law


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
        return cls(weights, offset, law.mask.expand(*shape, law.n).reshape(-1, law.n), shape)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights, offset and mask."""
        return self.weights, self.offset, self.mask

    def with_gradient(self, value: Tensor, by_weight: Tensor | None, by_offset: Tensor | None) -> Tensor:
        """Return the values in the shape of the runs, differentiable through gradients that are already known.

        A linear term that is zero in value carries them.
        """
        if by_weight is not None and by_offset is not None:
            value = value + ((self.weights - self.weights.detach()) * by_weight).sum(-1)
            value = value + (self.offset - self.offset.detach()) * by_offset
        return value.reshape(self.shape)
