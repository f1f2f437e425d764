"""Interval arithmetic on H1's risk: boxes that descent never leaves, and descents that provably reach them.

Ends of intervals are doubles, rounded outward after every operation, and a tensor of intervals is computed at once.
docs/explanation/why-it-fails.md derives what is proved here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import torch
from mpmath import mp
from torch import Tensor

_UNIT = 2.0**-53  # the relative rounding error of one operation
_EXP = 2.0**-48  # allowed to exp: sixteen units in the last place, where libraries promise one
_SLACK = 1 + 2.0**-45  # for a few sums and products of positive numbers
_ROOM = 0.999  # a point is called inside a box with this to spare, far more than rounding
_WIDEST, _NARROWER, _TRIES = 2e-3, 0.7, 24
_FLAT = 1e-9  # curvatures below are not told from 0
_PIECE = 1e-4  # half-width of the boxes on which a descent's contraction is bounded


_INFINITE = torch.tensor(math.inf, dtype=torch.float64)


def _down(x: Tensor) -> Tensor:
    return torch.nextafter(x, -_INFINITE)


def _up(x: Tensor) -> Tensor:
    return torch.nextafter(x, _INFINITE)


@dataclass(frozen=True)
class Intervals:
    """Intervals in two tensors of the same shape.

    >>> third = Intervals.around(Fraction(1, 3))
    >>> bool(third.low < third.high), bool((third * third).high > 1 / 9)
    (True, True)
    """

    low: Tensor
    high: Tensor

    @classmethod
    def exact(cls, x: Tensor) -> Intervals:
        """Return doubles as intervals without width."""
        return cls(x, x)

    @classmethod
    def around(cls, value: Fraction) -> Intervals:
        """Return an interval that holds a fraction."""
        nearest = torch.tensor(float(value), dtype=torch.float64)
        return cls(_down(nearest), _up(nearest))

    @property
    def largest(self) -> Tensor:
        """The largest modulus in each interval."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def __getitem__(self, at: object) -> Intervals:
        return Intervals(self.low[at], self.high[at])  # type: ignore[index]

    def __neg__(self) -> Intervals:
        return Intervals(-self.high, -self.low)

    def __add__(self, other: Intervals | Tensor | float) -> Intervals:
        low, high = (other.low, other.high) if isinstance(other, Intervals) else (other, other)
        return Intervals(_down(self.low + low), _up(self.high + high))

    def __sub__(self, other: Intervals) -> Intervals:
        return self + -other

    def __mul__(self, other: Intervals | Tensor | float) -> Intervals:
        if not isinstance(other, Intervals):
            a, b = self.low * other, self.high * other
            return Intervals(_down(torch.minimum(a, b)), _up(torch.maximum(a, b)))
        a, b, c, d = self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high
        least, most = torch.minimum(torch.minimum(a, b), torch.minimum(c, d)), torch.maximum(a, b)
        return Intervals(_down(least), _up(torch.maximum(most, torch.maximum(c, d))))

    def inverse(self) -> Intervals:
        """Return 1/x of positive intervals."""
        return Intervals(_down(1 / self.high), _up(1 / self.low))

    def square(self) -> Intervals:
        """Return x², which is never negative."""
        ends = torch.stack([self.low.square(), self.high.square()])
        least = torch.where((self.low <= 0) & (self.high >= 0), 0.0, ends.amin(0))
        return Intervals(_down(least).clamp(min=0), _up(ends.amax(0)))

    def sqrt(self) -> Intervals:
        """Return √x of positive intervals."""
        return Intervals(_down(self.low.sqrt()), _up(self.high.sqrt()))

    def exp(self) -> Intervals:
        """Return eˣ."""
        return Intervals(self.low.exp() * (1 - _EXP), _up(self.high.exp() * (1 + _EXP)))

    def sum(self, dim: int) -> Intervals:
        """Return sums, in whatever order they are taken."""
        rounding = 2 * self.low.shape[dim] * _UNIT * self.largest.sum(dim)
        return Intervals(_down(self.low.sum(dim) - rounding), _up(self.high.sum(dim) + rounding))

    def over(self, chosen: Tensor) -> Intervals:
        """Return sums over the last axis of what the columns of a matrix of zeros and ones choose."""
        rounding = 2 * len(chosen) * _UNIT * (self.largest @ chosen)
        return Intervals(_down(self.low @ chosen - rounding), _up(self.high @ chosen + rounding))

    def times(self, other: Intervals) -> Intervals:
        """Return products of matrices."""
        return (self[..., :, :, None] * other[..., None, :, :]).sum(-2)

    def within(self, other: Intervals) -> Intervals:
        """Return the common part of two enclosures of the same numbers."""
        return Intervals(torch.maximum(self.low, other.low), torch.minimum(self.high, other.high))

    def shaped(self, *shape: int) -> Intervals:
        """Return the same intervals in another shape."""
        return Intervals(self.low.reshape(shape), self.high.reshape(shape))


