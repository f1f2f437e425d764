"""H1's minima: derivatives by three routes, the certificate, and what it must refuse."""

import pytest
import torch
from mpmath import mp

from parityscope.papers.claim import computed
from parityscope.papers.h1.circle import Circle
from parityscope.papers.h1.descents import Ends, FullMatrix, first_gradient_by_hand, full_risk, whole
from parityscope.papers.h1.minima import INTERVALS, Landscape, PlainRisk, certify, descend, polish, starts
from parityscope.problems import Parity
from parityscope.training.learning import learn

SIZES = [(4, (0, 2)), (5, (1,)), (6, (0, 1)), (6, (0, 2, 3))]
KNOWN = torch.tensor([[-0.00516898823768, -0.96430867824], [-0.00516898823768, 0.96430867824]], dtype=torch.float64)


@pytest.mark.parametrize(("n", "support"), SIZES)
def test_closed_derivatives_are_those_of_autograd_and_of_many_digits(n, support):
    k, heads = len(support), starts([3], len(support))
    circle = Circle(n, k, 1 / n, 0.01)
    gradient, hessian = Landscape(circle, support).derivatives(heads)
    assert torch.allclose(gradient, circle.risk_gradient(heads, support).flatten(1), rtol=1e-9, atol=1e-12)
    assert torch.allclose(hessian, circle.risk_second_derivatives(heads, support), rtol=1e-9, atol=1e-10)
    with mp.workdps(30):
        plain = PlainRisk(mp, n, support, f"1/{n}", "0.01").derivatives(heads[0].tolist())
        assert float(plain.risk) == pytest.approx(float(circle.risk(heads[0], support)), rel=1e-12)
        assert [float(slope) for slope in plain.gradient] == pytest.approx(gradient[0].tolist(), rel=1e-8, abs=1e-12)
        flat = [float(value) for row in plain.hessian for value in row]
    assert flat == pytest.approx(hessian.flatten().tolist(), rel=1e-8, abs=1e-9)


def test_intervals_hold_every_point_of_a_box():
    point, half = starts([1], 2)[0], 1e-3
    box = [[INTERVALS.mpf([value - half, value + half]) for value in head] for head in point.tolist()]
    found = PlainRisk(INTERVALS, 4, (0, 2), "1/4", "0.01").derivatives(box)
    land = Landscape(Circle(4, 2, 1 / 4, 0.01), (0, 2))
    moved = point + half * (2 * torch.rand(200, 2, 2, generator=torch.Generator().manual_seed(0)) - 1).double()
    risk, _ = land.slopes(moved)
    gradient, hessian = land.derivatives(moved)
    assert ((float(found.risk.a) <= risk) & (risk <= float(found.risk.b))).all()
    for index, interval in enumerate(found.gradient):
        assert ((float(interval.a) <= gradient[:, index]) & (gradient[:, index] <= float(interval.b))).all()
    for i, row in enumerate(found.hessian):
        for j, interval in enumerate(row):
            assert ((float(interval.a) <= hessian[:, i, j]) & (hessian[:, i, j] <= float(interval.b))).all()


def test_the_minimum_of_the_audit_is_found_and_certified():
    found = certify(6, (0, 1), "1/6", "0.01", KNOWN, seed=0)
    assert found.risk.startswith("1.7816995312")
    assert found.gradient < 1e-35
    assert found.eigenvalues == pytest.approx((0.840, 1.404, 1.468, 1.539), abs=1e-3)
    assert found.radius > 1e-4
    assert 0 < found.least_curvature < found.eigenvalues[0]


def test_nothing_lies_lower_inside_the_certified_box():
    found = certify(6, (0, 1), "1/6", "0.01", KNOWN, seed=0)
    land = Landscape(Circle(6, 2, 1 / 6, 0.01), (0, 1))
    point = torch.tensor([[float(a), float(b)] for a, b in found.heads], dtype=torch.float64)
    away = found.radius * (2 * torch.rand(500, 2, 2, generator=torch.Generator().manual_seed(0)) - 1).double()
    rise = land.slopes(point + away)[0] - float(found.risk)
    assert (rise >= 0.4 * found.least_curvature * away.flatten(1).square().sum(-1)).all()


def test_a_saddle_gets_no_certificate():
    # Uniform attention: the gradient is 0 by symmetry, and the Hessian is not positive definite.
    found = certify(4, (0, 2), "1/4", "0.01", torch.zeros(2, 2), seed=0)
    assert found.gradient < 1e-30
    assert found.eigenvalues[0] < 0
    assert (found.radius, found.least_curvature) == (0.0, 0.0)


def test_descent_is_the_recipes():
    support, seeds, steps = (0, 3), range(4), 40
    run = learn(Parity(6, support), "as-written", seeds, learning_rate=0.01, steps=steps)
    ended, rise = descend(Landscape(Circle(6, 2, 1 / 6, 0.01), support), starts(seeds, 2), 0.01, steps)
    assert torch.allclose(run.model.directions.detach(), ended, rtol=1e-9, atol=1e-12)
    assert rise.max() < 1e-12


def test_newton_ends_in_the_minimum_that_descent_approached():
    land = Landscape(Circle(6, 2, 1 / 6, 0.01), (0, 1))
    end, slope, least = polish(land, KNOWN[None] + 0.01)
    assert torch.allclose(end[0], KNOWN, atol=1e-9)
    assert slope < 1e-12
    assert least == pytest.approx(0.8404, abs=1e-3)


def test_starts_are_sorted_and_different_minima_certified_once():
    row = computed(Ends(n=6, support=(0, 3), seeds=tuple(range(16)), steps=2000, certified=5))
    numbers = row.numbers
    assert sum(numbers.in_strict_minimum) >= 2
    assert not any(a and b for a, b in zip(numbers.learned, numbers.in_strict_minimum, strict=True))
    levels = [round(float(minimum.risk), 5) for minimum in numbers.minima]
    assert len(set(levels)) == len(levels) >= 1
    assert all(minimum.least_curvature > 0 and minimum.gradient < 1e-35 for minimum in numbers.minima)
    assert row.arrays["valley"].shape == (4, 61)
    assert row.arrays["valley"].argmin(-1).tolist() == [30] * 4
    assert numbers.largest_rise < 1e-12


def test_the_whole_matrix_gets_a_gradient_where_the_proof_says_none():
    row = computed(FullMatrix(n=4, support=(0, 2), seeds=(0, 1), steps=3))
    assert row.numbers.gradient_of_other_rows == 0
    assert row.numbers.gradient_of_a11_a12 > row.numbers.gradient_of_a13_a14 > 1
    assert row.numbers.largest_rise < 1e-12
    by_hand = first_gradient_by_hand(4, (0, 2), starts([0], 2)[0].tolist())
    assert list(row.numbers.first_row) == pytest.approx(by_hand, rel=1e-6)


def test_the_whole_matrix_without_its_first_entries_is_the_proofs_model():
    heads = starts(range(3), 2)
    by_circle = [Circle(6, 2, 1 / 6, 0.01).risk(one, (0, 1)).item() for one in heads]
    assert full_risk(whole(heads), 6, (0, 1)).tolist() == pytest.approx(by_circle, rel=1e-12)
