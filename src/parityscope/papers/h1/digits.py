"""H1's population risk in many digits and in intervals: plain loops over all inputs, sharing no code with the engines.

With mpmath's `mp` it gives many digits, with `INTERVALS` numbers known to lie between two others, so that what is found
there is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from mpmath.ctx_iv import MPIntervalContext

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

    >>> from mpmath import mp
    >>> risk = PlainRisk(mp, 4, (0, 2), "1/4", "0.01").derivatives([[0, 0], [0, 0]])  # uniform attention, A = 0
    >>> round(float(risk.risk), 3), max(abs(float(slope)) for slope in risk.gradient) < 1e-14
    (2.356, True)
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
