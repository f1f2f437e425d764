"""Readouts: what stands behind the sum of the attended bits, as trained or frozen functions of one number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import SCORE_TIE


class ReluSum(NamedTuple):
    """A trained one-layer readout, f(S) = bias + Σ_i α_i ReLU(g_i S + h_i); shapes (*runs, neurons) and (*runs,)."""

    alpha: Tensor
    g: Tensor
    h: Tensor
    bias: Tensor

    def row(self, run: int, runs: int) -> ReluSum:
        """Return the readout of one run of a flat run axis."""
        neurons = self.alpha.shape[-1]
        wide = [tensor.expand(*self.alpha.shape).reshape(-1, neurons) for tensor in self[:3]]
        bias = self.bias.reshape(-1)
        index = run if len(bias) == runs else 0
        return ReluSum(wide[0][index], wide[1][index], wide[2][index], bias[index])

    def piecewise_linear(self) -> PiecewiseLinear:
        """Return one run's readout by its kinks (without gradient)."""
        alpha, g, h, bias = (tensor.detach() for tensor in self)
        knots = torch.unique((-h / g)[g != 0])
        if len(knots) == 0:
            knots = alpha.new_zeros(1)
        values = bias + (alpha * (knots[:, None] * g + h).relu()).sum(-1)
        left, right = ((alpha * g)[side * g > 0].sum().item() for side in (-1, 1))
        return PiecewiseLinear(tuple(knots.tolist()), tuple(values.tolist()), left, right)


class Wave(NamedTuple):
    """One term size·cos(frequency·πS) of a readout.

    >>> Cosine().cosine_series()
    (Wave(frequency=1.0, size=1.0),)
    """

    frequency: float
    size: float


COSINE = (Wave(1.0, 1.0),)  # cos(πS) itself, which some formulas are about


