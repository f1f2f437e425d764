import math

import pytest
import torch

from parityscope import Cosine, InvalidInput, Parity, ParityTransformer, draw_problems, learn, population_risk
from parityscope.models.positions import random_signs
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_attention, log_value


def generator(seed):
    return torch.Generator().manual_seed(seed)


def weights(hidden, seed, runs=1):
    """Return random points of the domain: up to 2 on hidden bits, up to 1 elsewhere."""
    edge = 1 + hidden.double()
    return edge * (0.01 + 0.98 * torch.rand(runs, len(hidden), generator=generator(seed), dtype=torch.float64))


@pytest.mark.parametrize("seed", range(20))
def test_the_shifted_readout_correlates_by_the_product_whatever_the_mass(seed):
    draw = generator(seed)
    n = int(torch.randint(3, 9, (), generator=draw))
    (problem,) = draw_problems(n, int(torch.randint(1, n, (), generator=draw)), [seed])
    q, scale = (torch.randn(size, generator=draw, dtype=torch.float64) for size in ((1, 1, 4), (1,)))
    code = torch.randn(n, 4, generator=draw, dtype=torch.float64)
    model = ParityTransformer(
        n, problem.k, 1, 1.0, positions=code, directions=0.3 * q, log_scale=0.3 * scale - 1.7, readout=Cosine()
    )
    c = model.score_weights().detach()
    enumerated = population_risk(model, [problem], loss="hinge", engine="enumerate").value
    closed = population_risk(model, [problem], loss="hinge", engine="closed-form").value
    assert closed.item() == pytest.approx(enumerated.item(), abs=1e-12)
    assert enumerated.item() == pytest.approx(1 - log_value(c, problem.mask()).exp().item(), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_are_those_of_autograd_and_of_differences(seed):
    hidden = torch.tensor([True, True, False, False, False])
    c = weights(hidden, seed)[0]
    at = log_attention(c, hidden)
    u = c.log().requires_grad_()

    def of_log(values):
        return log_value(values.exp(), hidden)

    (slope,) = torch.autograd.grad(of_log(u), u)
    second = torch.autograd.functional.hessian(of_log, u.detach())
    assert torch.allclose(c * at.gradient, slope, rtol=1e-9)
    assert torch.allclose(at.curvature, -second.diagonal(), rtol=1e-7, atol=1e-12)
    small = 1e-5
    for j in range(5):
        step = small * torch.eye(5, dtype=torch.float64)[j]
        difference = (of_log(u + step) - of_log(u - step)) / (2 * small)
        assert difference.item() == pytest.approx(slope[j].item(), rel=1e-5, abs=1e-8)


def test_the_curvature_of_small_weights_does_not_cancel():
    hidden, tiny = torch.tensor([True, False]), torch.tensor([1e-9, 1e-9], dtype=torch.float64)
    v = math.pi / 2 * 1e-9
    expected = torch.tensor([2 / 3 * v**2, 2 * v**2], dtype=torch.float64)
    assert torch.allclose(log_attention(tiny, hidden).curvature, expected, rtol=1e-9, atol=0)


def midpoint_excess(function, one, other):
    """Return by how much a function falls below its chord at the middle: positive where it is not concave."""
    middle = function((one + other) / 2)
    ends = (function(one) + function(other)) / 2
    return torch.where(torch.isfinite(ends), ends - middle, -torch.inf)


def test_log_c_is_concave_in_q_and_the_logarithm_of_the_scale_but_not_in_the_mass():
    """With c = exp(Pq + β) it is concave in (q, β); the same model is not in (q, log Λ), Λ = Σc."""
    hidden = torch.tensor([True, True] + [False] * 6)
    code = random_signs(8, 5, generator(0))

    def by_scale(z):
        return log_value((z[:, :5] @ code.T + z[:, 5:]).exp(), hidden)

    def by_mass(z):
        return log_value(z[:, 5:].exp() * torch.softmax(z[:, :5] @ code.T, -1), hidden)

    one, other = (torch.randn(4000, 6, generator=generator(seed), dtype=torch.float64) for seed in (1, 2))
    assert midpoint_excess(by_scale, 2 * one, 2 * other).max() < 1e-12
    assert torch.isfinite(by_scale(2 * one)).sum() > 300
    assert midpoint_excess(by_mass, 4 * one, 4 * other).max() > 0.1  # the planted violation is seen


def test_beyond_the_edge_there_is_nothing():
    hidden = torch.tensor([True, False])
    outside = torch.tensor([[2.0, 0.1], [1.0, 1.0], [0.0, 0.1], [2.5, 1.5]], dtype=torch.float64)
    assert log_value(outside, hidden).tolist() == [-math.inf] * 4


@pytest.mark.parametrize("recipe", ["concave", "mirror"])
def test_biased_bits_are_refused(recipe):
    with pytest.raises(InvalidInput, match=r"steps need fair bits, got bias = 0\.3"):
        learn(Parity(8, (1, 2), bias=0.3), recipe)


def test_biased_bits_are_not_concave():
    """log|E[y e^{iπS}]| of one hidden bit lies below its chord in log c, by enumeration of x = 0 and x = 1."""

    def value(log_c, p):
        wave = torch.polar(torch.ones_like(log_c), math.pi * log_c.exp())
        return (1 - p - p * wave).abs().log()

    one, other = (torch.tensor([weight], dtype=torch.float64).log() for weight in (0.01, 0.1))
    for p in (0.3, 0.49):
        assert (value(one, p) + value(other, p)) / 2 > value((one + other) / 2, p) + 1e-3
    assert (value(one, 0.5) + value(other, 0.5)) / 2 < value((one + other) / 2, 0.5)


def test_the_law_of_one_problem_is_enough():
    assert log_value(torch.tensor([[1.0, 0.0]] * 3), law_of(Parity(2, (0,))).mask).tolist() == [0.0] * 3
