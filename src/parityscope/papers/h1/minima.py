"""Strict local minima of H1's risk: where descent from its own starts ends, refined and certified.

Descent runs in double precision, Newton in 40 digits, and interval arithmetic (`enclosures`) proves that the risk is
strictly convex on a box around the point. The risk in digits is computed by plain loops over all inputs, which share
no code with the engines or with the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import torch
from mpmath import mp
from torch import Tensor

from parityscope.models.transformer import unit_directions
from parityscope.papers.h1.circle import Circle
from parityscope.papers.h1.enclosures import Enclosure, basins
from parityscope.problems import seeded_generator
from parityscope.records import Numbers

Number = Any  # mpmath has no types
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
        Whose numbers it computes with; `mp` has as many digits as it is told.
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
        """Return risk, gradient and Hessian at some heads, (k, 2)."""
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

    def _attention(self, head: Sequence[Number]) -> tuple[list[Number], list[tuple[Number, Number]]]:
        """Return γ and p_j − p̄ of one head."""
        raised = [self.arithmetic.exp((head[0] * p[0] + head[1] * p[1]) / self._tau) for p in self._places]
        gamma = [one / self._sum(raised) for one in raised]
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
            root = self.arithmetic.sqrt(z**2 + b)
            weight = (-1) ** i * (4 * i - 2)
            value += weight * (z + root)
            slope += weight * (1 + z / root)
            bend += weight * b / root**3
        return value, slope, bend

    def _loss(self, margin: Number, slope: Number, bend: Number) -> tuple[Number, Number, Number]:
        """Return the squared hinge of 1 − yŷ with its two derivatives by the score."""
        if margin <= 0:
            return self.arithmetic.mpf(0), self.arithmetic.mpf(0), self.arithmetic.mpf(0)
        return margin**2, 2 * margin * slope, 2 * slope**2 + 2 * margin * bend


_DIGITS = 40
_NEWTON_STEPS = 12


class MinimumNumbers(Numbers):
    """A certified strict local minimum; numbers with more digits than a float are text.

    `radius` is that of a ball inside the proved box, `least_curvature` bounds the Hessian's eigenvalues on the box, and
    descent with a rate of at most `fastest_rate` stays in it; all three are 0 where nothing is proved.
    """

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
    fastest_rate: float


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

    def accuracy(self, heads: Tensor) -> Tensor:
        """Return the share of all inputs that are classified right, (batch,)."""
        x, y = self._inputs
        return (y * self.circle.model.readout(self.circle.attention(heads).sum(-2) @ x.T) > 0).double().mean(-1)

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
    """Refine a minimum to 40 digits and prove a basin around it."""
    with mp.workdps(_DIGITS + 10):
        plain = PlainRisk(mp, n, support, tau, b)
        point = [mp.mpf(value) for value in heads.flatten().tolist()]
        for _ in range(_NEWTON_STEPS):
            found = plain.derivatives(_pairs(point))
            step = mp.lu_solve(mp.matrix(found.hessian), mp.matrix(found.gradient))
            point = [value - move for value, move in zip(point, step, strict=True)]
            if mp.norm(step) < mp.mpf(10) ** -_DIGITS:
                break
        found = plain.derivatives(_pairs(point))
        eigenvalues = sorted(mp.eigsy(mp.matrix(found.hessian), eigvals_only=True))
        hessian = torch.tensor([[float(value) for value in row] for row in found.hessian], dtype=torch.float64)
        centre = torch.tensor([float(value) for value in point], dtype=torch.float64).reshape(1, -1, 2)
        basin = basins(Enclosure(n, support, Fraction(tau), Fraction(b)), centre, hessian[None])
        proved = bool(basin.proved)
        return MinimumNumbers(
            n=n,
            support=support,
            tau=tau,
            b=b,
            seed=seed,
            heads=tuple((mp.nstr(one[0], _DIGITS), mp.nstr(one[1], _DIGITS)) for one in _pairs(point)),
            risk=mp.nstr(found.risk, _DIGITS),
            gradient=float(mp.norm(mp.matrix(found.gradient))),
            eigenvalues=tuple(float(value) for value in eigenvalues),
            radius=float(basin.boxes.half.min()) if proved else 0.0,
            least_curvature=float(basin.least_curvature),
            fastest_rate=float(basin.fastest) if proved else 0.0,
        )


def _pairs(point: Sequence[Number]) -> list[list[Number]]:
    return [list(point[start : start + 2]) for start in range(0, len(point), 2)]
