"""From a readout and a loss to piecewise polynomials of the score: exact where they are, fitted where smooth.

Fits are made on intervals that are halved until the error is small.

*Smooth losses and readouts, with a proved error.* Chebyshev interpolation of degree d on an interval errs by at most
4 M rho^-d / (rho - 1) if the function is analytic and at most M in modulus inside the Bernstein ellipse rho. All
branch cuts here are vertical rays, so an ellipse is clear of them once it is clear of their tips. M comes from a
bound of the function's own; where it has none, 1.1 times the maximum over 256 boundary points stands in and the error
is an estimate.

*Any other readout, through its `forward` alone.* The error is estimated at points between the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore
from parityscope.models.readouts import Analytic, Peaked, PiecewiseLinear, Readout
from parityscope.risk.engines.subsets import Floats
from parityscope.risk.losses import AnyLoss, Loss, as_loss
from parityscope.risk.means import out_of_range
from parityscope.risk.pieces.agreement import check_analytic, check_linear, check_signs, values_at_some_scores
from parityscope.risk.pieces.pieces import (
    TIE,
    Pieces,
    Piecewise,
    accuracy,
    assemble,
    correlation,
    hinge,
    label_noise,
    squared,
)
from parityscope.risk.pieces.rounding import UNIT

_Complex = npt.NDArray[Any]
_Real = npt.NDArray[Any]
_Holomorphic = Callable[[_Complex], _Complex]  # complex in, complex out
_LOGISTIC_DEGREE, _HINGE_DEGREE = 8, 5  # of the fitted polynomials
_ROOT_CELLS = 20001  # grid on which sign changes are seen
_OfScore = Callable[[Floats], Floats]
_PROBED_DEGREE = 8
_PROBES = 40  # points of an interval at which a fit is compared with the function
_SAFETY = 2.0  # times the largest difference seen
_NARROW = 1e-11  # an interval around a kink or a jump is not halved below this
# Half widths: a score within TIE of a shorter interval's end counts as inside, where only a line can be trusted.
_LINEAR_BELOW = 1e-6
_MOST = 4096  # intervals per label
_KEPT_FITS = 64  # of one readout
_FITS: WeakKeyDictionary[nn.Module, dict[object, Pieces]] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Stretch:
    """A function analytic on [low, high] with branch cuts rising vertically from ``tips``.

    ``peak(mid, across, up)`` bounds its modulus on the ellipse of these half axes; None: it is looked for.
    """

    low: float
    high: float
    fn: _Holomorphic
    tips: _Complex
    peak: Callable[[float, float, float], float] | None


def _sampled_peak(fn: _Holomorphic, mid: float, across: float, up: float) -> float:
    turn = 2 * np.pi * np.arange(256) / 256
    with np.errstate(all="ignore"):
        peak = 1.1 * np.abs(fn(mid + across * np.cos(turn) + 1j * up * np.sin(turn))).max()
    return float(peak) if np.isfinite(peak) else math.inf


def _ellipse_error(f: _Stretch, a: float, b: float, degree: int) -> float:
    """Bound the error of interpolation on [a, b] in exact arithmetic."""
    mid, half = 0.5 * (a + b), 0.5 * (b - a)
    z = (f.tips - mid) / half
    # The ellipse with foci ±1 through z has ρ = |z + √(z² − 1)|; a branch cut's tip is where it must end.
    grow = np.abs(z + np.sqrt(z - 1) * np.sqrt(z + 1)).min() if len(z) else np.inf
    peak = f.peak or partial(_sampled_peak, f.fn)
    best = math.inf
    edge = min(1 + 0.95 * (float(grow) - 1), 1e4)
    for rho in (edge ** np.linspace(0.1, 1.0, 10)).tolist():
        if rho > 1:
            across, up = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
            # Trefethen, Approximation Theory and Approximation Practice, Theorem 8.2; any ρ gives a bound.
            best = min(best, 4 * peak(mid, across, up) * rho**-degree / (rho - 1))
    return best


def _fit_rounding(f: _Stretch, a: float, b: float, degree: int) -> float:
    """Bound the rounding of a fit: of the values at the nodes, and of coefficients, which grow like (1+√2)^d."""
    mid, half = 0.5 * (a + b), 0.5 * (b - a)
    peak = f.peak or partial(_sampled_peak, f.fn)
    largest = float(np.abs(f.fn(mid + half * np.cos(_angles(degree)) + 0j)).max())
    # The moduli of the coefficients of T_d add up to at most (1 + √2)^d.
    return UNIT * (64 * peak(mid, half, 0.0) + 2 * (degree + 12) * (1 + math.sqrt(2)) ** (degree + 1) * largest)


def _angles(degree: int) -> _Real:
    """Return the angles whose cosines are the Chebyshev nodes, the zeros of T_{d+1}."""
    return np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)


def _interpolate(fn: _Holomorphic, a: float, b: float, degree: int) -> list[float]:
    """Monomial coefficients about the midpoint."""
    mid, half = 0.5 * (a + b), 0.5 * (b - a)
    count, angles = degree + 1, _angles(degree)
    orders = np.arange(count)
    values = fn(mid + half * np.cos(angles) + 0j).real
    # Discrete orthogonality at the zeros of T_{d+1}.
    chebyshev = np.cos(orders[:, None] * angles) @ values * np.where(orders == 0, 1, 2) / count
    mono = np.polynomial.chebyshev.cheb2poly(chebyshev)
    mono = np.pad(mono, (0, count - len(mono)))
    return list(mono / half**orders)


def _fitted_side(parts: list[_Stretch], degree: int, tol: float) -> tuple[Piecewise, float]:
    """One label's function, given as consecutive analytic stretches; returns the largest error."""
    rows: list[tuple[float, list[float], float]] = []
    worst = 0.0
    for part in parts:
        todo = [(part.low, part.high)]
        while todo:
            a, b = todo.pop()
            err = _ellipse_error(part, a, b, degree)
            if err > tol and b - a > 1e-6:
                mid = 0.5 * (a + b)
                todo += [(mid, b), (a, mid)]
                continue
            worst = max(worst, err + _fit_rounding(part, a, b, degree))
            rows.append((a - TIE, _interpolate(part.fn, a, b, degree), 0.5 * (a + b)))
    return assemble(rows, degree), worst


