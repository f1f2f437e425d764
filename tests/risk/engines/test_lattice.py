"""The lattice: against all inputs, split, grouped and sampling, and its bounds against laws that attain them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from additive_model import AdditiveModel
from harness.engines import weights_of
from parityscope import InvalidInput, Parity, ParityTransformer, Triangle, ZigZag, population_accuracy, population_risk
from parityscope.measures import measured_accuracy
from parityscope.models import AdditiveScore
from parityscope.problems import bits_of
from parityscope.risk.engines.grouped import grouped_risk
from parityscope.risk.engines.lattice.engine import Straddle, lattice_risk
from parityscope.risk.engines.lattice.grid import Programme, prefix_sums
from parityscope.risk.engines.split.sums import split_mean
from parityscope.risk.pieces.represent import loss_pieces, score_range, sign_pieces

KINDS = ("uniform", "diffuse", "sharp", "nearly solved", "repeated", "sparse", "any", "signed")


def log_normal(n, k, spread, seed=0):
    noise = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return k * torch.softmax(spread * noise, 0)


def pieces_for(readout, loss, weights, offset, noise):
    score, reach = AdditiveScore(weights, offset, readout), score_range(weights, offset)
    return sign_pieces(score, reach) if loss == "accuracy" else loss_pieces(score, loss, noise, 1e-9, reach)


@settings(max_examples=30)
@given(
    n=st.integers(4, 16),
    k=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
    readout=st.sampled_from([ZigZag, Triangle]),
    loss=st.sampled_from(["hinge", "squared-hinge", "accuracy"]),
    noise=st.sampled_from([0.0, 0.1]),
    bias=st.sampled_from([0.5, 0.2, 0.7]),
    offset=st.sampled_from([0.0, 0.37]),
    patterns=st.integers(1, 5),
    digits=st.integers(3, 8),
    seed=st.integers(0, 10**6),
)
def test_value_and_gradient_are_within_their_bounds_of_the_exact_ones(
    n, k, kind, readout, loss, noise, bias, offset, patterns, digits, seed
):
    """Few patterns are visited, so that hidden bits are rounded too, with signs, ties and any resolution."""
    generator = torch.Generator().manual_seed(seed)
    k = min(k, n)
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.randperm(n, generator=generator)[:k]] = True
    weights, shift = weights_of(kind, n, k, mask, generator), torch.tensor([offset], dtype=torch.float64)
    pieces = pieces_for(readout(k), loss, weights, shift, noise)
    exact = split_mean(weights[None], shift, mask[None], pieces, bias=bias)
    found = lattice_risk(weights, mask, pieces.shifted(offset), 10.0**-digits, bias=bias, patterns=patterns)
    assert abs(found.value - exact.value.item()) <= found.error_bound + 1e-14
    assert (found.by_weight - exact.by_weight[0]).abs().max().item() <= found.gradient_bound + 1e-12
    assert abs(found.by_offset - exact.by_offset.item()) <= found.gradient_bound + 1e-12


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_split_and_lattice_agree_far_closer_than_the_bounds(loss):
    weights, mask = log_normal(34, 3, 1.0), torch.arange(34) < 3
    pieces = pieces_for(ZigZag(3), loss, weights, torch.zeros(()), 0.0)
    exact = split_mean(weights[None], torch.zeros(1).double(), mask[None], pieces)
    found = lattice_risk(weights, mask, pieces, 1e-9, patterns=8)
    assert found.error_bound < 1e-9
    assert abs(found.value - exact.value.item()) < 1e-11
    assert (found.by_weight - exact.by_weight[0]).abs().max().item() < 1e-2 * found.gradient_bound


def test_equal_weights_leave_no_residue():
    weights, mask = torch.full((100,), 0.03, dtype=torch.float64), torch.arange(100) < 3
    pieces = pieces_for(ZigZag(3), "squared-hinge", weights, torch.zeros(()), 0.1)
    found, exact = lattice_risk(weights, mask, pieces, 1e-9, patterns=8), grouped_risk(weights, mask, pieces)
    assert max(found.error_bound, found.gradient_bound) < 1e-9
    assert found.value == pytest.approx(exact.value, abs=found.error_bound + exact.error_bound)
    torch.testing.assert_close(found.by_weight, exact.by_weight, rtol=0, atol=found.gradient_bound)


@pytest.mark.parametrize("spread", [2.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_auto_certifies_uneven_attention_between_split_and_spectral(spread):
    model, problem = AdditiveModel(log_normal(60, 3, spread), ZigZag(3)), Parity(60, (0, 1, 2), noise=0.1)
    risk = population_risk(model, problem, loss="squared-mean-hinge")
    assert risk.engine == "lattice"
    assert risk.error_bound.item() < 3e-9 * risk.value.item() ** 0.5  # the square doubles the error of its mean, 1e-9
    (gradient,) = torch.autograd.grad(risk.value, [model.weights])
    again = population_risk(model, problem, loss="squared-mean-hinge", engine="lattice", tolerance=1e-7)
    (rough,) = torch.autograd.grad(again.value, [model.weights])
    assert abs(again.value.item() - risk.value.item()) <= (again.error_bound + risk.error_bound).item()
    assert (rough - gradient).abs().max().item() <= (again.gradient_bound + risk.gradient_bound).item()


def test_biased_bits_beyond_split_are_answered_too():
    model, problem = AdditiveModel(log_normal(60, 3, 2.0), ZigZag(3)), Parity(60, (0, 1, 2), bias=0.3)
    risk = population_risk(model, problem, loss="hinge", tolerance=1e-7)
    assert risk.engine == "lattice"
    x, y = problem.sample(40_000, torch.Generator().manual_seed(1))
    losses = (1 - y * model(x)).relu()
    assert losses.mean().item() == pytest.approx(risk.value.item(), abs=5 * losses.std().item() / 200)


def test_an_accuracy_beyond_split_is_an_interval():
    model, problem = AdditiveModel(log_normal(60, 3, 1.0), ZigZag(3)), Parity(60, (0, 1, 2))
    wide, narrow = (population_accuracy(model, problem, tolerance=tolerance) for tolerance in (1e-2, 1e-4))
    assert narrow.error_bound.item() <= 1e-4
    assert abs(wide.value - narrow.value) <= wide.error_bound + narrow.error_bound
    x, y = problem.sample(40_000, torch.Generator().manual_seed(0))
    assert narrow.value.item() == pytest.approx(((model(x) > 0) == (y > 0)).double().mean().item(), abs=0.0125)


@pytest.mark.slow
def test_what_is_out_of_reach_says_what_was_reached(monkeypatch):
    monkeypatch.setattr("parityscope.risk.engines.lattice.engine._WORK", 2e5)
    model, biased = AdditiveModel(log_normal(60, 3, 1.0), ZigZag(3)), Parity(60, (0, 1, 2), bias=0.3)
    with pytest.raises(InvalidInput, match=r"no exact engine fits: .*split needs .*lattice proves an error of"):
        population_risk(model, biased)
    named = population_risk(model, biased, engine="lattice")
    assert 1e-9 < named.error_bound.item() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_smoothed_readouts_go_by_fitted_pieces(loss):
    weights, problem = log_normal(30, 2, 1.0), Parity(30, (0, 1), noise=0.1)
    model = AdditiveModel(weights, ZigZag(2, 0.1))
    exact = population_risk(model, problem, loss=loss, engine="split")
    found = population_risk(model, problem, loss=loss, engine="lattice", tolerance=1e-8)
    assert found.error_bound.item() < 1e-8
    assert found.gradient_bound is None  # the fit states the error of the value only
    assert abs(found.value - exact.value).item() <= (found.error_bound + exact.error_bound).item()
    ours, theirs = (torch.autograd.grad(risk.value, [model.weights])[0] for risk in (found, exact))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@given(seed=st.integers(0, 10**6), atoms=st.integers(2, 6), z=st.floats(0.0, 8.0))
def test_no_law_escapes_the_bounds_of_a_cell(seed, atoms, z):
    """Any law of mean 0 and variance 1; with two atoms, one that attains Cantelli's bound."""
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(atoms, dtype=torch.float64, generator=generator) + 1e-3
    p /= p.sum()
    u = torch.randn(atoms, dtype=torch.float64, generator=generator)
    if atoms == 2:
        p = torch.tensor([z * z, 1.0], dtype=torch.float64) / (1 + z * z)
        u = torch.tensor([-1.0, z * z], dtype=torch.float64)
    u = u - (p * u).sum()
    size = (p * u * u).sum().sqrt()
    if size < 1e-6:
        return
    u = u / size
    at, slack = Straddle.of(torch.tensor(z, dtype=torch.float64)), 1e-9
    beyond, excess = (u >= z + slack).double(), (u - z).relu()

    def mean(values):
        return float((p * values).sum())

    assert abs(mean(beyond) - at.beyond) <= at.share_error + slack
    assert abs(mean(excess) - at.excess) <= at.excess_error + slack
    assert abs(mean(excess.square()) - at.square) <= torch.maximum(at.square, 1 - at.square) + slack
    assert mean((beyond - at.beyond - at.density * u).abs()) <= at.tagged_share_error + slack
    assert mean((excess - at.excess - at.beyond * u).abs()) <= at.tagged_excess_error + slack