@dataclass(frozen=True)
class Boxes:
    """Parallelepipeds {p + Qy : |yᵢ| ≤ dᵢ} in the 2k numbers of the heads.

    Parameters
    ----------
    centre, basis, half : Tensor
        p, (batch, 2k); Q with almost orthonormal columns, (batch, 2k, 2k); d, (batch, 2k).
    """

    centre: Tensor
    basis: Tensor
    half: Tensor

    @classmethod
    def cubes(cls, centre: Tensor, half: float) -> Boxes:
        """Return boxes along the coordinates."""
        basis = torch.eye(centre.shape[-1], dtype=centre.dtype).expand(len(centre), -1, -1)
        return cls(centre, basis, torch.full_like(centre, half))

    def hull(self) -> Intervals:
        """Return the numbers of the heads that occur, coordinate by coordinate."""
        reach = _up((self.basis.abs() * self.half[:, None]).sum(-1) * _SLACK)
        return Intervals(_down(self.centre - reach), _up(self.centre + reach))

    def __getitem__(self, at: Tensor) -> Boxes:
        return Boxes(self.centre[at], self.basis[at], self.half[at])

    def variation(self, slopes: Intervals) -> Intervals:
        """Return how far functions with these slopes, (batch, 2k, …), can be from their values at the centre."""
        flat = slopes.shaped(*slopes.low.shape[:2], -1)
        turned = Intervals.exact(self.basis.mT).times(flat).largest
        most = (turned * self.half[..., None]).sum(1) * _SLACK
        return Intervals(-most, most).shaped(len(self.half), *slopes.low.shape[2:])

    def hold(self, heads: Tensor, spread: Tensor | float = 0.0) -> Tensor:
        """Say which balls of radius `spread` around heads, (batch, 2k), lie inside."""
        away = (self.basis.mT @ (heads - self.centre)[..., None])[..., 0].abs()
        return (away + torch.as_tensor(spread)[..., None] <= _ROOM * self.half).all(-1)

    def inverse(self) -> Intervals:
        """Return Q⁻¹ = (1 − R)⁻¹Qᵀ, where R = 1 − QᵀQ: no entry is farther than 2‖R‖ from that of Qᵀ."""
        transposed = Intervals.exact(self.basis.mT)
        gap = -transposed.times(Intervals.exact(self.basis)) + torch.eye(self.basis.shape[-1], dtype=torch.float64)
        pad = 2 * gap.largest.sum(-1).amax(-1)[:, None, None]
        return Intervals(_down(transposed.low - pad), _up(transposed.high + pad))

    def turned(self, hessian: Intervals) -> Intervals:
        """Return M = Q⁻¹HQ."""
        return self.inverse().times(hessian).times(Intervals.exact(self.basis))

    def margins(self, turned: Intervals) -> Tensor:
        """Return the least mᵢ = Mᵢᵢ − Σ_{j≠i} |Mᵢⱼ| dⱼ/dᵢ, (batch, 2k): no eigenvalue of H is below the smallest."""
        scaled = turned.largest * self.half[:, None, :] / self.half[:, :, None] * _SLACK
        others = scaled.masked_fill(torch.eye(scaled.shape[-1], dtype=torch.bool), 0.0).sum(-1) * _SLACK
        return _down(turned.low.diagonal(dim1=1, dim2=2) - others)


