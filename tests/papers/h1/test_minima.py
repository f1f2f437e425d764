"""H1's minima: derivatives by three routes, the proved basins, and what the proof must refuse."""

from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from mpmath import mp

from parityscope.models.positions import circle
from parityscope.papers.claim import computed
from parityscope.papers.h1.circle import Circle
from parityscope.papers.h1.descents import (
    Descents,
    Ends,
    FullMatrix,
    first_gradient_by_hand,
    full_risk,
    minimum_again,
    whole,
)
from parityscope.papers.h1.enclosures import Boxes, Enclosure, Intervals, arrivals, basins, prove
from parityscope.papers.h1.minima import Landscape, PlainRisk, certify, descend, polish, starts
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


def _points_of(boxes, count):
    inside = 2 * torch.rand(count, boxes.half.shape[-1], generator=torch.Generator().manual_seed(0)).double() - 1
    return boxes.centre + (inside * boxes.half) @ boxes.basis[0].T


def _holds(interval, value):
    return float(interval.low) <= value <= float(interval.high)


def test_interval_operations_hold_the_exact_results():
    generator = torch.Generator().manual_seed(0)
    x, y = 20 * torch.rand(2, 200, generator=generator).double() - 10
    one, other = Intervals.exact(x), Intervals.exact(y)
    sums = one.sum(0), one.over(torch.ones(200, 1, dtype=torch.float64))[0]
    for index in range(200):
        a, b = Fraction(float(x[index])), Fraction(float(y[index]))
        for found, exact in ((one + other, a + b), (one - other, a - b), (one * other, a * b), (one.square(), a * a)):
            assert _holds(found[index], exact)
        with mp.workdps(40):
            assert _holds(one.exp()[index], mp.exp(mp.mpf(float(x[index]))))
    assert all(_holds(found, sum(Fraction(float(value)) for value in x)) for found in sums)


@pytest.mark.parametrize(("half", "b"), [(0.0, "0.01"), (1e-3, "0.01"), (3e-2, "1/1000")])
def test_intervals_hold_every_point_of_a_box(half, b):
    n, support, count = 4, (0, 2), 20
    basis = torch.linalg.qr(torch.randn(1, 4, 4, generator=torch.Generator().manual_seed(1)).double()).Q
    boxes = Boxes(starts([1], 2).flatten(1), basis, half * torch.tensor([[1.0, 0.5, 0.2, 0.1]]).double())
    enclosure = Enclosure(n, support, Fraction(1, n), Fraction(b))
    gradient, hessian = enclosure.gradient(boxes)[0], enclosure.hessian(boxes)[0]
    for heads in _points_of(boxes, count).reshape(count, 2, 2).tolist():
        with mp.workdps(30):
            plain = PlainRisk(mp, n, support, f"1/{n}", b).derivatives(heads)
        assert all(_holds(gradient[i], plain.gradient[i]) for i in range(4))
        assert all(_holds(hessian[i, j], plain.hessian[i][j]) for i in range(4) for j in range(4))


def _basin(n, support, heads):
    land = Landscape(Circle(n, len(support), 1 / n, 0.01), support)
    enclosure = Enclosure(n, support, Fraction(1, n), Fraction(1, 100))
    return land, enclosure, basins(enclosure, heads[None], land.derivatives(heads[None])[1])


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_every_descent_from_a_proved_basin_stays_and_converges(rate):
    land, _, found = _basin(6, (0, 1), KNOWN)
    assert found.proved.all()
    assert found.fastest > rate
    heads = _points_of(found.boxes, 100).reshape(-1, 2, 2)
    for _ in range(40):
        heads = heads - rate * land.slopes(heads)[1]
        away = (heads.flatten(1) - found.boxes.centre) @ found.boxes.basis[0]
        assert (away.abs() <= found.boxes.half).all()
    ended, _ = descend(land, heads, 0.3, 200)
    assert (ended - KNOWN).abs().max() < 1e-10


def test_boxes_that_are_no_basins_are_refused():
    _, enclosure, found = _basin(6, (0, 1), KNOWN)
    boxes = found.boxes
    too_wide = Boxes(boxes.centre, boxes.basis, 40 * boxes.half)
    off_centre = Boxes(boxes.centre + 5 * boxes.half.max(), boxes.basis, boxes.half)  # convex, without its minimum
    assert not prove(enclosure, too_wide).proved.any()
    assert enclosure.hessian(off_centre).low.diagonal(dim1=1, dim2=2).min() > 0
    assert not prove(enclosure, off_centre).proved.any()
    assert not _basin(4, (0, 2), torch.zeros(2, 2, dtype=torch.float64))[2].proved.any()  # a saddle


