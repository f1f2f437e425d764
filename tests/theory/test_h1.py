import math
from math import comb

import pytest

from parityscope import InvalidInput, theory


def test_lemma_7_combines_lemmas_14_to_16():
    k, tau, b = 3, 1 / 12, 0.01
    inner = 20 / tau**2 + 32 * k**2 / (tau**2 * math.sqrt(b))
    B = 2 * k * inner
    l1 = 8 * k**2 / tau * math.sqrt(2 * k)
    l2 = math.sqrt(2 * k) * (4 * k**3 * inner + (8 * k**2 / tau) ** 2)
    assert theory.theorem_5_learning_rate(k, tau, b) == pytest.approx(1 / max(2 * l1 * l1, 2 * (l2 + B)))


def test_constants_refuse_a_relu_head():
    with pytest.raises(InvalidInput, match="b > 0"):
        theory.smoothness_of_prediction(3, 0.1, 0.0)


def test_theorem_11_is_empty_below_n_32_at_three_heads():
    assert theory.fixed_attention_bound(30, 3, 0.0, 0.0) == 0.0
    assert theory.fixed_attention_bound(62, 3, 0.0, 0.0) > 0.0


def test_theorem_11_says_nothing_once_the_norms_are_large():
    assert theory.fixed_attention_bound(1000, 3, 100.0, 100.0) == 0.0


@pytest.mark.parametrize(("n", "m"), [(7, 1), (20, 2), (62, 3), (200, 5)])
def test_the_printed_share_claims_more_than_its_proof_and_the_exact_count_least_loss(n, m):
    printed, proved = theory.fixed_attention_share(n, m), theory.fixed_attention_share_of_proof(n, m)
    counted = theory.counted_fixed_attention_share(n, m)
    assert proved <= printed
    assert proved <= counted
    # The count itself, once more: fewer than n/5m successes among the first positions of one head, times m.
    seen = -(-(n - 1) // m) - 1
    few = sum(comb(seen, i) for i in range(seen + 1) if 5 * m * i < n)
    assert counted == pytest.approx(1 - m * few / 2**seen)


def test_the_counting_bound_outlives_corollary_20_with_many_heads():
    n, m = 100, 20
    assert theory.fixed_hard_attention_bound(n, m) < 0 < theory.hard_attention_counting_bound(n, m)
    assert theory.hard_attention_counting_bound(4, 4) == 0.0


def test_theorem_11_as_printed_is_what_is_meant_until_the_norms_are_large():
    printed, meant = theory.fixed_attention_bound_as_printed, theory.fixed_attention_bound
    assert printed(62, 3, 1.0, 0.5) == meant(62, 3, 1.0, 0.5) > 0
    assert printed(62, 3, 10.0, 10.0) > 1 > meant(62, 3, 10.0, 10.0) == 0


def test_no_heads_are_refused():
    with pytest.raises(InvalidInput, match="n and m must be at least 1, got n = 5, m = 0"):
        theory.fixed_hard_attention_bound(5, 0)
