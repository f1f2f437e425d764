"""Planted ties: another order of summation or noise of a rounding never changes an answer."""

import itertools
import math

import pytest
import torch

from additive_model import AdditiveModel
from parityscope import Cosine, Parity, ParityTransformer, Triangle, ZigZag, population_accuracy, population_risk
from parityscope.core.ties import first_largest, largest, predicts_plus, ranked, tolerance
from parityscope.measures import found_support
from parityscope.models import AdditiveScore, positions
from parityscope.papers.h1.frozen_hard_attention import hard_attention_cells, token_scores, worst_support
from parityscope.papers.h2.one_gradient import least_worst_loss
from parityscope.risk import law_of
from parityscope.risk.engines.closed_form import certified_perfect
from parityscope.risk.engines.pair import pair_mean
from parityscope.risk.losses import named_loss
from parityscope.risk.sampling import sample_mean
from parityscope.risk.worst_case import certified_by_worst_loss

ROUNDING = torch.finfo(torch.float64).eps


def shaken(values, seed, roundings=8):
    """The same numbers as another processor might have them."""
    noise = torch.rand(values.shape, generator=torch.Generator().manual_seed(seed), dtype=values.dtype) - 0.5
    return values * (1 + 2 * roundings * torch.finfo(values.dtype).eps * noise)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(5))
def test_among_equals_the_first_positions_win(dtype, seed):
    values = shaken(torch.tensor([[0.1, 0.7, 0.3, 0.3, 0.7, 0.3, 0.3], [1 / 3] * 7], dtype=dtype), seed)
    assert [largest(values, k)[0].tolist() for k in (1, 2, 3, 4)] == [[1], [1, 4], [1, 2, 4], [1, 2, 3, 4]]
    assert largest(values, 3)[1].tolist() == [0, 1, 2]
    assert first_largest(values).tolist() == [1, 0]
    assert ranked(values[0]).tolist() == [1, 4, 2, 3, 5, 6, 0]
    assert largest(values, 7).tolist() == [list(range(7))] * 2


