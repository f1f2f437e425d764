"""Strict local minima of H1's risk: where descent from its own starts ends, refined and certified.

Descent runs in double precision, Newton in 40 digits, and interval arithmetic proves that the risk is strictly convex
on a box around the point, so that nothing in the box lies lower. The risk in digits and intervals is computed by plain
loops over all inputs, which share no code with the engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import torch
from mpmath import mp
from mpmath.ctx_iv import MPIntervalContext
from torch import Tensor

from parityscope.models.transformer import unit_directions
from parityscope.papers.h1.circle import Circle
from parityscope.problems import seeded_generator
from parityscope.records import Numbers

INTERVALS = MPIntervalContext()  # one of our own, so that nobody else's precision changes
INTERVALS.dps = 20
Number = Any  # a number of the arithmetic at hand; mpmath has no types
Matrix = list[list[Number]]


class Derivatives(NamedTuple):
    """Risk, gradient and Hessian in the 2k numbers of the heads.

    >>> Derivatives(1.5, [0.0, 0.0], [[1.0, 0.0], [0.0, 2.0]]).hessian[1][1]
    2.0
    """

    risk: Number
    gradient: list[Number]
    hessian: Matrix


@dataclass(frozen=True)
class PlainRisk:
    """The squared-hinge risk of k heads on the circle over all 2^n inputs.

    Parameters
    ----------
    arithmetic : mpmath context
        `mp` or `INTERVALS`.
    n : int
        Bits.
    support : tuple of int
        The hidden positions, counted from 0.
    tau, b : str or float
        Temperature and smoothing; text such as "1/6" keeps all digits.
    """

    arithmetic: Any
    n: int
    support: tuple[int, ...]
    tau: str | float
    b: str | float

    def derivatives(self, heads: Sequence[Sequence[Number]]) -> Derivatives:
        """Return risk, gradient and Hessian at some heads, (k, 2).

        Where an interval cannot tell whether an input's hinge is active, both cases are inside the result.
        """
        gammas, centred = zip(*(self._attention(head) for head in heads), strict=True)
        weights = [self._sum(gamma[j] for gamma in gammas) for j in range(self.n)]
        risk, first, second = self._in_weights(weights)
        slopes = [self._slopes(gamma, moved) for gamma, moved in zip(gammas, centred, strict=True)]
        flat = [slope for of_head in slopes for slope in of_head]  # 2k rows of n
        gradient = [self._dot(first, slope) for slope in flat]
        bent = [[self._dot(row, slope) for row in second] for slope in flat]
        hessian = [[self._dot(one, other) for other in flat] for one in bent]
        for head, (gamma, moved) in enumerate(zip(gammas, centred, strict=True)):
            for a, d in product(range(2), repeat=2):
                hessian[2 * head + a][2 * head + d] += self._bend(first, gamma, moved, a, d)
        return Derivatives(risk, gradient, hessian)

    def risk(self, heads: Sequence[Sequence[Number]]) -> Number:
        """Return the risk alone."""
        gammas = [self._attention(head)[0] for head in heads]
        return self._in_weights([self._sum(gamma[j] for gamma in gammas) for j in range(self.n)])[0]

    @cached_property
    def _places(self) -> list[tuple[Number, Number]]:
        turn = 2 * self.arithmetic.pi / self.n
        return [(self.arithmetic.sin(turn * j), self.arithmetic.cos(turn * j)) for j in range(1, self.n + 1)]

    @cached_property
    def _tau(self) -> Number:
        return self._exact(self.tau)

    def _exact(self, value: str | float) -> Number:
        above, _, below = str(value).partition("/")
        return self.arithmetic.mpf(above) / self.arithmetic.mpf(below or 1)

    def _sum(self, numbers: Any) -> Number:
        return sum(numbers, self.arithmetic.mpf(0))

    def _dot(self, left: Sequence[Number], right: Sequence[Number]) -> Number:
        return self._sum(a * b for a, b in zip(left, right, strict=True))

    def _square(self, z: Number) -> Number:
        return z**2  # in intervals never negative, unlike z·z

    def _attention(self, head: Sequence[Number]) -> tuple[list[Number], list[tuple[Number, Number]]]:
        """Return γ and p_j − p̄ of one head.

        γ_j is 1/Σ_i e^{s_i − s_j}: every score stands in few places, which keeps intervals narrow.
        """
        gamma = [
            1 / self._sum(
                self.arithmetic.exp((head[0] * (p[0] - own[0]) + head[1] * (p[1] - own[1])) / self._tau)
                for p in self._places
            )
            for own in self._places
        ]  # fmt: skip
        mean = [self._dot(gamma, [p[axis] for p in self._places]) for axis in range(2)]
        return gamma, [(p[0] - mean[0], p[1] - mean[1]) for p in self._places]

    def _slopes(self, gamma: list[Number], moved: list[tuple[Number, Number]]) -> list[list[Number]]:
        """Return ∂γ_j/∂a = γ_j (p_j − p̄)/τ for both coordinates."""
        return [[g * at[axis] / self._tau for g, at in zip(gamma, moved, strict=True)] for axis in range(2)]

    def _bend(
        self, first: list[Number], gamma: list[Number], moved: list[tuple[Number, Number]], a: int, d: int
    ) -> Any:
        """Return Σ_j f_j ∂²γ_j = Σ_j γ_j (f_j − f̄)(p_j − p̄)(p_j − p̄)ᵀ/τ² with f = ∂L/∂c."""
        mean = self._dot(first, gamma)
        terms = (g * (f - mean) * at[a] * at[d] for f, g, at in zip(first, gamma, moved, strict=True))
        return self._sum(terms) / self._tau**2

    def _in_weights(self, weights: list[Number]) -> tuple[Number, list[Number], Matrix]:
        """Return risk, gradient and Hessian in the n weights c = Σ_h γ_h."""
        zero, n = self.arithmetic.mpf(0), self.n
        risk, first, second = zero, [zero] * n, [[zero] * n for _ in range(n)]
        for bits in product((0, 1), repeat=n):
            ones = [j for j in range(n) if bits[j]]
            label = (-1) ** sum(bits[j] for j in self.support)
            value, slope, bend = self._readout(self._sum(weights[j] for j in ones))
            loss, loss_slope, loss_bend = self._loss(1 - label * value, -label * slope, -label * bend)
            risk += loss
            for i in ones:
                first[i] += loss_slope
                for j in ones:
                    second[i][j] += loss_bend
        inputs = 2**n
        return risk / inputs, [one / inputs for one in first], [[one / inputs for one in row] for row in second]

    def _readout(self, score: Number) -> tuple[Number, Number, Number]:
        """Return ŷ, ŷ′, ŷ″ (H1, Eq. (2))."""
        value, slope, bend = (self.arithmetic.mpf(start) for start in (1, 0, 0))
        b = self._exact(self.b)
        for i in range(1, len(self.support) + 1):
            z = score + (self.arithmetic.mpf(1) / 2 - i)
            root = self.arithmetic.sqrt(self._square(z) + b)
            weight = (-1) ** i * (4 * i - 2)
            value += weight * (z + root)
            slope += weight * (1 + z / root)
            bend += weight * b / root**3
        return value, slope, bend

    def _loss(self, margin: Number, slope: Number, bend: Number) -> tuple[Number, Number, Number]:
        """Return the squared hinge of 1 − yŷ with its two derivatives by the score."""
        low, high = (margin.a, margin.b) if self.arithmetic is INTERVALS else (margin, margin)
        zero = self.arithmetic.mpf(0)
        if high <= 0:
            return zero, zero, zero
        if low > 0:
            return self._square(margin), 2 * margin * slope, 2 * self._square(slope) + 2 * margin * bend
        # Active or not: the second derivative jumps between 0 and its value, and the hull holds both.
        active = INTERVALS.mpf([0, high])
        jump = INTERVALS.mpf([0, (2 * self._square(slope)).b])
        return self._square(active), 2 * active * slope, jump + 2 * active * bend


_DIGITS = 40
_NEWTON_STEPS = 12
_WIDEST, _BOXES = 1e-3, 10


class MinimumNumbers(Numbers):
    """A certified strict local minimum; numbers with more digits than a float are text."""

    n: int
    support: tuple[int, ...]
    tau: str
    b: str
    seed: int
    heads: tuple[tuple[str, str], ...]
    risk: str
    gradient: float
    eigenvalues: tuple[float, ...]
    radius: float
    least_curvature: float


def starts(seeds: Sequence[int], k: int) -> Tensor:
    """Return H1's own starts, those of the recipe `as-written`: directions uniform on the circle, (seeds, k, 2)."""
    return torch.stack([unit_directions(k, 2, seeded_generator(seed, "start")) for seed in seeds])


