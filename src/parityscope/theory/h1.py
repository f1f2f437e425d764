"""H1's bounds and constants: for attention that is learned (Theorem 5) and attention that is fixed (Theorem 11)."""

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
    _check_constants(tau, b)
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
    _check_constants(tau, b)
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
    # H1, the bracket of Lemmas 14 and 16
    return 20 / tau**2 + 32 * k**2 / (tau**2 * math.sqrt(b))


def _check_constants(tau: float, b: float) -> None:
    if tau <= 0 or b <= 0:
        raise InvalidInput(f"the constants need τ > 0 and b > 0, got τ = {tau}, b = {b}")


def fixed_attention_bound(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return Theorem 11's lower bound on the risk of frozen soft attention.

    (1 − 2m/2^⌈(n−1)/5m⌉)(1 − ‖α‖‖β‖·5m²/n)², where both factors are read with a positive part: the first is
    negative for small n, and the square grows again once the norm term passes 1, where the proof says nothing.

    >>> round(fixed_attention_bound(n=1000, m=3, alpha_norm=1.0, beta_norm=1.0), 6)
    0.912025
    """
    margin = max(0.0, 1 - fixed_attention_norm_term(n, m, alpha_norm, beta_norm))
    return max(0.0, fixed_attention_share(n, m)) * margin**2


def fixed_attention_bound_as_printed(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return Theorem 11's bound without a positive part: it grows with the norms once their term has passed 1.

    >>> fixed_attention_bound_as_printed(n=10, m=1, alpha_norm=8.0, beta_norm=1.0)
    4.5
    """
    return fixed_attention_share(n, m) * (1 - fixed_attention_norm_term(n, m, alpha_norm, beta_norm)) ** 2


def fixed_attention_norm_term(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return ‖α‖‖β‖·5m²/n of Theorem 11's second factor: how far a flipped bit may move the prediction.

    >>> fixed_attention_norm_term(n=1000, m=3, alpha_norm=1.0, beta_norm=2.0)
    0.09
    """
    return alpha_norm * beta_norm * 5 * m**2 / n


def fixed_attention_share(n: int, m: int) -> float:
    """Return Theorem 11's first factor as printed, 1 − 2m/2^⌈(n−1)/5m⌉; it may be negative.

    >>> fixed_attention_share(7, 1), fixed_attention_share(32, 3) > 0 > fixed_attention_share(31, 3)
    (0.5, True)
    """
    _check_sizes(n, m)
    return 1 - 2 * m * 2.0 ** -math.ceil((n - 1) / (5 * m))


def fixed_attention_share_of_proof(n: int, m: int) -> float:
    """Return the first factor that the proof's own count gives, 1 − 2m·2^{4⌈n/5m⌉ − ⌈(n−1)/m⌉}: weaker than printed.

    >>> fixed_attention_share_of_proof(20, 1), fixed_attention_share(20, 1)
    (0.75, 0.875)
    """
    _check_sizes(n, m)
    return 1 - 2 * m * 2.0 ** (4 * math.ceil(n / (5 * m)) - math.ceil((n - 1) / m))


def counted_fixed_attention_share(n: int, m: int) -> float:
    """Return the first factor with the proof's set X′ counted exactly instead of estimated.

    X′ wants at least n/5m maximisers among each head's first ⌈(n−1)/m⌉ − 1 positions; a binomial sum for one head, and
    a union bound over the m heads.

    >>> counted_fixed_attention_share(7, 1)
    0.8125
    """
    _check_sizes(n, m)
    seen = math.ceil((n - 1) / m) - 1
    few = sum(math.comb(seen, i) for i in range(min(seen + 1, math.ceil(n / (5 * m)))))
    return 1 - m * few / 2**seen


def fixed_hard_attention_bound(n: int, m: int) -> float:
    """Return Corollary 20's lower bound on the risk behind frozen hard attention, 1 − 2m/2^⌈(n−1)/m⌉.

    >>> fixed_hard_attention_bound(12, 2)
    0.9375
    """
    _check_sizes(n, m)
    return 1 - 2 * m * 2.0 ** -math.ceil((n - 1) / m)


def hard_attention_counting_bound(n: int, m: int) -> float:
    """Return our own bound behind m frozen hard heads, 1 − 2m/n: useful for every m = o(n).

    What a hard head attends to tells less than two bits on average, so that some bit is told with probability at most
    2m/n; `docs/explanation/hard-attention.md` has the proof.

    >>> hard_attention_counting_bound(100, 5)
    0.9
    """
    _check_sizes(n, m)
    return max(0.0, 1 - 2 * m / n)


def fixed_attention_limit(head_exponent: float, norm_exponent: float) -> float:
    """Return the limit of Theorem 11's bound for m = n^a heads and ‖α‖‖β‖ = n^b (Remark 12).

    The second factor tends to 1 exactly when 2a + b < 1, Remark 12's condition m²‖α‖‖β‖ = o(n). The first needs
    a < 1 as well, which the remark forgets: tiny norms allow any number of heads.

    >>> fixed_attention_limit(0, 0.9), fixed_attention_limit(0.4, 0.3), fixed_attention_limit(1.0, -3.0)
    (1.0, 0.0, 0.0)
    """
    return float(head_exponent < 1 and 2 * head_exponent + norm_exponent < 1)


def _check_sizes(n: int, m: int) -> None:
    if n < 1 or m < 1:
        raise InvalidInput(f"n and m must be at least 1, got n = {n}, m = {m}")
