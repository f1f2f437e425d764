import math

import numpy as np
import pytest

from parityscope.papers.w.over_seeds import Cell, cells_by, exponential, line, power_law
from parityscope.papers.w.settings import smoke
from parityscope.records import Row
from parityscope.runs.decoder import DecoderNumbers


def rows(*counts, **settings):
    found = [DecoderNumbers.model_construct(samples=(count,)) for count in counts]
    return [Row(smoke("", seed=seed, **settings), numbers) for seed, numbers in enumerate(found)]


@pytest.mark.parametrize(
    ("counts", "median", "text"),
    [
        ((300, 100, 200), 200, "200 (100–300; all 3 seeds)"),
        ((300, None, 100), 300, "300 (100–300; 2 of 3 seeds)"),
        ((None, None, 100), None, "more than 640 (100–100; 1 of 3 seeds)"),
        ((None, None), None, "more than 640 (0 of 2 seeds)"),
        ((100,), 100, "100"),
    ],
)
def test_a_seed_whose_budget_ended_counts_as_never(counts, median, text):
    cell = Cell(tuple(rows(*counts)))
    assert cell.median == median
    assert str(cell) == text


def test_the_rate_that_most_seeds_reach_is_chosen():
    quick, sure = rows(50, None, learning_rate=1e-3), rows(90, 95, learning_rate=2e-3)
    assert cells_by([*quick, *sure], lambda training: training.k)[2].needed == [90, 95]


def test_the_interval_of_a_line_is_that_of_least_squares():
    generator = np.random.default_rng(0)
    x = np.repeat(np.arange(1.0, 13), 5)
    y = 2000 + 300 * x + generator.normal(0, 50, len(x))
    law = line(list(zip(x, y, strict=True)))
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    assert law.slope == pytest.approx(slope)
    assert law.high - law.slope == pytest.approx(1.959964 * math.sqrt(covariance[0, 0]), rel=1e-6)
    assert law.low < 300 < law.high
    assert law.explained == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


def test_laws_need_three_points_and_two_places():
    assert line([(1, 2.0), (2, 3.0)]) is None
    assert line([(1, 2.0)] * 4) is None
    assert exponential([(1, 2.0), (2, 3.0)]) is None


def test_exponentials_and_powers_are_told_apart():
    assert exponential([(k, 7 * 3.0**k) for k in (1, 2, 5)]).slope == pytest.approx(3)
    assert power_law([(k, 7 * k**1.5) for k in (1, 2, 5)]).slope == pytest.approx(1.5)
