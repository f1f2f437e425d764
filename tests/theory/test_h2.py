import math

import pytest
import torch

from parityscope import Parity, population_risk
from parityscope.models import positions, xor_transformer
from parityscope.theory import best_uniform_step, expected_outside_weight, one_step_learning_rate, polylog_numbers


@pytest.mark.parametrize(("n", "heads"), [(10, 2), (11, 2), (12, 1), (200, 2)])
def test_one_step_moves_the_pair_by_the_units_asked_for(n, heads):
    model = xor_transformer(torch.zeros(heads, n, dtype=torch.float64), positions.orthogonal(n))
    population_risk(model, Parity(n, (2, 7)), loss="hinge", engine="pair" if n > 20 else "enumerate").value.backward()
    rate = one_step_learning_rate(n, heads, score_units=5.0)
    change = -rate * model._directions.grad
    expected = torch.full((heads, n), -5 * 2 / n, dtype=torch.float64)
    expected[:, [2, 7]] += 5
    assert torch.allclose(change, expected, atol=1e-9)


def test_the_default_step_is_four_logarithms():
    assert one_step_learning_rate(50) == pytest.approx(one_step_learning_rate(50, score_units=4 * math.log(50)))


def test_the_mean_weight_off_the_pair_is_the_average_over_codes():
    n, r, units = 300, 60, 6.0
    g = torch.Generator().manual_seed(0)
    sums = []
    for _ in range(400):
        signs = positions.random_signs(n, r, g)
        sums.append((units * (signs[2:] @ (signs[0] + signs[1]))).exp().sum() / math.exp(units))
    assert torch.stack(sums).mean().item() == pytest.approx(expected_outside_weight(n, r, units), rel=0.05)


def test_the_data_free_step_is_near_the_best_one():
    n = 2000
    r = polylog_numbers(n)
    distances = {}
    for seed in range(10):
        signs = positions.random_signs(n, r, torch.Generator().manual_seed(seed))
        scores = signs @ (signs[0] + signs[1] - 2 * signs.mean(0))
        for units in (best_uniform_step(n, r), *range(4, 60, 2)):
            c = 2 * torch.softmax(units * scores, -1)
            distance = c[2:].sum() + (c[:2] - 1).abs().sum()
            distances.setdefault(units, []).append(distance.item())
    medians = {units: sorted(values)[5] for units, values in distances.items()}
    assert medians[best_uniform_step(n, r)] < 1.5 * min(medians.values())
