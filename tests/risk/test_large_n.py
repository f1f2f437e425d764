"""Spectral, grouped and fitted pieces: against split, enumeration, closed forms and exact binomials."""

from fractions import Fraction
from math import comb

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from additive_model import AdditiveModel
from parityscope import Parity, Triangle, ZigZag, population_accuracy, population_risk
from parityscope.risk.engines.spectral.engine import heavy_positions


def diffuse(n, k, spread, seed=0):
    noise = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return k * torch.softmax(spread * noise, 0)


@pytest.mark.parametrize(
    ("k", "loss"),
    [
        (2, "squared-hinge"),
        pytest.param(2, "hinge", marks=pytest.mark.slow),
        pytest.param(3, "hinge", marks=pytest.mark.slow),
        pytest.param(3, "squared-hinge", marks=pytest.mark.slow),
    ],
)
def test_split_and_spectral_agree_within_the_reported_bound(k, loss):
    model, problem = AdditiveModel(diffuse(30, k, 0.3), ZigZag(k)), Parity(30, tuple(range(k)))
    exact = population_risk(model, problem, loss=loss, engine="split")
    spectral = population_risk(model, problem, loss=loss, engine="spectral")
    bound = (exact.error_bound + spectral.error_bound).item()
    assert bound < 1e-4
    assert abs(exact.value.item() - spectral.value.item()) <= bound
    ours, theirs = (torch.autograd.grad(risk.value, model.parameters()) for risk in (spectral, exact))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, atol=1e-3)


@pytest.mark.parametrize("spread", [0.1, 0.01])
def test_a_thousand_bits_have_a_proved_error_below_1e_9(spread):
    model, problem = AdditiveModel(diffuse(1000, 3, spread), ZigZag(3)), Parity(1000, (5, 500, 900))
    risk = population_risk(model, problem)
    assert risk.engine == "spectral"
    assert risk.error_bound.item() < 1e-9
    x, y = problem.sample(20_000, torch.Generator().manual_seed(1))
    losses = (1 - y * model(x)).relu().square()
    assert losses.mean().item() == pytest.approx(risk.value.item(), abs=5 * losses.std().item() / 20_000**0.5)


@pytest.mark.parametrize("heavy", [pytest.param((0, 1, 2), marks=pytest.mark.slow), (0, 1), (0, 7), (9,)])
def test_heavy_positions_are_enumerated_and_the_rest_is_spectral(heavy):
    """Half-trained attention: against split at n = 34, value within the bound and gradient close."""
    weights = 0.5 * diffuse(34, 1, 0.2)
    weights[list(heavy)] += 0.8
    model, problem = AdditiveModel(weights, ZigZag(3)), Parity(34, (0, 1, 2))
    assert sorted(heavy_positions(weights).tolist()) == sorted(heavy)
    exact = population_risk(model, problem, engine="split")
    hybrid = population_risk(model, problem, engine="spectral")
    assert abs(exact.value.item() - hybrid.value.item()) <= (exact.error_bound + hybrid.error_bound).item()
    ours, theirs = (torch.autograd.grad(risk.value, model.parameters()) for risk in (hybrid, exact))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, atol=2e-2 * max(1.0, b.abs().max().item()))


def test_half_trained_attention_at_a_thousand_bits_is_certified():
    weights = 0.9 * diffuse(1000, 1, 0.1)
    weights[[5, 500, 900]] += 0.7
    risk = population_risk(AdditiveModel(weights, ZigZag(3)), Parity(1000, (5, 500, 900)))
    assert risk.engine == "spectral"
    assert risk.error_bound.item() < 1e-9


def exact_equal_weights(n, k, c, readout):
    """E over binomial counts in rational weights: the hidden and the other ones are counted separately."""
    total = Fraction(0)
    for hidden in range(k + 1):
        for rest in range(n - k + 1):
            margin = (-1) ** hidden * readout(torch.tensor((hidden + rest) * c, dtype=torch.float64)).item()
            total += comb(k, hidden) * comb(n - k, rest) * Fraction(max(0.0, 1 - margin) ** 2)
    return float(total / 2**n)


