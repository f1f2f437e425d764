import math

import pytest
import torch

from parityscope.language_models.measures import MEASURES
from parityscope.language_models.summary import (
    compare,
    compare_layers,
    mean_and_half_width,
    student_quantile,
    summarise,
)

GENERATOR = torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    ("degrees", "table"), [(4, 2.776), (7, 2.365), (9, 2.262), (29, 2.045), (79, 1.990), (10**6, 1.960)]
)
def test_student_quantiles_are_those_of_the_tables(degrees, table):
    assert student_quantile(degrees) == pytest.approx(table, abs=0.012 if degrees < 5 else 0.0015)


def test_half_widths_by_hand():
    mean, half = mean_and_half_width(torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]))
    assert mean.item() == 4.5
    assert half.item() == pytest.approx(2.365 * math.sqrt(6) / math.sqrt(8), abs=2e-3)  # the sample variance is 6
    assert mean_and_half_width(torch.ones(1, 3))[1].isinf().all()


def test_intervals_cover_the_truth_as_often_as_they_say():
    """300 samples of 40 problems: 95 % of the intervals hold the true mean 0, give or take four standard errors."""
    covered = 0
    for _ in range(300):
        drawn = compare(torch.randn(40, 1, generator=GENERATOR, dtype=torch.float64))
        covered += drawn.difference.low <= 0 <= drawn.difference.high
    assert abs(covered / 300 - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 300)


def test_a_clear_difference_is_lower_and_its_mirror_higher():
    difference = -0.1 + 0.05 * torch.randn(50, 6, generator=GENERATOR)
    difference[:, 5] = 0.02  # one head goes the other way
    found, mirrored = compare(difference), compare(-difference)
    assert found.heads_lower.value == pytest.approx(5 / 6)
    assert (found.surely_lower, found.surely_higher, found.heads) == (5, 1, 6)
    assert found.is_lower
    assert not found.is_higher
    assert mirrored.is_higher
    assert found.problems_lower.successes == 50
    assert found.difference.value == pytest.approx(difference.mean().item(), abs=1e-6)


def test_no_difference_is_neither_and_ties_are_not_lower():
    noise = compare(torch.randn(50, 8, generator=GENERATOR))
    assert not noise.is_lower
    assert not noise.is_higher
    tied = compare(torch.zeros(50, 8))
    assert tied.heads_lower == (0.0, 0.0, 0.0)
    assert not tied.is_higher


def test_layers_are_compared_one_by_one():
    difference = torch.randn(30, 4, 3, generator=GENERATOR, dtype=torch.float64)
    for layer, found in enumerate(compare_layers(difference)):
        alone = compare(difference[:, layer])
        assert found[2:] == alone[2:]  # counts of problems and heads
        # Means of 30 numbers of size 1, added up in another order: at most 30 roundings apart.
        for together, one in zip(found[:2], alone[:2], strict=True):
            assert together == pytest.approx(one, abs=1e-13)


def test_a_summary_compares_cot_with_both_others():
    values = torch.rand(20, 3, len(MEASURES), 2, 4, generator=GENERATOR)
    values[:, 1] = values[:, 0] - 0.1  # CoT below no CoT everywhere
    values[:, 2] = values[:, 1] - 0.1  # and above its shuffled words
    found = summarise(values)
    assert all(one.difference.value == pytest.approx(-0.1, abs=1e-6) for one in found.comparisons["no CoT"])
    assert all(one.heads_lower.value == 0 for one in found.comparisons["shuffled CoT"])
    assert torch.allclose(found.mean, values.mean(0), atol=1e-6)
    assert [len(layers) for layers in found.layers["no CoT"]] == [2] * len(MEASURES)
