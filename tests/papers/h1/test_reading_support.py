from itertools import pairwise

import pytest
import torch

from parityscope import Parity
from parityscope.papers.h1.figures.reading_support import (
    CONFIGS,
    SupportReadingNumbers,
    calibration,
    findings,
    read_support,
    reading_is_confirmed,
    table,
)
from parityscope.problems import seeded_generator
from parityscope.records import Row


def test_readings_of_diffuse_and_wrong_attention():
    weights = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.0, 0.2, 0.9, 0.9]])
    reading = read_support(weights, 2)
    assert reading.above_half.tolist() == [[True, True, False, False], [False] * 4, [False, False, True, True]]
    assert torch.allclose(reading.gap, torch.tensor([1.0, 0.0, 0.7]))
    assert reading.largest.sum(-1).tolist() == [2, 2, 2]


def test_only_the_hidden_bits_are_confirmed():
    problem = Parity(8, (1, 4))
    for other in range(8):
        for another in range(other):
            named = torch.zeros(8, dtype=torch.bool)
            named[[other, another]] = True
            right = {other, another} == {1, 4}
            assert reading_is_confirmed(named, problem, seeded_generator(other, "held-out")) is right
    assert not reading_is_confirmed(torch.zeros(8, dtype=torch.bool), problem, seeded_generator(0, "held-out"))


def row(arrays, *learned):
    """A row of runs whose hidden bits were named right exactly where they learned."""
    numbers = SupportReadingNumbers(learned=learned, largest_right=learned, above_half_right=learned, confirmed=learned)
    return Row(CONFIGS["smoke"][0], numbers, arrays)


def test_calibration_counts_stages_and_runs():
    arrays = {
        "gap": torch.tensor([[0.01, 0.01], [0.7, 0.7], [0.7, 0.9]]),
        "largest": torch.tensor([[False, False], [True, False], [True, True]]),
    }
    points = calibration([row(arrays, True, True)], learned=True)
    assert [(round(gap, 2), round(value, 3), share.trials) for gap, value, share in points] == [
        (0.01, 0.0, 2),
        (0.7, 0.667, 2),
        (0.9, 1.0, 1),
    ]
    assert calibration([row(arrays, True, True)], learned=False) == []


def test_only_runs_that_learned_or_only_the_others_are_calibrated():
    arrays = {"gap": torch.tensor([[0.7, 0.7]]), "largest": torch.tensor([[True, False]])}
    (of_learned,) = calibration([row(arrays, True, False)], learned=True)
    (of_others,) = calibration([row(arrays, True, False)], learned=False)
    assert (of_learned[1], of_others[1]) == (1.0, 0.0)


@pytest.fixture(scope="module")
def bounded():
    config = next(one for one in CONFIGS["smoke"] if one.label == "bounded, k = 3")
    return Row.of(config, config.run())


def test_a_row_agrees_with_the_training_it_reads(bounded):
    trained = bounded.config.training.run().numbers
    assert bounded.numbers.learned == trained.learned
    assert bounded.numbers.largest_right == trained.recovered
    assert bounded.arrays["largest"][-1].tolist() == list(trained.recovered)
    assert bounded.arrays["accurate"][-1].tolist() == [value > 0.99 for value in trained.accuracy]


def test_stages_grow_apart_and_end_after_the_last_step(bounded):
    stages = bounded.arrays["stages"]
    assert (stages[1:] > stages[:-1]).all()
    assert int(stages[-1]) == max(bounded.config.training.run().numbers.steps) + 1
    assert all(later >= 1.2 * earlier for earlier, later in pairwise(stages[2:-1]))
    assert all(len(bounded.arrays[name]) == len(stages) for name in ("gap", "largest", "above_half", "accurate"))


def test_labels_say_the_recipe_k_and_the_examples():
    labels = [one.label for one in CONFIGS["demo"]]
    assert labels[:2] == ["as written, k = 3", "as coded, k = 2"]
    assert labels[-1] == "bounded, k = 3, N = 2000"


def test_a_confirmed_reading_that_is_wrong_is_counted():
    yes, no = (True, True, False), (False, True, False)
    numbers = SupportReadingNumbers(learned=no, largest_right=yes, above_half_right=no, confirmed=yes)
    assert numbers.confirmed_but_wrong == 1
    stages = {
        "stages": torch.tensor([0, 4]),
        "gap": torch.tensor([[0.0] * 3, [0.7, 0.7, 0.1]]),
        "largest": torch.tensor([[False, True, False], [True, True, False]]),
        "accurate": torch.tensor([[False] * 3, [False, True, False]]),
    }
    rows = [Row(CONFIGS["smoke"][0], numbers, stages)]
    assert table(rows).rows[0][-2:] == ["2", "1"]
    recovered, confidence, order = (one.here for one in findings(rows))
    assert recovered.startswith("Of 1 runs")
    assert "Of the 2 runs that did not learn, 1 recover" in recovered
    assert "right at 2 of 2 stages" in confidence
    assert "2 confirmed, 1 of them wrong" in confidence
    assert order.startswith("In 1 of 1 runs")
