"""How sure a found parity is: exact tails, the price of the search, and paired comparisons on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray

_LEVEL = 0.05
# Logarithms of p-values add up a few hundred terms: 1e-9 is a million times what rounding does to them.
_ROUNDING = 1e-9
_Z = NormalDist().inv_cdf(1 - _LEVEL)
_SMALL_LOG_FACTORIALS = np.array([math.lgamma(count + 1.0) for count in range(32)])


def phi(
    agreement: ndarray | float, signs_sum: ndarray | float, labels_sum: float, rows: int
) -> Float[ndarray, "*shape"]:
    """Return the correlation of a sign χ with the labels, from Σχy, Σχ and Σy over ±1 values.

    A sign that never changes has none: 0.

    >>> float(phi(agreement=4.0, signs_sum=0.0, labels_sum=0.0, rows=4))
    1.0
    """
    mean, label_mean = np.asarray(signs_sum) / rows, labels_sum / rows
    covariance = np.asarray(agreement) / rows - mean * label_mean
    scale = np.sqrt(np.clip((1 - mean**2) * (1 - label_mean**2), 0.0, None))
    return np.divide(covariance, scale, out=np.zeros(np.shape(covariance)), where=scale > 1e-9)


def correlation(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"]) -> float:
    """Return the correlation of a sign with the labels.

    >>> correlation(np.array([1, -1, 1], dtype=np.int8), np.array([-1, 1, -1], dtype=np.int8))
    -1.0
    """
    agreement = float((chi * labels).sum(dtype=np.int64))
    return float(phi(agreement, float(chi.sum(dtype=np.int64)), float(labels.sum(dtype=np.int64)), len(labels)))


def exact_log_tail(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"]) -> float:
    """Return log P(as many rows with χ = y = 1 or more) when labels are dealt to the rows at random.

    Given how often each sign occurs, that count is hypergeometric (Fisher's exact test): no assumption on how the
    columns depend on each other, nor on how balanced the classes are.

    >>> chi = np.array([1, 1, -1, -1], dtype=np.int8)
    >>> round(math.exp(exact_log_tail(chi, chi)) * math.comb(4, 2), 12)
    1.0
    """
    rows, ups, drawn = len(chi), int((chi > 0).sum()), int((labels > 0).sum())
    both = int(((chi > 0) & (labels > 0)).sum())
    counts = np.arange(both, min(ups, drawn) + 1, dtype=float)
    terms = log_choose(ups, counts) + log_choose(rows - ups, drawn - counts) - log_choose(rows, float(drawn))
    largest = terms.max()
    return min(0.0, float(largest + np.log(np.exp(terms - largest).sum())))


def exact_log_p(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"]) -> float:
    """Return the logarithm of the two-sided p-value: twice the smaller tail, at most 0.

    >>> chi = np.array([1, 1, -1, -1], dtype=np.int8)
    >>> round(math.exp(exact_log_p(chi, -chi)), 12) == round(2 / math.comb(4, 2), 12)
    True
    """
    return min(0.0, math.log(2) + min(exact_log_tail(chi, labels), exact_log_tail(-chi, labels)))


def log_family(choices: Sequence[int], k: int) -> float:
    """Return the logarithm of how many parities of k columns there are, a column having `choices` possible bits.

    This is the elementary symmetric polynomial e_k: for plain bits the binomial coefficient.

    >>> round(math.exp(log_family([1] * 10, 3)))
    120
    """
    polynomial = np.full(k + 1, -np.inf)
    polynomial[0] = 0.0
    counts, columns = np.unique(np.asarray([count for count in choices if count > 0], dtype=float), return_counts=True)
    for count, many in zip(counts, columns.tolist(), strict=True):
        # All columns with as many choices at once: (1 + count·x)^many.
        powers = np.arange(min(k, many) + 1, dtype=float)
        factor = log_choose(many, powers) + powers * math.log(count)
        polynomial = np.array(
            [
                np.logaddexp.reduce([polynomial[size - power] + term for power, term in enumerate(factor[: size + 1])])
                for size in range(k + 1)
            ]
        )
    return float(polynomial[k])


def corrected_log_p(log_p: float, choices: Sequence[int], k: int, *, k_is_known: bool) -> float:
    """Return the logarithm of a p-value that pays for the search over every support.

    By the union bound it is multiplied by the number of candidates of size k, and when k was open too by k(k+1),
    whose reciprocals add up to 1 over all k.

    >>> known, open_k = (corrected_log_p(-20.0, [1] * 10, 3, k_is_known=known) for known in (True, False))
    >>> round(math.exp(known + 20)), round(math.exp(open_k - known))  # C(10, 3), and 3·4
    (120, 12)
    """
    search = log_family(choices, k) + (0.0 if k_is_known else math.log(k * (k + 1)))
    return min(0.0, log_p + search)


def p_text(log_p: float) -> str:
    """Return a p-value as text, also when it is too small for a float.

    >>> p_text(-1.0), p_text(-5000.0)
    ('p = 0.37', 'p < 1e-300')
    """
    return "p < 1e-300" if log_p < -300 * math.log(10) else f"p = {math.exp(log_p):.2g}"


def reaches(log_p: float, level: float) -> bool:
    """Say whether a p-value is at most `level`; one that equals it, up to rounding, is.

    Exact p-values are fractions and do equal usual levels: 3 of 6 rows named right has p = 1/C(6, 3) = 0.05.

    >>> reaches(-math.log(math.comb(6, 3)), 0.05), reaches(math.log(0.051), 0.05)
    (True, False)
    """
    return log_p <= math.log(level) + _ROUNDING


def rows_needed(price: float, alpha: float) -> int:
    """Return how many rows even a noiseless parity with balanced classes needs to be told from chance.

    `price` is the logarithm of what the search multiplies its p-value by.

    >>> rows_needed(log_family([1] * 20, 2), 0.01)
    18
    """
    rows = np.arange(2.0, 64 + 4 * (price - math.log(alpha)))
    log_p = np.minimum(0.0, math.log(2) - log_choose(rows, np.floor(rows / 2)) + price)
    return int(rows[np.argmax(log_p <= math.log(alpha) + _ROUNDING)])


def clearly_better(log_likelihood: Float[ndarray, " rows"], than: Float[ndarray, " rows"]) -> bool:
    """Say whether one rule predicts held-out rows better than another: a paired one-sided z-test at 5 %.

    Two rules that agree on every row up to rounding are equal, and none is better.

    >>> clearly_better(np.array([-0.1, -0.2, -0.1]), than=np.array([-0.7, -0.7, -0.7]))
    True
    """
    gain = log_likelihood - than
    error = gain.std(ddof=1) / math.sqrt(len(gain)) if len(gain) > 1 else math.inf
    return bool(gain.mean() > _Z * error + _ROUNDING)


def replicates(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"]) -> bool:
    """Say whether held-out rows agree with a sign oriented on others: Fisher's exact test at 5 %, one-sided.

    >>> chi = np.array([1, -1] * 4, dtype=np.int8)
    >>> replicates(chi, chi), replicates(chi[:4], chi[:4])  # 1 of C(8, 4) = 70 relabellings, 1 of C(4, 2) = 6
    (True, False)
    """
    return reaches(exact_log_tail(chi, labels), _LEVEL)


def log_factorial(count: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    """Return log m! of whole numbers: a table, then Stirling's series, whose next term is below rounding from 32 on.

    >>> log_factorial(np.array([3.0, 100.0])).round(9).tolist()
    [1.791759469, 363.739375556]
    """
    large = np.maximum(count, len(_SMALL_LOG_FACTORIALS))
    inverse_square = 1 / large**2
    series = (1 / 12 - (1 / 360 - inverse_square / 1260) * inverse_square) / large
    stirling = (large + 0.5) * np.log(large) - large + 0.5 * math.log(2 * math.pi) + series
    small = _SMALL_LOG_FACTORIALS[np.minimum(count, len(_SMALL_LOG_FACTORIALS) - 1).astype(int)]
    return np.where(count < len(_SMALL_LOG_FACTORIALS), small, stirling)


def log_choose(total: ndarray | float, chosen: ndarray | float) -> Float[ndarray, "*shape"]:
    """Return the logarithm of a binomial coefficient of whole numbers.

    >>> log_choose(5, np.array([0.0, 2.0])).round(9).tolist()
    [0.0, 2.302585093]
    """
    whole, part = np.asarray(total, dtype=float), np.asarray(chosen, dtype=float)
    return np.asarray(log_factorial(whole) - log_factorial(part) - log_factorial(np.asarray(whole - part)))
