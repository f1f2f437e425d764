"""The bounds of W's appendix as functions of finite sizes."""

from __future__ import annotations

import math
from typing import NamedTuple


def norm_of_dual_sum() -> float:
    """Return √24: what Lemma 1's λ_min > 1/12 allows ‖Σu‖/√k of W's Lemma 2 to be, since ‖Σu‖² ≤ 2k/λ_min.

    >>> round(norm_of_dual_sum(), 2)
    4.9
    """
    return math.sqrt(24)


def lemma_30_bound(delta: float, d: int, sum_of_squares: float) -> float:
    """Return √(2 log(2/δ)/d · Σ λ²): how far ⟨e, Σ λ e⟩ strays from its own λ with probability 1 − δ (W, Lemma 30).

    >>> round(lemma_30_bound(delta=2 * math.exp(-2), d=4, sum_of_squares=1.0), 12)
    1.0
    """
    return math.sqrt(2 * math.log(2 / delta) / d * sum_of_squares)


def lemma_31_bound(delta: float, n: int, d: int) -> float:
    """Return √(2 log(8nd/δ)/d), W's bound on every inner product of two embeddings (Lemma 31).

    >>> [round(lemma_31_bound(delta=0.1, n=20, d=d), 2) for d in (100, 10_000)]
    [0.49, 0.06]
    """
    return math.sqrt(2 * math.log(8 * n * d / delta) / d)


def lemma_31_bound_for_all_pairs(delta: float, n: int, k: int, d: int) -> float:
    """Return √(2 log(4(n + k)²/δ)/d): what the union over all pairs of the 2(n + k) embeddings gives instead.

    >>> lemma_31_bound(0.1, 10**6, 320) < lemma_31_bound_for_all_pairs(0.1, 10**6, 14, 320)  # d far below n
    True
    """
    return math.sqrt(2 * math.log(4 * (n + k) ** 2 / delta) / d)


def lemma_31_bound_in_lemma_21(delta: float, n: int, d: int) -> float:
    """Return 2√(log(100nd/δ)/d): what the proof of W's Lemma 21 takes from Lemma 31, with probability 1 − δ/100.

    >>> lemma_31_bound_in_lemma_21(0.1, 10**6, 297) > lemma_31_bound_for_all_pairs(0.1, 10**6, 14, 297)
    True
    """
    return 2 * math.sqrt(math.log(100 * n * d / delta) / d)


def lemma_32_bound(n: int, C: float) -> float:
    """Return 4/n^{C−1}: how far from one-hot scores of 2C log n against C log n leave attention (W, Lemma 32).

    >>> lemma_32_bound(10, 3)
    0.04
    """
    return 4 / n ** (C - 1)


def lemma_10_bound(k: int, d: int, m: int, B: int, delta: float) -> float:
    """Return √(4k log(100Bm/δ)/d): how far ⟨W_r, e_{i,b}⟩/ε strays from its sign at the start (W, Lemma 10's proof).

    >>> round(lemma_10_bound(3, 2**20, 64, 1000, 0.1), 3)
    0.014
    """
    return math.sqrt(4 * k * math.log(100 * B * m / delta) / d)


class StatisticsBounds(NamedTuple):
    """The bounds of W's Lemma 7 on Table 1.

    >>> round(statistics_bounds(n=12, k=3, m=4, B=512, delta=0.5).delta)
    88
    """

    delta: float
    alpha: float
    beta: float
    psi: float
    gamma: float
    zeta: float


def statistics_bounds(n: int, k: int, m: int, B: int, delta: float) -> StatisticsBounds:
    """Return what Lemma 7 allows; that on α carries 1(j = S[i]) in print.

    >>> bounds = statistics_bounds(n=12, k=3, m=4, B=512, delta=0.5)
    >>> round(bounds.zeta / bounds.psi)  # a sum over 2m neurons
    8
    """
    log, log_m = math.log(300 * n * B / delta), math.log(300 * m * n * B / delta)
    psi = 2 * math.sqrt(B * k * log_m) / n
    return StatisticsBounds(
        delta=math.sqrt(B * log),
        alpha=math.sqrt(2 * B * log),
        beta=math.sqrt(2 * B * k * log) / n,
        psi=psi,
        gamma=math.sqrt(2 * m * math.log(200 * n / delta)) / n,
        zeta=2 * m * psi,
    )


