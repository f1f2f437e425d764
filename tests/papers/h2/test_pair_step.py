import pytest
import torch

from parityscope import Parity, population_risk
from parityscope.models import positions, xor_transformer
from parityscope.papers.h2.pair_step import least_worst_loss, smallest_code, substitutes, unit_scores
from parityscope.theory import one_step_learning_rate


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
