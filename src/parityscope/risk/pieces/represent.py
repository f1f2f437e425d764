"""From a readout and a loss to piecewise polynomials of the score: exact where they are, fitted where smooth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore
from parityscope.models.readouts import PiecewiseLinear, Readout
from parityscope.risk.pieces.agreement import check_analytic, check_linear, check_signs
from parityscope.risk.pieces.fitted import fitted_pieces, logistic, smooth_hinge
from parityscope.risk.pieces.pieces import TIE, Pieces, accuracy, correlation, hinge, label_noise

HINGE_POWERS = {"hinge": 1, "squared-mean-hinge": 1, "squared-hinge": 2}
_PER_UNIT = 4  # ends of a range are multiples of a quarter, so that what is known of a range serves the next step too


def score_range(weights: Tensor, offset: Tensor) -> tuple[float, float]:
    """Return an interval whose ends are multiples of ¼ and that holds every score S = offset + Σ_j weights_j x_j."""
    c, b = weights.detach().cpu().numpy(), offset.detach().cpu().numpy()
    low, high = (np.minimum(c, 0).sum(-1) + b).min(), (np.maximum(c, 0).sum(-1) + b).max()
    if not (math.isfinite(low) and math.isfinite(high)):  # a training that diverges: its risk is no number anyway
        return -1.0, 1.0
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


def exact_pieces(score: AdditiveScore, loss: str) -> bool:
    """Return whether the loss is piecewise polynomial in the score as it is, without any fit.

    >>> import torch
    >>> from parityscope.models import Triangle, ZigZag
    >>> c = torch.full((3,), 0.5, dtype=torch.float64)
    >>> [exact_pieces(AdditiveScore(c, torch.zeros(()), one), "hinge") for one in (Triangle(2), ZigZag(2, 0.01))]
    [True, False]
    """
    return _piecewise_linear_of(score.readout) is not None and loss in (*HINGE_POWERS, "log-correlation")


def loss_pieces(score: AdditiveScore, loss: str, noise: float, tolerance: float, reach: tuple[float, float]) -> Pieces:
    """Return the loss as a function of the score, where the score can go.

    Piecewise-linear readouts with a hinge loss or the correlation are exact. The logistic loss behind them, and hinge
    losses behind analytic readouts, are fitted to within `tolerance` with a proved error, and everything else through
    the readout's `forward`, with an estimated one.
    """
    readout = score.readout
    linear, smooth = _piecewise_linear_of(readout), readout.analytic()
    if linear is not None:
        check_linear(readout, linear, reach)
        exact = _linear_pieces(linear, loss, noise, reach, tolerance)
        return exact if linear.error == 0 else _with_error(exact, linear, loss, reach)
    if smooth is not None and loss in HINGE_POWERS:
        check_analytic(readout, smooth, reach)
        return _made_once(smooth_hinge, noise, smooth, reach, HINGE_POWERS[loss], tolerance)
    return fitted_pieces(readout, loss, noise, reach, tolerance)


def _linear_pieces(f: PiecewiseLinear, loss: str, noise: float, reach: tuple[float, float], tolerance: float) -> Pieces:
    if loss in HINGE_POWERS:
        return _made_once(hinge, noise, f, HINGE_POWERS[loss])
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
    steep = 2 * (1 + largest) + f.error if loss == "squared-hinge" else 1.0
    return replace(pieces, error=pieces.error + steep * f.error, domain=reach)


def sign_pieces(score: AdditiveScore, reach: tuple[float, float]) -> Pieces | None:
    """Return the share of right signs as a function of the score; a prediction of 0 (up to rounding) counts as −1."""
    linear = score.readout.sign_equivalent(*reach)
    if linear is None:
        return None
    check_signs(score.readout, linear, reach)
    return _made_once(accuracy, 0.0, linear)