@dataclass(frozen=True)
class Enclosure:
    """The squared-hinge risk of k heads over all 2^n inputs, in intervals.

    Parameters
    ----------
    n : int
        Bits.
    support : tuple of int
        The hidden positions, counted from 0.
    tau, b : Fraction
        Temperature and smoothing.
    """

    n: int
    support: tuple[int, ...]
    tau: Fraction
    b: Fraction

    def gradient(self, boxes: Boxes) -> Intervals:
        """Return the gradient on boxes, (batch, 2k)."""
        _, _, slopes, active, slope, _ = self._losses(boxes)
        return (slopes * self._by_weight(active, slope)[:, None]).sum(-1)

    def hessian(self, boxes: Boxes) -> Intervals:
        """Return the Hessian on boxes, (batch, 2k, 2k); where an input's hinge may switch, both cases are inside."""
        gamma, moved, slopes, active, slope, bend = self._losses(boxes)
        first, squared = self._by_weight(active, slope), slope.square()
        on = Intervals(torch.where(active.low > 0, squared.low, 0.0), torch.where(active.high > 0, squared.high, 0.0))
        pairs = (self._inputs[:, :, None] * self._inputs[:, None, :]).flatten(1)
        second = ((on + active * bend).over(pairs) * (2 / 2**self.n)).shaped(-1, self.n, self.n)
        whole = slopes.times(second).times(Intervals(slopes.low.mT, slopes.high.mT))
        # Σ_j f_j ∂²γ_j = Σ_j γ_j (f_j − f̄)(p_j − p̄)(p_j − p̄)ᵀ/τ² of each head, with f = ∂L/∂c
        spread = gamma * (first[:, None] - (gamma * first[:, None]).sum(-1)[..., None])
        own = (spread[..., None, None] * (moved[..., :, None] * moved[..., None, :])).sum(2)
        for head in range(len(self.support)):
            at = (slice(None), slice(2 * head, 2 * head + 2), slice(2 * head, 2 * head + 2))
            block = whole[at] + own[:, head]
            whole.low[at], whole.high[at] = block.low, block.high
        return whole

    def expansion(self, boxes: Boxes, rate: float) -> Tensor:
        """Return a bound on ‖1 − rate·H‖ over boxes, (batch,), by Gershgorin's discs of Q⁻¹HQ."""
        hessian = self.hessian(boxes)
        basis = torch.linalg.eigh((hessian.low + hessian.high) / 2).eigenvectors
        turned = replace(boxes, basis=basis).turned(hessian)
        eye = torch.eye(basis.shape[-1], dtype=torch.float64)
        return ((turned * -rate + eye).largest.sum(-1) * _SLACK).amax(-1)

    @cached_property
    def _inputs(self) -> Tensor:
        return torch.tensor(list(product((0.0, 1.0), repeat=self.n)), dtype=torch.float64)

    @cached_property
    def _labels(self) -> Tensor:
        return 1 - 2 * (self._inputs[:, list(self.support)].sum(-1) % 2)

    @cached_property
    def _codes(self) -> Intervals:
        """p_j/τ, (n, 2)."""
        with mp.workdps(30):
            turn = [2 * mp.pi * j / self.n for j in range(1, self.n + 1)]
            codes = torch.tensor([[float(mp.sin(at)), float(mp.cos(at))] for at in turn], dtype=torch.float64)
        return Intervals(_down(codes - 1e-25), _up(codes + 1e-25)) * Intervals.around(1 / self.tau)

    def _attention(self, heads: Intervals) -> Intervals:
        """Return γ_j = 1/Σ_i e^{s_i − s_j}, (batch, k, n): every score stands in few places."""
        apart = self._codes - self._codes[:, None]  # (own, other, 2)
        scores = heads[:, :, None, None, 0] * apart[..., 0] + heads[:, :, None, None, 1] * apart[..., 1]
        return scores.exp().sum(-1).inverse()

    def _moved(self, gamma: Intervals) -> Intervals:
        """Return (p_j − p̄)/τ, (batch, k, n, 2)."""
        return self._codes - (gamma[..., None] * self._codes).sum(-2)[..., None, :]

    def _slopes(self, gamma: Intervals, moved: Intervals) -> Intervals:
        """Return ∂c_j = ∂γ_j = γ_j (p_j − p̄)/τ by every number of the heads, (batch, 2k, n)."""
        slopes = gamma[..., None] * moved
        return Intervals(slopes.low.movedim(-1, -2).flatten(1, 2), slopes.high.movedim(-1, -2).flatten(1, 2))

    def _losses(self, boxes: Boxes) -> tuple[Intervals, ...]:
        """Return γ, (p_j − p̄)/τ, ∂c, the active part of 1 − yŷ, and its two derivatives by the score."""
        shape = (len(boxes.centre), len(self.support), 2)
        there = gamma = self._attention(Intervals.exact(boxes.centre).shaped(*shape))
        wide = bool(boxes.half.any())
        if wide:  # the mean value theorem narrows what plain intervals give for γ, and below for the scores
            plain = self._attention(boxes.hull().shaped(*shape))
            gamma = plain.within(there + self._variation(boxes, plain))
        moved = self._moved(gamma)
        slopes = self._slopes(gamma, moved)
        score = gamma.sum(1).over(self._inputs.T)
        if wide:
            by_mean_value = there.sum(1).over(self._inputs.T) + boxes.variation(slopes.over(self._inputs.T))
            score = score.within(by_mean_value)
        value, slope, bend = self._readout(score)
        margin = value * -self._labels + 1.0
        active = Intervals(margin.low.clamp(min=0), margin.high.clamp(min=0))
        return gamma, moved, slopes, active, slope * -self._labels, bend * -self._labels

    def _variation(self, boxes: Boxes, gamma: Intervals) -> Intervals:
        """Return how far γ can be from its values at the centre, (batch, k, n); a head moves its own alone."""
        steep = self._slopes(gamma, self._moved(gamma))
        of_heads = [
            replace(boxes, basis=boxes.basis[:, 2 * head : 2 * head + 2]).variation(steep[:, 2 * head : 2 * head + 2])
            for head in range(len(self.support))
        ]
        return Intervals(*(torch.stack([getattr(one, end) for one in of_heads], dim=1) for end in ("low", "high")))

    def _by_weight(self, active: Intervals, slope: Intervals) -> Intervals:
        """Return ∂L/∂c, (batch, n)."""
        return (active * slope).over(self._inputs) * (2 / 2**self.n)

    def _readout(self, score: Intervals) -> tuple[Intervals, Intervals, Intervals]:
        """Return ŷ, ŷ′, ŷ″ (H1, Eq. (2))."""
        b, nothing = Intervals.around(self.b), Intervals.exact(torch.zeros_like(score.low))
        value, slope, bend = nothing + 1.0, nothing, nothing
        for i in range(1, len(self.support) + 1):
            z, weight = score + (0.5 - i), float((-1) ** i * (4 * i - 2))
            root = (z.square() + b).sqrt()
            value += (z + root) * weight
            slope += (self._rise(z, b) + 1.0) * weight
            inverse = root.inverse()
            bend += b * (inverse.square() * inverse) * weight
        return value, slope, bend

    @staticmethod
    def _rise(z: Intervals, b: Intervals) -> Intervals:
        """Return z/√(z² + b), which grows with z."""
        ends = [Intervals.exact(z.low), Intervals.exact(z.high)]
        low, high = (end * (end.square() + b).sqrt().inverse() for end in ends)
        return Intervals(low.low, high.high)


