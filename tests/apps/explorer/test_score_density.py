"""The density of S against all inputs, one by one."""

import math

import pytest
import torch

from parityscope.apps.explorer.score_density import exact_score_density
from parityscope.models import AdditiveScore, Cosine
from parityscope.problems import Parity
from parityscope.risk import law_of


@pytest.mark.parametrize(("bias", "offset"), [(0.5, 0.0), (0.3, -0.4)])
def test_agrees_with_every_input_through_the_kernel(bias, offset):
    problem = Parity(9, (0, 4, 7), bias=bias)
    weights = torch.rand(9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    at, width = torch.linspace(-1, 6, 60, dtype=torch.float64), 0.05
    score = AdditiveScore(weights, torch.tensor(offset, dtype=torch.float64), Cosine())
    density = exact_score_density(score, law_of(problem), at, width)
    x, y = next(problem.enumerate())
    probability = (bias ** x.sum(1)) * ((1 - bias) ** (9 - x.sum(1)))
    s = x.double() @ weights + offset
    kernel = torch.exp(-(((at[:, None] - s) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
    torch.testing.assert_close(density.plus, kernel @ (probability * (y > 0)).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(density.minus, kernel @ (probability * (y < 0)).double(), atol=1e-6, rtol=0)


def test_a_learned_model_has_labels_apart_and_mass_one():
    n = 1000
    weights = torch.zeros(2, n, dtype=torch.float64)
    weights[0, [3, 500, 900]] = 1.0
    weights[1] = 3 / n
    law = law_of(Parity(n, (3, 500, 900)))
    at = torch.linspace(-1, 4, 1001, dtype=torch.float64)
    density = exact_score_density(AdditiveScore(weights, torch.zeros(()), Cosine()), law, at)
    mass = (density.plus + density.minus).sum(-1) * 5 / 1000
    torch.testing.assert_close(mass, torch.ones(2, dtype=torch.float64), atol=1e-6, rtol=0)
    even = at.round().remainder(2) == 0
    assert float(density.minus[0, even].max()) < 1e-6 < float(density.plus[0, even].max())
    # Uniform attention knows almost nothing: labels overlap.
    torch.testing.assert_close(density.plus[1], density.minus[1], atol=1e-3, rtol=0)
