"""Constants and conditions of W's appendix as functions, in log space where the numbers leave floating point."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import NamedTuple

_DIGITS = 100  # log n up to 10^60 beside terms of order 1


class AssumptionTwo(NamedTuple):
    """Logarithms of what Assumption 2 sets; decimals, since small differences of huge logarithms count.

    >>> at = assumption_2(1e9)  # n = e^(10⁹)
    >>> round(math.exp(at.m - at.k), 12)  # m = 2k
    2.0
    """

    n: Decimal
    inverse_delta: Decimal
    epsilon: Decimal
    k: Decimal
    d: Decimal
    m: Decimal
    B: Decimal
    early_rate: Decimal
    last_rate: Decimal


def _log(x: float | Decimal) -> Decimal:
    return Decimal(x).ln()


def assumption_2(log_n: float, delta: float = 0.1, epsilon: float = 0.1, power: float = 5.0) -> AssumptionTwo:
    """Return the logarithms of k = n/log^power(n/δ), d, m, B, η₀ = η₁ and η₂ of W, Assumption 2.

    >>> at = assumption_2(math.log(1000))
    >>> round(math.exp(at.d - at.k), 2)  # log^1.1(n/δ)
    11.5
    """
    with localcontext(prec=_DIGITS):
        n, inverse = Decimal(log_n), -_log(delta)
        L = n + inverse  # log(n/δ)
        k = n - Decimal(power) * L.ln()
        d = k + Decimal("1.1") * L.ln()
        m = _log(2) + k
        B = _log(1.28e7) - 2 * _log(epsilon) + n + 20 * L.ln()
        early = m + _log(epsilon) + B / 2 - (100 * L).ln()
        last = _log(4) + _log(epsilon) - _log(3) + k
        return AssumptionTwo(n, inverse, _log(epsilon), k, d, m, B, early, last)


def lemma_5_items(at: AssumptionTwo) -> dict[str, float]:
    """Return, per item of W's Lemma 5, the logarithm of a quantity that must fall below 0 (→ −∞ for limits).

    >>> for log_n in (1e3, 1e49):  # which items do not hold yet
    ...     [name for name, value in lemma_5_items(assumption_2(log_n)).items() if value >= 0]
    ['2', '3b']
    []
    """
    with localcontext(prec=_DIGITS):
        n, k, d, m, B = at.n, at.k, at.d, at.m, at.B
        log_300mnB = (_log(300) + m + n + B + at.inverse_delta).ln()
        log_300nB = (_log(300) + n + B + at.inverse_delta).ln()
        log_400mn = (_log(400) + m + n + at.inverse_delta).ln()
        log_Bmn = (B + m + n + at.inverse_delta).ln()
        items = {
            "1 d/n": d - n,
            "1 B/nk": B - n - k,
            "2": (_log(2) + k - d + log_Bmn) / 2,
            "3a": (k + log_300mnB - B) / 2,
            "3b": (_log(2) + k + log_400mn - d) / 2,
            "3c": (_log(2) + n + k + log_300mnB - B - d) / 2,
            "4 first": at.early_rate - (_log(3) - _log(80) + m + at.epsilon + B / 2 - log_300nB / 2),
            "4 second": at.early_rate - (m + n + at.epsilon - _log(120)),
            "5": 2 * log_300mnB + n + (n + k) / 2 - d - (B + d) / 2,
            "6": (40 * n).ln() - (2 * at.early_rate - _log(256) - m - 2 * n),
            "7": at.last_rate - at.early_rate,
            "8": _log(2) + at.early_rate - _log(5) - n - at.last_rate,
        }
        return {name: float(value) for name, value in items.items()}


def lemma_10_overlap(at: AssumptionTwo) -> float:
    """Return log √(4k/d · log(100Bm/δ)), which W's Lemma 10 needs below log 0.01.

    d/k grows like log^1.1(n/δ), hardly faster than the logarithm above it: the lemma waits for n = e^(10^50).

    >>> [lemma_10_overlap(assumption_2(log_n)) < math.log(0.01) for log_n in (1e6, 1e49, 1e50)]
    [False, False, True]
    """
    with localcontext(prec=_DIGITS):
        return float((_log(4) + at.k - at.d + (_log(100) + at.B + at.m + at.inverse_delta).ln()) / 2)


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


def lemma_19_bound(n: int, k: int, d: int, m: int, B: int, early_rate: float, delta: float) -> float:
    """Return (10η₀/mn)·√(nk)/√(Bd)·log(300mnB/δ), the error W allows in Lemma 19.

    >>> one, four = (lemma_19_bound(20, 4, d=512, m=192, B=B, early_rate=1.0, delta=0.1) for B in (10**4, 4 * 10**4))
    >>> round(one / four, 2)  # 2, but for the logarithm
    1.9
    """
    return 10 * early_rate / (m * n) * math.sqrt(n * k / (B * d)) * math.log(300 * m * n * B / delta)