def _softplus(w: _Complex) -> _Complex:
    """log(1 + exp(w)), complex, cut along Re w = 0, |Im w| >= pi."""
    big = w.real > 0
    tail = np.log1p(np.exp(np.where(big, -w, w)))
    return np.where(big, w + tail, tail)


def _softplus_peak(at: float, slope: float, across: float, up: float) -> float:
    """Bound |log(1 + exp w)| where Re w is within slope·across of `at`, and |Im w| at most slope·up.

    |arg(1 + exp w)| ≤ |Im w|, and |1 + exp w| ≥ sin|Im w| beyond π/2; away from Re w = 0 the series of log1p does.
    """
    low, high, turn = at - slope * across, at + slope * across, slope * up
    best = math.inf
    if turn < math.pi:
        least = -math.log(math.sin(turn)) if turn > math.pi / 2 else 0.0
        best = math.hypot(max(np.logaddexp(0.0, high), least), turn)
    if low > 0:
        best = min(best, math.hypot(high, turn) - math.log(-math.expm1(-low)))
    elif high < 0:
        best = min(best, -math.log(-math.expm1(high)))
    return best


def logistic(f: PiecewiseLinear, domain: tuple[float, float], tol: float) -> Pieces:
    """log(1 + exp(-y f(S))) on ``domain``, with an error below ``tol``."""
    sides, errors = [], []
    for y in (1, -1):
        parts = []
        for left, right, anchor, value, slope in f.segments():
            low, high = max(left, domain[0]), min(right, domain[1])
            if low >= high:
                continue
            zero = anchor - value / slope if slope else 0.0
            # log(1 + e^w) is singular where w = ±iπ.
            tips = zero + np.array([1j, -1j]) * math.pi / abs(slope) if slope else np.empty(0)
            fn = lambda s, v=value, g=slope, a=anchor, y=y: _softplus(-y * (v + g * (s - a)))  # noqa: E731
            peak = lambda mid, across, up, v=value, g=slope, a=anchor, y=y: _softplus_peak(  # noqa: E731
                -y * (v + g * (mid - a)), abs(g), across, up
            )
            parts.append(_Stretch(low, high, fn, tips, peak))
        side, err = _fitted_side(parts, _LOGISTIC_DEGREE, tol)
        sides.append(side)
        errors.append(err)
    return Pieces(sides[0], sides[1], max(errors), domain)


