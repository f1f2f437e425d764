"""Networks with one hidden layer of ReLUs: H1's FFNN-1, one behind an attention head, and one that computes a pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore
from parityscope.models.readouts import Readout, ReluSum, Triangle
from parityscope.models.transformer import ParityTransformer


class FFNN1(nn.Module):
    """ŷ = Σ_{i=1..q} α_i σ(β_iᵀ x + b_i) + b with σ(z) = (z + √(z²+b_σ))/2 (H1, Eq. (1)).

    Parameters
    ----------
    inputs : int
        Numbers per input.
    width : int
        Hidden neurons q.
    runs : tuple of int
        Leading axes of all parameters: independent networks side by side.
    smoothing : float
        b_σ of the smoothed ReLU; 0 is ReLU.
    generator : torch.Generator or None
        Where the start comes from; None: torch's global one.

    >>> net = FFNN1(inputs=6, width=4, generator=torch.Generator().manual_seed(0))
    >>> tuple(net(torch.zeros(3, 6)).shape), net.trained_parameters()
    ((3,), 33)
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        *,
        runs: tuple[int, ...] = (),
        smoothing: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if width < 1:
            raise InvalidInput(f"width must be at least 1, got {width}")
        self.smoothing = smoothing

        def uniform(*shape: int, fan_in: int) -> nn.Parameter:
            draw = torch.rand((*runs, *shape), generator=generator, dtype=torch.float64) * 2 - 1
            return nn.Parameter(draw / math.sqrt(fan_in))

        self.beta = uniform(width, inputs, fan_in=inputs)
        self.hidden_bias = uniform(width, fan_in=inputs)
        self.alpha = uniform(width, fan_in=width)
        self.bias = uniform(fan_in=width)

    def forward(self, x: Tensor) -> Tensor:
        """Return ŷ for inputs (batch, inputs) or (*runs, batch, inputs): shape (*runs, batch)."""
        z = x.to(self.beta.dtype) @ self.beta.transpose(-1, -2) + self.hidden_bias.unsqueeze(-2)
        hidden = z.relu() if self.smoothing == 0 else (z + (z * z + self.smoothing).sqrt()) / 2
        # H1, Eq. (1)
        return (hidden @ self.alpha.unsqueeze(-1)).squeeze(-1) + self.bias.unsqueeze(-1)

    def trained_parameters(self) -> int:
        """Return how many numbers one run trains: q(inputs + 2) + 1."""
        width, inputs = self.beta.shape[-2:]
        return width * (inputs + 2) + 1

    def norms(self) -> tuple[Tensor, Tensor]:
        """Return ‖α‖ and ‖β‖ (Frobenius), the norms Theorem 11 speaks of."""
        return self.alpha.norm(dim=-1), self.beta.flatten(-2).norm(dim=-1)


def parity_ffnn(n: int, support: Sequence[int]) -> FFNN1:
    """Return H1's construction h_B: k neurons that compute the parity of B exactly (Prop. 3).

    Parameters
    ----------
    n : int
        The number of bits.
    support : sequence of int
        The hidden positions B, from 0.

    Returns
    -------
    FFNN1
        With its weights set; nothing is trained.

    >>> parity_ffnn(4, (0, 2))(torch.tensor([[1, 0, 1, 0], [1, 1, 0, 0]])).tolist()
    [1.0, -1.0]
    """
    k = len(support)
    net = FFNN1(n, k)
    j = torch.arange(1, k + 1, dtype=torch.float64)
    with torch.no_grad():
        # H1, proof of Prop. 3: 1 + Σ_j (−1)^j (8j − 4) ReLU(Σ_{p∈B} x_p + 0.5 − j)
        net.beta.zero_()
        net.beta[:, list(support)] = 1.0
        net.hidden_bias.copy_(0.5 - j)
        net.alpha.copy_((-1) ** j * (8 * j - 4))
        net.bias.fill_(1.0)
    return net


class FrozenAttention(nn.Module):
    """Frozen heads and a trainable FFNN-1 on the attention vector v* ∈ R⁴ (H1, Theorem 11).

    Parameters
    ----------
    heads : ParityTransformer
        Whose attention is used; its parameters are frozen.
    width : int
        Hidden neurons of the FFNN-1.
    smoothing : float
        b_σ of its smoothed ReLU; 0 is ReLU.
    generator : torch.Generator or None
        Where its start comes from; None: torch's global one.

    >>> heads = ParityTransformer(n=8, k=2, generator=torch.Generator().manual_seed(0))
    >>> model = FrozenAttention(heads, width=5, generator=torch.Generator().manual_seed(1))
    >>> tuple(model(torch.ones(3, 8)).shape)
    (3,)
    """

    def __init__(
        self,
        heads: ParityTransformer,
        width: int,
        *,
        smoothing: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads.requires_grad_(False)
        runs = tuple(heads.directions.shape[:-2])
        self.ffnn = FFNN1(4, width, runs=runs, smoothing=smoothing, generator=generator)

    def forward(self, x: Tensor, *, hard: bool = False) -> Tensor:
        """Return ŷ for bits of shape (batch, n)."""
        return self.ffnn(self.attention_vector(x, hard=hard))

    def attention_vector(self, x: Tensor, *, hard: bool = False) -> Float[Tensor, "*runs batch 4"]:
        """Return v* = (1/m) Σ_i Σ_j γ_j^{(i)} w_j = [v, 1 − v, position part]."""
        mean_attention = self.heads.attention(x, hard=hard).mean(-2)
        position = mean_attention @ self.heads.positions
        if not self.heads.full_matrix:
            position = position.unsqueeze(-2)
        v = self.heads.score(x, hard=hard) / self.heads.k
        return _attention_vector(v, position)

    def additive_score(self) -> AdditiveScore | None:
        """Name the additive score S = k·v*_1; the FFNN is then a readout of S alone."""
        score = self.heads.additive_score()
        if score is None:
            return None
        position = self.heads.attention().mean(-2).unsqueeze(-2) @ self.heads.positions
        return AdditiveScore(score.weights, score.offset, _FFNNReadout(self.ffnn, self.heads.k, position))


class _FFNNReadout(Readout):
    """The FFNN on v* as a function of S, the position part of v* being constant."""

    def __init__(self, ffnn: FFNN1, k: int, position: Tensor) -> None:
        super().__init__()
        self.ffnn, self.k, self.position = ffnn, k, position

    def forward(self, S: Float[Tensor, "*runs batch"]) -> Float[Tensor, "*runs batch"]:
        return self.ffnn(_attention_vector(S / self.k, self.position))

    def relu_sum(self) -> ReluSum | None:
        if self.ffnn.smoothing > 0:
            return None
        # β·[S/k, 1 − S/k, position] + b = (β₁ − β₂)/k · S + (β₂ + β₃₄·position + b)
        beta = self.ffnn.beta
        place = (beta[..., 2:] @ self.position.transpose(-1, -2)).squeeze(-1)
        g = (beta[..., 0] - beta[..., 1]) / self.k
        return ReluSum(self.ffnn.alpha, g, beta[..., 1] + place + self.ffnn.hidden_bias, self.ffnn.bias)


def _attention_vector(v: Tensor, position: Tensor) -> Tensor:
    word = torch.stack([v, 1 - v], dim=-1)
    return torch.cat([word, position.expand(*word.shape[:-1], position.shape[-1])], dim=-1)


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
