"""The protocol that lets any model use the exact engines: one additive score.

A model qualifies when its prediction depends on the bits only through S = offset + Σ_j weights_j x_j:

    class Mine(nn.Module):
        def additive_score(self) -> AdditiveScore:
            return AdditiveScore(weights=self.c, offset=torch.zeros(()), readout=Cosine())

`weights` has shape (*runs, n) and may require gradients; `offset` broadcasts against runs; `readout` maps S to
ŷ elementwise. A model whose score is not additive returns None and is enumerated through `forward`.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models.readouts import Readout


class AdditiveScore(NamedTuple):
    """S = offset + Σ_j weights_j x_j and ŷ = readout(S).

    >>> import torch
    >>> from parityscope.models.readouts import Triangle
    >>> score = AdditiveScore(torch.tensor([1.0, 0.0, 1.0]), torch.zeros(()), Triangle(2))
    >>> x = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    >>> score.readout(x @ score.weights + score.offset).tolist()  # the parity of bits 0 and 2
    [1.0, -1.0]
    """

    weights: Float[Tensor, "*runs n"]
    offset: Tensor
    readout: Readout


def additive_score(model: object) -> AdditiveScore | None:
    """Return the model's additive score, or None when it offers none.

    >>> from parityscope.models import FFNN1, ParityTransformer
    >>> additive_score(ParityTransformer(n=4, k=2, temperature=1e9)).weights.round(decimals=6).tolist()  # k/n each
    [0.5, 0.5, 0.5, 0.5]
    >>> additive_score(ParityTransformer(n=4, k=2, full_matrix=True)) is additive_score(FFNN1(4, 2)) is None
    True
    """
    # Not by isinstance: to check a protocol takes as long as a small model's whole forward pass.
    name_score = getattr(model, "additive_score", None)
    named = name_score() if callable(name_score) else None
    if named is None:
        return None
    if not isinstance(named, tuple) or len(named) != len(AdditiveScore._fields):
        raise InvalidInput(f"additive_score() must return weights, offset and readout, got a {type(named).__name__}")
    return AdditiveScore(*named)
