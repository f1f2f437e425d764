import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope import Parity, ParityTransformer, population_accuracy, population_risk
from parityscope.risk.losses import LOSSES

MARGINS = torch.linspace(-3, 3, 601, dtype=torch.float64)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))
def test_slope_is_the_derivative(loss):
    away = MARGINS[(MARGINS - 1).abs() > 1e-3]  # the hinge has a corner at 1
    step = 1e-6
    finite = (loss.of_margin(away + step) - loss.of_margin(away - step)) / (2 * step)
    assert torch.allclose(loss.slope(away), finite, atol=1e-6)


@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(LOSSES)), k=st.integers(1, 4))
def test_no_accuracy_is_below_its_bound(seed, name, k):
    generator = torch.Generator().manual_seed(seed)
    problem = Parity.random(9, k, generator)
    model = ParityTransformer(9, k, temperature=0.05, generator=generator)
    with torch.no_grad():  # from chance to solved
        mix = torch.rand((), generator=generator)
        model.directions.lerp_(3 * model.positions[list(problem.support)], mix.item())
        risk = population_risk(model, problem, loss=name, engine="enumerate").value
        bound = LOSSES[name].accuracy_bound(risk).item()
    assert population_accuracy(model, problem).value.item() >= bound - 1e-12


@given(name=st.sampled_from(sorted(LOSSES)), mean=st.floats(0.05, 4), error=st.floats(1e-9, 0.04), low=st.booleans())
def test_stretch_bounds_what_an_error_of_the_mean_becomes_and_no_more(name, mean, error, low):
    """Of a mean that is wrong by `error`, the risk is wrong by at most stretch · error; of a tiny one, by just that."""
    loss = LOSSES[name]
    mean, error = torch.tensor([-mean if loss.signed else mean]).double(), torch.tensor([error]).double()
    moved = mean - error if low else mean + error
    wrong = (loss.of_mean(moved) - loss.of_mean(mean)).abs()
    assert wrong <= loss.stretch(mean, error) * error * (1 + 1e-9) + 1e-14
    at = mean.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss.of_mean(at).sum(), at)
    assert float(loss.stretch(mean, torch.zeros(1))) == pytest.approx(slope.abs().item(), rel=1e-9)