def _sign_changes(fn: Callable[[_Real], _Real], low: float, high: float) -> list[float]:
    """Return where a real function changes its sign, and where it starts and stops being 0, as a fine grid shows it.

    >>> [round(x, 9) for x in _sign_changes(np.cos, 0.0, 6.0)]
    [1.570796327, 4.71238898]
    >>> [round(x, 9) for x in _sign_changes(lambda x: np.maximum(x - 1, 0), 0.0, 6.0)]
    [1.0]
    """
    x = np.linspace(low, high, _ROOT_CELLS)
    sign = np.sign(fn(x))
    alone = (sign[1:-1] == 0) & (sign[2:] != 0) & (sign[:-2] != 0)  # a point of the grid that is a root
    roots = x[1:-1][alone]
    at = np.nonzero(sign[1:] != sign[:-1])[0]
    at = at[~np.isin(x[at], roots) & ~np.isin(x[at + 1], roots)]
    a, b = x[at], x[at + 1]
    for _ in range(60):
        m = 0.5 * (a + b)
        left = np.sign(fn(m)) == np.sign(fn(a))
        a, b = np.where(left, m, a), np.where(left, b, m)
    return sorted({*a.tolist(), *roots.tolist()})


def smooth_hinge(f: Analytic, domain: tuple[float, float], power: int, tol: float, *, clipped: bool = True) -> Pieces:
    """max(0, 1 - y f(S)) ** power for an analytic readout f, with an error below ``tol``; or without the maximum.

    >>> import torch
    >>> from parityscope.models.readouts import SmoothZigZag
    >>> pieces = smooth_hinge(SmoothZigZag(1, 0.25), (0.0, 1.0), power=2, tol=1e-6)
    >>> at = torch.tensor([0.5], dtype=torch.float64)  # where f = 0, so both labels lose 1
    >>> [round(side(at).item(), 5) for side in pieces.sides()]
    [1.0, 1.0]
    """
    plus, minus = (_hinge_side(f, domain, y, power, tol, clipped) for y in (1, -1))
    proved = isinstance(f, Peaked) and (not clipped or all(_no_root_missed(f, domain, y) for y in (1, -1)))
    return Pieces(plus[0], minus[0], max(plus[1], minus[1]), domain, "proved" if proved else "estimated")


def _no_root_missed(f: Analytic, domain: tuple[float, float], y: int) -> bool:
    """Say whether 1 − yf certainly changes its sign only where the grid shows it.

    Cauchy: |f″| ≤ F = 2M/r² if |f| ≤ M on discs of radius r. A cell of width h is clear when the slope across it
    exceeds Fh, so that f is monotone there, or when both ends lie farther from 0 than Fh²/8.
    """
    assert isinstance(f, Peaked)
    x = np.linspace(*domain, _ROOT_CELLS)
    width, values = x[1] - x[0], 1 - y * f(x + 0j).real
    radius = 0.9 * float(np.abs(f.tips.imag).min()) if len(f.tips) else 1.0
    bend = 2 * f.peak(sum(domain) / 2, (domain[1] - domain[0]) / 2 + radius) / radius**2
    monotone = np.abs(np.diff(values)) > bend * width**2
    same_sign = np.sign(values[1:]) == np.sign(values[:-1])
    far = same_sign & (np.minimum(np.abs(values[1:]), np.abs(values[:-1])) > bend * width**2 / 8)
    return bool((monotone | far).all())