def places_of_lemma_7(n: int, k: int) -> range:
    """Return the i for which Lemma 7 is printed, [n + k]; at i = n the next token is always 0, and δ is a count.

    >>> list(places_of_lemma_7(2, 1))
    [1, 2, 3]
    """
    return range(1, n + k + 1)


def alpha_elsewhere() -> float:
    """Return what Lemma 7 allows |α| for j ≠ S[i]: nothing, since its bound carries 1(j = S[i]).

    >>> alpha_elsewhere()
    0.0
    """
    return 0.0


def lemma_13_bound(n: int, m: int, B: int, delta: float) -> float:
    """Return √log(300nB/δ)/(m√B), W's bound on projections of the gradient of W_{r,1:d} (Lemmas 13 and 23).

    >>> round(lemma_13_bound(10, 4, 10_000, 0.1), 4)
    0.011
    """
    return math.sqrt(math.log(300 * n * B / delta) / B) / m


def lemma_15_bound(n: int, m: int) -> float:
    """Return 3/(2mn), W's bound on projections of the gradient of W_{r,d+1:2d} (Lemmas 15 and 17).

    >>> lemma_15_bound(10, 3)
    0.05
    """
    return 3 / (2 * m * n)


def lemma_16_bound() -> float:
    """Return 3/80: what a step may change of a neuron's input, over ε (W, Lemma 16; two steps in Lemma 17).

    >>> lemma_16_bound()
    0.0375
    """
    return 3 / 80


def lemma_5_rate(n: int, m: int, B: int, epsilon: float, delta: float) -> float:
    """Return the largest η₀ = η₁ that W's Lemma 5.4 allows.

    >>> lemma_5_rate(n=12, m=100, B=10**6, epsilon=0.5, delta=0.1)
    5.0
    """
    return min(3 * epsilon / (80 * lemma_13_bound(n, m, B, delta)), m * n * epsilon / 120)


def lemma_21_bounds() -> tuple[float, float]:
    """Return 1/256 and 1/512: the least score on the secret and the largest elsewhere, in units of η₀η₁/mn² (Lemma 21).

    >>> lemma_21_bounds()
    (0.00390625, 0.001953125)
    """
    return 1 / 256, 1 / 512


def first_tokens_of_lemma_21() -> tuple[int, ...]:
    """Return the bits b'₂ at i' = n + 1 for which Lemma 21 is printed: both, although that token is always 0.

    >>> first_tokens_of_lemma_21()
    (0, 1)
    """
    return 0, 1


def one_hot_bound(n: int, power: int) -> float:
    """Return 1/n^power: how far from one-hot attention may be (W, Lemma 22: 10, Lemma 24: 9, Theorem 3: 8).

    >>> one_hot_bound(10, 2)
    0.01
    """
    return float(n) ** -power


def lemma_25_weight() -> float:
    """Return 2/3: what Lemma 25 prints for the weight of a secret bit in a neuron after three steps, over ε.

    >>> round(lemma_25_weight(), 3)
    0.667
    """
    return 2 / 3


def lemma_26_band() -> tuple[float, float]:
    """Return 1/3 and 1/3: Lemma 26's output over ε, and how far from it the output may be.

    >>> lemma_26_band()[0] == lemma_26_band()[1]
    True
    """
    return 1 / 3, 1 / 3


def signs_of_lemma_26() -> tuple[int, ...]:
    """Return in which directions Lemma 26 asks for the output: both, since it is printed for every next token b[i + 1].

    >>> signs_of_lemma_26()
    (1, -1)
    """
    return 1, -1


def sign_of_theorem_3(token: int) -> int:
    """Return what Theorem 3 prints for the sign of an output: the next token itself.

    >>> sign_of_theorem_3(0), sign_of_theorem_3(1)
    (0, 1)
    """
    return token


def lemma_19_bound(n: float, k: float, d: float, m: float, B: float, early_rate: float, delta: float) -> float:
    """Return (10η₀/mn)·√(nk)/√(Bd)·log(300mnB/δ), the error W allows in Lemma 19.

    >>> one, four = (lemma_19_bound(20, 4, d=512, m=192, B=B, early_rate=1.0, delta=0.1) for B in (10**4, 4 * 10**4))
    >>> round(one / four, 2)  # 2, but for the logarithm
    1.9
    """
    return 10 * early_rate / (m * n) * math.sqrt(n * k / (B * d)) * math.log(300 * m * n * B / delta)
