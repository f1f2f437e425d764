"""Assumption 2 of W and what it implies far out, in log space: its numbers leave floating point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import NamedTuple

_DIGITS = 100  # log n up to 10^60 beside terms of order 1
ENDS = (4.0, 5.0)  # k lies between n/log^5(n/δ) and n/log^4(n/δ)
NEAR, FAR = 1e40, 1e59  # log n, between which a limit is read off


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
    """Return the logarithms of k = n/log^power(n/δ), d, m, B, η₀ = η₁ and η₂ of W, Assumption 2."""
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


def first_n_with_a_k(delta: float) -> int:
    """Return the first n from which on n/log⁴(n/δ) is at least 1: below, no k is in Assumption 2's range.

    >>> [first_n_with_a_k(delta) for delta in (0.9, 0.1)]
    [6019, 23344]
    """
    # n/log⁴(n/δ) grows from n = e⁴δ on, where it is below 1 for these δ.
    return next(n for n in itertools.count(math.ceil(math.e**4 * delta)) if n >= math.log(n / delta) ** 4)


def lemma_5_items(at: AssumptionTwo) -> dict[str, float]:
    """Return, per item of W's Lemma 5, the logarithm of a quantity that must fall below 0 (→ −∞ for limits)."""
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


def power_of_log_n(item: Callable[[AssumptionTwo], float]) -> float:
    """Return the power of log n by which a quantity, given by its logarithm, grows far out, at the worse end of k.

    >>> round(power_of_log_n(lambda at: float(at.d - at.k)), 4)  # d = k·log^1.1(n/δ)
    1.1
    """
    ends = [(assumption_2(NEAR, power=power), assumption_2(FAR, power=power)) for power in ENDS]
    return max((item(far) - item(near)) / math.log(FAR / NEAR) for near, far in ends)


def log_parameters(at: AssumptionTwo) -> float:
    """Return log((d² + 4dm)/nk), which Theorem 3 wants to fall without end: A has d² weights, W has 2m·2d."""
    with localcontext(prec=_DIGITS):
        return float(2 * at.d + (1 + (_log(4) + at.m - at.d).exp()).ln() - at.n - at.k)


def log_memory(at: AssumptionTwo) -> float:
    """Return log(md·log n/nk), which Assumption 2 wants to fall without end."""
    with localcontext(prec=_DIGITS):
        return float(at.m + at.d + at.n.ln() - at.n - at.k)


def log_size_of_theorem_1(at: AssumptionTwo) -> float:
    """Return log((d² + dm)·log n/nk) for the d = k·log(n/δ) and m = k + 1 of Theorem 1's proof; it must fall."""
    with localcontext(prec=_DIGITS):
        L = at.n + at.inverse_delta
        d, m = at.k + L.ln(), at.k  # k + 1 is k, far out
        return float(2 * d + (1 + (m - d).exp()).ln() + at.n.ln() - at.n - at.k)


def log_samples_over_n(at: AssumptionTwo) -> float:
    """Return log(3B/n), the samples of three steps against Theorem 3's Õ(n)."""
    with localcontext(prec=_DIGITS):
        return float(_log(3) + at.B - at.n)


def lemma_13_over_bound(at: AssumptionTwo) -> float:
    """Return ½(1 + √(2k log(200m/δ)/d)): what the proof of W's Lemma 13 allows a projection, over the lemma's bound.

    >>> lemma_13_over_bound(assumption_2(FAR)) < 1
    True
    """
    with localcontext(prec=_DIGITS):
        log = (_log(200) + at.m + at.inverse_delta).ln()
        return float(1 + ((_log(2) + at.k + log - at.d) / 2).exp()) / 2


def log_rarity_of_lemma_10(at: AssumptionTwo) -> float:
    """Return log(P(off by ε/100 or more) / (δ/50Bm)), W's Lemma 10; below 0 it holds.

    The overlap is a sum of (2k − 1)d independent signs of size ε/d, whose tail is 2 exp(−d/(2·100²·2k)).

    >>> [log_rarity_of_lemma_10(assumption_2(log_n)) < 0 for log_n in (1e6, 1e49, 1e51)]
    [False, False, True]
    """
    with localcontext(prec=_DIGITS):
        return float(_log_tail_at_a_hundredth(at) + _log(50) + at.B + at.m + at.inverse_delta)


def log_rarity_of_lemma_11(at: AssumptionTwo) -> float:
    """Return log(P(any of 2m neurons is off at any of 2k places) / (δ/50)), W's Lemma 11; below 0 it holds.

    >>> [log_rarity_of_lemma_11(assumption_2(log_n)) < 0 for log_n in (1e6, 1e49, 1e51)]
    [False, False, True]
    """
    with localcontext(prec=_DIGITS):
        return float(_log_tail_at_a_hundredth(at) + _log(4) + at.m + at.k + _log(50) + at.inverse_delta)


def _log_tail_at_a_hundredth(at: AssumptionTwo) -> Decimal:
    return _log(2) - (at.d - at.k).exp() / 40_000


def log_bound_of_lemma_19(at: AssumptionTwo) -> float:
    """Return log(10 √(nk/Bd) log(300mnB/δ)): the error W's Lemma 19 allows, in units of η₀/mn."""
    with localcontext(prec=_DIGITS):
        log = _log(300) + at.m + at.n + at.B + at.inverse_delta
        return float(_log(10) + (at.n + at.k - at.B - at.d) / 2 + log.ln())


def log_noise_of_lemma_19(at: AssumptionTwo) -> float:
    """Return the log of what the proof of Lemma 19 allows γ, ζ and overlaps together, in units of η₀/mn.

    The last term is α − ᾱ, which the proof leaves out: three times √(2 log(300nB/δ)/B)/8, twice for its overlaps.

    >>> log_noise_of_lemma_19(assumption_2(200.0)) < log_bound_of_lemma_19(assumption_2(200.0))
    True
    """
    with localcontext(prec=_DIGITS):
        log = (_log(200) + at.n + at.inverse_delta).ln()  # of log(200n/δ)
        terms = (
            (_log(2) + at.k + log - at.m - at.d) / 2 - _log(4),
            (at.k - at.B) / 2 + log,
            _log(4) + (at.n + at.k - at.d - at.B) / 2 + log,
            log / 2 - at.d / 2 - _log(4),
            _log(0.75) + (_log(2) + (_log(300) + at.n + at.B + at.inverse_delta).ln() - at.B) / 2,
        )
        return float(sum((term.exp() for term in terms), Decimal(0)).ln())


def lemma_10_overlap(at: AssumptionTwo) -> float:
    """Return log √(4k/d · log(100Bm/δ)), which W's Lemma 10 needs below log 0.01.

    d/k grows like log^1.1(n/δ), hardly faster than the logarithm above it: the lemma waits for n = e^(10^50).
    """
    with localcontext(prec=_DIGITS):
        return float((_log(4) + at.k - at.d + (_log(100) + at.B + at.m + at.inverse_delta).ln()) / 2)
