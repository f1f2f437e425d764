"""Continuous piecewise-linear functions of one variable: what a ReLU readout is, written out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput


class Segment(NamedTuple):
    """f(S) = value + slope·(S − anchor) for low ≤ S < high.

    >>> hat = PiecewiseLinear(knots=(-1.0, 0.0, 1.0), values=(0.0, 1.0, 0.0), left=0.0, right=0.0)
    >>> hat.segments()[2]
    Segment(low=0.0, high=1.0, anchor=0.0, value=1.0, slope=-1.0)
    """

    low: float
    high: float
    anchor: float
    value: float
    slope: float


@dataclass(frozen=True, init=False)
class PiecewiseLinear:
    """A continuous function by its knots, its values there, and its slopes to the left and right of them all.

    What a readout returns as `piecewise_linear()`, so that the exact engines know it.

    Parameters
    ----------
    knots : sequence of float
        Where the slope changes, ascending; a list, an array or a tensor becomes a tuple.
    values : sequence of float
        The function there, one for each knot.
    left, right : float
        The slopes beyond the first and the last knot.
    error : float
        How far the readout itself may be from this function, when it is only an approximation; error bounds count it.

    >>> hat = PiecewiseLinear(knots=[-1, 0, 1], values=[0, 1, 0], left=0.0, right=0.0)
    >>> hat(torch.tensor([-2.0, 0.25, 1.0])).tolist()
    [0.0, 0.75, 0.0]
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]
    left: float
    right: float
    error: float = 0.0

    def __init__(self, knots: Iterable[Any], values: Iterable[Any], left: Any, right: Any, error: Any = 0.0) -> None:
        where, heights = _numbers("knots", knots), _numbers("values", values)
        if len(where) != len(heights) or not where:
            raise InvalidInput(
                f"a piecewise-linear function needs one value per knot, got {len(where)} and {len(heights)}"
            )
        for first, second in itertools.pairwise(where):
            if first >= second:
                raise InvalidInput(f"knots must ascend, got {first:g} before {second:g}: sort them with their values")
        ((left,), (right,), (error,)) = _numbers("left", [left]), _numbers("right", [right]), _numbers("error", [error])
        if error < 0:
            raise InvalidInput(f"the error of a piecewise-linear approximation must be 0 or more, got {error:g}")
        for name, number in {"knots": where, "values": heights, "left": left, "right": right, "error": error}.items():
            object.__setattr__(self, name, number)

    def segments(self) -> list[Segment]:
        """Return the segments from left to right; the outer two are rays."""
        x, v = self.knots, self.values
        inner = [Segment(x[i], x[i + 1], x[i], v[i], (v[i + 1] - v[i]) / (x[i + 1] - x[i])) for i in range(len(x) - 1)]
        first = Segment(-math.inf, x[0], x[0], v[0], self.left)
        return [first, *inner, Segment(x[-1], math.inf, x[-1], v[-1], self.right)]

    def __call__(self, S: Tensor) -> Tensor:
        """Return f(S) elementwise."""
        segment = torch.bucketize(S, torch.tensor(self.knots, dtype=S.dtype), right=True)
        table = torch.tensor(self.segments(), dtype=S.dtype)[segment]
        return table[..., 3] + table[..., 4] * (S - table[..., 2])


def _numbers(name: str, given: Iterable[Any]) -> tuple[float, ...]:
    """Return finite floats, or name the first that is none."""
    try:
        numbers = tuple(float(number) for number in given)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} of a piecewise-linear function must be numbers, got {given!r}") from None
    for number in numbers:
        if not math.isfinite(number):
            raise InvalidInput(f"{name} of a piecewise-linear function must be finite, got {number}")
    return numbers
