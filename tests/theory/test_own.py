import itertools
import math

import pytest
import torch

from parityscope import InvalidInput, Parity, is_face
from parityscope.models.positions import harmonics
from parityscope.theory import (
    ascent_bound,
    harmonic_margins,
    one_gradient_samples,
    phase_signal,
    phase_variance,
    wide_phase,
)


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


@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 2), (7, 2), (12, 2), (9, 3), (12, 3)])
def test_the_worst_margin_of_harmonics_is_within_its_bounds_and_that_of_every_second_position(n, k):
    code = harmonics(n, k)
    margins = {rest: is_face(code, (0, *rest)).margin for rest in itertools.combinations(range(1, n), k - 1)}
    low, high = harmonic_margins(n, k)
    assert low <= min(margins.values()) <= high
    assert min(margins.values()) == pytest.approx(margins[tuple(range(2, 2 * k, 2))], rel=1e-6)


def test_both_bounds_fall_like_n_to_the_minus_2k():
    for k in (1, 2, 5):
        ratios = [harmonic_margins(1000, k)[side] / harmonic_margins(2000, k)[side] for side in (0, 1)]
        assert ratios == pytest.approx([4**k] * 2, rel=1e-3)
    with pytest.raises(InvalidInput, match="n > 2k only, got n = 4, k = 2"):
        harmonic_margins(4, 2)


@pytest.mark.parametrize(("n", "k", "total"), [(12, 3, 4.0), (100, 5, 50.0), (1000, 1, 1e4)])
def test_the_bound_of_gradient_ascent_is_that_of_its_comparison_point(n, k, total):
    """With one number per position q* = 1_B has level 1, length √k and margin 1, and concavity bounds −log C by
    −log C(v) + |v − v(0)|²/(2T) for v = (λq*, −λ), λ = log(nT)/2."""
    size = math.log(n * total) / 2
    loss = -(n - k) * math.log(math.cos(math.pi / 2 * math.exp(-size)))
    moved = k * size**2 + (size - math.log(n / k)) ** 2
    bound = ascent_bound(n, total, math.sqrt(k), 1.0)
    assert loss + moved / (2 * total) <= bound <= 3 * (loss + moved / (2 * total)) + 1.4 / total


def test_gradient_ascent_has_no_bound_early_or_without_a_margin():
    assert ascent_bound(12, 3.9, 1.0, 0.5) == ascent_bound(12, 9.0, 1.0, 1.5) == ascent_bound(12, 9, 1.0, 0) == math.inf