def _hinge_side(
    f: Analytic, domain: tuple[float, float], y: int, power: int, tol: float, clipped: bool
) -> tuple[Piecewise, float]:
    def margin(s: _Complex) -> _Complex:
        return 1 - y * f(s)

    def loss(s: _Complex) -> _Complex:
        return margin(s) ** power

    def nothing(s: _Complex) -> _Complex:
        return 0 * s

    def peak(mid: float, across: float, up: float) -> float:
        assert isinstance(f, Peaked)
        return float((1 + f.peak(mid, across)) ** power)

    known = peak if isinstance(f, Peaked) else None
    kinks = _sign_changes(lambda s: margin(s + 0j).real, *domain) if clipped else []
    marks = [domain[0], *kinks, domain[1]]
    parts = []
    for a, b in pairwise(marks):
        if b - a < 1e-14:
            continue
        keep = not clipped or margin(np.array([0.5 * (a + b) + 0j])).real[0] > 0
        if keep:
            parts.append(_Stretch(a, b, loss, f.tips, known))
        else:
            parts.append(_Stretch(a, b, nothing, np.empty(0), lambda mid, across, up: 0.0))
    return _fitted_side(parts, _HINGE_DEGREE, tol)


def fitted_pieces(
    readout: Readout, loss: AnyLoss, noise: float, reach: tuple[float, float], tolerance: float
) -> Pieces:
    """Return loss(y f(S)) for both labels as polynomials on intervals, halved until the estimated error is small.

    A fit is kept as long as the readout lives and its values stay what they were.

    >>> class Soft(Readout):
    ...     def forward(self, S):
    ...         return torch.tanh(2 * S - 1)
    >>> readout, at = Soft(), torch.tensor([0.3], dtype=torch.float64)
    >>> pieces = fitted_pieces(readout, "logistic", 0.0, (0, 1), 1e-9)
    >>> truth = as_loss("logistic").of_margin(readout(at))
    >>> bool((pieces.plus(at) - truth).abs() <= pieces.error), pieces.error < 1e-9, pieces.error_is
    (True, True, 'estimated')
    """

    def values(S: Floats) -> Floats:
        with torch.no_grad():
            found = readout(torch.from_numpy(S)).numpy()
        if found.shape != S.shape or not np.isfinite(found).all():
            raise InvalidInput(
                f"forward of {type(readout).__name__} must return a finite number for every score from {reach[0]:g} to"
                f" {reach[1]:g}"
            )
        return found

    mine = _FITS.setdefault(readout, {})
    chosen = as_loss(loss)
    key = (chosen, noise, reach, tolerance, values_at_some_scores(readout, reach), _values_at_some_margins(chosen))
    if key not in mine:
        if len(mine) >= _KEPT_FITS:  # a callable that is made anew for every call is never met again
            del mine[next(iter(mine))]
        linear = readout.piecewise_linear()
        knots = [] if linear is None else [knot for knot in linear.knots if reach[0] < knot < reach[1]]
        mine[key] = _probed_fit(values, chosen, noise, reach, tolerance, knots)
    return mine[key]


def _values_at_some_margins(loss: Loss) -> bytes:
    """Return what a callable makes of some margins: one whose parameters change is another loss."""
    if not loss.own:
        return b""
    with torch.no_grad():
        return loss.of_margin(torch.linspace(-1, 1, 33, dtype=torch.float64)).numpy().tobytes()


def _probed_fit(
    f: _OfScore, loss: Loss, noise: float, reach: tuple[float, float], tolerance: float, knots: Sequence[float]
) -> Pieces:
    sides, worst = [], 0.0
    for y in (1, -1):

        def of_score(S: Floats, y: int = y) -> Floats:
            margin = torch.from_numpy(y * f(S))
            with torch.no_grad():
                found = loss.of_margin(margin)
                if noise:
                    # The mixture itself is fitted: polynomials about one label's centres are ill-conditioned about
                    # the other's, where intervals are short.
                    found = (1 - noise) * found + noise * loss.of_margin(-margin)
            mixed: Floats = found.numpy()
            return mixed

        kinks: list[float] = []
        if loss.name.endswith("hinge"):
            for label in (y, -y) if noise else (y,):
                kinks += _sign_changes(partial(_room, f, label), *reach)
        side, error = _probed_side(of_score, sorted({*reach, *kinks, *knots}), tolerance)
        sides.append(side)
        worst = max(worst, error)
    return Pieces(sides[0], sides[1], worst, reach, "estimated")


