import torch

from parityscope import Parity
from parityscope.papers.h1.figures.reading_support import calibration, read_support, reading_is_confirmed
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


def test_calibration_counts_stages_and_runs():
    arrays = {
        "gap": torch.tensor([[0.01, 0.01], [0.7, 0.7], [0.7, 0.9]]),
        "largest": torch.tensor([[False, False], [True, False], [True, True]]),
        "learned": torch.tensor([True, True]),
    }
    points = calibration([Row("x", {}, {}, arrays)], learned=True)
    assert [(round(gap, 2), round(value, 3), share.trials) for gap, value, share in points] == [
        (0.01, 0.0, 2),
        (0.7, 0.667, 2),
        (0.9, 1.0, 1),
    ]
    assert calibration([Row("x", {}, {}, arrays)], learned=False) == []
