"""A loss of one's own, and the squared one: by every route that covers them, and refused in a sentence where wrong."""

import pytest
import torch

from additive_model import AdditiveModel
from harness.engines import direct_risk
from parityscope import Cosine, InvalidInput, Parity, Triangle, ZigZag, estimated_risk, parity_ffnn, population_risk
from parityscope.risk.losses import as_loss


def exponential(margin):
    return (-margin).exp()


def huber(margin):
    """Quadratic near 1 and linear beyond, with a jump of the curvature."""
    gap = (1 - margin).abs()
    return torch.where(gap < 0.5, gap.square() / 2, 0.5 * gap - 0.125)


def additive(n, k, readout, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return AdditiveModel(k * torch.randn(n, dtype=torch.float64, generator=generator).softmax(0), readout)


@pytest.mark.parametrize("law", [{}, {"bias": 0.3, "noise": 0.1}])
@pytest.mark.parametrize("engine", ["enumerate", "split", "lattice"])
@pytest.mark.parametrize("readout", [ZigZag(2), ZigZag(2, 0.05), Cosine()], ids=["zig-zag", "smooth", "cosine"])
@pytest.mark.parametrize("loss", ["squared", exponential, huber], ids=["squared", "exponential", "huber"])
def test_every_route_gives_the_mean_over_all_inputs(loss, readout, engine, law):
    model, problem = additive(11, 2, readout), Parity(11, (1, 4), **law)
    found = population_risk(model, problem, loss=loss, engine=engine, tolerance=1e-7)
    expected = direct_risk(model, problem, as_loss(loss))
    assert abs(found.value - expected) <= found.error_bound + 1e-13
    assert found.error_bound < (1e-4 if engine == "lattice" else 1e-6)
    ours, theirs = (torch.autograd.grad(value, model.parameters())[0] for value in (found.value, expected))
    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_the_squared_loss_is_the_second_moment_of_the_error_and_proved():
    """E(1 − yŷ)² = 1 − 2E[yŷ] + E[ŷ²], here with E[ŷ²] of the triangle by the loss itself at the flipped label."""
    model, problem = additive(40, 2, Triangle(2)), Parity(40, (1, 4))
    plus = population_risk(model, problem, loss="squared")
    hinge = population_risk(model, problem, loss="hinge").value
    square = population_risk(model, problem, loss=lambda margin: margin.square(), tolerance=1e-7)
    assert plus.bound_is == "proved"
    assert square.bound_is == "estimated"
    assert abs(plus.value - (1 - 2 * (1 - hinge) + square.value)) <= square.error_bound + plus.error_bound + 1e-11


def test_cosines_have_a_closed_form_of_the_squared_loss():
    model, problem = additive(12, 2, Cosine()), Parity(12, (1, 4), bias=0.3, noise=0.1)
    closed = population_risk(model, problem, loss="squared", engine="closed-form")
    assert abs(closed.value - direct_risk(model, problem, as_loss("squared"))) <= closed.error_bound + 1e-14


def test_a_loss_of_ones_own_meets_general_models_and_drawn_examples():
    model, problem = parity_ffnn(8, (1, 4)), Parity(8, (1, 4))
    assert population_risk(model, problem, loss=exponential).value.item() == pytest.approx(torch.tensor(-1.0).exp())
    drawn = estimated_risk(model, problem, 50, torch.Generator().manual_seed(0), loss=exponential)
    assert drawn.value.item() == pytest.approx(torch.tensor(-1.0).exp())


def test_a_loss_whose_parameter_changed_is_another_loss():
    scale = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def scaled(margin):
        return (scale * (1 - margin)).square()

    model, problem = additive(30, 2, Triangle(2)), Parity(30, (1, 4))
    before = population_risk(model, problem, loss=scaled, tolerance=1e-7).value.item()
    with torch.no_grad():
        scale.mul_(2)
    after = population_risk(model, problem, loss=scaled, tolerance=1e-7).value.item()
    assert after == pytest.approx(4 * before, abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("mse", "unknown loss 'mse': choose one of hinge"),
        (lambda margin: margin.sum(), r"maps 5 margins to the shape \(\): return one number each"),
        (lambda margin: 1.0, "maps 5 margins to a float: return one number each"),
        (lambda margin: margin.log(), "is NaN at the margin -0.93"),
        (lambda margin: margin / margin.abs().mean(), "mixes the margins of different inputs"),
        (lambda margin: (margin < 0).double(), "has no derivative"),
        (lambda margin, weight: margin, "does not take a tensor of margins"),
    ],
)
def test_what_is_no_loss_is_refused_in_one_sentence(loss, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        population_risk(parity_ffnn(6, (1, 4)), Parity(6, (1, 4)), loss=loss)


def test_a_loss_that_is_nan_where_the_model_goes_is_refused():
    def only_near_zero(margin):
        return (4 - margin.square()).sqrt()

    with pytest.raises(InvalidInput, match="the loss only_near_zero is NaN at the margin"):
        population_risk(additive(8, 2, ZigZag(2)), Parity(8, (1, 4)), loss=only_near_zero)
