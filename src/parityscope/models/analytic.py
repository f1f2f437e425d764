"""Readouts that are smooth: on complex numbers, with the branch points that limit how well polynomials fit them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

_Complex = npt.NDArray[Any]


@runtime_checkable
class Analytic(Protocol):
    """A function of one complex variable, real on the real line; equal ones must hash alike, since fits are kept.

    >>> f: Analytic = SmoothZigZag(2, b=0.01)
    >>> hash(f) == hash(SmoothZigZag(2, b=0.01)), len(f.tips)
    (True, 4)
    """

    @property
    def tips(self) -> _Complex:
        """Where branch cuts begin; they are rays that leave the real line vertically."""
        ...

    def __call__(self, s: _Complex, /) -> _Complex:
        """Return the value at every s."""
        ...

    def __hash__(self) -> int: ...


@runtime_checkable
class Peaked(Protocol):
    """An analytic function that bounds itself, so that the error of its fits is proved.

    >>> isinstance(SmoothZigZag(2, b=0.01), Peaked)
    True
    """

    def peak(self, centre: float, radius: float) -> float:
        """Return an upper bound of |f| on the disc of this radius about a real centre."""
        ...


@dataclass(frozen=True)
class SmoothZigZag:
    """The zig-zag with ReLU(z) replaced by (z + √(z² + b))/2.

    >>> f = SmoothZigZag(1, b=0.25)  # 1 − 4σ(S − ½)
    >>> float(f(np.array([0.5 + 0j]))[0].real), f.tips.tolist()
    (0.0, [(0.5+0.5j), (0.5-0.5j)])
    """

    k: int
    b: float

    @property
    def tips(self) -> _Complex:
        """Where z² + b vanishes."""
        joints = np.arange(1, self.k + 1) - 0.5
        return np.concatenate([joints + 1j * math.sqrt(self.b), joints - 1j * math.sqrt(self.b)])

    def __call__(self, s: _Complex, /) -> _Complex:
        """Return the value at every s."""
        i = np.arange(1, self.k + 1)
        gain = (-1.0) ** i * (8 * i - 4)
        z = np.asarray(s)[..., None] + 0.5 - i
        return 1 + (gain * 0.5 * (z + np.sqrt(z * z + self.b))).sum(-1)

    def peak(self, centre: float, radius: float) -> float:
        """Return an upper bound of |f| on a disc: |z + √(z² + b)| ≤ |z| + √(|z|² + b)."""
        i = np.arange(1, self.k + 1)
        far = np.abs(centre + 0.5 - i) + radius
        return float(1 + ((4 * i - 2) * (far + np.sqrt(far * far + self.b))).sum())
