"""Losses as functions of the margin yŷ, with their slopes and what is done to their mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import tolerance

_Elementwise = Callable[[Tensor], Tensor]
_KINK = 1.0  # where a hinge ends


@dataclass(frozen=True)
class Loss:
    """A risk is of_mean(E[of_margin(yŷ)]); `slope` is the derivative of `of_margin`.

    `accuracy_bound` turns a risk into a lower bound on the accuracy: a wrong sign costs at least of_margin(0).
    `stretch` says by how much `of_mean` may enlarge an error of the mean.

    >>> loss, margin = named_loss("squared-hinge"), torch.tensor(0.5)
    >>> loss.of_margin(margin).item(), loss.slope(margin).item(), loss.accuracy_bound(torch.tensor(0.25)).item()
    (0.25, -1.0, 0.75)
    """

    name: str
    of_margin: _Elementwise
    slope: _Elementwise
    of_mean: _Elementwise
    accuracy_bound: _Elementwise
    kink: float | None = None  # the margin where the slope jumps
    signed: bool = False  # whether it may be negative
    stretch: Callable[[Tensor, Tensor], Tensor | float] = lambda mean, error: 1.0

    def slope_along(self, margin: Tensor, direction: Tensor) -> Tensor:
        """Return the slope on the side that the margin moves to when it moves in the direction of the given sign.

        It matters only where the margin meets the kink, up to rounding:

        >>> margin = torch.tensor([0.5, 1.0 - 1e-15, 1.0, 1.0 + 1e-15], dtype=torch.float64)
        >>> [named_loss("hinge").slope_along(margin, way * torch.ones(4)).abs().tolist() for way in (-1, 1)]
        [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
        """
        if self.kink is None:
            return self.slope(margin)
        on_it = (margin - self.kink).abs() <= tolerance(margin.dtype)
        return self.slope(torch.where(on_it, self.kink + direction.sign(), margin))


def _identity(mean: Tensor) -> Tensor:
    return mean


def _one_minus(risk: Tensor) -> Tensor:
    return (1 - risk).clamp(min=0.0)


def _hinge(margin: Tensor) -> Tensor:
    return (1 - margin).relu()


def _hinge_slope(margin: Tensor) -> Tensor:
    return -(margin < _KINK).to(margin.dtype)


def _minus_log(mean: Tensor) -> Tensor:
    return -(-mean).clamp(min=0.0).log()


_ALL = (
    Loss("hinge", _hinge, _hinge_slope, _identity, _one_minus, _KINK),
    # H1, Section 2.1: the squared hinge, averaged.
    Loss("squared-hinge", lambda m: _hinge(m).square(), lambda m: -2 * _hinge(m), _identity, _one_minus),
    # H1's published code: the square stands outside the mean.
    Loss(
        "squared-mean-hinge",
        _hinge,
        _hinge_slope,
        torch.square,
        lambda risk: _one_minus(risk.sqrt()),
        _KINK,
        stretch=lambda mean, error: 2 * (mean.abs() + error).max(),
    ),
    Loss(
        "logistic",
        lambda m: torch.logaddexp(torch.zeros_like(m), -m),  # torch's softplus is off by 2e-9 beyond 20
        lambda m: -torch.sigmoid(-m),
        _identity,
        lambda risk: _one_minus(risk / math.log(2)),
    ),
    # −log E[yŷ], infinite where label and prediction are not correlated; says nothing of accuracy where |ŷ| may pass 1.
    Loss(
        "log-correlation",
        torch.neg,
        lambda m: -torch.ones_like(m),
        _minus_log,
        torch.zeros_like,
        signed=True,
        stretch=lambda mean, error: 1 / (-mean - error).clamp(min=0.0),
    ),
)
LOSSES = {loss.name: loss for loss in _ALL}


def named_loss(name: str) -> Loss:
    """Return the loss called `name`."""
    if name not in LOSSES:
        raise InvalidInput(f"unknown loss {name!r}: choose one of {', '.join(LOSSES)}")
    return LOSSES[name]