def _room(f: _OfScore, y: int, S: Floats) -> Floats:
    return 1 - y * f(S)


def _probed_side(f: _OfScore, marks: list[float], tolerance: float) -> tuple[Piecewise, float]:
    """Return one label's function between the marks, and its estimated error."""
    todo = np.array([(a, b) for a, b in pairwise(marks) if b - a > _NARROW])
    rows: list[tuple[float, list[float], float]] = []
    worst = 0.0
    to_coefficients, nodes, probes = _matrices()
    while len(todo):
        middle, half = todo.mean(1, keepdims=True), (todo[:, 1:] - todo[:, :1]) / 2
        coefs = f(middle + half * nodes) @ to_coefficients.T
        narrow = half[:, 0] <= _LINEAR_BELOW
        if narrow.any():
            ends = f(middle[narrow] + half[narrow] * np.array([-1.0, 1.0]))
            coefs[narrow] = 0.0
            coefs[narrow, 0], coefs[narrow, 1] = ends.mean(1), (ends[:, 1] - ends[:, 0]) / 2
        found = np.polynomial.polynomial.polyval(probes, coefs.T)
        error = _SAFETY * np.abs(found - f(middle + half * probes)).max(1)
        done = (error <= tolerance) | (half[:, 0] <= _NARROW) | (len(rows) + 2 * len(todo) > _MOST)
        for row, a, m, h in zip(coefs[done], todo[done, 0], middle[done, 0], half[done, 0], strict=True):
            rows.append((float(a) - TIE, list(row / h ** np.arange(len(row))), float(m)))
        worst = max([worst, *error[done]])
        m, left, right = middle[~done, 0], todo[~done, 0], todo[~done, 1]
        todo = np.concatenate([np.stack([left, m], 1), np.stack([m, right], 1)])
    return assemble(sorted(rows), _PROBED_DEGREE), float(worst)


@cache
def _matrices() -> tuple[Floats, Floats, Floats]:
    """Return values at Chebyshev nodes -> coefficients of powers, the nodes, and points in between."""
    count, angles = _PROBED_DEGREE + 1, _angles(_PROBED_DEGREE)
    orders = np.arange(count)[:, None]
    chebyshev = np.cos(orders * angles) * np.where(orders == 0, 1, 2) / count
    powers = np.zeros((count, count))
    for order in range(count):
        powers[: order + 1, order] = np.polynomial.chebyshev.cheb2poly([0.0] * order + [1.0])
    return powers @ chebyshev, np.cos(angles), np.cos(np.linspace(0, np.pi, _PROBES))


HINGE_POWERS = {"hinge": 1, "squared-mean-hinge": 1, "squared-hinge": 2}
_PER_UNIT = 4  # ends of a range are multiples of a quarter, so that what is known of a range serves the next step too


def score_range(weights: Tensor, offset: Tensor) -> tuple[float, float]:
    """Return an interval whose ends are multiples of ¼ and that holds every score S = offset + Σ_j weights_j x_j.

    Runs that diverge have a risk that is no number anyway, and do not count.
    """
    kept = ~out_of_range(weights, offset).cpu().numpy()
    if not kept.any():
        return -1.0, 1.0
    c, b = weights.detach().cpu().numpy(), offset.detach().cpu().numpy()
    lows, highs = np.minimum(c, 0).sum(-1) + b, np.maximum(c, 0).sum(-1) + b
    low, high = lows[kept].min(), highs[kept].max()
    return math.floor((low + TIE / 2) * _PER_UNIT) / _PER_UNIT, math.ceil((high - TIE / 2) * _PER_UNIT) / _PER_UNIT


def _piecewise_linear_of(readout: Readout) -> PiecewiseLinear | None:
    """Return the piecewise-linear function that a readout names; what is none is refused.

    >>> from parityscope.models import Cosine
    >>> _piecewise_linear_of(Cosine()) is None
    True
    """
    linear = readout.piecewise_linear()
    if linear is not None and not isinstance(linear, PiecewiseLinear):
        raise InvalidInput(
            f"piecewise_linear() of {type(readout).__name__} must return a parityscope.PiecewiseLinear or None, got"
            f" {linear!r:.60}"
        )
    return linear


