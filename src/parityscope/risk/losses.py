"""Losses as functions of the margin yŷ, with their slopes and what is done to their mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from parityscope.errors import InvalidInput

_Elementwise = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Loss:
    """A risk is of_mean(E[of_margin(yŷ)]); `slope` is the derivative of `of_margin`.

    `accuracy_bound` turns a risk into a lower bound on the accuracy: a wrong sign costs at least of_margin(0).

    >>> loss, margin = named_loss("squared-hinge"), torch.tensor(0.5)
    >>> loss.of_margin(margin).item(), loss.slope(margin).item(), loss.accuracy_bound(torch.tensor(0.25)).item()
    (0.25, -1.0, 0.75)
    """

    name: str
    of_margin: _Elementwise
    slope: _Elementwise
    of_mean: _Elementwise
    accuracy_bound: _Elementwise


def _identity(mean: Tensor) -> Tensor:
    return mean


def _one_minus(risk: Tensor) -> Tensor:
    return (1 - risk).clamp(min=0.0)


def _hinge(margin: Tensor) -> Tensor:
    return (1 - margin).relu()


def _hinge_slope(margin: Tensor) -> Tensor:
    return -(margin < 1).to(margin.dtype)


_ALL = (
    Loss("hinge", _hinge, _hinge_slope, _identity, _one_minus),
    # H1, Section 2.1: the squared hinge, averaged.
    Loss("squared-hinge", lambda m: _hinge(m).square(), lambda m: -2 * _hinge(m), _identity, _one_minus),
    # H1's published code: the square stands outside the mean.
    Loss("squared-mean-hinge", _hinge, _hinge_slope, torch.square, lambda risk: _one_minus(risk.sqrt())),
    Loss(
        "logistic",
        lambda m: softplus(-m),
        lambda m: -torch.sigmoid(-m),
        _identity,
        lambda risk: _one_minus(risk / math.log(2)),
    ),
)
LOSSES = {loss.name: loss for loss in _ALL}


def named_loss(name: str) -> Loss:
    """Return the loss called `name`.

    >>> named_loss("hinge").of_margin(torch.tensor([-1.0, 0.5, 3.0])).tolist()
    [2.0, 0.5, 0.0]
    """
    if name not in LOSSES:
        raise InvalidInput(f"unknown loss {name!r}: choose one of {', '.join(LOSSES)}")
    return LOSSES[name]
