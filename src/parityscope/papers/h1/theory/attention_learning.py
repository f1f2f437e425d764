"""H1's constants for learned attention, as printed: n bits, k hidden, temperature τ, smoothing b."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from parityscope.core.errors import InvalidInput


def parity_ffnn_parameters(k: int) -> int:
    """Return Prop. 3's count for FFNN-1: k biases, k output weights, one input weight and the output bias.

    >>> parity_ffnn_parameters(3)
    8
    """
    return 2 * k + 2


def parity_transformer_parameters(k: int) -> int:
    """Return Prop. 3's count for the transformer: a 4 × 4 matrix per head, and the classification head's 2k + 2.

    >>> parity_transformer_parameters(3)
    56
    """
    return 16 * k + parity_ffnn_parameters(k)


def smoothness_of_prediction(k: int, tau: float, b: float) -> float:
    """Return B of Lemma 14, 2k(20/τ² + 32k²/(τ²√b)): how fast ∇ŷ can change.

    >>> smoothness_of_prediction(1, 1.0, 1.0)
    104.0
    """
    _check(tau, b)
    return 2 * k * _second_derivative(k, tau, b)


def lipschitz_of_prediction(k: int, tau: float) -> float:
    """Return l₁ = C of Lemma 15, (8k²/τ)√(2k): the bound on ‖∇ŷ‖.

    >>> lipschitz_of_prediction(2, 0.5)
    128.0
    """
    return 8 * k**2 / tau * math.sqrt(2 * k)


def lipschitz_of_prediction_times_gradient(k: int, tau: float, b: float) -> float:
    """Return l₂ of Lemma 16, √(2k)(4k³(20/τ² + 32k²/(τ²√b)) + (8k²/τ)²).

    >>> round(lipschitz_of_prediction_times_gradient(1, 1.0, 1.0), 6)
    384.666089
    """
    _check(tau, b)
    return math.sqrt(2 * k) * (4 * k**3 * _second_derivative(k, tau, b) + (8 * k**2 / tau) ** 2)


def smoothness_of_risk(k: int, tau: float, b: float) -> float:
    """Return the constant of Lemma 7, max{2l₁C, 2(l₂ + B)}.

    >>> round(smoothness_of_risk(1, 1.0, 1.0), 6)
    977.332178
    """
    l1 = lipschitz_of_prediction(k, tau)
    l2 = lipschitz_of_prediction_times_gradient(k, tau, b)
    return max(2 * l1 * l1, 2 * (l2 + smoothness_of_prediction(k, tau, b)))


def theorem_5_learning_rate(k: int, tau: float, b: float) -> float:
    """Return η = 1/max{2l₁C, 2(l₂ + B)}, the learning rate of Theorem 5's proof.

    >>> f"{theorem_5_learning_rate(k=3, tau=1 / 12, b=0.01):.1e}"
    '4.4e-09'
    """
    return 1 / smoothness_of_risk(k, tau, b)


def pl_constant(n: int, k: int, c2: float = 1.0) -> float:
    """Return μ of Lemma 8, min{64μ₁, μ₂}/2^{n+1} with μ₁ = 2c₂²/(k²n²) (Lemma 18) and μ₂ = 64k²c₂²/n² (Lemma 19).

    The text fixes c₂ only as 0 < c₂ < c₁; 1 is the choice most favourable to the theorem.

    >>> pl_constant(n=4, k=1)
    0.125
    """
    # Lemma 18 bounds the gradient of τk·v*₁, so τ cancels in μ₁.
    mu_1 = score_gradient_bound(n, 1.0, c2) / k**2
    return min(64 * mu_1, loss_gradient_bound(n, k, c2)) / 2 ** (n + 1)


def theorem_5_decrement(n: int, k: int, tau: float, b: float, c2: float = 1.0) -> float:
    """Return 1 − c = ημ of Theorem 5's proof: the share of the risk that a step removes at least.

    >>> f"{theorem_5_decrement(n=12, k=3, tau=1 / 12, b=0.01):.1e}"
    '5.3e-14'
    """
    return theorem_5_learning_rate(k, tau, b) * pl_constant(n, k, c2)


def theorem_5_steps(
    epsilon: float, n: int, k: int, tau: float, b: float, c2: float = 1.0, eta: float | None = None
) -> float:
    """Return Theorem 5's promise, |ln ε|/(−ln(1 − ημ)): after so many steps the risk is below ε.

    η is the proof's own rate unless given; the argument works for every rate up to 1/smoothness.

    >>> f"{theorem_5_steps(0.01, n=12, k=3, tau=1 / 12, b=0.01):.0e}"
    '9e+13'
    """
    rate = theorem_5_learning_rate(k, tau, b) if eta is None else eta
    return abs(math.log(epsilon)) / -math.log1p(-rate * pl_constant(n, k, c2))


def score_gradient_bound(n: int, tau: float, c2: float) -> float:
    """Return the lower bound of Lemma 18, 2c₂²τ²/n², on Σ_i ‖τk ∂v*₁/∂a^{(i)}‖².

    >>> score_gradient_bound(n=2, tau=1.0, c2=1.0)
    0.5
    """
    return 2 * (c2 * tau / n) ** 2


def loss_gradient_bound(n: int, k: int, c2: float) -> float:
    """Return the factor of Lemma 19, 64k²c₂²/n², between squared loss gradients and ℓ(x) + ℓ(x̄).

    >>> loss_gradient_bound(n=8, k=1, c2=1.0)
    1.0
    """
    return 64 * (k * c2 / n) ** 2


def softmax_derivative(
    gamma: Float[Tensor, "*batch n"], wave: Float[Tensor, " n"], tau: float
) -> Float[Tensor, "*batch n"]:
    """Return ∂γ_p/∂a = (γ_p/τ)(w_p − Σ_j γ_j w_j) for a head that scores position p by a·w_p.

    `wave` holds sin(2πp/n) for a13 and cos(2πp/n) for a14.

    >>> import torch
    >>> half = torch.tensor([0.5, 0.5])
    >>> softmax_derivative(half, torch.tensor([1.0, -1.0]), tau=1.0).tolist()
    [0.5, -0.5]
    """
    return gamma * (wave - (gamma * wave).sum(-1, keepdim=True)) / tau


def softmax_derivative_as_printed(
    gamma: Float[Tensor, "*batch n"], wave: Float[Tensor, " n"], tau: float
) -> Float[Tensor, "*batch n"]:
    """Return the derivative as Lemma 14's proof prints it, with a plus before Σ_{j≠p} γ_p γ_j w_j: it is wrong.

    >>> import torch
    >>> half = torch.tensor([0.5, 0.5])
    >>> softmax_derivative_as_printed(half, torch.tensor([1.0, -1.0]), tau=1.0).tolist()
    [0.0, 0.0]
    """
    others = (gamma * wave).sum(-1, keepdim=True) - gamma * wave
    return gamma * ((1 - gamma) * wave + others) / tau


def _second_derivative(k: int, tau: float, b: float) -> float:
    return 20 / tau**2 + 32 * k**2 / (tau**2 * math.sqrt(b))


def _check(tau: float, b: float) -> None:
    if tau <= 0 or b <= 0:
        raise InvalidInput(f"the constants need τ > 0 and b > 0, got τ = {tau}, b = {b}")
