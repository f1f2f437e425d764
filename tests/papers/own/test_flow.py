"""Flows of several heads: their derivatives, and where implicit steps of bounded error end."""

import math

import pytest
import torch

from parityscope.papers.own.flow import HeadFlow, follow
from parityscope.problems import Parity

FLOW = HeadFlow(Parity(4, (0, 2)), masses=(0.5, 1.5))


def test_the_rate_is_the_gradient_of_the_height_and_the_matrix_its_derivative():
    logits = torch.randn(2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one = logits.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(FLOW.height(one).sum(), one)
    assert torch.allclose(FLOW.rate(logits), gradient)
    hessian = torch.autograd.functional.hessian(lambda z: FLOW.height(z[None]).sum(), logits[0])
    assert torch.allclose(FLOW.matrix(logits)[0], hessian, atol=1e-9)


def test_one_head_has_the_tail_that_is_known():
    problem = Parity(4, (0, 1))
    flow = HeadFlow(problem)
    end = follow(flow, torch.zeros(1, 4, dtype=torch.float64), 1e4, tolerance=2e-3)
    gap = -math.expm1(float(flow.height(end.z)))
    assert gap * 1e4 == pytest.approx(problem.k * (1 - problem.k / problem.n) / 4, rel=0.02)
    assert end.fall < 0


def test_every_run_keeps_its_own_clock():
    logits = torch.tensor([[0.0] * 8, [5.0, 0, 0, 0, 5.0, 0, 0, 0]], dtype=torch.float64)
    together = FLOW.weights(follow(FLOW, logits, 1e3).z)
    alone = torch.cat([FLOW.weights(follow(FLOW, one[None], 1e3).z) for one in logits])
    assert torch.allclose(together, alone, atol=1e-9)
