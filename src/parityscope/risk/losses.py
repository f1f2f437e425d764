"""Losses as functions of the margin yŷ, with their slopes and what is done to their mean; by name or as a callable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import tolerance

_Elementwise = Callable[[Tensor], Tensor]
_TRIED = (-0.93, -0.41, 0.17, 0.58, 0.89)  # margins at which a callable is tried before it is averaged
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
    own: bool = False  # a callable of the user's: nothing is known of its rounding, its kinks and its jumps
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
    Loss("squared", lambda m: (1 - m).square(), lambda m: -2 * (1 - m), _identity, _one_minus),
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


AnyLoss = str | _Elementwise | Loss


def as_loss(loss: AnyLoss) -> Loss:
    """Return a loss by its name, or the one that a callable computes from margins; the same callable gives equal ones.

    >>> def exponential(margin):
    ...     return (-margin).exp()
    >>> loss = as_loss(exponential)
    >>> loss.name, loss.slope(torch.zeros(1)).tolist(), loss == as_loss(exponential)
    ('exponential', [-1.0], True)
    >>> as_loss(torch.sum)
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: the loss sum maps 5 margins to the shape (): return one number each
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return named_loss(loss)
    if not callable(loss):
        raise InvalidInput(f"a loss is a name ({', '.join(LOSSES)}) or a callable of the margin, got {loss!r:.60}")
    of_margin = _Own(loss)
    _check_elementwise(of_margin)
    return Loss(of_margin.name, of_margin, _OwnSlope(of_margin), _identity, torch.zeros_like, signed=True, own=True)


@dataclass(frozen=True)
class _Own:
    """A callable, held to one finite number per margin wherever it is evaluated."""

    function: _Elementwise

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, margin: Tensor) -> Tensor:
        try:
            found = self.function(margin)
        except (RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InvalidInput(f"the loss {self.name} does not take a tensor of margins: {reason}") from error
        if not isinstance(found, Tensor) or found.shape != margin.shape:
            got = f"the shape {tuple(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
            raise InvalidInput(f"the loss {self.name} maps {margin.numel()} margins to {got}: return one number each")
        if bool((unknown := found.isnan() & ~margin.isnan()).any()):
            raise InvalidInput(f"the loss {self.name} is NaN at the margin {float(margin[unknown][0]):.6g}")
        return found


@dataclass(frozen=True)
class _OwnSlope:
    """The derivative of a callable, by autograd."""

    of_margin: _Own

    def __call__(self, margin: Tensor) -> Tensor:
        with torch.enable_grad():
            margin = margin.detach().requires_grad_()
            value = self.of_margin(margin)
            if not value.requires_grad:
                raise InvalidInput(f"the loss {self.of_margin.name} has no derivative: compute it by torch")
            (slope,) = torch.autograd.grad(value.sum(), margin)
        return slope


def _check_elementwise(loss: _Own) -> None:
    """Refuse a function of all margins at once, such as one that divides by their mean."""
    margins = torch.tensor(_TRIED, dtype=torch.float64)
    together, alone = loss(margins), torch.cat([loss(one) for one in margins.split(1)])
    if not torch.allclose(together, alone, rtol=1e-9, atol=1e-12):
        raise InvalidInput(f"the loss {loss.name} mixes the margins of different inputs: return a function of each one")
    _OwnSlope(loss)(margins)
