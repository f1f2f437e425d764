"""Continuous piecewise-linear functions of one variable: what a ReLU readout is, written out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


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


@dataclass(frozen=True)
class PiecewiseLinear:
    """A continuous function by its knots, its values there, and its slopes to the left and right of them all.

    >>> hat = PiecewiseLinear(knots=(-1.0, 0.0, 1.0), values=(0.0, 1.0, 0.0), left=0.0, right=0.0)
    >>> hat(torch.tensor([-2.0, 0.25, 1.0])).tolist()
    [0.0, 0.75, 0.0]
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]
    left: float
    right: float

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