def test_a_descent_is_followed_from_its_start_into_a_basin():
    support, begun, rate = (0, 3), starts([8], 2), 0.1
    land = Landscape(Circle(6, 2, 1 / 6, 0.01), support)
    ended = polish(land, descend(land, begun, rate, 300)[0])[0]
    _, enclosure, found = _basin(6, support, ended[0])
    (step,) = arrivals(enclosure, begun, found, rate, 100, 1e-9).tolist()
    assert 20 < step < 100
    near = begun + 4e-10 * torch.randn(20, 2, 2, generator=torch.Generator().manual_seed(0)).double().clamp(-1, 1)
    there = descend(land, near, rate, step)[0].flatten(1)
    assert (((there - found.boxes.centre) @ found.boxes.basis[0]).abs() <= found.boxes.half).all()
    assert arrivals(enclosure, begun, found, rate, step - 1, 1e-9).tolist() == [-1]
    assert arrivals(enclosure, begun, found, rate, 100, 1e-2).tolist() == [-1]  # too many starts at once
    assert arrivals(enclosure, begun, found, 1.0, 100, 1e-9).tolist() == [-1]  # a rate for which nothing is proved


def test_the_minimum_of_the_audit_is_found_and_certified():
    found = certify(6, (0, 1), "1/6", "0.01", KNOWN, seed=0)
    assert found.risk.startswith("1.7816995312")
    assert found.gradient < 1e-35
    assert found.eigenvalues == pytest.approx((0.840, 1.404, 1.468, 1.539), abs=1e-3)
    assert found.radius > 1e-4
    assert 0.1 < found.fastest_rate < 1 / found.eigenvalues[-1]
    assert 0 < found.least_curvature < found.eigenvalues[0]


def test_a_minimum_is_one_at_every_temperature_with_its_heads_scaled():
    usual, warmer = (certify(6, (0, 1), f"{c}/6", "0.01", c * KNOWN, seed=0) for c in (1, 3))
    assert warmer.risk[:30] == usual.risk[:30]
    assert [9 * one for one in warmer.eigenvalues] == pytest.approx(list(usual.eigenvalues), rel=1e-9)
    assert warmer.least_curvature > 0
    again = minimum_again(warmer.model_dump())  # the second route is at the stored temperature too
    assert again.judged == pytest.approx(float(usual.risk), rel=1e-9)


def test_minima_of_bits_that_are_no_neighbours_are_shown_first():
    row = computed(Ends(n=6, support=(0, 1), seeds=(0,), steps=1))
    high = certify(6, (0, 1), "1/6", "0.01", KNOWN, seed=0)
    across_the_end = high.model_copy(update={"support": (0, 5), "risk": "2.5"})
    apart = high.model_copy(update={"support": (0, 2), "risk": "1.5"})
    rows = [
        replace(row, numbers=row.numbers.model_copy(update={"minima": minima}))
        for minima in ((high, across_the_end), (apart,))
    ]
    assert Descents(rows).highest == apart
    assert Descents(rows[:1]).highest == across_the_end
    # Heads half as long again, on two positions: at n = 10 their attention is as Appendix A assumes it.
    sharp = tuple((str(1.5 * a), str(1.5 * b)) for a, b in circle(10)[[0, 3]].tolist())
    assumed = high.model_copy(update={"n": 10, "tau": "1/10", "heads": sharp, "risk": "1.2"})
    found = Descents([replace(row, numbers=row.numbers.model_copy(update={"minima": (apart, assumed)}))])
    assert (found.highest, found.assumed) == (assumed, [assumed])


def test_minima_elsewhere_count_once_and_at_temperatures_that_the_text_allows():
    row = computed(Ends(n=6, support=(0, 1), seeds=(0,), steps=1))
    usual = certify(6, (0, 1), "1/6", "0.01", KNOWN, seed=0)
    others = [usual.model_copy(update=one) for one in ({"tau": "1/2"}, {"tau": "1/2"}, {"b": "0.1"}, {"tau": "4/3"})]
    found = Descents([replace(row, numbers=row.numbers.model_copy(update={"minima": (usual, *others)}))])
    assert [(one.tau, one.b) for one in found.elsewhere_than(1.0, 0.01)] == [("1/2", "0.01"), ("1/6", "0.1")]


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
    assert 1 <= sum(numbers.in_proved_basin) < sum(numbers.in_strict_minimum)  # others are still on their way
    assert not any(numbers.proved_from_start)  # not asked for
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