class Readout(nn.Module):
    """A scalar function ŷ = f(S), applied elementwise and frozen. Subclasses define `forward`.

    What a readout says about itself decides what can be done with it. One that says nothing trains by enumeration of
    all inputs; each answer below brings faster engines, and all of them are checked against enumeration by the tests.

    Attributes
    ----------
    bounded : bool
        Whether |f(S)| ≤ 1 for every score from 0 to k. Then the hinge loss never clips, E[yŷ] bounds the accuracy from
        below, and descent on log E[yŷ] makes sense.

    >>> class Line(Readout):
    ...     def forward(self, S):
    ...         return 1 - 2 * S
    >>> value, slope = Line().value_and_slope(torch.tensor([0.0, 0.75]))
    >>> value.tolist(), slope.tolist(), Line().bounded
    ([1.0, -0.5], [-2.0, -2.0], False)
    """

    bounded: bool = False

    def value_and_slope(self, S: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(S) and f′(S) elementwise; by autograd unless a subclass knows better."""
        with torch.enable_grad():
            S = S.detach().requires_grad_()
            value = self(S)
            if not value.requires_grad:
                raise InvalidInput(
                    f"forward of {type(self).__name__} has no derivative: compute it by torch or define value_and_slope"
                )
            (slope,) = torch.autograd.grad(value.sum(), S)
        return value.detach(), slope

    def cosine_series(self) -> tuple[Wave, ...] | None:
        """Return f as a finite sum of cosines, or None when it is not one; its mean is then known in closed form."""
        return None

    def piecewise_linear(self) -> PiecewiseLinear | None:
        """Return f as a piecewise-linear function, or None when it is not one; fast engines need it."""
        return None

    def analytic(self) -> Analytic | None:
        """Return f on complex numbers with its branch points, or None; fast engines fit it, with an estimated error."""
        return None

    def relu_sum(self) -> ReluSum | None:
        """Return f as a trained sum of ReLUs, or None when it is not one."""
        return None

    def sign_equivalent(self, low: float, high: float) -> PiecewiseLinear | None:
        """Return a piecewise-linear function of the same sign on [low, high], or None; exact accuracy needs it."""
        return self.piecewise_linear()

    def worst_loss(self, distance: Float[Tensor, "*runs"], k: Tensor) -> Float[Tensor, "*runs"] | None:
        """Return the largest hinge loss when S misses its integer by up to distance/2 ≤ 1, or None when not known.

        Both ends are reached by inputs, at integers from 0 to k.
        """
        return None


class ZigZag(Readout):
    """H1's frozen network, ŷ = 1 + Σ_{i=1..k} (−1)^i (8i−4) σ(S + ½ − i) with σ(z) = (z + √(z²+b))/2.

    With b = 0 it equals (−1)^S at integers 0 … k and has slope (−1)^i·4i around the integer i.

    Parameters
    ----------
    k : int
        Neurons: one for each hidden bit.
    smoothing : float
        b of the smoothed ReLU; 0 is ReLU.

    >>> ZigZag(3)(torch.tensor([0.0, 1.0, 2.0, 3.0])).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """

    def __init__(self, k: int, smoothing: float = 0.0) -> None:
        super().__init__()
        if smoothing < 0:
            raise InvalidInput(f"smoothing b must be 0 or more, got {smoothing}")
        self.k, self.smoothing = k, smoothing

    def forward(self, S: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Return ŷ elementwise."""
        if self.smoothing == 0:
            return self._exact(S)[0]
        value = torch.ones_like(S)
        for i in range(1, self.k + 1):
            z = S + (0.5 - i)
            # H1, Eq. (2)
            value = value + (-1) ** i * (4 * i - 2) * (z + (z * z + self.smoothing).sqrt())
        return value

    def value_and_slope(self, S: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(S) and f′(S); without smoothing both come from the segment S lies on."""
        if self.smoothing == 0:
            return self._exact(S)
        value, slope = torch.ones_like(S), torch.zeros_like(S)
        for i in range(1, self.k + 1):
            z = S + (0.5 - i)
            root = torch.addcmul(torch.full_like(z, self.smoothing), z, z).sqrt_()
            weight = (-1) ** i * (4 * i - 2)
            # σ = (z + √(z²+b))/2 and σ′ = σ/√(z²+b)
            twice_sigma = z + root
            value.add_(twice_sigma, alpha=weight)
            slope.addcdiv_(twice_sigma, root, value=weight)
        return value, slope

    def _exact(self, S: Tensor) -> tuple[Tensor, Tensor]:
        # Segment i covers [i − ½, i + ½): the first i neurons are on, and their slopes add up to (−1)^i·4i.
        i = (S.detach() + (0.5 + SCORE_TIE)).floor_().clamp_(0, self.k)
        sign = 1 - 2 * i.remainder(2)
        slope = sign * i * 4
        return torch.addcmul(sign, slope, S - i), slope

    def piecewise_linear(self) -> PiecewiseLinear | None:
        """Return the zig-zag by its kinks at half-integers; None when it is smoothed."""
        if self.smoothing > 0:
            return None
        kinks = range(1, self.k + 1)
        values = tuple((-1.0) ** (i - 1) * (2 * i - 1) for i in kinks)
        return PiecewiseLinear(tuple(i - 0.5 for i in kinks), values, 0.0, (-1.0) ** self.k * 4.0 * self.k)

    def analytic(self) -> Analytic | None:
        """Return the smoothed zig-zag on complex numbers; None when it has kinks."""
        return SmoothZigZag(self.k, self.smoothing) if self.smoothing > 0 else None


class Cosine(Readout):
    """The bounded readout ŷ = cos(πS): also exactly (−1)^S at integers, and |ŷ| ≤ 1 between them.

    It has no parameters: one cosine does for every k.

    >>> Cosine()(torch.tensor([0.0, 1.0, 2.0])).round(decimals=6).tolist()
    [1.0, -1.0, 1.0]
    """

    bounded = True

    def forward(self, S: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Return ŷ elementwise."""
        return (math.pi * S).cos()

    def cosine_series(self) -> tuple[Wave, ...]:
        """Return the one wave it is."""
        return COSINE

    def sign_equivalent(self, low: float, high: float) -> PiecewiseLinear:
        """Return the triangle wave, which vanishes at the same half-integers."""
        kinks = range(math.floor(low), math.ceil(high) + 1)
        return PiecewiseLinear(tuple(map(float, kinks)), tuple((-1.0) ** i for i in kinks), 0.0, 0.0)

    def worst_loss(self, distance: Float[Tensor, "*runs"], k: Tensor) -> Float[Tensor, "*runs"]:
        """Return 1 − cos(π·distance/2)."""
        return 1 - (math.pi / 2 * distance).cos()


class Triangle(Readout):
    """The bounded ReLU readout: a wave of slope ±2 with kinks at the integers, k neurons and a bias.

    Parameters
    ----------
    k : int
        Neurons: one for each hidden bit.

    >>> Triangle(3)(torch.tensor([0.0, 0.5, 1.0, 3.0])).tolist()
    [1.0, 0.0, -1.0, -1.0]
    """

    bounded = True

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, S: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """Return ŷ elementwise."""
        i = torch.arange(1, self.k, dtype=S.dtype, device=S.device)
        kinks = ((-1) ** (i + 1) * 4 * (S[..., None] - i).relu()).sum(-1)
        return 1 - 2 * S.relu() + kinks

    def value_and_slope(self, S: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(S) and f′(S) from the segment S lies on; at a kink, up to rounding, from the one to its right.

        >>> Triangle(2).value_and_slope(torch.tensor([-1.0, 0.0, 1 - 1e-15, 1.5], dtype=torch.float64))[1].tolist()
        [0.0, -2.0, 2.0, 2.0]
        """
        i = (S + SCORE_TIE).floor_().clamp_(-1, self.k - 1)
        slope = torch.where(i < 0, 0.0, 4 * i.remainder(2) - 2)
        return torch.addcmul(1 - 2 * i.clamp(min=0).remainder(2), slope, S - i), slope

    def piecewise_linear(self) -> PiecewiseLinear:
        """Return the wave by its kinks at 0 … k−1."""
        kinks = range(self.k)
        return PiecewiseLinear(tuple(map(float, kinks)), tuple((-1.0) ** i for i in kinks), 0.0, (-1.0) ** self.k * 2.0)

    def worst_loss(self, distance: Float[Tensor, "*runs"], k: Tensor) -> Float[Tensor, "*runs"] | None:
        """Return the distance itself, twice the miss; None when there are more or fewer teeth than hidden bits."""
        return distance if bool((k == self.k).all()) else None


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
        # H1, Eq. (2), on complex numbers
        gain = (-1.0) ** i * (8 * i - 4)
        z = np.asarray(s)[..., None] + 0.5 - i
        return 1 + (gain * 0.5 * (z + np.sqrt(z * z + self.b))).sum(-1)

    def peak(self, centre: float, radius: float) -> float:
        """Return an upper bound of |f| on a disc: |z + √(z² + b)| ≤ |z| + √(|z|² + b)."""
        i = np.arange(1, self.k + 1)
        far = np.abs(centre + 0.5 - i) + radius
        return float(1 + ((4 * i - 2) * (far + np.sqrt(far * far + self.b))).sum())