@dataclass(frozen=True)
class Basins:
    """Boxes on which descent provably stays and converges, each to the one stationary point in its box.

    Parameters
    ----------
    boxes : Boxes
        Where.
    least_curvature : Tensor
        A bound on the Hessian's eigenvalues from below, (batch,); 0 where nothing is proved.
    fastest : Tensor
        The largest learning rate for which it is proved, (batch,).
    """

    boxes: Boxes
    least_curvature: Tensor
    fastest: Tensor

    @property
    def proved(self) -> Tensor:
        """Which boxes are proved."""
        return self.least_curvature > 0


def prove(enclosure: Enclosure, boxes: Boxes) -> Basins:
    """Say which boxes are basins: all mᵢ are positive, and the gradient at the centre is less than they pull back."""
    turned = boxes.turned(enclosure.hessian(boxes))
    gradient = enclosure.gradient(Boxes.cubes(boxes.centre, 0.0))
    pushed = boxes.inverse().times(gradient[..., None]).largest[..., 0] / boxes.half * _SLACK
    margins = boxes.margins(turned)
    least = torch.where((margins > pushed).all(-1), margins.amin(-1), 0.0)
    return Basins(boxes, least, _down(1 / turned.high.diagonal(dim1=1, dim2=2).amax(-1)))


