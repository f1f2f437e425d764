import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from additive_model import AdditiveModel
from parityscope import (
    Cosine,
    FrozenAttention,
    Parity,
    ParityTransformer,
    draw_problems,
    population_accuracy,
    population_risk,
)
from parityscope.models.positions import orthogonal


@given(n=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_exact_accuracy_of_the_cosine_readout(n, seed):
    generator = torch.Generator().manual_seed(seed)
    k = 1 + seed % n
    problem = Parity.random(n, k, generator)
    weights = k * torch.softmax(torch.randn(n, dtype=torch.float64, generator=generator), 0)
    model = AdditiveModel(weights, Cosine())
    ours = population_accuracy(model, problem, engine="split").value.item()
    assert ours == pytest.approx(population_accuracy(model, problem, engine="enumerate").value.item(), abs=1e-12)


def test_forty_bits_solved_by_one_hot_heads_have_no_risk():
    support = (3, 17, 38)
    directions = 60.0 * orthogonal(40)[list(support)]
    model = ParityTransformer(40, 3, temperature=1.0, positions=orthogonal(40), directions=directions)
    assert population_risk(model, Parity(40, support)).value.item() == pytest.approx(0.0, abs=1e-12)
    assert population_accuracy(model, Parity(40, support)).value.item() == 1.0
    assert population_accuracy(model, Parity(40, (3, 17, 37))).value.item() == pytest.approx(0.5, abs=1e-12)


def frozen(n, k, width, seed, runs=None):
    generator = torch.Generator().manual_seed(seed)
    shape = (k, 2) if runs is None else (runs, k, 2)
    directions = torch.randn(shape, dtype=torch.float64, generator=generator)
    heads = ParityTransformer(n, k, temperature=0.5, directions=directions)
    model = FrozenAttention(heads, width, generator=generator)
    with torch.no_grad():  # larger weights, so that both hinges clip somewhere
        for p in model.ffnn.parameters():
            p.mul_(4.0)
    return model


@settings(max_examples=40)
@given(
    n=st.integers(2, 11),
    width=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["hinge", "squared-hinge", "squared-mean-hinge"]),
    bias=st.sampled_from([0.5, 0.3]),
    noise=st.sampled_from([0.0, 0.1]),
)
def test_frozen_attention_with_a_trained_ffnn_is_exact_with_every_gradient(n, width, seed, loss, bias, noise):
    model = frozen(n, 2, width, seed)
    problem = Parity.random(n, 2, torch.Generator().manual_seed(seed), bias=bias, noise=noise)
    ours = population_risk(model, problem, loss=loss, engine="split").value
    theirs = population_risk(model, problem, loss=loss, engine="enumerate").value
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-10, abs=1e-12)
    trained = list(model.ffnn.parameters())
    for a, b in zip(torch.autograd.grad(ours, trained), torch.autograd.grad(theirs, trained), strict=True):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-10)
    right = population_accuracy(model, problem, engine="split").value.item()
    assert right == pytest.approx(population_accuracy(model, problem, engine="enumerate").value.item(), abs=1e-12)


def test_runs_have_their_own_readouts():
    model, problems = frozen(9, 2, 4, seed=0, runs=3), draw_problems(9, 2, range(3))
    ours = population_risk(model, problems)
    theirs = population_risk(model, problems, engine="enumerate")
    assert (ours.engine, theirs.engine) == ("split", "enumerate")
    assert torch.allclose(ours.value, theirs.value, rtol=1e-10)
    (a,), (b,) = (torch.autograd.grad(risk.value.sum(), [model.ffnn.alpha]) for risk in (ours, theirs))
    assert torch.allclose(a, b, atol=1e-10)


def test_it_goes_where_enumeration_does_not():
    model, problem = frozen(34, 3, 5, seed=1), Parity(34, (1, 2, 3))
    risk = population_risk(model, problem).value
    x, y = problem.sample(100_000, torch.Generator().manual_seed(0))
    losses = (1 - y * model(x)).relu().square()
    assert risk.item() == pytest.approx(losses.mean().item(), abs=5 * losses.std().item() / 100_000**0.5)
