import math

import numpy as np
import pytest
import torch

from parityscope.papers.w.settings import (
    DecoderCell,
    best_by_k,
    exponential,
    fell_before_jump,
    growth,
    line,
    power,
    power_law,
    samples,
    smoke,
)
from parityscope.records import Row
from parityscope.runs.decoder import DecoderNumbers


def row(k, count, rate=1e-4, **arrays):
    numbers = DecoderNumbers.model_construct(samples=(None, None, count))
    return Row(smoke("", k=k, learning_rate=rate, steps=10, batch=10), numbers, arrays)


def test_the_best_rate_is_chosen_and_failures_count_as_never():
    rows = [row(1, None, 1e-3), row(1, 40, 2e-3), row(1, 30, 3e-3), row(2, None)]
    best = best_by_k(rows)
    assert best[1].config.training.learning_rate == 3e-3
    assert samples(best[2]) is None


def test_growth_is_the_slope_of_the_logarithm():
    assert math.isclose(growth([(k, 5 * 3.0**k) for k in (1, 2, 4)]), 3.0)
    assert growth([(1, 5.0)]) is None


def test_power_is_the_slope_of_both_logarithms():
    assert math.isclose(power([(k, 5 * k**1.5) for k in (1, 2, 4)]), 1.5)
    assert power([(2, 5.0), (2, 6.0)]) is None


def test_falls_and_jumps_are_located():
    step = torch.tensor([0.0, 10.0, 20.0, 30.0])
    entropy = torch.tensor([1.0, 0.9, 0.2, 0.0])[:, None, None]
    accuracy = torch.tensor([0.5, 0.5, 0.5, 1.0])
    assert fell_before_jump(row(1, 1, step=step, entropy=entropy, accuracy=accuracy)) == (20, 30)


def test_figures_that_share_a_training_share_its_address():
    assert smoke("one").row_config() == smoke("another").row_config() != smoke("one", seed=1).row_config()


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
    cell = DecoderCell(tuple(rows(*counts)))
    assert cell.median == median
    assert str(cell) == text


def test_the_interval_of_a_line_is_that_of_least_squares():
    generator = np.random.default_rng(0)
    x = np.repeat(np.arange(1.0, 13), 5)
    y = 2000 + 300 * x + generator.normal(0, 50, len(x))
    law = line(list(zip(x, y, strict=True)))
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    assert law.slope == pytest.approx(slope)
    assert law.high - law.slope == pytest.approx(1.959964 * math.sqrt(covariance[0, 0]), rel=1e-6)
    assert law.low < 300 < law.high


def test_laws_need_three_points_and_two_places():
    assert line([(1, 2.0), (2, 3.0)]) is None
    assert line([(1, 2.0)] * 4) is None
    assert exponential([(1, 2.0), (2, 3.0)]) is None


def test_exponentials_and_powers_are_told_apart():
    assert exponential([(k, 7 * 3.0**k) for k in (1, 2, 5)]).slope == pytest.approx(3)
    assert power_law([(k, 7 * k**1.5) for k in (1, 2, 5)]).slope == pytest.approx(1.5)
