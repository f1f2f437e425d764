"""H1's transformer: m attention heads that see positions only, averaged, then a frozen readout."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import first_largest
from parityscope.models.additive import AdditiveScore
from parityscope.models.positions import circle, position_scores
from parityscope.models.readouts import Readout, ZigZag

_COLDEST = 1e-300  # of temperatures: scores divided by less leave the range of numbers


class ParityTransformer(nn.Module):
    """m heads on n tokens: γ = softmax(s/τ), S = (k/m) Σ_h Σ_j γ_j^{(h)} x_j, ŷ = readout(S).

    By default exactly H1: circle positions, as many heads as hidden bits, the zig-zag readout, and only the
    position entries (a13, a14) of each head trainable. All parameters may carry a leading run axis, and every
    output then carries it too.

    Parameters
    ----------
    n : int
        The number of bits.
    k : int
        The number of hidden bits: heads share out a weight of k.
    heads : int or None
        Attention heads m; None: k.
    temperature : float, Tensor (runs,) or None
        τ of the softmax, for all runs or for each its own; None: 1/n.
    positions : Tensor (n, r) or (runs, n, r), or None
        The frozen code of the positions; None: H1's circle. Whole numbers of one byte are signs that mean ±1/√r.
    readout : Readout or None
        The frozen classification head; None: the zig-zag with k neurons.
    smoothing : float
        b of that zig-zag's smoothed ReLU; 0 is ReLU.
    directions : Tensor (heads, r) or (runs, heads, r), or None
        Where each head points at the start; None: random unit vectors.
    log_scale : Tensor () or (runs,), or None
        One head only: a trained β that makes its attention exponential, c = exp(s/τ + β) instead of k·softmax(s/τ).
        The weights then add up to some Λ, and the readout is shifted by what Λ misses of k: ŷ = readout(S + (k−Λ)/2).
    full_matrix : bool
        Train H1's whole 4 × 4 matrix A, so that attention sees the bits too.
    generator : torch.Generator or None
        Where random directions come from; None: torch's global one.

    >>> model = ParityTransformer(n=20, k=3, temperature=0.05)
    >>> x = torch.zeros(5, 20)
    >>> tuple(model(x).shape), tuple(model.attention().shape)
    ((5,), (3, 20))
    >>> round(model.score_weights().sum().item(), 9)  # heads share out a weight of k
    3.0
    >>> free = ParityTransformer(n=20, k=3, heads=1, temperature=1.0, log_scale=torch.tensor(-2.0).double())
    >>> bool((free.score_weights() == (free.scores()[0] - 2).exp()).all()), free.trained_parameters()
    (True, 3)
    """

    def __init__(
        self,
        n: int,
        k: int,
        heads: int | None = None,
        temperature: float | Float[Tensor, "*#runs"] | None = None,
        *,
        positions: Float[Tensor, "*#runs n r"] | Int8[Tensor, "*#runs n r"] | None = None,
        readout: Readout | None = None,
        smoothing: float = 0.0,
        directions: Float[Tensor, "*runs heads r"] | None = None,
        log_scale: Float[Tensor, "*runs"] | None = None,
        full_matrix: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not 1 <= k <= n:
            raise InvalidInput(f"k must lie between 1 and n = {n}, got {k}")
        heads = k if heads is None else heads
        if heads < 1:
            raise InvalidInput(f"heads must be at least 1, got {heads}")
        self.n, self.k = n, k
        self.temperature: float | Tensor
        self._set_temperature(1 / n if temperature is None else temperature)
        self.readout = ZigZag(k, smoothing) if readout is None else readout
        self.positions: Tensor
        self.register_buffer("positions", circle(n) if positions is None else positions)
        if directions is None:
            directions = unit_directions(heads, self.positions.shape[-1], generator)
        self.full_matrix = full_matrix
        if full_matrix:
            if directions.shape[-1] != 2:
                raise InvalidInput(
                    f"the full matrix A is 4 × 4: needs 2 coordinates per position, got {directions.shape[-1]}"
                )
            matrix = torch.zeros(*directions.shape[:-1], 4, 4, dtype=directions.dtype)
            matrix[..., 0, 2:] = directions
            self.matrix = nn.Parameter(matrix)
        else:
            self._directions = nn.Parameter(directions.clone())
        if log_scale is not None and (full_matrix or self.heads > 1):
            raise InvalidInput("attention with a trained scale has one head that sees positions only: set heads=1")
        self.log_scale = None if log_scale is None else nn.Parameter(log_scale.clone())
        self.phase: Tensor | None
        self.register_buffer("phase", None)

    def _set_temperature(self, temperature: float | Tensor) -> None:
        coldest = float(temperature.min()) if isinstance(temperature, Tensor) else temperature
        if not coldest > 0:
            raise InvalidInput(f"temperature must be positive, got {coldest}")
        if coldest < _COLDEST:
            raise InvalidInput(
                f"temperature must be at least {_COLDEST:g}, since scores are divided by it, got {coldest}"
            )
        if isinstance(temperature, Tensor):
            self.register_buffer("temperature", temperature)
        else:
            self.temperature = temperature

    @property
    def directions(self) -> Float[Tensor, "*runs heads r"]:
        """The position entries of each head; on the circle these are (a13, a14)."""
        return self.matrix[..., 0, 2:] if self.full_matrix else self._directions

    @property
    def heads(self) -> int:
        """The number m of attention heads."""
        return int(self.directions.shape[-2])

    def scores(self, x: Tensor | None = None) -> Tensor:
        """Return s_j = w_0ᵀ A w_j: (*runs, heads, n), or (*runs, batch, heads, n) when A sees the bits x."""
        by_position = position_scores(self.directions, self.positions)  # (*runs, heads, n)
        if not self.full_matrix:
            return by_position
        if x is None:
            raise InvalidInput("with the full matrix A attention depends on the input: call attention(x)")
        # H1, Eq. (3): w_0 = [1,0,0,0] picks row 1 of A, and w_j = [x_j, 1 − x_j, sin, cos].
        bits = x.to(by_position.dtype).unsqueeze(-2)  # (…, batch, 1, n)
        a11, a12 = self.matrix[..., None, :, 0, 0, None], self.matrix[..., None, :, 0, 1, None]
        return by_position.unsqueeze(-3) + a11 * bits + a12 * (1 - bits)

    def attention(self, x: Tensor | None = None, *, hard: bool = False) -> Tensor:
        """Return γ of every head, shaped like `scores`; `hard` puts all weight on the first largest score."""
        scores = self.scores(x)
        if hard:
            return torch.zeros_like(scores).scatter_(-1, first_largest(scores).unsqueeze(-1), 1.0)
        return torch.softmax(self._cooled(scores), dim=-1)

    def _cooled(self, scores: Tensor) -> Tensor:
        temperature = self.temperature
        if isinstance(temperature, Tensor):  # one per run
            temperature = temperature.reshape(*temperature.shape, *[1] * (scores.dim() - temperature.dim()))
        return scores / temperature

    def score_weights(self, *, hard: bool = False) -> Float[Tensor, "*runs n"]:
        """Return c = (k/m) Σ_h γ^{(h)}, the weight of every bit in S; they add up to k unless the scale is trained."""
        if self.log_scale is None:
            return self.k * self.attention(hard=hard).mean(-2)
        weights = self.log_weights().exp()
        return weights.sum(-1, keepdim=True) * self.attention(hard=True).squeeze(-2) if hard else weights

    def log_weights(self) -> Float[Tensor, "*runs n"]:
        """Return u = log c of the one head whose scale is trained, affine in its numbers: also where c is too small."""
        assert self.log_scale is not None
        return self._cooled(self.scores()).squeeze(-2) + self.log_scale.unsqueeze(-1)

    def phase_offset(self, weights: Float[Tensor, "*runs n"]) -> Tensor:
        """Return what the score is shifted by: (k − Λ)/2 where the weights' sum Λ is trained, else nothing.

        For uniform bits E[y e^{iπS}] = C·e^{iπ(Λ−k)/2} with C ≥ 0: the shift turns it back, so that
        cos(πS) correlates by C. Where k was not told, every run has its own, in `phase`; k mod 4 is what counts.
        """
        if self.log_scale is None:
            return weights.new_zeros(())
        return ((self.k if self.phase is None else self.phase) - weights.sum(-1)) / 2

    def forward(self, x: Tensor, *, hard: bool = False) -> Tensor:
        """Return ŷ for bits of shape (batch, n) or (*runs, batch, n): one row of predictions per run."""
        return self.readout(self.score(x, hard=hard))

    def score(self, x: Tensor, *, hard: bool = False) -> Float[Tensor, "*runs batch"]:
        """Return S = k·v*_1 for every input, shifted where the scale is trained."""
        bits = x.to(self.directions.dtype)
        if self.full_matrix:
            weights = self.k * self.attention(x, hard=hard).mean(-2)  # (*runs, batch, n)
            return (weights * bits).sum(-1)
        weights = self.score_weights(hard=hard)
        return (bits @ weights.unsqueeze(-1)).squeeze(-1) + self.phase_offset(weights).unsqueeze(-1)

    def additive_score(self) -> AdditiveScore | None:
        """Name the additive score; there is none when attention depends on the bits."""
        if self.full_matrix:
            return None
        weights = self.score_weights()
        return AdditiveScore(weights, self.phase_offset(weights), self.readout)

    def with_directions(self, directions: Float[Tensor, "*runs heads r"]) -> ParityTransformer:
        """Return the model with other directions, one run for each of a leading axis; this one stays as it is.

        >>> model = ParityTransformer(n=8, k=2)
        >>> tuple(model.with_directions(model.directions.expand(5, 2, 2)).attention().shape)
        (5, 2, 8)
        """
        if self.full_matrix:
            raise InvalidInput("a model with the full matrix A is more than its directions")
        return ParityTransformer(
            self.n,
            self.k,
            temperature=self.temperature,
            positions=self.positions,
            readout=self.readout,
            directions=directions.detach(),
            log_scale=None if self.log_scale is None else self.log_scale.detach().expand(directions.shape[:-2]),
        )

    def trained_parameters(self) -> int:
        """Return how many numbers one run trains."""
        runs = self.positions.new_empty(self.directions.shape[:-2]).numel()
        return sum(p.numel() for p in self.parameters() if p.requires_grad) // runs


def unit_directions(heads: int, r: int, generator: torch.Generator | None) -> Float[Tensor, "heads r"]:
    """Return uniform random unit vectors; on the circle, H1's start a13 = cos ω, a14 = sin ω.

    >>> unit_directions(3, 2, torch.Generator().manual_seed(0)).norm(dim=-1).round(decimals=12).tolist()
    [1.0, 1.0, 1.0]
    """
    directions = torch.randn(heads, r, generator=generator, dtype=torch.float64)
    return directions / directions.norm(dim=-1, keepdim=True)


def parity_transformer(
    n: int, support: Sequence[int], temperature: float | None = None, smoothing: float = 0.0
) -> ParityTransformer:
    """Return the transformer of Proposition 3: head i points at hidden bit B_i, with length 1.

    It computes the parity exactly in the limit of a vanishing temperature.

    >>> model = parity_transformer(8, (1, 4), temperature=0.001)
    >>> [round(y.item(), 6) + 0.0 for y in model(torch.tensor([[0, 1, 0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0]]))]
    [-1.0, 1.0]
    """
    # H1, Eq. (2): a13 = sin(2πB_i/n), a14 = cos(2πB_i/n), positions counted from 1.
    directions = circle(n)[list(support)]
    return ParityTransformer(n, len(support), temperature=temperature, smoothing=smoothing, directions=directions)