def test_the_programme_forwards_and_backwards_is_a_sum_over_all_inputs():
    generator = torch.Generator().manual_seed(0)
    n, up = 9, [0, 3, 1, 1, 5, 2, 0, 4, 7]
    residue, p = torch.randn(n, generator=generator).double(), torch.rand(n, generator=generator).double()
    hidden = [j in (1, 4, 6) for j in range(n)]
    programme = Programme(up, residue.tolist(), p.tolist(), hidden)
    bits = bits_of(torch.arange(2**n), n).double()
    chance = torch.where(bits > 0, p, 1 - p).prod(1)
    cell, rest = (bits @ torch.tensor(up).double()).long(), bits @ residue
    row = (bits @ torch.tensor(hidden).double()).long() % 2
    law = torch.zeros(3, 2, sum(up) + 1, dtype=torch.float64)
    for order in range(3):
        law[order].index_put_((row, cell), chance * rest**order, accumulate=True)
    torch.testing.assert_close(programme.law(), law, rtol=1e-12, atol=1e-14)
    functional = torch.randn(2, 2, sum(up) + 1, generator=generator).double()
    meets = chance * (functional[0, row, cell] + functional[1, row, cell] * rest)
    torch.testing.assert_close(programme.by_position(functional.clone()), meets @ bits, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("count", [1, 16, 17, 500])
def test_prefix_sums_are_rounded_little(count):
    x = torch.rand(2, count, dtype=torch.float64, generator=torch.Generator().manual_seed(count))
    exact = [math.fsum(row[:i].tolist()) for row in x for i in range(count + 1)]
    torch.testing.assert_close(prefix_sums(x).flatten(), torch.tensor(exact, dtype=torch.float64), rtol=1e-14, atol=0)


def test_a_transformer_beyond_split_has_a_proved_lower_bound_on_its_accuracy():
    model = ParityTransformer(60, 3, directions=log_normal(2, 1, 1.0).expand(1, 3, 2))
    problem = Parity(60, (0, 1, 2))
    found = measured_accuracy(model, [problem])
    assert found.kind == "lower bound"
    right = population_accuracy(model, [problem], engine="lattice", tolerance=1e-3)
    assert abs(found.value - right.value) <= right.error_bound + 2e-4