def exact_pieces(score: AdditiveScore, loss: AnyLoss) -> bool:
    """Return whether the loss is piecewise polynomial in the score as it is, without any fit.

    >>> import torch
    >>> from parityscope.models import Triangle, ZigZag
    >>> c = torch.full((3,), 0.5, dtype=torch.float64)
    >>> [exact_pieces(AdditiveScore(c, torch.zeros(()), one), "hinge") for one in (Triangle(2), ZigZag(2, 0.01))]
    [True, False]
    """
    chosen = as_loss(loss)
    polynomial = not chosen.own and chosen.name in (*HINGE_POWERS, "squared", "log-correlation")
    return polynomial and _piecewise_linear_of(score.readout) is not None


def loss_pieces(
    score: AdditiveScore, loss: AnyLoss, noise: float, tolerance: float, reach: tuple[float, float]
) -> Pieces:
    """Return the loss as a function of the score, where the score can go.

    Piecewise-linear readouts with a hinge loss, the squared loss or the correlation are exact. The logistic loss behind
    them, and hinge losses and the squared loss behind analytic readouts, are fitted to within `tolerance` with a proved
    error, and everything else, such as a callable, through the readout's `forward`, with an estimated one.
    """
    readout, chosen = score.readout, as_loss(loss)
    if chosen.own:
        return fitted_pieces(readout, chosen, noise, reach, tolerance)
    name = chosen.name
    linear, smooth = _piecewise_linear_of(readout), readout.analytic()
    if linear is not None:
        check_linear(readout, linear, reach)
        exact = _linear_pieces(linear, name, noise, reach, tolerance)
        return exact if linear.error == 0 else _with_error(exact, linear, name, reach)
    if smooth is not None and name in (*HINGE_POWERS, "squared"):
        check_analytic(readout, smooth, reach)
        if name == "squared":
            return _made_once(_smooth_square, noise, smooth, reach, tolerance)
        return _made_once(smooth_hinge, noise, smooth, reach, HINGE_POWERS[name], tolerance)
    return fitted_pieces(readout, chosen, noise, reach, tolerance)


def _smooth_square(f: Analytic, domain: tuple[float, float], tol: float) -> Pieces:
    return smooth_hinge(f, domain, 2, tol, clipped=False)


def _linear_pieces(f: PiecewiseLinear, loss: str, noise: float, reach: tuple[float, float], tolerance: float) -> Pieces:
    if loss in HINGE_POWERS:
        return _made_once(hinge, noise, f, HINGE_POWERS[loss])
    if loss == "squared":
        return _made_once(squared, noise, f)
    if loss == "log-correlation":
        return _made_once(correlation, noise, f)
    return _made_once(logistic, noise, f, reach, tolerance)


@lru_cache(maxsize=256)
def _made_once(make: Callable[..., Pieces], noise: float, *of: Any) -> Pieces:
    """Return pieces with their label noise; the same ones for every step of a training, since engines keep tables."""
    return label_noise(make(*of), noise) if noise else make(*of)


@lru_cache(maxsize=64)
def _with_error(pieces: Pieces, f: PiecewiseLinear, loss: str, reach: tuple[float, float]) -> Pieces:
    """Count the stated error of an approximation, as much as the loss enlarges it: 2(1 + |ŷ|) + error if squared."""
    ends = [f.values[0] + f.left * (reach[0] - f.knots[0]), f.values[-1] + f.right * (reach[1] - f.knots[-1])]
    largest = max(map(abs, (*f.values, *ends)))
    steep = 2 * (1 + largest) + f.error if loss in ("squared", "squared-hinge") else 1.0
    return replace(pieces, error=pieces.error + steep * f.error, domain=reach)


def sign_pieces(score: AdditiveScore, reach: tuple[float, float]) -> Pieces | None:
    """Return the share of right signs as a function of the score; a prediction of 0 (up to rounding) counts as −1."""
    linear = score.readout.sign_equivalent(*reach)
    if linear is None:
        return None
    check_signs(score.readout, linear, reach)
    return _made_once(accuracy, 0.0, linear)
