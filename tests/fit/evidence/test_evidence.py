"""Exact tails against brute force over all relabellings, and the price of a search against counting."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import fisher_exact

from parityscope.fit.evidence.evidence import (
    correlation,
    exact_log_p,
    exact_log_tail,
    log_factorial,
    log_family,
    reaches,
    rows_needed,
)


def signs(*values):
    return np.array(values, dtype=np.int8)


def test_tail_is_the_share_of_all_relabellings_at_least_as_extreme():
    chi, labels = signs(1, 1, 1, -1, -1, 1, -1, -1), signs(1, 1, -1, -1, 1, 1, -1, -1)
    seen = ((chi > 0) & (labels > 0)).sum()
    relabellings = list(itertools.combinations(range(8), 4))
    extreme = sum(sum(chi[i] > 0 for i in ups) >= seen for ups in relabellings)
    assert math.exp(exact_log_tail(chi, labels)) == pytest.approx(extreme / len(relabellings), rel=1e-12)


def test_tail_agrees_with_scipy_for_unbalanced_classes():
    random = np.random.RandomState(0)
    chi = np.where(random.rand(300) < 0.2, 1, -1).astype(np.int8)
    labels = np.where(random.rand(300) < 0.7, chi, np.where(random.rand(300) < 0.4, 1, -1)).astype(np.int8)
    table = [[((chi == a) & (labels == b)).sum() for b in (1, -1)] for a in (1, -1)]
    assert math.exp(exact_log_tail(chi, labels)) == pytest.approx(fisher_exact(table, "greater").pvalue, rel=1e-9)


def test_log_factorials_are_scipys():
    counts = np.concatenate([np.arange(200.0), np.geomspace(200, 1e9, 50).round()])
    assert log_factorial(counts) == pytest.approx(gammaln(counts + 1), rel=1e-14, abs=1e-14)


def test_correlation_is_numpys():
    random = np.random.RandomState(1)
    chi, labels = (np.where(random.rand(200) < p, 1, -1).astype(np.int8) for p in (0.3, 0.6))
    assert correlation(chi, labels) == pytest.approx(np.corrcoef(chi, labels)[0, 1], rel=1e-12)
    assert correlation(np.ones(200, dtype=np.int8), labels) == 0.0


def test_the_family_is_counted_right():
    choices = [1, 3, 0, 2, 7]
    counted = sum(math.prod(choices[i] for i in some) for some in itertools.combinations(range(5), 3))
    assert math.exp(log_family(choices, 3)) == pytest.approx(counted)


def test_rows_needed_is_where_perfect_agreement_becomes_significant():
    choices, k, alpha = [1] * 50, 3, 0.01
    needed = rows_needed(log_family(choices, k) + math.log(k * (k + 1)), alpha)
    for rows, significant in ((needed, True), (needed - 1, False)):
        chi = np.where(np.arange(rows) < rows // 2, 1, -1).astype(np.int8)
        log_p = exact_log_p(chi, chi) + log_family(choices, k) + math.log(k * (k + 1))
        assert (log_p <= math.log(alpha)) == significant


def test_a_p_value_that_equals_the_level_reaches_it():
    """1/C(6, 3) is 5 % and 2/C(6, 3) is 10 %: nobody's logarithm may decide that."""
    chi = signs(1, 1, 1, -1, -1, -1)
    for order in itertools.permutations(range(6)):
        assert reaches(exact_log_tail(chi[list(order)], chi[list(order)]), 0.05)
    assert rows_needed(0.0, 0.1) == 6
    for roundings in range(-50, 51):
        assert reaches(math.log(0.01) + roundings * 2.0**-52, 0.01)
    assert not reaches(math.log(0.01) + 1e-6, 0.01)
