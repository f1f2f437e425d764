"""The protocol that lets any model use the exact engines: one additive score.

A model qualifies when its prediction depends on the bits only through S = offset + Σ_j weights_j x_j:

    class Mine(nn.Module):
        def additive_score(self) -> AdditiveScore:
            return AdditiveScore(weights=self.c, offset=torch.zeros(()), readout=Cosine())

`weights` has shape (*runs, n) and may require gradients; `offset` broadcasts against runs; `readout` maps S to
ŷ elementwise. A model whose score is not additive returns None and is enumerated through `forward`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from parityscope.models.readouts import Readout


class AdditiveScore(NamedTuple):
    """S = offset + Σ_j weights_j x_j and ŷ = readout(S)."""

    weights: Float[Tensor, "*runs n"]
    offset: Tensor
    readout: Readout


@runtime_checkable
class AdditiveModel(Protocol):
    """A model that can name its additive score, or say None when it has none."""

    def additive_score(self) -> AdditiveScore | None:
        """Return the score's weights, offset and readout."""
        ...


def additive_score(model: object) -> AdditiveScore | None:
    """Return the model's additive score, or None when it offers none."""
    return model.additive_score() if isinstance(model, AdditiveModel) else None
