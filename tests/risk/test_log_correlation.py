"""−log E[yŷ] by every engine that covers it, against plain enumeration."""

import math

import pytest
import torch

from additive_model import AdditiveModel
from own_parts import Silent, Steep
from parityscope import (
    Cosine,
    Parity,
    ParityTransformer,
    Triangle,
    ZigZag,
    estimated_risk,
    parity_ffnn,
    population_risk,
)

READOUTS = {
    "cosine": Cosine(),
    "sum of cosines": Steep(0.1),
    "own": Silent(),
    "triangle": Triangle(2),
    "zig-zag": ZigZag(2),
    "smoothed": ZigZag(2, 0.05),
}


def model_of(readout, n, sharp=0.5):
    weights = torch.full((n,), (1 - sharp) * 2 / n, dtype=torch.float64)
    weights += 0.01 * torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights[:2] += sharp
    return AdditiveModel(2 * weights / weights.sum(), readout)


def listed(model, problem):
    x, y = (torch.cat(parts) for parts in zip(*problem.enumerate(), strict=True))
    return -math.log((1 - 2 * problem.noise) * (y * model(x)).mean().item())


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("readout", READOUTS.values(), ids=list(READOUTS))
def test_it_is_minus_the_logarithm_of_the_correlation(readout, noise):
    model, problem = model_of(readout, 10), Parity(10, (0, 1), noise=noise)
    risk = population_risk(model, problem, loss="log-correlation")
    assert abs(risk.value.item() - listed(model, problem)) <= risk.error_bound.item() + 1e-13
    assert risk.error_bound.item() < 1e-12


@pytest.mark.parametrize(
    ("readout", "engine"),
    [("triangle", one) for one in ("split", "grouped", "pair")] + [("zig-zag", "split"), ("cosine", "closed-form")],
)
def test_engines_agree_within_their_bounds_and_on_the_gradient(readout, engine):
    model, problem = model_of(READOUTS[readout], 12), Parity(12, (0, 1))
    ours = population_risk(model, problem, loss="log-correlation", engine=engine)
    plain = population_risk(model, problem, loss="log-correlation", engine="enumerate")
    assert ours.engine == engine
    assert (ours.value - plain.value).abs() <= ours.error_bound + plain.error_bound
    if engine != "pair":  # whose gradient is that of its own approximation
        gradients = [torch.autograd.grad(risk.value, model.weights)[0] for risk in (ours, plain)]
        assert torch.allclose(*gradients, atol=1e-9)


def test_it_reaches_where_the_correlation_is_tiny():
    model = ParityTransformer(1000, 10, temperature=1e15, readout=Cosine())
    risk = population_risk(model, Parity(1000, tuple(range(10))), loss="log-correlation")
    expected = -10 * math.log(math.sin(math.pi / 200)) - 990 * math.log(math.cos(math.pi / 200))
    assert risk.value.item() == pytest.approx(expected, rel=1e-10)
    assert risk.error_bound.item() < 1e-9


def test_without_a_correlation_it_is_infinite():
    risk = population_risk(parity_ffnn(6, (0, 1)), Parity(6, (0, 2)), loss="log-correlation")
    assert risk.value.item() == math.inf
    assert not risk.error_bound.isnan()


def test_a_sample_estimates_it():
    model, problem = model_of(Cosine(), 10), Parity(10, (0, 1))
    exact = population_risk(model, problem, loss="log-correlation").value.item()
    drawn = estimated_risk(model, problem, 20_000, torch.Generator().manual_seed(0), loss="log-correlation")
    assert abs(drawn.value.item() - exact) < 2 * drawn.error_bound.item()
