"""The spectral engine: its kernels, its scan and its bounds on value and gradient, each by another route."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from additive_model import AdditiveModel
from harness.engines import weights_of
from parityscope import Cosine, InvalidInput, Parity, Triangle, ZigZag, jittered_risk, population_risk
from parityscope.models.readouts import PiecewiseLinear
from parityscope.risk.engines.grouped import grouped_risk
from parityscope.risk.engines.spectral import engine as spectral
from parityscope.risk.engines.spectral.engine import heavy_positions, spectral_risk
from parityscope.risk.engines.spectral.scan import Bounds, Scan
from parityscope.risk.engines.spectral.series import Periodic, Tapers, Window, bohman, vaaler
from parityscope.risk.engines.split.sums import split_mean
from parityscope.risk.pieces.pieces import TIE, Pieces, Piecewise, accuracy, correlation, hinge, label_noise, squared

KINDS = ("uniform", "diffuse", "sharp", "solved", "nearly solved", "repeated", "sparse", "zero", "any", "signed")
LOSSES = {
    "hinge": hinge,
    "squared-hinge": lambda f: hinge(f, 2),
    "squared": squared,
    "correlation": correlation,
    "accuracy": accuracy,
    "noisy": lambda f: label_noise(hinge(f, 2), 0.1),
}


def log_normal(n, k, spread, seed=0):
    noise = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return k * torch.softmax(spread * noise, 0)


def first_hidden(n, k):
    return torch.arange(n) < k


@pytest.mark.parametrize("last", [1, 2, 7, 40])
def test_vaalers_sum_is_within_fejers_of_the_sawtooth(last):
    x = np.linspace(-1.3, 1.7, 20_001)
    m = np.arange(1, last + 1)
    weights = vaaler(torch.from_numpy(m / (last + 1))).numpy()
    close = -(weights / m) @ np.sin(2 * np.pi * np.outer(m, x)) / np.pi
    fejer = (1 + 2 * (1 - m / (last + 1)) @ np.cos(2 * np.pi * np.outer(m, x))) / (2 * last + 2)
    missed = np.abs(x - np.floor(x) - 0.5 - close)
    assert (missed <= fejer + 1e-12).all()
    assert (missed > 0.999 * fejer - 1e-12).any()  # and at a whole number it is all of it: nothing less would do


def test_bohmans_weights_are_the_transform_of_a_density_of_variance_pi_squared():
    t = torch.linspace(0, 1, 4001, dtype=torch.float64)
    u = torch.linspace(-40, 40, 801, dtype=torch.float64)
    density = torch.trapezoid(bohman(t) * torch.cos(u[:, None] * t), t) / math.pi
    assert density.min() > -1e-9
    step = 1e-4
    assert (2 - 2 * bohman(torch.tensor(step, dtype=torch.float64)).item()) / step**2 == pytest.approx(
        math.pi**2, rel=1e-3
    )


@settings(max_examples=40)
@given(
    n=st.integers(2, 14),
    k=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
    readout=st.sampled_from([ZigZag, Triangle]),
    loss=st.sampled_from(sorted(LOSSES)),
    offset=st.sampled_from([0.0, 0.37]),
    digits=st.integers(1, 6),
    gradient_tolerance=st.sampled_from([math.inf, 1e-2]),
    seed=st.integers(0, 10**6),
)
def test_value_and_gradient_are_within_their_bounds_of_the_exact_ones(
    n, k, kind, readout, loss, offset, digits, gradient_tolerance, seed
):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.randperm(n, generator=generator)[: min(k, n)]] = True
    weights = weights_of(kind, n, k, mask, generator)
    pieces = LOSSES[loss](readout(k).piecewise_linear())
    exact = split_mean(weights[None], torch.tensor([offset], dtype=torch.float64), mask[None], pieces)
    with pytest.MonkeyPatch.context() as patch:  # small budgets: bounds hold wherever the work ends
        patch.setattr(spectral, "_BUDGET", 10**6)
        patch.setattr(spectral, "_MOST_SCANNED", 10**7)
        found = spectral_risk(weights, mask, pieces.shifted(offset), 10.0**-digits, gradient_tolerance)
    assert abs(found.value - exact.value.item()) <= found.error_bound + 1e-13 * (1 + abs(found.value))
    rounding = 1e-12 * (1 + exact.by_weight.abs().max().item())
    assert (found.by_weight - exact.by_weight[0]).abs().max().item() <= found.gradient_bound + rounding
    assert abs(found.by_offset - exact.by_offset.item()) <= found.gradient_bound + rounding


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_the_bounds_are_no_larger_than_what_they_are_for(spread):
    weights, mask = log_normal(120, 3, spread), first_hidden(120, 3)
    found = spectral_risk(weights, mask, hinge(ZigZag(3).piecewise_linear(), 2), 1e-9, 1e-5)
    assert found.error_bound < 1e-9
    assert found.gradient_bound < 1e-5


def test_two_reaches_agree_within_their_bounds_and_closer_than_the_shorter_ones():
    """The rough series errs by much of its bound where the density at the kinks is as large as anywhere."""
    weights, mask, pieces = log_normal(90, 1, 0.5), first_hidden(90, 1), hinge(ZigZag(1).piecewise_linear())
    rough, fine = (spectral_risk(weights, mask, pieces, 1e-6, tolerance) for tolerance in (1e-1, 1e-5))
    apart = (rough.by_weight - fine.by_weight).abs().max().item()
    assert apart <= rough.gradient_bound + fine.gradient_bound
    assert fine.gradient_bound < 1e-5 < rough.gradient_bound


@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_the_lattice_knows_the_same_gradient_at_a_hundred_bits(spread):
    model, problem = AdditiveModel(log_normal(100, 3, spread), ZigZag(3)), Parity(100, (0, 1, 2))
    risks = [population_risk(model, problem, engine=engine, tolerance=1e-8) for engine in ("spectral", "lattice")]
    gradients = [torch.autograd.grad(risk.value, [model.weights])[0] for risk in risks]
    assert abs(risks[0].value - risks[1].value) <= risks[0].error_bound + risks[1].error_bound
    apart = (gradients[0] - gradients[1]).abs().max()
    assert apart <= risks[0].gradient_bound + risks[1].gradient_bound


@settings(max_examples=25)
@given(n=st.integers(2, 60), spread=st.floats(0, 3), base=st.floats(0.05, 3), seed=st.integers(0, 10**6))
def test_the_scan_bounds_every_product_of_cosines_that_it_does_not_keep(n, spread, base, seed):
    """Block by block, with one position left out, at every multiple."""
    c = log_normal(n, 3, spread, seed)
    scan = Scan(c, base)
    scan.extend(600 * base, 1e-3, lambda t: (t.new_ones(len(t)), t.new_ones(len(t))))
    kept, rest = scan.select(Bounds(1e300, 1e-2, 1e-2), 10**6, lambda t: (t.new_ones(len(t)), t.new_ones(len(t))))
    everything = torch.arange(1, 1 + scan.blocks(scan.reach) * scan.per)
    left = everything[~torch.isin(everything, kept)]
    cosines = (0.5 * left.double()[:, None] * base * c).cos().abs()
    smallest = cosines.argmin(1, keepdim=True)
    without_one = cosines.scatter(1, smallest, 1.0).prod(1)
    assert float(without_one.sum()) <= rest.plain * (1 + 1e-9)
    assert rest.value == pytest.approx(rest.plain)


def test_the_scan_keeps_every_recurrence_of_equal_weights_with_its_neighbours_and_nothing_else():
    """Π cos(t/2) is 1 at t = 2π, 4π, …: every seventh multiple here, each a block of its own."""
    scan, ones = Scan(torch.ones(40, dtype=torch.float64), 2 * math.pi / 7), lambda t: (t.new_ones(len(t)),) * 2
    assert scan.per == 1
    scan.extend(700 * scan.base, 0.9, ones)
    kept, _ = scan.select(Bounds(1e-9, 1e-9, 1e-9), 10**6, ones)
    assert kept.tolist() == [one for one in range(1, 1 + scan.blocks(scan.reach)) if one % 7 in (6, 0, 1)]


@pytest.mark.parametrize("shortened", ["autocast", "precision"])
def test_no_setting_of_the_callers_shortens_the_scans_products(shortened):
    weights, mask, pieces = log_normal(80, 3, 0.5), first_hidden(80, 3), hinge(ZigZag(3).piecewise_linear(), 2)
    plain = spectral_risk(weights, mask, pieces, 1e-9)
    precision = torch.get_float32_matmul_precision()
    try:
        if shortened == "precision":
            torch.set_float32_matmul_precision("medium")
        with torch.autocast("cpu", torch.bfloat16, enabled=shortened == "autocast"):
            again = spectral_risk(weights, mask, pieces, 1e-9)
        assert torch.get_float32_matmul_precision() == ("medium" if shortened == "precision" else precision)
    finally:
        torch.set_float32_matmul_precision(precision)
    assert again.error_bound == plain.error_bound


def test_a_far_centre_loses_no_digits():
    """(1 − y f)² with f = 0.2 − 1e-9 (S + 5): the root lies a billion away, and coefficients are huge about it."""
    far = PiecewiseLinear(knots=(-5.0,), values=(0.2,), left=0.0, right=-1e-9)
    weights, mask = log_normal(30, 3, 0.5), first_hidden(30, 3)
    exact = split_mean(weights[None], torch.zeros(1).double(), mask[None], hinge(far, 2))
    found = spectral_risk(weights, mask, hinge(far, 2), 1e-9)
    assert abs(found.value - exact.value.item()) <= found.error_bound < 1e-9
    assert (found.by_weight - exact.by_weight[0]).abs().max() <= found.gradient_bound < 1e-8


def test_a_joint_at_the_border_of_the_window_is_counted():
    """All weights together reach the kink exactly, so that it is where the window ends."""
    weights, mask = torch.tensor([0.5, 0.25, 0.75, 0.5, 1.0], dtype=torch.float64), first_hidden(5, 2)
    for knot in (0.0, 3.0, 3.0 + 0.5e-9, 3.0 + 1e-9):
        f = PiecewiseLinear(knots=(knot,), values=(0.3,), left=-1.0, right=2.0)
        exact = split_mean(weights[None], torch.zeros(1).double(), mask[None], hinge(f))
        found = spectral_risk(weights, mask, hinge(f), 1e-4, 1e-2)
        assert abs(found.value - exact.value.item()) <= found.error_bound
        assert (found.by_weight - exact.by_weight[0]).abs().max() <= found.gradient_bound


def test_the_series_of_a_parabola_is_known():
    """x² on a window that is a whole period up to its bridge: coefficients by numerical integration."""
    parabola = squared(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0)).plus  # S²
    window = Window(0.0, 1.0, 2.5, 0.0)
    f = Periodic.of(parabola, window)
    t = 2 * math.pi / 2.5 * torch.arange(1, 5, dtype=torch.float64)
    plain = Tapers(torch.ones(4), torch.ones(4), torch.ones(4), torch.zeros(4))
    found = f.coefficients(t, plain)
    x = torch.linspace(-1, 1.5, 200_001, dtype=torch.float64)
    # The bridge starts with the slope 2 at x = 1 and ends with −2 at x = 1.5.
    bridge = np.poly1d(np.linalg.solve(_hermite(), [1, 2 * 0.25, 2 * 0.0625, 1, -2 * 0.25, 2 * 0.0625])[::-1])
    values = torch.where(x <= 1, x**2, torch.from_numpy(bridge((x.numpy() - 1.25) / 0.25)))
    wanted = torch.trapezoid(values * torch.exp(-1j * t[:, None] * x), x) / 2.5
    assert torch.allclose(found.value, wanted, atol=1e-9)
    assert torch.allclose(1j * t * found.slope, 1j * t * wanted, atol=1e-8)
    assert f.mean == pytest.approx(float(torch.trapezoid(values, x)) / 2.5, abs=1e-9)


def _hermite():
    """Value, slope and curvature of a quintic at −1 and at 1."""
    rows = []
    for at in (-1.0, 1.0):
        rows += [[at**i for i in range(6)], [i * at ** max(i - 1, 0) for i in range(6)]]
        rows.append([i * (i - 1) * at ** max(i - 2, 0) for i in range(6)])
    return np.array(rows)


def test_merged_weights_that_may_cross_a_kink_leave_no_bound_on_the_gradient():
    """Neighbours 3e-14 apart make a chain: its ends differ by more than a tie, and a merged score changes sides."""
    n, step = 24, 2.9e-13
    c = 0.1 + step * torch.arange(n, dtype=torch.float64)
    c[0] = 3.0
    f = PiecewiseLinear(knots=(1.1 + step * 132,), values=(0.0,), left=-0.5, right=0.5)
    mask = first_hidden(n, 1)
    exact = split_mean(c[None], torch.zeros(1).double(), mask[None], hinge(f))
    merged = grouped_risk(c, mask, hinge(f), merge=1e-13)
    off = (merged.by_weight - exact.by_weight[0]).abs().max().item()
    assert off > 1e-3  # the merge is wrong about many scores
    assert off <= merged.gradient_bound
    right, share = (split_mean(c[None], torch.zeros(1).double(), mask[None], accuracy(f)).value.item(), 0.0)
    share = grouped_risk(c, mask, accuracy(f), merge=1e-13)
    assert abs(share.value - right) <= share.error_bound


def test_scores_of_thousands_leave_no_bound_on_the_gradient():
    model = AdditiveModel(
        1e4 * torch.rand(20, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), ZigZag(2)
    )
    assert population_risk(model, Parity(20, (0, 1)), engine="split").gradient_bound is None
    small = AdditiveModel(model.weights.detach() / 1e4, ZigZag(2))
    assert population_risk(small, Parity(20, (0, 1)), engine="split").gradient_bound < 1e-8


class TestGradientTolerance:
    def test_auto_certifies_the_gradient_as_far_as_it_is_asked(self):
        model, problem = AdditiveModel(log_normal(100, 3, 1.0), ZigZag(3)), Parity(100, (0, 1, 2))
        loose, tight = population_risk(model, problem), population_risk(model, problem, gradient_tolerance=1e-6)
        assert tight.gradient_bound <= 1e-6 < loose.gradient_bound < 1e-4
        gradients = [torch.autograd.grad(risk.value, [model.weights])[0] for risk in (loose, tight)]
        assert (gradients[0] - gradients[1]).abs().max() <= loose.gradient_bound + tight.gradient_bound

    def test_what_has_a_finite_gradient_is_taken_as_it_is(self):
        weights = log_normal(30, 3, 1.0)
        cosine = population_risk(AdditiveModel(weights, Cosine()), Parity(30, (0, 1, 2)), gradient_tolerance=1e-9)
        assert cosine.engine == "closed-form"
        few = population_risk(AdditiveModel(weights, ZigZag(3)), Parity(30, (0, 1, 2)), gradient_tolerance=1e-6)
        assert few.engine == "split"
        assert few.gradient_bound <= 1e-6

    def test_what_cannot_be_certified_is_a_sentence(self):
        model = AdditiveModel(log_normal(30, 3, 1.0), ZigZag(3, 0.1))
        with pytest.raises(InvalidInput, match=r"split proves nothing of its gradient, not to 1e-06"):
            population_risk(model, Parity(30, (0, 1, 2)), gradient_tolerance=1e-6)
        with pytest.raises(InvalidInput, match="gradient_tolerance must be a positive number, got 0"):
            population_risk(model, Parity(30, (0, 1, 2)), gradient_tolerance=0)


def test_positions_far_above_the_rest_are_enumerated():
    weights = 0.01 * log_normal(60, 1, 0.3)
    weights[[3, 30]] = torch.tensor([0.9, -1.1], dtype=torch.float64)
    assert heavy_positions(weights).tolist() == [30, 3]
    assert not len(heavy_positions(log_normal(60, 3, 1.0)))


class TestJitter:
    """A jittered score is a mean of shifted ones: by quadrature over Bohman's density, and through the risk itself."""

    def test_it_is_the_mean_over_shifts_of_the_score(self):
        weights, width, mask = log_normal(14, 2, 1.0), 0.002, first_hidden(14, 2)
        pieces = hinge(ZigZag(2).piecewise_linear())
        found = spectral_risk(weights, mask, pieces, 1e-9, jitter=width)
        # Bohman's density in units of π/width: (1 + cos t)·const/(π² − t²)², up to where its tail is a millionth.
        t = torch.linspace(-200.0, 200.0, 16_001, dtype=torch.float64) + 1e-7
        density = (1 + t.cos()) / (math.pi**2 - t**2) ** 2
        density /= density.sum()
        shifts = t * width / math.pi
        many = split_mean(weights.expand(len(t), -1), shifts, mask.expand(len(t), -1), pieces)
        quadrature = 1e-5  # the gradient jumps with the shift
        assert abs(found.value - float(density @ many.value)) < found.error_bound + quadrature
        assert (found.by_weight - density @ many.by_weight).abs().max() < found.gradient_bound + quadrature
        unjittered = split_mean(weights[None], torch.zeros(1).double(), mask[None], pieces)
        assert (found.by_weight - unjittered.by_weight[0]).abs().max() > 50 * (found.gradient_bound + quadrature)

    @pytest.mark.parametrize("width", [1e-2, 1e-4])
    def test_it_is_second_order_in_the_width(self, width):
        model, problem = AdditiveModel(log_normal(100, 3, 1.0), ZigZag(3)), Parity(100, (0, 1, 2))
        plain, jittered = population_risk(model, problem), jittered_risk(model, problem, width=width)
        apart = abs(jittered.value - plain.value).item()
        assert 0.1 * width**2 < apart < 1e2 * width**2
        gradients = [torch.autograd.grad(risk.value, [model.weights])[0] for risk in (plain, jittered)]
        assert (gradients[0] - gradients[1]).abs().max() < plain.gradient_bound + 1e3 * width**2

    def test_its_gradient_is_that_of_its_value(self):
        weights, problem = log_normal(80, 3, 1.0), Parity(80, (0, 1, 2))
        direction = torch.randn(80, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        step = 1e-6

        def risk(by):
            model = AdditiveModel(weights + by * direction, ZigZag(3))
            return model, jittered_risk(model, problem, width=0.003)

        model, at = risk(0.0)
        (gradient,) = torch.autograd.grad(at.value, [model.weights])
        slope = (risk(step)[1].value - risk(-step)[1].value).item() / (2 * step)
        assert slope == pytest.approx(float(gradient @ direction), abs=1e-3)
        assert at.gradient_bound < 1e-3

    def test_what_it_cannot_do_is_a_sentence(self):
        model, problem = AdditiveModel(log_normal(60, 3, 1.0), ZigZag(3)), Parity(60, (0, 1, 2))
        with pytest.raises(InvalidInput, match="the width must be a positive number, got 0"):
            jittered_risk(model, problem, width=0)
        with pytest.raises(InvalidInput, match="a jitter of width 1e-13 is too narrow"):
            jittered_risk(model, problem, width=1e-13)
        with pytest.raises(InvalidInput, match=r"a jittered risk needs uniform bits, got bias 0\.3"):
            jittered_risk(model, Parity(60, (0, 1, 2), bias=0.3))


class TestWhatARefereeFound:
    """Bounds that an earlier version exceeded, each with the input that showed it."""

    def test_intervals_between_equal_scores_are_known_within_the_bound(self):
        """1{a ≤ S < b} where the last frequency was no multiple of the first, or was lost in single precision."""
        c, mask = torch.ones(4, dtype=torch.float64), first_hidden(4, 1)
        edges = torch.rand(60, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).mul(3.96).add(0.02)
        for low, high in edges.sort(1).values.tolist():
            coefs = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
            side = Piecewise(torch.tensor([low, high], dtype=torch.float64), coefs, torch.zeros(3, dtype=torch.float64))
            pieces = Pieces(side, side)
            exact = split_mean(c[None], torch.zeros(1).double(), mask[None], pieces).value.item()
            for tolerance in (3e-2, 1e-3):
                found = spectral_risk(c, mask, pieces, tolerance)
                assert abs(found.value - exact) <= found.error_bound + 1e-13

    @pytest.mark.parametrize("away", [1.05e-12, 1.5e-12, 1.9e-12, 5e-13, 0.0])
    def test_a_score_next_to_a_jump_is_on_the_side_that_ties_say(self, away):
        c, mask = torch.tensor([1.0, 0.0], dtype=torch.float64), first_hidden(2, 1)
        pieces = accuracy(PiecewiseLinear(knots=(1 - away,), values=(0.0,), left=1.0, right=1.0))
        exact = split_mean(c[None], torch.zeros(1).double(), mask[None], pieces).value.item()
        found = spectral_risk(c, mask, pieces, 1e-3)
        assert abs(found.value - exact) <= found.error_bound + 1e-13

    def test_a_kink_among_tiny_weights_is_where_ties_put_it(self):
        c = torch.tensor([1.0] + [1e-8] * 6, dtype=torch.float64)
        mask = first_hidden(7, 1)
        flat = Piecewise(c.new_empty(0), c.new_zeros(1, 2), c.new_zeros(1))
        for shift in torch.linspace(-2e-9, 2e-9, 41, dtype=torch.float64).tolist():
            top, width = 1.0 + 3.1e-8 + shift, 5e-9
            coefs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [width, -1.0], [0.0, 0.0]], dtype=torch.float64)
            centres = torch.tensor([0.0, top - width, top, 0.0], dtype=torch.float64)
            tent = Piecewise(torch.tensor([top - width, top, top + width], dtype=torch.float64) - TIE, coefs, centres)
            exact = split_mean(c[None], torch.zeros(1).double(), mask[None], Pieces(tent, flat))
            found = spectral_risk(c, mask, Pieces(tent, flat), 1e-9, 1e-2)
            assert (found.by_weight - exact.by_weight[0]).abs().max() <= found.gradient_bound + 1e-13

    def test_rounded_joints_cost_the_gradient_as_much_as_the_loss_bends(self):
        """2⁴⁰(S − q)² near the sum q of all weights, in fractions: S = q but for the rounding of q."""
        c = torch.tensor([30.1, 27.3, 12.7, 6.117, 3.3, 0.0], dtype=torch.float64)
        q, mask, bend = 30.1 + 27.3 + 12.7 + 6.117 + 3.3, first_hidden(6, 1), 2.0**40
        coefs = torch.tensor([[0.0, 0, 0], [0, 0, bend], [0, 0, 0]], dtype=torch.float64)
        side = Piecewise(torch.tensor([q - 1e-3, q + 1e-3], dtype=torch.float64), coefs, c.new_full((3,), q))
        found = spectral_risk(c, mask, Pieces(side, side), 1e-9, 1e-6)
        score = sum(map(Fraction, c.tolist()))
        slope = 2 * Fraction(bend) * (score - Fraction(q)) * 2 / 2**6  # the weight of 0 is there or not
        assert abs(found.by_offset - float(slope)) <= found.gradient_bound

    def test_the_gradient_of_a_jittered_kink_is_that_of_its_value(self):
        """E|S − 1 + u| over S = 0, 1, 2 is least where it is symmetric, to more digits than a tie has."""
        coefs = torch.tensor([[0.0, -1.0], [0.0, 1.0]], dtype=torch.float64)
        side = Piecewise(torch.tensor([1.0 - TIE], dtype=torch.float64), coefs, torch.ones(2, dtype=torch.float64))
        found = spectral_risk(
            torch.ones(2, dtype=torch.float64), first_hidden(2, 1), Pieces(side, side), 1e-9, jitter=1e-3
        )
        assert abs(found.by_offset) <= found.gradient_bound < 1e-8
        assert abs(found.by_offset) < 1e-11

    def test_a_jittered_jump_has_a_gradient(self):
        c, mask = torch.tensor([0.5, 0.7, 0.9, 0.41], dtype=torch.float64), first_hidden(4, 2)
        signs = accuracy(PiecewiseLinear(knots=(1.2,), values=(0.0,), left=1.0, right=1.0))
        below, at, above = (spectral_risk(c, mask, signs.shifted(by), 1e-9, jitter=1e-2) for by in (-1e-5, 0.0, 1e-5))
        assert at.by_offset == pytest.approx((above.value - below.value) / 2e-5, abs=1e-4)
        assert at.by_offset > 2
