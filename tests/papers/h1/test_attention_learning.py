import math

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
