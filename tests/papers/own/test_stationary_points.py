"""Where gradients through the softmax cancel: what docs/explanation/bounded-readout.md says beside its proofs."""

import math

import pytest
import torch
from torch.autograd.functional import hessian

UNIFORM = (2 / 3, 2 / 3, 2 / 3)
TRAP = (1 / 3, 1 / 3, 4 / 3)
INTEGERS = (1.0, 1.0, 0.0)
HALVES = (0.5, 0.5, 1.0)
HIDDEN = torch.tensor([True, True, False])


def weights(logits):
    return 2 * torch.softmax(logits, -1)


def extra_term(logits):
    return (math.pi * weights(logits)).cos().prod() / 2


def correlation(logits):
    half = math.pi / 2 * weights(logits)
    return torch.where(HIDDEN, half.sin(), half.cos()).prod()


def log_size(logits):
    return correlation(logits).abs().log()


def logits_of(c):
    return torch.tensor(c, dtype=torch.float64).clamp(min=1e-12).log()


def slope(function, c):
    logits = logits_of(c).requires_grad_()
    (gradient,) = torch.autograd.grad(function(logits), logits)
    return float(gradient.norm())


@pytest.mark.parametrize("c", [UNIFORM, TRAP, INTEGERS, HALVES])
def test_the_gradient_of_squared_hinges_extra_term_cancels_at_uniform_attention_and_elsewhere(c):
    assert slope(extra_term, c) < 1e-9


def test_it_does_not_cancel_everywhere():
    assert slope(extra_term, (0.9, 0.6, 0.5)) > 0.1


def curvatures(function, c):
    # Adding a constant to all logits changes nothing: one of the three is 0.
    return sorted(torch.linalg.eigvalsh(hessian(function, logits_of(c))).tolist())


def test_beyond_the_domain_a_pile_traps_the_logarithm_of_the_size_and_not_the_correlation_itself():
    assert float(correlation(logits_of(TRAP))) == pytest.approx(-1 / 8)
    assert slope(log_size, TRAP) < 1e-12
    assert slope(correlation, TRAP) < 1e-12
    steepest, second, constant = curvatures(log_size, TRAP)
    assert steepest <= second < -0.1  # a strict maximum of log|C|: ascent stays
    assert abs(constant) < 1e-9
    constant, least, _ = curvatures(correlation, TRAP)
    assert least > 0.01  # a strict minimum of C: ascent on C leaves it
    assert abs(constant) < 1e-9
