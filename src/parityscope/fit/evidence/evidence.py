"""How sure a found parity is: exact tails, the price of the search, and rows that repeat others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Int8
from numpy import ndarray

# Logarithms of p-values add up a few hundred terms: 1e-9 is a million times what rounding does to them.
_ROUNDING = 1e-9
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
    """Return the correlation of a sign with the labels."""
    agreement = float((chi * labels).sum(dtype=np.int64))
    return float(phi(agreement, float(chi.sum(dtype=np.int64)), float(labels.sum(dtype=np.int64)), len(labels)))


def exact_log_tail(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"]) -> float:
    """Return log P(as many rows with χ = y = 1 or more) when labels are dealt to the rows at random.

    Given how often each sign occurs, that count is hypergeometric (Fisher's exact test): no assumption on how the
    columns depend on each other, nor on how balanced the classes are.
    """
    rows, ups, drawn = len(chi), int((chi > 0).sum()), int((labels > 0).sum())
    both = int(((chi > 0) & (labels > 0)).sum())
    counts = np.arange(both, min(ups, drawn) + 1, dtype=float)
    terms = log_choose(ups, counts) + log_choose(rows - ups, drawn - counts) - log_choose(rows, float(drawn))
    largest = terms.max()
    return min(0.0, float(largest + np.log(np.exp(terms - largest).sum())))


def exact_log_p(chi: Int8[ndarray, " rows"], labels: Int8[ndarray, " rows"]) -> float:
    """Return the logarithm of the two-sided p-value: twice the smaller tail, at most 0."""
    return min(0.0, math.log(2) + min(exact_log_tail(chi, labels), exact_log_tail(-chi, labels)))


def log_family(choices: Sequence[int], k: int) -> float:
    """Return the logarithm of how many parities of k columns there are, a column having `choices` possible bits.

    This is the elementary symmetric polynomial e_k: for plain bits the binomial coefficient.
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
    """
    rows = np.arange(2.0, 64 + 4 * (price - math.log(alpha)))
    log_p = np.minimum(0.0, math.log(2) - log_choose(rows, np.floor(rows / 2)) + price)
    return int(rows[np.argmax(log_p <= math.log(alpha) + _ROUNDING)])


def log_factorial(count: Float[ndarray, "*shape"]) -> Float[ndarray, "*shape"]:
    """Return log m! of whole numbers: a table, then Stirling's series, whose next term is below rounding from 32 on."""
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


_COLUMNS = 1000  # that tell rows apart: of more, as many spread over the table
_OFTEN = 10.0  # times what independent columns would repeat by chance
_FEWEST = 0.01  # of the rows
_AGREE = 0.99  # copies of a row have its target


@dataclass(frozen=True)
class Repetition:
    """How many rows repeat another one, and which rows are the same."""

    rows: int
    repeated: int
    copies: Int[ndarray, " rows"]

    @property
    def sentence(self) -> str:
        """Say it."""
        return (
            f"{self.repeated} of {self.rows} rows repeat another row exactly, target included: equal rows count as one "
            "observation in every p-value (give groups to say which rows belong together)"
        )


def repetition(X: ndarray, y: ndarray) -> Repetition | None:
    """Return the repetition of a table whose rows repeat others more than chance allows; None for other tables.

    By chance two rows agree in independent columns with the product of the columns' own probabilities. Columns that
    depend on each other repeat more often; but then equal rows do not always have the same target, and copies do.
    """
    rows, columns = X.shape
    chosen = np.unique(np.linspace(0, columns - 1, min(columns, _COLUMNS)).astype(int))
    mark = np.zeros(rows)
    for column, factor in zip(chosen.tolist(), np.random.RandomState(0).randn(len(chosen)), strict=True):
        mark += factor * X[:, column]
    repeated = int((np.diff(np.sort(mark)) == 0).sum())
    if repeated < _FEWEST * rows:
        return None
    _, codes, counts = np.unique(mark, return_inverse=True, return_counts=True)
    same = np.unique(mark + 1j * y, return_counts=True)[1]
    pairs, agreeing = (float((some * (some - 1.0)).sum()) / 2 for some in (counts, same))
    if agreeing < _AGREE * pairs:
        return None
    chance = 1.0
    for column in chosen.tolist():
        shares = np.unique(X[:, column], return_counts=True)[1] / rows
        chance *= float((shares**2).sum())
    return Repetition(rows, repeated, codes) if pairs > _OFTEN * (1 + chance * rows * (rows - 1) / 2) else None