@dataclass(frozen=True)
class Landscape:
    """The risk of H1's heads over all inputs, with closed derivatives for a batch of heads, (batch, k, 2)."""

    circle: Circle
    support: tuple[int, ...]

    def slopes(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Return risks and their gradients, (batch,) and (batch, k, 2)."""
        gamma, margin, slope, _ = self._losses(heads)
        return margin.square().mean(-1), (gamma * self._centred(gamma, self._by_weight(margin * slope))) @ self._codes

    def derivatives(self, heads: Tensor) -> tuple[Tensor, Tensor]:
        """Return gradients and Hessians, (batch, 2k) and (batch, 2k, 2k)."""
        gamma, margin, slope, bend = self._losses(heads)
        x, _ = self._inputs
        first = self._by_weight(margin * slope)
        second = torch.einsum("bi,in,im->bnm", (margin > 0) * slope.square() + margin * bend, x, x) * (2 / len(x))
        codes = self._codes
        moved = codes - (gamma @ codes)[..., None, :]  # (batch, k, n, 2): (p_j − p̄)/τ
        jacobian = (gamma[..., None] * moved).movedim(-1, -2).flatten(1, 2)  # ∂γ_j = γ_j (p_j − p̄)/τ
        hessian = jacobian @ second @ jacobian.mT
        # Σ_j f_j ∂²γ_j = Σ_j γ_j (f_j − f̄)(p_j − p̄)(p_j − p̄)ᵀ/τ²
        own = torch.einsum("bhj,bhja,bhjd->bhad", gamma * self._centred(gamma, first), moved, moved)
        for head in range(gamma.shape[1]):
            at = slice(2 * head, 2 * head + 2)
            hessian[:, at, at] += own[:, head]
        return torch.einsum("bn,bdn->bd", first, jacobian), hessian

    @cached_property
    def _inputs(self) -> tuple[Tensor, Tensor]:
        return self.circle.all_inputs(self.support)

    @cached_property
    def _codes(self) -> Tensor:
        return self.circle.model.positions / self.circle.tau

    def _losses(self, heads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return γ, the active part of 1 − yŷ, and its first two derivatives by the score where it is active."""
        x, y = self._inputs
        gamma = self.circle.attention(heads)
        score = gamma.sum(-2) @ x.T
        value, slope = self.circle.model.readout.value_and_slope(score)
        bend = sum((-1) ** i * (4 * i - 2) * self.circle.b / ((score + 0.5 - i) ** 2 + self.circle.b) ** 1.5
                   for i in range(1, self.circle.k + 1))  # fmt: skip
        return gamma, (1 - y * value).relu(), -y * slope, -y * bend

    def _by_weight(self, half_slope: Tensor) -> Tensor:
        x, _ = self._inputs
        return half_slope @ x * (2 / len(x))

    def _centred(self, gamma: Tensor, by_weight: Tensor) -> Tensor:
        spread = by_weight[:, None]
        return spread - (gamma * spread).sum(-1, keepdim=True)


def descend(land: Landscape, heads: Tensor, rate: float, steps: int) -> tuple[Tensor, Tensor]:
    """Return where plain gradient descent ends for a batch of heads, and the largest rise of the risk on the way."""
    before = torch.full((len(heads),), torch.inf, dtype=heads.dtype)
    rise = torch.zeros_like(before)
    for _ in range(steps):
        risk, gradient = land.slopes(heads)
        rise, before = torch.maximum(rise, risk - before), risk
        heads = heads - rate * gradient
    return heads, rise


def polish(land: Landscape, heads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where Newton's steps lead a batch of heads, and the length of the gradient and least eigenvalue there."""
    for _ in range(_NEWTON_STEPS):
        gradient, hessian = land.derivatives(heads)
        # A singular Hessian, as on a plateau, leads nowhere in particular; the least eigenvalue tells.
        heads = heads - (torch.linalg.pinv(hessian, hermitian=True) @ gradient[..., None]).reshape(heads.shape)
    gradient, hessian = land.derivatives(heads)
    return heads, gradient.norm(dim=-1), torch.linalg.eigvalsh(hessian)[:, 0]


def certify(n: int, support: tuple[int, ...], tau: str, b: str, heads: Tensor, *, seed: int) -> MinimumNumbers:
    """Refine a minimum to 40 digits and prove how far around it nothing lies lower."""
    with mp.workdps(_DIGITS + 10):
        plain = PlainRisk(mp, n, support, tau, b)
        point = [mp.mpf(value) for value in heads.flatten().tolist()]
        for _ in range(_NEWTON_STEPS):
            found = plain.derivatives(_pairs(point))
            step = mp.lu_solve(mp.matrix(found.hessian), mp.matrix(found.gradient))
            point = [value - move for value, move in zip(point, step, strict=True)]
        found = plain.derivatives(_pairs(point))
        eigenvalues = sorted(mp.eigsy(mp.matrix(found.hessian), eigvals_only=True))
        slope = float(mp.norm(mp.matrix(found.gradient)))
        radius, curvature = _certified_box(PlainRisk(INTERVALS, n, support, tau, b), point)
        if slope > 1e-6 * curvature * radius:  # the minimum of a convex function lies within slope/curvature
            radius, curvature = 0.0, 0.0
        return MinimumNumbers(
            n=n,
            support=support,
            tau=tau,
            b=b,
            seed=seed,
            heads=tuple((mp.nstr(one[0], _DIGITS), mp.nstr(one[1], _DIGITS)) for one in _pairs(point)),
            risk=mp.nstr(found.risk, _DIGITS),
            gradient=slope,
            eigenvalues=tuple(float(value) for value in eigenvalues),
            radius=radius,
            least_curvature=curvature,
        )


def _pairs(point: Sequence[Number]) -> list[list[Number]]:
    return [list(point[start : start + 2]) for start in range(0, len(point), 2)]


def _certified_box(plain: PlainRisk, point: Sequence[Number]) -> tuple[float, float]:
    """Return the half-width of a box on which the Hessian is proved positive definite, and a bound on its eigenvalues.

    The uncertainty of the Hessian shrinks about as the box does, which says how much smaller to try; (0, 0) where none
    is proved.
    """
    radius = _WIDEST
    for _ in range(_BOXES):
        box = [INTERVALS.mpf([value - radius, value + radius]) for value in point]
        middle, half = _eigenvalue_and_uncertainty(plain.derivatives(_pairs(box)).hessian)
        if middle > half:
            return radius, middle - half
        radius *= min(0.7, max(0.05, 0.8 * middle / half))
    return 0.0, 0.0


def _eigenvalue_and_uncertainty(hessian: Matrix) -> tuple[float, float]:
    """Return the least eigenvalue of an interval matrix's middle, and how far those of its members can be from it.

    That is at most the largest row sum of half-widths (Weyl).
    """
    size = range(len(hessian))
    low = mp.matrix([[mp.mpf(hessian[i][j].a) for j in size] for i in size])
    high = mp.matrix([[mp.mpf(hessian[i][j].b) for j in size] for i in size])
    middle = (low + low.T + high + high.T) / 4
    half = max(sum(max(high[i, j] - middle[i, j], middle[i, j] - low[i, j]) for j in size) for i in size)
    return float(min(mp.eigsy(middle, eigvals_only=True))), float(half)
