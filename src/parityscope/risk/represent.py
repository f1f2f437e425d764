"""From a readout and a loss to piecewise polynomials of the score: exact where they are, fitted where smooth."""

from __future__ import annotations

import math
from functools import lru_cache

from torch import Tensor

from parityscope.models.additive import AdditiveScore
from parityscope.models.analytic import Analytic
from parityscope.models.piecewise_linear import PiecewiseLinear
from parityscope.risk.pieces import Pieces, accuracy, correlation, hinge, label_noise
from parityscope.risk.smooth import logistic, smooth_hinge

HINGE_POWERS = {"hinge": 1, "squared-mean-hinge": 1, "squared-hinge": 2}


def score_range(weights: Tensor, offset: Tensor) -> tuple[float, float]:
    """Return an interval with whole ends that holds every score S = offset + Σ_j weights_j x_j of every run.

    >>> import torch
    >>> score_range(torch.tensor([0.5, -1.2]), torch.tensor(0.1))  # S between −1.1 and 0.6
    (-2, 1)
    """
    low = (weights.clamp(max=0).sum(-1) + offset).min()
    high = (weights.clamp(min=0).sum(-1) + offset).max()
    return math.floor(float(low) - 1e-9), math.ceil(float(high) + 1e-9)


def exact_pieces(score: AdditiveScore, loss: str) -> bool:
    """Return whether the loss is piecewise polynomial in the score as it is, without any fit.

    >>> import torch
    >>> from parityscope.models import Triangle, ZigZag
    >>> c = torch.full((3,), 0.5, dtype=torch.float64)
    >>> [exact_pieces(AdditiveScore(c, torch.zeros(()), one), "hinge") for one in (Triangle(2), ZigZag(2, 0.01))]
    [True, False]
    """
    return score.readout.piecewise_linear() is not None and loss in (*HINGE_POWERS, "log-correlation")


def loss_pieces(score: AdditiveScore, loss: str, noise: float, tolerance: float) -> Pieces | None:
    """Return the loss as a function of the score, or None when it has no such form here.

    Piecewise-linear readouts with a hinge loss or the correlation are exact. The logistic loss behind them, and hinge
    losses behind analytic readouts, are fitted to within `tolerance` where the score can go.

    >>> import torch
    >>> from parityscope.models import Cosine, Triangle
    >>> c, at = torch.full((3,), 0.5, dtype=torch.float64), torch.tensor([0.25], dtype=torch.float64)
    >>> loss_pieces(AdditiveScore(c, torch.zeros(()), Triangle(2)), "hinge", 0.0, 1e-9).plus(at).item()  # 1 − f(¼)
    0.5
    >>> loss_pieces(AdditiveScore(c, torch.zeros(()), Cosine()), "hinge", 0.0, 1e-9) is None
    True
    """
    linear, smooth = score.readout.piecewise_linear(), score.readout.analytic()
    if linear is not None and loss in HINGE_POWERS:
        return _hinge_pieces(linear, HINGE_POWERS[loss], noise)
    if linear is not None and loss == "log-correlation":
        return _correlation_pieces(linear, noise)
    domain = score_range(score.weights.detach(), score.offset.detach())
    if linear is not None and loss == "logistic":
        return _logistic_pieces(linear, noise, domain, tolerance)
    if smooth is not None and loss in HINGE_POWERS:
        return _smooth_pieces(smooth, HINGE_POWERS[loss], noise, domain, tolerance)
    return None


@lru_cache(maxsize=64)
def _hinge_pieces(f: PiecewiseLinear, power: int, noise: float) -> Pieces:
    return label_noise(hinge(f, power), noise) if noise else hinge(f, power)


@lru_cache(maxsize=64)
def _correlation_pieces(f: PiecewiseLinear, noise: float) -> Pieces:
    return label_noise(correlation(f), noise) if noise else correlation(f)


@lru_cache(maxsize=64)
def _logistic_pieces(f: PiecewiseLinear, noise: float, domain: tuple[float, float], tolerance: float) -> Pieces:
    pieces = logistic(f, domain, tol=tolerance)
    return label_noise(pieces, noise) if noise else pieces


@lru_cache(maxsize=64)
def _smooth_pieces(f: Analytic, power: int, noise: float, domain: tuple[float, float], tolerance: float) -> Pieces:
    pieces = smooth_hinge(f, domain, power, tol=tolerance)
    return label_noise(pieces, noise) if noise else pieces


@lru_cache(maxsize=64)
def accuracy_pieces(f: PiecewiseLinear) -> Pieces:
    """Return the share of right signs as a function of the score; a prediction of 0 (up to rounding) counts as −1.

    >>> import torch
    >>> from parityscope.models import Triangle
    >>> at = torch.tensor([0.0, 0.5, 1.0, 2.0], dtype=torch.float64)
    >>> accuracy_pieces(Triangle(2).piecewise_linear()).plus(at).tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    return accuracy(f)
