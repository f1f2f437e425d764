"""Value and gradient of a thousand random cases of up to forty bits, within their proved bounds of what split finds.

The spectral engine and the lattice share no code with the sorted sums of `split`, whose own bounds are some 1e-12 wide.
"""

import random

import pytest
import torch

from additive_model import AdditiveModel
from harness.engines import KINDS, weights_of
from parityscope import Parity, Triangle, ZigZag, population_risk
from parityscope.models.readouts import PiecewiseLinear, Readout
from parityscope.risk.engines.spectral import engine as spectral

BLOCKS, CASES = 20, 50  # a thousand in all
LOSSES = ("hinge", "squared-hinge", "squared-mean-hinge", "squared")
SPREADS = (0.1, 0.5, 1.0, 2.0, 3.0)  # of log-normal attention


class Bends(Readout):
    """Piecewise linear with one to four random knots, some of which lie where scores do."""

    def __init__(self, draw, reach):
        super().__init__()
        knots = sorted(
            {draw.choice([draw.uniform(-0.2, 1.2) * reach, draw.randint(0, 4) * reach / 4]) for _ in range(4)}
        )
        values = [draw.uniform(-2, 2) for _ in knots]
        self.linear = PiecewiseLinear(tuple(knots), tuple(values), draw.uniform(-3, 3), draw.uniform(-3, 3))

    def forward(self, S):
        out = torch.empty_like(S)
        for low, high, anchor, value, slope in self.linear.segments():
            inside = (low <= S) & (high > S)
            out[inside] = value + slope * (S[inside] - anchor)
        return out

    def piecewise_linear(self):
        return self.linear


def random_case(seed):
    """Return a model, a problem, a loss and the tolerances of value and gradient."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    n = draw.randint(2, 40)
    k = draw.randint(1, min(n, 5))
    problem = Parity.random(n, k, generator, noise=draw.choice([0.0, 0.0, 0.2]))
    kind = draw.choice([*KINDS, "log-normal", "log-normal", "dust"])
    if kind == "log-normal":
        weights = k * torch.softmax(draw.choice(SPREADS) * torch.randn(n, dtype=torch.float64, generator=generator), 0)
    elif kind == "dust":  # the hidden positions and what is left on the way to them
        weights = problem.mask().double() + draw.choice([1e-12, 1e-6, 0.1]) * torch.rand(
            n, dtype=torch.float64, generator=generator
        )
    else:
        weights = weights_of(kind, n, k, problem.mask(), generator)
    reach = float(weights.abs().sum()) or 1.0
    readout = draw.choice([lambda: ZigZag(k), lambda: Triangle(k), lambda: Bends(draw, reach)])()
    model = AdditiveModel(weights, readout, draw.choice([0.0, 0.0, 0.37, -0.5]))
    return model, problem, draw.choice(LOSSES), 10.0 ** -draw.randint(1, 6), draw.choice([None, 1e-1, 1e-2, 1e-3])


def known(model, problem, loss, engine, tolerance, gradient_tolerance):
    """Return a risk and its gradient by the weights and the offset."""
    risk = population_risk(
        model, problem, loss=loss, engine=engine, tolerance=tolerance, gradient_tolerance=gradient_tolerance
    )
    return risk, torch.cat([one.flatten() for one in torch.autograd.grad(risk.value, [model.weights, model.offset])])


def shares(seed, engine):
    """Return the errors of value and gradient as shares of their bounds; None where a gradient has no bound."""
    model, problem, loss, *tolerances = random_case(seed)
    found, gradient = known(model, problem, loss, engine, *tolerances)
    truth, exact = known(model, problem, loss, "split", 1e-9, None)
    assert found.bound_is == truth.bound_is == "proved"
    of_value = _share((found.value - truth.value).detach(), found.error_bound + truth.error_bound)
    if found.gradient_bound is None or truth.gradient_bound is None:
        return of_value, None
    return of_value, _share(gradient - exact, found.gradient_bound + truth.gradient_bound)


def _share(error, bound):
    """Return the largest error as a share of its bound; where neither is anything, 0."""
    return float(error.abs().max() / bound) if float(error.abs().max()) or float(bound) else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["spectral", "lattice"])
@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_error_is_beyond_its_bound(engine, block, monkeypatch):
    # Small budgets: a bound holds wherever the work ends.
    monkeypatch.setattr(spectral, "_BUDGET", 10**6)
    monkeypatch.setattr(spectral, "_MOST_SCANNED", 10**7)
    for seed in range(block * CASES, (block + 1) * CASES):
        of_value, of_gradient = shares(seed, engine)
        assert of_value <= 1, f"case {seed}: the value is off by {of_value:.3g} of its bound"
        assert of_gradient is None or of_gradient <= 1, f"case {seed}: the gradient is off by {of_gradient:.3g}"
