"""H1's own starts in a proved basin: where there are some, where there are none, and where they lead."""

import math
from fractions import Fraction

import pytest
import torch

from parityscope.papers.h1.circle import SMOOTHING, Circle
from parityscope.papers.h1.minima import Landscape, descend
from parityscope.papers.h1.own_starts import SETTINGS, own_starts, own_starts_again


def test_starts_near_the_directions_descend_to_the_minimum():
    found = own_starts(SETTINGS[0])
    setting = found.setting
    land = Landscape(Circle(setting.n, 2, float(setting.constant) / setting.n, SMOOTHING), setting.support)
    apart = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64) * 0.9 * found.radius
    angles = torch.atan2(found.heads[:, 1], found.heads[:, 0]) + apart
    begun = torch.stack([angles.cos(), angles.sin()], dim=-1)
    ended, _ = descend(land, begun, rate=0.5, steps=200)
    torch.testing.assert_close(ended, found.heads.expand_as(ended), atol=1e-9, rtol=0)
    assert found.least_risk < found.risk < found.largest_risk


def test_a_ball_of_starts_is_less_than_all_that_are_proved():
    found = own_starts(SETTINGS[0])
    again = own_starts_again(found.numbers())
    assert again.judged == pytest.approx(2 * math.pi * found.radius**2 / (2 * math.pi) ** 2, rel=0.01)
    assert again.judged < found.failing < 20 * again.judged


def test_at_another_temperature_no_start_is_in_the_basin():
    assert own_starts(SETTINGS[0]._replace(constant=Fraction("1.05"))).failing == 0


def test_a_rate_beyond_the_proved_one_fails_nothing(monkeypatch):
    monkeypatch.setattr("parityscope.theory.theorem_5_learning_rate", lambda *at: 10.0)
    assert own_starts(SETTINGS[0]).failing == 0
