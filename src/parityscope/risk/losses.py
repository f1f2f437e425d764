"""Losses as functions of the margin yŷ, with their slopes and what is done to their mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from parityscope.errors import InvalidInput

Elementwise = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Loss:
    """A risk is of_mean(E[of_margin(yŷ)]); `slope` is the derivative of `of_margin`."""

    name: str
    of_margin: Elementwise
    slope: Elementwise
    of_mean: Elementwise


def _identity(mean: Tensor) -> Tensor:
    return mean


def _hinge(margin: Tensor) -> Tensor:
    return (1 - margin).relu()


def _hinge_slope(margin: Tensor) -> Tensor:
    return -(margin < 1).to(margin.dtype)


_ALL = (
    Loss("hinge", _hinge, _hinge_slope, _identity),
    # H1, Section 2.1: the squared hinge, averaged.
    Loss("squared-hinge", lambda m: _hinge(m).square(), lambda m: -2 * _hinge(m), _identity),
    # H1's published code: the square stands outside the mean.
    Loss("squared-mean-hinge", _hinge, _hinge_slope, torch.square),
    Loss("logistic", lambda m: softplus(-m), lambda m: -torch.sigmoid(-m), _identity),
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
