"""Separate heads and a trained classification head: for functions that are not symmetric in their bits."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parityscope.models.ffnn import FFNN1


class AttentionFFNN(nn.Module):
    """m heads that see positions only, their outputs v_h = Σ_j γ_j^{(h)} (2x_j − 1) side by side, then FFNN-1.

    Differs from H1: heads are concatenated, not averaged. The average Σ_h v_h only tells how many of the attended bits
    are 1, so a readout of it computes functions that are symmetric in the hidden bits (parity, AND, majority) and no
    others. Side by side, every bit keeps its own place. Heads and FFNN-1 train together.

    >>> generator = torch.Generator().manual_seed(0)
    >>> model = AttentionFFNN(torch.eye(6, dtype=torch.float64), heads=2, width=4, generator=generator)
    >>> tuple(model(torch.zeros(5, 6)).shape), tuple(model.attention().shape), model.trained_parameters()
    ((5,), (2, 6), 29)
    """

    def __init__(
        self,
        positions: Float[Tensor, "n r"],
        heads: int,
        width: int,
        *,
        start_radius: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        # A frozen parameter, so that networks stack on a run axis with the codes of their own seeds.
        self.positions = nn.Parameter(positions, requires_grad=False)
        draw = torch.randn(heads, positions.shape[-1], generator=generator, dtype=positions.dtype)
        self.directions = nn.Parameter(start_radius * draw / draw.norm(dim=-1, keepdim=True))
        self.ffnn = FFNN1(heads, width, generator=generator)

    def attention(self) -> Float[Tensor, "*runs heads n"]:
        """Return γ = softmax of directions times positions."""
        return torch.softmax(self.directions @ self.positions.transpose(-1, -2), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return ŷ for bits (batch, n) or (*runs, batch, n): shape (*runs, batch)."""
        signs = 2 * x.to(self.directions.dtype) - 1
        return self.ffnn(signs @ self.attention().transpose(-1, -2))

    def trained_parameters(self) -> int:
        """Return how many numbers one run trains: m·r of the heads and the FFNN-1's."""
        heads, numbers = self.directions.shape[-2:]
        return int(heads * numbers) + self.ffnn.trained_parameters()
