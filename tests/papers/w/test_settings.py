import math

import torch

from parityscope.papers.w.settings import best_by_k, fell_before_jump, growth, power, samples, smoke
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
