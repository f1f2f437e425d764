import math

import pytest
import torch

from parityscope import InvalidInput, Parity
from parityscope.theory import one_gradient_samples, phase_signal, phase_variance, wide_phase


def all_inputs(n, k):
    ((x, y),) = list(Parity(n, tuple(range(k))).enumerate())
    signs = 1 - 2 * x.double()
    return signs, y, signs.sum(-1)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (8, 3), (9, 4)])
def test_signal_and_variance_are_those_over_all_inputs(n, k):
    signs, y, total = all_inputs(n, k)
    width = wide_phase(n, k)
    weight = (math.pi * k / 2 - math.pi * width / (2 * n) * total).sin()
    gradient = (y * weight) @ signs / 2**n
    assert torch.allclose(gradient[:k], torch.full((k,), phase_signal(n, k, width), dtype=torch.float64), atol=1e-12)
    assert weight.square().mean().item() == pytest.approx(phase_variance(n, k, width), abs=1e-12)
    others = [phase_signal(n, k, other) for other in (0.9 * width, 1.1 * width)]
    assert phase_signal(n, k, width) > max(others)


def test_short_codes_are_never_enough():
    assert one_gradient_samples(1000, 2, r=10) == math.inf
    with pytest.raises(InvalidInput, match="r must be at least 1"):
        one_gradient_samples(10, 2, r=0)
