"""H1's Theorem 5 with all of A trained: the proved minimum, its second route, and what must be refused."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from parityscope.models import ZigZag
from parityscope.papers.h1.all_entries import (
    WholeEnclosure,
    WholePlainRisk,
    whole_minimum,
    whole_minimum_again,
    whole_risk,
)
from parityscope.papers.h1.circle import gradients_of
from parityscope.papers.h1.claims.convergence import _floor
from parityscope.papers.h1.descents import by_differences, full_risk
from parityscope.papers.h1.enclosures import Basins, Boxes, arrivals, basins, prove

ENCLOSURE = WholeEnclosure(4, (0, 1), Fraction(1), Fraction(1, 100))
# Found by an independent reader, (a11 − a12, a13, a14)/τ of both heads.
READ = torch.tensor(
    [[-1.13530076, -2.80244598, 0.67513062], [-1.13530076, -0.67513062, 2.80244598]], dtype=torch.float64
)


@pytest.fixture(scope="module")
def found():
    return whole_minimum()


@pytest.fixture(scope="module")
def point(found):
    return torch.tensor([[[float(text) for text in head] for head in found["points_over_tau"]]], dtype=torch.float64)


@pytest.fixture(scope="module")
def basin(point):
    bent = ENCLOSURE.hessian(Boxes.cubes(point.flatten(1), 0.0))
    return basins(ENCLOSURE, point, (bent.low + bent.high) / 2)


def _plain(flat):
    return WholePlainRisk(mp, 4, (0, 1), "1", "0.01").risk([flat[:3], flat[3:]])


def _holds(interval, value):
    return float(interval.low) <= value <= float(interval.high)


def _unit(*angles):
    return torch.tensor([[[0.0, 4 * math.cos(at), 4 * math.sin(at)] for at in angles]], dtype=torch.float64)


def test_the_minimum_of_the_reader_is_proved_and_one_start_leads_there(found, point):
    seen = point[0] * torch.tensor([math.sqrt(2), 1.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(seen, READ, atol=1e-8, rtol=0)
    assert found["risk"].startswith("1.345168322942645")
    assert found["least_curvature"] > 0
    assert found["proved_up_to_rate"] > found["rate"]
    assert 0 < found["value"] - found["proved_risk"] < 1e-4
    assert 50 < found["arrives_after_steps"] < 150


def test_descent_of_sixteen_entries_is_plain_descent_in_three_numbers():
    rate, generator = 0.04, torch.Generator().manual_seed(0)
    matrices = torch.randn(3, 2, 4, 4, generator=generator, dtype=torch.float64)

    def seen(of):
        return torch.stack([(of[..., 0, 0] - of[..., 0, 1]) / math.sqrt(2), of[..., 0, 2], of[..., 0, 3]], dim=-1)

    moved, points = matrices, 4 * seen(matrices)
    for _ in range(5):
        moved = moved - rate * gradients_of(lambda at: full_risk(at, 4, (0, 1)), moved)
        points = points - 16 * rate * gradients_of(whole_risk, points)
    assert (points - 4 * seen(matrices)).norm() > 0.1
    torch.testing.assert_close(4 * seen(moved), points)
    torch.testing.assert_close(moved[..., 1:, :], matrices[..., 1:, :])
    torch.testing.assert_close(moved[..., 0, :2].sum(-1), matrices[..., 0, :2].sum(-1))


@pytest.mark.parametrize("half", [0.0, 1e-3, 3e-2])
def test_intervals_hold_every_point_of_a_box(half):
    generator = torch.Generator().manual_seed(1)
    basis = torch.linalg.qr(torch.randn(1, 6, 6, generator=generator, dtype=torch.float64)).Q
    boxes = Boxes(_unit(1.0, 4.0).flatten(1), basis, half * torch.tensor([[1.0, 0.5, 0.2, 0.1, 1.0, 0.3]]))
    gradient, hessian, risk = ENCLOSURE.gradient(boxes), ENCLOSURE.hessian(boxes), ENCLOSURE.risk(boxes)
    inside = 2 * torch.rand(3, 6, generator=generator, dtype=torch.float64) - 1
    for at in (boxes.centre + (inside * boxes.half) @ basis[0].T).tolist():
        with mp.workdps(40):  # differences are right to 1e-19, far below the width of an interval
            slope, bent = by_differences(_plain, [mp.mpf(value) for value in at], mp.mpf(10) ** -10)
            assert _holds(risk[0], _plain(at))
        assert all(_holds(gradient[0, i], slope[i]) for i in range(6))
        assert all(_holds(hessian[0, i, j], bent[i, j]) for i in range(6) for j in range(6))


def test_boxes_that_are_no_basins_are_refused(basin):
    boxes = basin.boxes
    assert basin.proved.all()
    assert not prove(ENCLOSURE, Boxes(boxes.centre, boxes.basis, 40 * boxes.half)).proved.any()
    assert not prove(ENCLOSURE, Boxes(boxes.centre + 5 * boxes.half.max(), boxes.basis, boxes.half)).proved.any()
    start = _unit(2.574781762, 2.137607218).flatten(1)
    assert not prove(ENCLOSURE, Boxes(start, boxes.basis, boxes.half)).proved.any()


def test_other_starts_rates_and_balls_are_not_proved_to_arrive(basin, found):
    start, steps = _unit(2.574781762, 2.137607218), found["arrives_after_steps"]
    both = torch.tensor([0, 0])
    twice = Basins(basin.boxes[both], basin.least_curvature[both], basin.fastest[both])
    begun = torch.cat([start, _unit(2.5749, 2.1376)])
    assert arrivals(ENCLOSURE, begun, twice, 0.64, steps, 1e-9).tolist() == [steps, -1]
    assert arrivals(ENCLOSURE, start, basin, 0.64, steps, 1e-5).tolist() == [-1]  # too many starts at once
    assert arrivals(ENCLOSURE, start, basin, 0.7, steps, 1e-9).tolist() == [-1]  # a rate for which nothing is proved


def test_the_second_route_confirms_the_minimum_and_no_point_beside_it(found):
    again = whole_minimum_again(found)
    assert again.value == again.judged == pytest.approx(found["value"], rel=1e-12)
    first, second = found["points_over_tau"]
    beside = [[str(float(first[0]) + 1e-9), *first[1:]], second]
    assert math.isnan(whole_minimum_again({**found, "points_over_tau": beside}).judged)


@given(b=st.floats(1e-6, 10), k=st.integers(1, 9), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_at_all_zeros_the_loss_is_a_constant_positive_for_odd_k(b, k, seed):
    # (8i − 4)σ(½ − i) = 4bz/(z + √(z² + b)) with z = i − ½ grows with i, so the last term of the sum has its sign.
    at_zero = float(ZigZag(k, b)(torch.zeros(1, dtype=torch.float64)))
    terms = [4 * b * z / (z + math.sqrt(z * z + b)) for z in (i - 0.5 for i in range(1, k + 1))]
    assert at_zero == pytest.approx(1 + sum((-1) ** i * term for i, term in enumerate(terms, 1)), abs=1e-9 * (1 + b))
    assert (at_zero < 1) == (k % 2 == 1)
    matrices = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert (full_risk(matrices, 4, (0, 1, 3)) >= _floor(4, 3)).all()


def test_the_constant_is_of_the_order_of_the_smoothing_squared():
    assert _floor(4, 3) == pytest.approx(4 * 0.01**2 / 2**4, rel=0.05)
    assert _floor(4, 2) == 0
