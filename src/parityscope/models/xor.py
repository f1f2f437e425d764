"""H2's transformer in its own letters: signs instead of bits, y = −x_i x_j, and ŷ = 1 − |v_1 + v_2|.

Our reading: of H2 only the abstract and a review were available to us. This file is the one place where its signs and
labels meet ours. With x = 1 − 2·bit and Σ_h Σ_j γ_j^{(h)} = 2 the sum of the heads is v_1 + v_2 = 2 − 2S, so

    −ŷ = |2 − 2S| − 1 = Triangle(2)(S)   and   −y = the parity of the two bits:

H2's model is `ParityTransformer(n, 2, heads=2, readout=Triangle(2))` with the sign of the label turned.
"""

from __future__ import annotations

from jaxtyping import Float, Int8
from torch import Tensor, nn

from parityscope.models.readouts import Triangle
from parityscope.models.transformer import ParityTransformer


def xor_transformer(
    directions: Float[Tensor, "*runs heads r"],
    positions: Float[Tensor, "*#runs n r"] | Int8[Tensor, "*#runs n r"],
    temperature: float = 1.0,
) -> ParityTransformer:
    """Return H2's model as a parity transformer: trainable queries, frozen positions and two-neuron network.

    >>> import torch
    >>> from parityscope.models.positions import orthogonal
    >>> sharp = xor_transformer(100 * torch.eye(3, dtype=torch.float64)[[0, 2]], orthogonal(3))
    >>> sharp(torch.tensor([[1, 0, 1], [1, 0, 0]])).round(decimals=9).tolist()  # the parity of bits 0 and 2
    [1.0, -1.0]
    """
    n, heads = positions.shape[-2], directions.shape[-2]
    return ParityTransformer(n, 2, heads, temperature, positions=positions, readout=Triangle(2), directions=directions)


class XorTransformer(nn.Module):
    """ŷ = 1 − |Σ_h Σ_j γ_j^{(h)} x_j| for x ∈ {±1}^n, as H2 has it; labels are y = −x_i x_j.

    >>> import torch
    >>> from parityscope.models.positions import orthogonal
    >>> sharp = xor_transformer(100 * torch.eye(3, dtype=torch.float64)[[0, 2]], orthogonal(3))
    >>> XorTransformer(sharp)(torch.tensor([[1, 1, 1], [1, 1, -1]])).round(decimals=9).tolist()
    [-1.0, 1.0]
    """

    def __init__(self, parity: ParityTransformer) -> None:
        super().__init__()
        self.parity = parity

    def forward(self, x: Tensor) -> Tensor:
        """Return ŷ for signs of shape (batch, n)."""
        heads_sum = self.parity.attention().sum(-2) * (2 / self.parity.heads)
        v = (x.to(heads_sum.dtype) @ heads_sum.unsqueeze(-1)).squeeze(-1)
        # |v| = ReLU(v) + ReLU(−v): two neurons.
        return 1 - (v.relu() + (-v).relu())
