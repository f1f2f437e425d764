import math

import pytest
import torch

from parityscope import InvalidInput, Parity, draw_problems, population_risk
from parityscope.models import positions, xor_transformer
from parityscope.papers.h2.one_gradient import (
    _crossing,
    least_worst_loss,
    named_by_one_gradient,
    smallest_code,
    smallest_samples,
    streamed_gradients,
    substitutes,
    through_code,
    unit_scores,
)
from parityscope.problems import seeded_generator
from parityscope.theory import one_gradient_samples, one_step_learning_rate
from parityscope.theory.h2 import majority_gradient


def test_the_streamed_gradient_tends_to_the_population_and_is_the_same_at_any_count():
    problem = Parity(9, (2, 5))
    few, many = streamed_gradients(problem, [500, 200_000], torch.Generator().manual_seed(0), two_neuron=True)
    exact = majority_gradient(9)
    expected = torch.full((9,), exact.other, dtype=torch.float64)
    expected[[2, 5]] = exact.hidden
    assert torch.allclose(many, expected, atol=5 / math.sqrt(200_000))
    alone = streamed_gradients(problem, [500], torch.Generator().manual_seed(0), two_neuron=True)[0]
    assert torch.allclose(few, alone, atol=1e-12)


def test_label_noise_scales_the_gradient():
    problem = Parity(9, (2, 5), noise=0.25)
    gradient = streamed_gradients(problem, [100_000], torch.Generator().manual_seed(0), two_neuron=True)[0]
    assert gradient[2].item() == pytest.approx(0.5 * majority_gradient(9).hidden, abs=0.015)


@pytest.mark.parametrize(("n", "k", "samples"), [(200, 2, 8000), (50, 3, 60_000), (20, 4, 50_000)])
def test_one_gradient_names_the_support(n, k, samples):
    named = [
        named_by_one_gradient(streamed_gradients(problem, [samples], seeded_generator(seed, "data")), problem).item()
        for seed, problem in enumerate(draw_problems(n, k, range(20)))
    ]
    assert sum(named) >= 19


def test_the_prediction_is_near_what_is_measured():
    for n, k, r in ((60, 2, None), (14, 3, None), (40, 2, 64)):
        predicted = one_gradient_samples(n, k, r)
        counts = [int(f * predicted) for f in (0.25, 0.5, 1.0, 2.0)]
        found = smallest_samples(n, k, 30, counts, r=r).samples
        assert found is not None
        assert 0.3 < found / predicted < 1.6


def test_an_orthogonal_code_only_centres():
    g = torch.randn(2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(through_code(g, positions.orthogonal(6)), g - g.mean(-1, keepdim=True))


def test_the_crossing_is_interpolated():
    assert _crossing([10, 100], [0.8, 1.0]) == round(10**1.5)
    assert _crossing([10, 100], [1.0, 0.5]) is None
    assert _crossing([10, 100], [0.9, 1.0]) == 10


@pytest.mark.parametrize(
    ("problem", "two_neuron", "sentence"),
    [(Parity(5, (0, 1), bias=0.4), False, "bias must be 0.5"), (Parity(5, (0, 1, 2)), True, "k must be 2")],
)
def test_bad_problems_are_named(problem, two_neuron, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        streamed_gradients(problem, [10], torch.Generator(), two_neuron=two_neuron)


def test_equal_entries_name_the_first_positions_whatever_single_precision_adds():
    gradient = torch.tensor([0.2, 0.5, 0.5, 0.5, 0.1], dtype=torch.float64)
    for seed in range(10):
        noise = 1e-6 * torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        shaken = (gradient * (1 + noise))[None]
        assert [named_by_one_gradient(shaken, Parity(5, pair)).item() for pair in ((1, 2), (1, 3))] == [True, False]


def test_scores_are_those_of_one_gradient_step():
    signs = positions.draw_signs(40, 30, torch.Generator().manual_seed(0))
    model = xor_transformer(torch.zeros(2, 30, dtype=torch.float64), signs)
    population_risk(model, Parity(40, (0, 1)), loss="hinge", engine="pair").value.backward()
    with torch.no_grad():
        model._directions -= one_step_learning_rate(40, score_units=3.0) * model._directions.grad
    assert torch.allclose(model.scores()[0], 3 * unit_scores(signs), atol=1e-9)


@pytest.mark.parametrize("kind", [*substitutes(8)])
def test_every_substitute_is_bounded_below_by_the_certificate(kind):
    ((x, y),) = list(Parity(8, (0, 1)).enumerate())
    signs = 1 - 2 * x.double()
    for seed in range(10):
        scores = 3 * torch.randn(8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        scores[:2] += 6
        c = substitutes(8)[kind](scores)
        largest = (1 - y * ((signs @ c).abs() - 1)).relu().max().item()
        bound = least_worst_loss(c)
        assert bound <= largest + 1e-12
        if c[2:].abs().sum() < (c[0] + c[1]).abs():
            assert bound == pytest.approx(largest, abs=1e-12)


def test_most_substitutes_start_uniform():
    for kind, weights in substitutes(1000).items():
        start = weights(torch.zeros(1000, dtype=torch.float64)).sum().item()
        assert start == pytest.approx(0.002 if "2 log n" in kind else 2.0, rel=0.01)


def test_the_smallest_code_is_found_and_may_not_exist():
    r = smallest_code(300, seed=0, most=96)
    assert r is not None
    assert 8 <= r <= 60
    assert smallest_code(300, seed=0, most=9) is None
