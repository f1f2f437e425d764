import math

import pytest

from parityscope.theory.w import lemma_19_bound, lemma_30_bound, lemma_31_bound


def test_bounds_in_plain_numbers():
    assert lemma_30_bound(0.1, 100, 2.0) == pytest.approx(math.sqrt(2 * math.log(20) / 100 * 2))
    assert lemma_31_bound(0.1, 10, 50) == pytest.approx(math.sqrt(2 * math.log(40_000) / 50))
    expected = 10 * 3 / (5 * 10) * math.sqrt(20) / math.sqrt(5000) * math.log(300 * 5 * 10 * 100 / 0.1)
    assert lemma_19_bound(10, 2, 50, 5, 100, 3.0, 0.1) == pytest.approx(expected)