def basins(enclosure: Enclosure, heads: Tensor, hessian: Tensor) -> Basins:
    """Prove basins around almost stationary heads, (batch, k, 2), with about these Hessians, as wide as is found.

    A box has the directions of the Hessian's eigenvectors, and half-widths like 1/√λ: where the risk bends less,
    descent arrives last.
    """
    values, basis = torch.linalg.eigh(hessian)
    half = _WIDEST * (values[:, :1].clamp(min=_FLAT) / values.clamp(min=_FLAT)).sqrt()
    found = prove(enclosure, Boxes(heads.flatten(1), basis, half))
    for _ in range(_TRIES):
        (asked,) = torch.where(~found.proved)
        if not len(asked):
            break
        half[asked] *= _NARROWER
        again = prove(enclosure, Boxes(heads.flatten(1)[asked], basis[asked], half[asked]))
        found.least_curvature[asked], found.fastest[asked] = again.least_curvature, again.fastest
    return found  # whose boxes have the half-widths found last


def arrivals(enclosure: Enclosure, heads: Tensor, basins: Basins, rate: float, steps: int, spread: float) -> Tensor:
    """Return after how many steps descent provably enters the basin of its row, (batch,); −1 where it is not proved.

    The exact descent from every start in a ball of radius `spread` around the heads stays in a ball around a computed
    path. That ball's radius is multiplied by ‖1 − rate·H‖ in every step, which Gershgorin's discs of Q⁻¹HQ bound on a
    box around, and grows by the width of the step in intervals. `rate` is the double itself.
    """
    arrived = torch.full((len(heads),), -1, dtype=torch.long)
    (runs,) = torch.where(basins.proved & (basins.fastest >= rate))
    at, radius = heads.flatten(1)[runs], torch.full((len(runs),), spread, dtype=torch.float64)
    pieces, growth = Boxes.cubes(at, 0.0), radius
    for step in range(steps + 1):
        inside = basins.boxes[runs].hold(at, radius)
        arrived[runs[inside]] = step
        stay = ~inside & (radius < _PIECE / 2)
        runs, at, radius, pieces, growth = runs[stay], at[stay], radius[stay], pieces[stay], growth[stay]
        if not len(runs):
            break
        if not pieces.hold(at, radius).all():
            pieces = Boxes.cubes(at, _PIECE)
            growth = enclosure.expansion(pieces, rate)
        moved = Intervals.exact(at) - enclosure.gradient(Boxes.cubes(at, 0.0)) * rate
        at = (moved.low + moved.high) / 2
        width = torch.maximum(moved.high - at, at - moved.low).sum(-1)
        radius = (growth * radius + width) * _SLACK
    return arrived
