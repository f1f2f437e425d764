import itertools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from parityscope import InvalidInput, Parity, is_face
from parityscope.models.positions import harmonics
from parityscope.theory import (
    ascent_bound,
    harmonic_margins,
    heads_rate,
    one_gradient_samples,
    one_step_height,
    one_step_samples,
    path_failure,
    path_phase,
    path_samples,
    path_signal,
    path_squares,
    phase_signal,
    phase_variance,
    wide_phase,
    xored_samples,
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


def flow_over_harmonics(n, k, reach):
    """Follow gradient flow on log C from uniform attention until −log C is `reach`; B is every second position.

    Returns the times, |q| at each, and −log C at the start.
    """
    codes = np.hstack([harmonics(n, k).numpy(), np.ones((n, 1))])
    hidden = np.isin(np.arange(n), np.arange(0, 2 * k, 2))

    def loss(z):
        v = np.pi / 2 * np.exp(codes @ z)
        return -np.log(np.where(hidden, np.sin(v), np.cos(v))).sum()

    def gradient(_, z):
        v = np.pi / 2 * np.exp(codes @ z)
        return codes.T @ np.where(hidden, v / np.tan(v), -v * np.tan(v))

    def reached(_, z):
        return loss(z) - reach

    reached.terminal = True
    start = np.append(np.zeros(2 * k), -math.log(n / k))
    path = solve_ivp(gradient, (0, 1e9), start, method="BDF", rtol=1e-7, atol=1e-7, events=reached)
    assert path.status == 1, "the flow has not arrived"
    return path.t, np.linalg.norm(path.y[:-1], axis=0), loss(start)


@pytest.mark.parametrize(("n", "k"), [(6, 2), (10, 2), (10, 3)])
def test_first_order_ascent_on_harmonics_takes_as_long_as_its_parameters_are_far(n, k):
    # The corollary of the theory text: |q| ≥ Ω where −log C ≤ ε, and the flow needs t ≥ |q|²/V(0).
    reach = 0.004
    times, lengths, first = flow_over_harmonics(n, k, reach)
    away = math.sqrt(8 * reach) / math.pi
    least = math.log((1 - away) / away) * (n / (math.pi * k)) ** (2 * k) / 2.02
    assert lengths[-1] >= least
    assert (lengths**2 <= times * first * (1 + 1e-6)).all()
    assert times[-1] >= least**2 / first
    assert first <= k * math.log(n / k) + k
    assert lengths[-1] < 100 * least  # a bound that is a hundred times as large would be false


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


@pytest.mark.parametrize(("n", "k", "m"), [(7, 3, 1), (8, 4, 1), (8, 4, 2), (6, 5, 1), (7, 2, 1), (5, 4, 0)])
def test_signals_and_squares_of_a_path_are_those_over_all_inputs(n, k, m):
    signs, y, _ = all_inputs(n, k)
    rest = signs[:, m:].sum(-1)
    terms = y * signs[:, :m].prod(-1) * (math.pi * (k - m) / 2 - path_phase(n, k, m) * rest).sin()
    true = terms[:, None] * signs[:, m:k]
    assert true.mean(0).tolist() == pytest.approx([path_signal(n, k, m)] * (k - m), abs=1e-12)
    square, of_mean = path_squares(n, k, m)
    assert true.square().mean().item() == pytest.approx(square, abs=1e-12)
    assert true.mean(-1).square().mean().item() == pytest.approx(of_mean, abs=1e-12)


@pytest.mark.parametrize(("n", "k", "noise"), [(50, 3, 0.0), (20, 4, 0.2), (30, 1, 0.1), (100, 2, 0.0)])
def test_the_paths_need_no_more_than_by_hoeffding_s_inequality_alone(n, k, noise):
    """With one threshold halfway and terms in [−1, 1], N = 8·log(kn·C(n, m)/δ)/((1 − 2η)σ_m)² is enough."""
    samples = path_samples(n, k, 0.1, noise)
    assert path_failure(n, k, samples, noise) <= 0.1 < path_failure(n, k, 0.98 * samples - 1, noise)
    sizes = range(min(1, k - 1), k)
    simple = [8 * math.log(k * n * math.comb(n, m) / 0.1) / path_signal(n, k, m) ** 2 for m in sizes]
    assert samples < max(simple) / (1 - 2 * noise) ** 2


def test_one_step_needs_entries_that_are_nearly_equal():
    """2·log(2n/δ)/(rS)² examples put 2n of Hoeffding's tails below δ, for r = 1/(2kH)."""
    n, k, noise = 30, 3, 0.1
    reach = (1 - 2 * noise) * path_signal(n, k, 0) / (2 * k * one_step_height(n, k))
    assert 2 * n * math.exp(-one_step_samples(n, k, 0.05, noise) * reach**2 / 2) == pytest.approx(0.05)


def test_groups_are_as_large_as_the_bias_asks_for():
    (groups, size), left = xored_samples(15, 3, 0.2, noise=0.1), 0.6
    weakest = min(path_signal(15, 3, m) for m in (1, 2))
    assert 15 * left**size <= weakest / 4 < 15 * left ** (size - 1)
    assert groups == pytest.approx(xored_samples(15, 3, 0.5)[0] / 0.8 ** (2 * size), rel=1e-3)


@pytest.mark.parametrize(("n", "k", "heads"), [(12, 3, 4), (7, 5, 3), (9, 4, 1)])
def test_the_rate_of_heads_is_the_worst_sum_over_supports(n, k, heads):
    """W → Σ_h σ_h(1 − σ_h/n) over supports of σ_h positions that together cover B."""
    sums = [
        sum(size * (1 - size / n) for size in sizes)
        for sizes in itertools.product(range(1, k + 1), repeat=heads)
        if sum(sizes) >= k
    ]
    assert heads_rate(n, k, heads) == pytest.approx(max(sums) / 4)
