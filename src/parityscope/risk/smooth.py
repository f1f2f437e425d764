"""Smooth losses and readouts as piecewise polynomials with an estimated error.

Chebyshev interpolation of degree d on an interval errs by at most 4 M rho^-d / (rho - 1) if the
function is analytic and at most M in modulus inside the Bernstein ellipse rho.  All branch cuts
here are vertical rays, so an ellipse is clear of them once it is clear of their tips.  M is taken
as 1.1 times the maximum over 256 boundary points.  Intervals are halved until the bound fits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parityscope.models.analytic import Analytic
from parityscope.models.piecewise_linear import PiecewiseLinear
from parityscope.risk.pieces import TIE, Pieces, Piecewise, assemble

_Complex = npt.NDArray[Any]
_Real = npt.NDArray[Any]
_Function = Callable[[_Complex], _Complex]  # complex in, complex out
_LOGISTIC_DEGREE, _HINGE_DEGREE = 8, 5  # of the fitted polynomials
_ROOT_CELLS = 20001  # grid on which sign changes are seen


@dataclass(frozen=True)
class _Stretch:
    """A function analytic on [low, high] with branch cuts rising vertically from ``tips``."""

    low: float
    high: float
    fn: _Function
    tips: _Complex


def _ellipse_error(f: _Stretch, a: float, b: float, degree: int) -> float:
    mid, half = 0.5 * (a + b), 0.5 * (b - a)
    z = (f.tips - mid) / half
    grow = np.abs(z + np.sqrt(z - 1) * np.sqrt(z + 1)).min() if len(z) else np.inf
    best, turn = np.inf, np.exp(2j * np.pi * np.arange(256) / 256)
    edge = min(1 + 0.95 * (grow - 1), 1e4)
    for rho in edge ** np.linspace(0.3, 1.0, 8):
        with np.errstate(all="ignore"):
            peak = 1.1 * np.abs(f.fn(mid + half * 0.5 * (rho * turn + 1 / (rho * turn)))).max()
        peak = peak if np.isfinite(peak) else np.inf
        best = min(best, 4 * peak * rho**-degree / (rho - 1))
    return float(best)


def _interpolate(fn: _Function, a: float, b: float, degree: int) -> list[float]:
    """Monomial coefficients about the midpoint."""
    mid, half = 0.5 * (a + b), 0.5 * (b - a)
    x = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    cheb = np.polynomial.chebyshev.chebfit(x, fn(mid + half * x + 0j).real, degree)
    mono = np.polynomial.chebyshev.cheb2poly(cheb)
    mono = np.pad(mono, (0, degree + 1 - len(mono)))
    return list(mono / half ** np.arange(degree + 1))


def _fit(parts: list[_Stretch], degree: int, tol: float) -> tuple[Piecewise, float]:
    """One label's function, given as consecutive analytic stretches; returns the estimated error."""
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
            worst = max(worst, err)
            rows.append((a - TIE, _interpolate(part.fn, a, b, degree), 0.5 * (a + b)))
    return assemble(rows, degree), worst


def _softplus(w: _Complex) -> _Complex:
    """log(1 + exp(w)), complex, cut along Re w = 0, |Im w| >= pi."""
    big = w.real > 0
    tail = np.log1p(np.exp(np.where(big, -w, w)))
    return np.where(big, w + tail, tail)


def logistic(f: PiecewiseLinear, domain: tuple[float, float], tol: float) -> Pieces:
    """log(1 + exp(-y f(S))) on ``domain``, with an error below ``tol``.

    >>> import torch
    >>> pieces = logistic(PiecewiseLinear((0.0,), (1.0,), -1.0, -1.0), (0.0, 2.0), tol=1e-9)  # f(S) = 1 - S
    >>> at_zero = pieces.minus(torch.tensor([1.0], dtype=torch.float64)).item()
    >>> abs(at_zero - math.log(2)) <= pieces.error < 1e-9
    True
    """
    sides, errors = [], []
    for y in (1, -1):
        parts = []
        for left, right, anchor, value, slope in f.segments():
            low, high = max(left, domain[0]), min(right, domain[1])
            if low >= high:
                continue
            zero = anchor - value / slope if slope else 0.0
            tips = zero + np.array([1j, -1j]) * math.pi / abs(slope) if slope else np.empty(0)
            fn = lambda s, v=value, g=slope, a=anchor, y=y: _softplus(-y * (v + g * (s - a)))  # noqa: E731
            parts.append(_Stretch(low, high, fn, tips))
        side, err = _fit(parts, _LOGISTIC_DEGREE, tol)
        sides.append(side)
        errors.append(err)
    return Pieces(sides[0], sides[1], max(errors), domain)


def _roots(fn: Callable[[_Real], _Real], low: float, high: float) -> list[float]:
    """Sign changes of a real function seen on a fine grid, refined by bisection."""
    x = np.linspace(low, high, _ROOT_CELLS)
    v = fn(x)
    at = np.nonzero(np.sign(v[1:]) * np.sign(v[:-1]) < 0)[0]
    a, b = x[at], x[at + 1]
    for _ in range(60):
        m = 0.5 * (a + b)
        left = np.sign(fn(m)) == np.sign(fn(a))
        a, b = np.where(left, m, a), np.where(left, b, m)
    return sorted({*a.tolist(), *x[v == 0].tolist()})


def smooth_hinge(f: Analytic, domain: tuple[float, float], power: int, tol: float) -> Pieces:
    """max(0, 1 - y f(S)) ** power for an analytic readout f, with an error below ``tol``.

    >>> import torch
    >>> from parityscope.models.analytic import SmoothZigZag
    >>> pieces = smooth_hinge(SmoothZigZag(1, 0.25), (0.0, 1.0), power=2, tol=1e-6)
    >>> at = torch.tensor([0.5], dtype=torch.float64)  # where f = 0, so both labels lose 1
    >>> [round(side(at).item(), 5) for side in pieces.sides()]
    [1.0, 1.0]
    """
    plus, minus = (_hinge_side(f, domain, y, power, tol) for y in (1, -1))
    return Pieces(plus[0], minus[0], max(plus[1], minus[1]), domain)


def _hinge_side(f: Analytic, domain: tuple[float, float], y: int, power: int, tol: float) -> tuple[Piecewise, float]:
    def margin(s: _Complex) -> _Complex:
        return 1 - y * f(s)

    def loss(s: _Complex) -> _Complex:
        return margin(s) ** power

    def nothing(s: _Complex) -> _Complex:
        return 0 * s

    marks = [domain[0], *_roots(lambda s: margin(s + 0j).real, *domain), domain[1]]
    parts = []
    for a, b in itertools.pairwise(marks):
        if b - a < 1e-14:
            continue
        keep = margin(np.array([0.5 * (a + b) + 0j])).real[0] > 0
        parts.append(_Stretch(a, b, loss, f.tips) if keep else _Stretch(a, b, nothing, np.empty(0)))
    return _fit(parts, _HINGE_DEGREE, tol)