@pytest.mark.parametrize(("n", "k"), [(60, 2), (100, 3), (250, 5)])
def test_equal_weights_are_counted_exactly(n, k):
    model = AdditiveModel(torch.full((n,), k / n, dtype=torch.float64), ZigZag(k))
    risk = population_risk(model, Parity(n, tuple(range(k))))
    assert risk.engine == "grouped"
    assert risk.value.item() == pytest.approx(exact_equal_weights(n, k, k / n, ZigZag(k)), rel=1e-11)


@pytest.mark.slow
@settings(max_examples=25)
@given(
    n=st.integers(2, 11),
    seed=st.integers(0, 10**6),
    case=st.sampled_from(["logistic zig-zag", "logistic triangle", "smooth hinge", "smooth squared hinge"]),
    noise=st.sampled_from([0.0, 0.1]),
)
def test_fitted_pieces_stay_within_their_stated_error(n, seed, case, noise):
    generator = torch.Generator().manual_seed(seed)
    k = 1 + seed % min(n, 3)
    readout, loss = {
        "logistic zig-zag": (ZigZag(k), "logistic"),
        "logistic triangle": (Triangle(k), "logistic"),
        "smooth hinge": (ZigZag(k, 0.05), "hinge"),
        "smooth squared hinge": (ZigZag(k, 0.05), "squared-hinge"),
    }[case]
    problem = Parity.random(n, k, generator, noise=noise)
    model = AdditiveModel(k * torch.softmax(torch.randn(n, dtype=torch.float64, generator=generator), 0), readout)
    fitted = population_risk(model, problem, loss=loss, engine="split")
    exact = population_risk(model, problem, loss=loss, engine="enumerate")
    assert fitted.error_bound.item() < 1e-8
    assert abs(fitted.value.item() - exact.value.item()) <= fitted.error_bound.item()
    (a,), (b,) = (torch.autograd.grad(risk.value, [model.weights]) for risk in (fitted, exact))
    assert torch.allclose(a, b, atol=1e-5)


def test_accuracy_at_large_n_has_a_bound_too():
    model, problem = AdditiveModel(diffuse(400, 3, 0.1), ZigZag(3)), Parity(400, (1, 2, 3))
    accuracy = population_accuracy(model, problem, engine="spectral", tolerance=1e-3)
    x, y = problem.sample(40_000, torch.Generator().manual_seed(0))
    sampled = ((model(x) > 0) == (y > 0)).double().mean().item()
    assert accuracy.value.item() == pytest.approx(sampled, abs=5 * 0.5 / 40_000**0.5 + accuracy.error_bound.item())


def test_h2s_two_heads_on_signs_are_one_additive_score():
    """x ∈ ±1, ŷ = 1 − |v₁ + v₂|: with bits, Σ c(1 − 2x) has weights −2c and offset Σc."""
    from parityscope.models.readouts import PiecewiseLinear, Readout

    class Tent(Readout):
        def forward(self, S):
            return 1 - S.abs()

        def piecewise_linear(self):
            return PiecewiseLinear((0.0,), (1.0,), 1.0, -1.0)

    c = 2 * torch.softmax(torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), 0)
    model = AdditiveModel(-2 * c, Tent(), c.sum().item())
    problem = Parity(12, (2, 7))
    ours = population_risk(model, problem, loss="hinge", engine="split").value
    theirs = population_risk(model, problem, loss="hinge", engine="enumerate").value
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    signs = 1 - 2 * torch.cat([x for x, _ in problem.enumerate()]).double()
    direct = (1 - signs[:, 2] * signs[:, 7] * (1 - (signs @ c).abs())).relu().mean()
    assert ours.item() == pytest.approx(direct.item(), rel=1e-12)