def test_without_ties_they_are_topk_argmax_and_argsort():
    values = torch.randn(50, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(largest(values, 6), values.topk(6).indices.sort(-1).values)
    assert torch.equal(first_largest(values), values.argmax(-1))
    assert torch.equal(ranked(values[0]), values[0].argsort(descending=True))


def test_what_is_no_number_is_chosen_last():
    values = torch.tensor([torch.nan, 1.0, -torch.inf, torch.inf, 2.0])
    assert largest(values, 2).tolist() == [3, 4]
    assert largest(values, 4).tolist() == [0, 1, 3, 4]  # of the two that are below every number the first
    assert first_largest(values).item() == 3
    assert largest(torch.full((4,), torch.nan), 2).tolist() == [0, 1]


def test_a_prediction_of_zero_means_minus_one_in_every_precision():
    for dtype in (torch.float64, torch.float32):
        noise = tolerance(dtype) / 2
        predictions = torch.tensor([-noise, 0.0, noise, 3 * noise], dtype=dtype)
        assert predicts_plus(predictions).tolist() == [False, False, False, True]


def test_uniform_attention_names_the_first_bits_in_any_order_of_summation():
    weights = torch.full((9,), 1 / 3, dtype=torch.float64)
    for seed in range(10):
        assert found_support(shaken(weights, seed), 3).tolist() == [0, 1, 2]


def counted_accuracy(ones_of_hidden, ones_of_others, k, n):
    """P(right) at uniform attention S = k·ones/n by whole numbers; the readout vanishes at half-integers."""
    right = total = 0
    for hidden, other in itertools.product(range(ones_of_hidden + 1), range(ones_of_others + 1)):
        ways = math.comb(ones_of_hidden, hidden) * math.comb(ones_of_others, other)
        doubled = 2 * k * (hidden + other)  # 2nS
        # cos(πS) > 0 while the nearest integer is even and S is no half-integer
        on_zero = doubled % n == 0 and (doubled // n) % 2 == 1
        nearest = (doubled + n) // (2 * n)
        plus = not on_zero and nearest % 2 == 0
        right += ways * (plus == (hidden % 2 == 0))
        total += ways
    return right / total


@pytest.mark.parametrize(("n", "k"), [(4, 2), (6, 3), (9, 3), (10, 1), (10, 5), (12, 3), (12, 6), (14, 7)])
@pytest.mark.parametrize("engine", ["enumerate", "split", "grouped"])
def test_accuracy_at_uniform_attention_is_that_of_whole_numbers(n, k, engine):
    """Scores k·ones/n meet the zeros of the readout; the weights are shuffled by roundings and the bits by order."""
    problem = Parity(n, tuple(range(k)))
    expected = counted_accuracy(k, n - k, k, n)
    for seed in range(4):
        weights = shaken(torch.full((n,), k / n, dtype=torch.float64), seed, roundings=4 if seed else 0)
        for readout in (Cosine(), Triangle(k)):
            model = AdditiveModel(weights, readout)
            accuracy = population_accuracy(model, problem, engine=engine).value
            assert accuracy.item() == pytest.approx(expected, abs=1e-14), (readout, seed)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("readout", [ZigZag(2), Triangle(2)])
def test_on_a_kink_every_engine_takes_the_slope_to_its_right(readout, loss):
    """At uniform attention scores of H1's and H2's readouts lie on kinks: nudging all of them to the right says how."""
    problem, n = Parity(8, (1, 6)), 8

    def gradient(weights, engine, offset=0.0):
        model = AdditiveModel(weights, readout, offset)
        risk = population_risk(model, problem, loss=loss, engine=engine).value
        return torch.autograd.grad(risk, model.weights)[0]

    weights = torch.full((n,), 2 / n, dtype=torch.float64)
    to_the_right = gradient(weights, "enumerate", offset=1e-7)
    for seed, engine in itertools.product(range(4), ("enumerate", "split", "grouped")):
        there = gradient(shaken(weights, seed), engine)
        # Between kinks the gradient moves by at most 2·slope² times the nudge.
        assert torch.allclose(there, to_the_right, atol=1e-4), (engine, seed)


def test_examples_on_a_kink_have_one_gradient_too():
    x = torch.stack([torch.arange(8).roll(shift) < 4 for shift in range(8)]).to(torch.int8)[None]  # S = 1: |v| = 0
    y = torch.tensor([[1, -1] * 4], dtype=torch.int8)
    found = []
    for seed in range(6):
        weights = shaken(torch.full((1, 8), 0.25, dtype=torch.float64), seed).requires_grad_()
        score = AdditiveScore(weights, torch.zeros(1, dtype=torch.float64), Triangle(2))
        (gradient,) = torch.autograd.grad(sample_mean(score, x, y, named_loss("hinge")).sum(), weights)
        found.append(gradient)
    # To the right of S = 1 the readout rises with slope 2 and the hinge is not clipped: −y·2·x on average.
    expected = -2 * (y[0, :, None] * x[0]).double().mean(0)
    assert all(torch.allclose(gradient[0], expected, atol=1e-14) for gradient in found)


def test_a_head_between_two_positions_attends_to_the_first():
    for n, (first, second) in itertools.product((7, 8, 12, 30), ((0, 1), (2, 3), (4, 5))):
        between = positions.circle(n)[[first, second]].mean(0)
        for seed in range(4):
            model = ParityTransformer(n, 1, directions=shaken(between, seed, roundings=1)[None])
            assert model.attention(hard=True).argmax(-1).tolist() == [first]
            cells = hard_attention_cells(token_scores(model))
            assert cells.is_fixed.any(0).nonzero().flatten().tolist() == [first]


def test_of_supports_equally_hidden_the_first_is_named():
    # Bit 2 is seen, all others are alike, and with biased bits the sums behind that are rounded.
    scores = torch.tensor([[0.0, 0.0], [0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]])[None]
    for bias in (0.5, 0.3, 0.1):
        assert worst_support(hard_attention_cells(scores, bias), 2).support == (0, 1)


def test_a_sum_of_exactly_one_half_is_no_certificate():
    problem = Parity(3, (0, 2))
    for seed in range(6):
        half_away = shaken(torch.tensor([0.9, 0.3, 0.9], dtype=torch.float64), seed, roundings=1)  # 0.1 + 0.3 + 0.1
        assert not certified_perfect(AdditiveScore(half_away, torch.zeros(()), Cosine()), law_of(problem))
        loses_one = shaken(torch.tensor([0.8, 0.5, 0.7], dtype=torch.float64), seed, roundings=1)  # 0.2 + 0.5 + 0.3
        for readout in (Cosine(), Triangle(2)):
            assert not certified_by_worst_loss(AdditiveScore(loses_one, torch.zeros(()), readout), law_of(problem))


def test_where_pair_and_rest_weigh_the_same_the_risk_does_not_jump():
    values = []
    for seed in range(8):
        c = shaken(torch.tensor([0.3, 0.7, 0.6, 0.4], dtype=torch.float64), seed, roundings=1)
        values.append(pair_mean(AdditiveScore(c, torch.zeros(()), Triangle(2)), law_of(Parity(4, (0, 1)))).value.item())
        assert least_worst_loss(c) == pytest.approx(2.0, abs=1e-12)  # some input brings |v| to 0
    assert max(values) - min(values) < 1e-12
