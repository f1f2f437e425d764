import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from parityscope import InvalidInput, Parity, population_risk
from parityscope.models import AdditiveScore, Triangle, positions, xor_transformer
from parityscope.risk import law_of
from parityscope.risk.engines.pair import pair_mean
from parityscope.theory.h2 import majority_gradient


def by_pair(c, problem):
    """The engine's risk, gradient and bound."""
    weights = c.clone().requires_grad_()
    mean = pair_mean(AdditiveScore(weights, torch.zeros(()), Triangle(2)), law_of(problem))
    (gradient,) = torch.autograd.grad(mean.value.sum(), weights)
    return mean.value.item(), gradient, mean.error_bound.item()


def by_all_inputs(c, problem):
    """Mean of 1 − y(|v| − 1) and its gradient over every input; where v = 0, |v| counts with slope 0.

    Floats are fractions with a power of two below, so v is counted in whole multiples of 1/whole. Whether it vanishes
    is then a fact; a sum of floats would say it by how the processor happens to round.
    """
    fractions = [Fraction(weight) for weight in c.tolist()]
    whole = math.lcm(*(fraction.denominator for fraction in fractions))
    ((x, y),) = list(problem.enumerate())
    signs, y = (1 - 2 * x.long()).numpy().astype(object), y.long().numpy().astype(object)
    v = signs @ np.array([int(fraction * whole) for fraction in fractions], dtype=object)
    risk = 1 - (Fraction(int((y * abs(v)).sum()), whole) - int(y.sum())) / len(y)
    gradient = -((y * ((v > 0).astype(int) - (v < 0).astype(int))) @ signs)
    return float(risk), torch.tensor([float(Fraction(int(g), len(y))) for g in gradient], dtype=torch.float64)


@pytest.mark.parametrize("n", range(2, 14))
def test_the_majority_gradient_is_the_mean_over_all_inputs(n):
    ((x, y),) = list(Parity(n, (0, 1)).enumerate())
    signs = 1 - 2 * x.double()
    exact = (y * signs.sum(-1).sign()) @ signs / 2**n
    gradient = majority_gradient(n)
    expected = torch.tensor([gradient.hidden] * 2 + [gradient.other] * (n - 2), dtype=torch.float64)
    assert torch.allclose(exact, expected, atol=1e-14)


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_equal_weights_are_exact(n):
    problem = Parity(n, (0, n - 1))
    c = torch.full((n,), 2 / n, dtype=torch.float64)
    ours, theirs = by_pair(c, problem), by_all_inputs(c, problem)
    assert ours[0] == pytest.approx(theirs[0], abs=1e-13)
    assert torch.allclose(ours[1], theirs[1], atol=1e-13)


def test_spread_out_attention_is_within_the_bound_and_its_gradient_close():
    problem = Parity(14, (3, 8))
    for seed in range(5):
        scores = 0.5 * torch.randn(14, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        c = 2 * torch.softmax(scores, -1)
        ours, theirs = by_pair(c, problem), by_all_inputs(c, problem)
        assert abs(ours[0] - theirs[0]) <= ours[2]
        assert abs(ours[0] - theirs[0]) < 1e-4
        assert torch.allclose(ours[1], theirs[1], atol=2e-2)


def test_spread_out_attention_agrees_with_the_spectral_engine():
    g = torch.Generator().manual_seed(0)
    model = xor_transformer(
        0.4 * torch.randn(2, 40, generator=g, dtype=torch.float64), positions.random_signs(600, 40, g)
    )
    problem = Parity(600, (5, 77))
    risks = [population_risk(model, problem, loss="hinge", engine=engine) for engine in ("pair", "spectral")]
    gradients = [torch.autograd.grad(risk.value, model._directions)[0] for risk in risks]
    assert risks[0].value.item() == pytest.approx(risks[1].value.item(), abs=1e-9)
    assert (gradients[0] - gradients[1]).norm() < 1e-5 * gradients[1].norm()


def test_a_pair_that_outweighs_the_rest_is_within_the_bound():
    problem = Parity(12, (3, 8))
    for seed in range(20):
        g = torch.Generator().manual_seed(seed)
        rest = torch.rand(12, generator=g, dtype=torch.float64)
        pair = torch.rand((), generator=g, dtype=torch.float64)
        rest[[3, 8]] = 0
        rest *= torch.rand((), generator=g) / rest.sum()
        left = 2 - rest.sum()
        rest[3], rest[8] = pair * left, (1 - pair) * left
        ours, theirs = by_pair(rest, problem), by_all_inputs(rest, problem)
        assert abs(ours[0] - theirs[0]) <= ours[2] + 1e-12


def test_noise_and_runs():
    c = torch.tensor([[0.9, 0.2, 0.9], [2 / 3, 2 / 3, 2 / 3]], dtype=torch.float64)
    law = law_of([Parity(3, (0, 2), noise=0.1), Parity(3, (0, 1), noise=0.1)])
    mean = pair_mean(AdditiveScore(c, torch.zeros(()), Triangle(2)), law)
    for row, support in enumerate(((0, 2), (0, 1))):
        clean = by_all_inputs(c[row], Parity(3, support))[0]
        assert abs(mean.value[row] - (1 - 0.8 * (1 - clean))) <= mean.error_bound[row] + 1e-12


def test_large_n_is_majority_like():
    assert majority_gradient(10**6).hidden == pytest.approx(math.sqrt(2 / (math.pi * 10**6)), rel=1e-5)
    with pytest.raises(InvalidInput, match="at least 2 bits"):
        majority_gradient(1)
