"""Flows of several heads: their derivatives, and where implicit steps of bounded error end."""

import math

import numpy as np
import pytest
import torch

from parityscope.papers.own.figures.three_heads import face_of
from parityscope.papers.own.flow import (
    HeadFlow,
    _derivatives,
    attention_of,
    follow,
    heads_flow,
    log_gradient,
    loss_of,
    mirror_flow,
)
from parityscope.problems import Parity
from parityscope.training.steps.log_attention import log_attention, log_value

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


HIDDEN = np.arange(8) < 3


def random_logits(heads=3, n=8, seed=0):
    return np.random.default_rng(seed).normal(size=(heads, n))


def test_log_c_and_its_gradient_are_the_librarys():
    c = 3 * attention_of(random_logits()).mean(0)
    at = log_attention(torch.from_numpy(c), torch.from_numpy(HIDDEN))
    assert loss_of(c, HIDDEN) == pytest.approx(-float(at.value), rel=1e-12)
    assert np.allclose(log_gradient(c, HIDDEN), at.gradient.numpy(), rtol=1e-12)


def test_gradient_and_hessian_are_autograds():
    def log_c(flat):
        return log_value(3 * torch.softmax(flat.reshape(3, 8), -1).mean(0), torch.from_numpy(HIDDEN))

    logits = random_logits()
    flat = torch.from_numpy(logits).reshape(-1).requires_grad_()
    gradient, hessian = _derivatives(logits, HIDDEN)
    (expected,) = torch.autograd.grad(log_c(flat), flat)
    assert np.allclose(gradient, expected.numpy(), atol=1e-12)
    assert np.allclose(hessian, torch.autograd.functional.hessian(log_c, flat.detach()).numpy(), atol=1e-11)


def test_a_finer_integration_gives_the_same_flow():
    times = np.array([0.1, 3.0, 10.0])
    rough, fine = (heads_flow(random_logits(), HIDDEN, times, tolerance) for tolerance in (1e-3, 2e-5))
    assert np.abs(attention_of(rough) - attention_of(fine)).max() < 2e-3
    assert not np.allclose(attention_of(rough)[0], attention_of(rough)[-1], atol=0.1)


@pytest.mark.parametrize(
    "start", ["two heads on one bit", "one head astray", "two heads astray", "one bit with company"]
)
def test_wrong_faces_are_stationary_inside_the_domain(start):
    """A head feels one and the same gradient wherever it looks, and C is positive and below 1."""
    face = face_of(start)
    c = 3 * face.mean(0)
    g = log_gradient(c, HIDDEN)
    assert np.allclose(face.sum(-1), 1)
    assert max(np.ptp(g[head > 0]) for head in face) < 1e-12
    assert 1 < loss_of(c, HIDDEN) < 4


def test_the_mirror_flow_is_its_reduced_equation():
    """From uniform attention all hidden weights are equal, and so are all others: one number u = log(c_b/c_j)."""
    n, k, until = 30, 3, 2.0
    u, steps = 0.0, 20_000
    for _ in range(steps):
        c = k / (k + (n - k) * math.exp(-u))
        other = c * math.exp(-u)
        u += until / steps * math.pi / 2 * (1 / math.tan(math.pi * c / 2) + math.tan(math.pi * other / 2))
    c = k / (k + (n - k) * math.exp(-u))
    weights = np.where(np.arange(n) < k, c, c * math.exp(-u))
    (loss,) = mirror_flow(np.zeros(n), np.arange(n) < k, np.array([until]))
    assert loss == pytest.approx(loss_of(weights, np.arange(n) < k), rel=2e-3)
