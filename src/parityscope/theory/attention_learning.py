"""H1's constants as printed: k hidden bits, temperature τ, smoothing b, m heads, n bits."""

from __future__ import annotations

import math

from parityscope.errors import InvalidInput


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
    return min(128 * c2**2 / (k * n) ** 2, 64 * (k * c2 / n) ** 2) / 2 ** (n + 1)


def theorem_5_decrement(n: int, k: int, tau: float, b: float, c2: float = 1.0) -> float:
    """Return 1 − c = ημ of Theorem 5's proof: the share of the risk that a step removes at least.

    >>> f"{theorem_5_decrement(n=12, k=3, tau=1 / 12, b=0.01):.1e}"
    '5.3e-14'
    """
    return theorem_5_learning_rate(k, tau, b) * pl_constant(n, k, c2)


def fixed_attention_bound(n: int, m: int, alpha_norm: float, beta_norm: float) -> float:
    """Return Theorem 11's lower bound on the risk of frozen attention.

    (1 − 2m/2^⌈(n−1)/5m⌉)(1 − ‖α‖‖β‖·5m²/n)², where both factors are read with a positive part: the first is
    negative for small n, and the square grows again once the norm term passes 1, where the proof says nothing.

    >>> round(fixed_attention_bound(n=1000, m=3, alpha_norm=1.0, beta_norm=1.0), 6)
    0.912025
    """
    if n < 1 or m < 1:
        raise InvalidInput(f"n and m must be at least 1, got n = {n}, m = {m}")
    share = max(0.0, 1 - 2 * m / 2 ** math.ceil((n - 1) / (5 * m)))
    margin = max(0.0, 1 - alpha_norm * beta_norm * 5 * m**2 / n)
    return share * margin**2


def fixed_hard_attention_bound(n: int, m: int) -> float:
    """Return Corollary 20's lower bound on the risk of frozen hard attention, 1 − 2m/2^⌈(n−1)/m⌉, at least 0.

    >>> fixed_hard_attention_bound(n=16, m=3), fixed_hard_attention_bound(n=4, m=3)
    (0.8125, 0.0)
    """
    if n < 1 or m < 1:
        raise InvalidInput(f"n and m must be at least 1, got n = {n}, m = {m}")
    return max(0.0, 1 - 2 * m / 2 ** math.ceil((n - 1) / m))


def _second_derivative(k: int, tau: float, b: float) -> float:
    return 20 / tau**2 + 32 * k**2 / (tau**2 * math.sqrt(b))


def _check(tau: float, b: float) -> None:
    if tau <= 0 or b <= 0:
        raise InvalidInput(f"the constants need τ > 0 and b > 0, got τ = {tau}, b = {b}")
