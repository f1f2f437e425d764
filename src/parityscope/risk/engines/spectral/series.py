"""A loss as a function of S, made periodic: its Fourier coefficients, tapered so that what they leave out is bounded.

Between its joints the function is a polynomial, so that its coefficients are finite sums over the jumps of its
derivatives. Jumps of the function itself are tapered by Vaaler's weights, everything smoother by Bohman's.
docs/explanation/engines.md derives what each leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from parityscope.risk.pieces.pieces import Piecewise, recentre
from parityscope.risk.pieces.rounding import UNIT

OUTSIDE = 1e-20  # admitted probability of leaving the window


@dataclass(frozen=True)
class Window:
    """S − centre stays in [−half, half] but for probability ``outside``; functions get this period.

    >>> Window.of(torch.full((100,), 0.02, dtype=torch.float64)).outside  # S lies between 0 and 2
    1e-20
    """

    centre: float
    half: float
    period: float
    outside: float

    @classmethod
    def of(cls, c: Tensor, room: float = 0.0) -> Window:
        """Return the window that Hoeffding's inequality gives for these weights.

        With room there is so much on either side, and half as much again as without.
        """
        reach, energy = float(c.abs().sum()) / 2, float(c.square().sum())
        # Hoeffding: P(|S − μ| ≥ t) ≤ 2·exp(−2t²/Σc_j²), since bit j moves S by c_j; solved for t.
        half = math.sqrt(energy * math.log(2 / OUTSIDE) / 2)
        outside = 0.0 if half >= reach else OUTSIDE
        # No wider than S can reach; the slack keeps a score on the border inside.
        half = min(half, reach * (1 + 1e-9))
        half += (max(room, half / 2) if room else 0.0) + 1e-9
        # A quarter of the window is added to the period for the quintic that joins its ends.
        return cls(math.fsum(c.tolist()) / 2, half, 2.5 * half, outside)


def vaaler(share: Tensor) -> Tensor:
    """Return Vaaler's weight πu(1 − u)cot πu + u at a share u of the last frequency.

    >>> vaaler(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)).tolist()
    [1.0, 0.5, 0.0]
    """
    inside = share.clamp(1e-9, 1 - 1e-9)
    weight = math.pi * inside * (1 - inside) / torch.tan(math.pi * inside) + inside
    return torch.where(share >= 1, 0.0, torch.where(share < 1e-9, 1.0, weight))


def bohman(share: Tensor) -> Tensor:
    """Return Bohman's weight (1 − u)cos πu + sin(πu)/π, the transform of a density of variance (π/T)².

    >>> bohman(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)).round(decimals=6).tolist()
    [1.0, 0.31831, 0.0]
    """
    return torch.where(share >= 1, 0.0, (1 - share) * torch.cos(math.pi * share) + torch.sin(math.pi * share) / math.pi)


@dataclass(frozen=True)
class Tapers:
    """The weights of some frequencies t, when the last one that counts is `last`.

    >>> tapers = Tapers.at(torch.tensor([0.0, 2.0]), 2.0, 0.5)
    >>> [[round(weight, 3) for weight in weights.tolist()] for weights in (tapers.jump, tapers.smooth, tapers.fejer)]
    [[1.0, 0.108], [1.0, 0.0], [1.0, 0.2]]
    """

    jump: Tensor
    smooth: Tensor
    fejer: Tensor
    delta: Tensor  # of a jump's own derivative, which counts where the score is jittered

    @classmethod
    def at(cls, t: Tensor, last: float, base: float, *, jittered: bool = False) -> Tapers:
        """Vaaler's and Fejér's weights end a multiple of `base` after the last frequency; jitter has Bohman's alone."""
        share, smooth = t / (last + base), bohman(t / last)
        fejer = (1 - share).clamp(min=0.0)
        return (
            cls(smooth, smooth, fejer, smooth) if jittered else cls(vaaler(share), smooth, fejer, torch.zeros_like(t))
        )


@dataclass(frozen=True)
class Coefficients:
    """Fourier coefficients of one function at some frequencies, and sums over its jumps for Fejér's bound."""

    value: Tensor  # of the function
    slope: Tensor  # of its derivative (but for a jump's own, unless it is jittered), divided by it
    jumps: Tensor  # Σ |jump of the value| e^{−itx}
    kinks: Tensor  # Σ |jump of the slope| e^{−itx}
    phase: Tensor  # e^{−itx} itself: (joints, frequencies)


@dataclass(frozen=True)
class Periodic:
    """A periodic piecewise polynomial: the jumps (joints, orders) of its derivatives at ``where``, relative to μ."""

    where: Tensor
    size: Tensor
    doubt: Tensor  # (orders,): how far rounding may move the sum of |jumps| of each order
    mean: float
    mean_slope: float  # of the derivative away from jumps: what it climbs there the jumps take back
    period: float
    most: Tensor  # (orders,): bounds of |derivative| away from joints

    @classmethod
    def of(cls, f: Piecewise, w: Window) -> Periodic:
        """Restrict f to the window and close it by a quintic into a periodic function."""
        low, high = w.centre - w.half, w.centre + w.half
        # A score within TIE to the left of a joint counts as on it, and the cuts say so.
        inner = f.cuts[(f.cuts > low) & (f.cuts < high)]
        first = int((f.cuts <= low).sum())
        rows = slice(first, first + len(inner) + 1)
        coefs = torch.nn.functional.pad(f.coefs[rows], (0, max(0, 5 - f.degree)))
        starts = torch.cat([inner.new_tensor([low]), inner])
        ends = torch.cat([inner, inner.new_tensor([high])])
        # Every piece about its own middle; the bridge that joins the ends of the window follows.
        local = recentre(coefs, (starts + ends) / 2 - f.centres[rows])
        half = (ends - starts) / 2
        gap = w.period - 2 * w.half
        before, after = _derivatives(local, half)[-1], _derivatives(local, -half)[0]
        bridge = torch.nn.functional.pad(_quintic(before[:3], after[:3], gap / 2), (0, local.shape[1] - 6))
        local, half = torch.cat([local, bridge[None]]), torch.cat([half, half.new_tensor([gap / 2])])
        at_start, at_end = _derivatives(local, -half), _derivatives(local, half)
        most = _derivatives(local.abs(), half)
        moved = _derivatives(
            coefs.abs(), torch.maximum((starts - f.centres[rows]).abs(), (ends - f.centres[rows]).abs())
        )
        # Two Taylor shifts of degree d, and a difference: (4d + 8)u of what is added up in modulus.
        doubt = (4 * local.shape[1] + 8) * UNIT * 2 * (most.sum(0) + moved.sum(0))
        orders = torch.arange(local.shape[1])
        # Odd powers add up to nothing, and even ones climb nothing.
        area = 2 * half[:, None] ** (orders + 1) / (orders + 1) * (orders % 2 == 0)
        climb = 2 * half[:, None] ** orders * (orders % 2 == 1)
        where = torch.cat([starts, inner.new_tensor([high])]) - w.centre
        size = at_start - at_end.roll(1, 0)
        largest = torch.maximum(most, torch.nn.functional.pad(moved, (0, 0, 0, 1)))
        mean, mean_slope = (float((local * of).sum()) / w.period for of in (area, climb))
        return cls(where, size, doubt, mean, mean_slope, w.period, largest.amax(0))

    @classmethod
    def mean_of(cls, parts: Sequence[Periodic]) -> Periodic:
        """Return the mean of functions of one period, joint by joint."""
        if len(parts) == 1:
            return parts[0]
        doubt, most = (torch.stack([getattr(part, name) for part in parts]).mean(0) for name in ("doubt", "most"))
        size = torch.cat([part.size for part in parts]) / len(parts)
        mean, mean_slope = (sum(getattr(part, name) for part in parts) / len(parts) for name in ("mean", "mean_slope"))
        return cls(torch.cat([part.where for part in parts]), size, doubt, mean, mean_slope, parts[0].period, most)

    def slope_by_joint(self, t: Tensor, tapers: Tapers, phase: Tensor, law: Tensor) -> Tensor:
        """Return what each joint adds to E[derivative], where E e^{it(S−μ)} of this label is ``law``."""
        z = torch.complex(torch.zeros_like(t), -1 / t)
        weights, power = [tapers.delta + 0 * z, tapers.jump * z], z
        for _ in range(2, self.size.shape[1]):
            power = power * z
            weights.append(tapers.smooth * power)
        of_order = (phase @ (torch.stack(weights) * law).T).real
        return (of_order * self.size).sum(1) / self.period

    @cached_property
    def total(self) -> Tensor:
        """Bounds of the sum of |jumps| of every order."""
        return self.size.abs().sum(0) + self.doubt

    def coefficients(self, t: Tensor, tapers: Tapers) -> Coefficients:
        """Return the tapered coefficients at frequencies t > 0."""
        # By parts over one period: (1/period)·Σ_joints e^{−itx}·Σ_r J_r/(it)^{r+1}, J_r the jump of the r-th
        # derivative at x.
        phase = torch.exp(-1j * self.where[:, None] * t)
        table = torch.cat([self.size, self.size[:, :2].abs()], 1).T.to(phase.dtype)
        *jumps, of_values, of_slopes = table @ phase
        z = torch.complex(torch.zeros_like(t), -1 / t)  # 1/(it)
        rest = torch.zeros_like(z)
        for row in jumps[:1:-1]:
            rest = (rest + row) * z
        # `rest` is Σ_{r≥2} J_r z^{r−1}.
        slope = tapers.delta * jumps[0] + (tapers.jump * jumps[1] + tapers.smooth * rest) * z
        value = tapers.jump * jumps[0] + tapers.smooth * (jumps[1] + rest) * z
        return Coefficients(value * z / self.period, slope * z / self.period, of_values, of_slopes, phase)

    def envelope(self, t: Tensor, least: int) -> Tensor:
        """Return an upper bound of |Σ_{r≥least} J_r/(it)^{r+1}|/period."""
        return _powers(self.total[least:], t) / t**least / self.period

    def uncertain(self, t: Tensor, least: int) -> Tensor:
        """Return how far rounding of the jumps moves such a coefficient."""
        return _powers(self.doubt[least:], t) / t**least / self.period

    def smoothed_away(self, order: int, last: float, density: float) -> float:
        """Bound E|g − g tapered| for the derivative g of this order without its jumps; any interval of length 1/last
        holds at most density/last of the probability."""
        # ½·E|g(S + u) − 2g(S) + g(S − u)| with E u² = (π/last)² and E|u| ≤ π/last (engines.md, "Smooth parts").
        chance, second, first = min(1.0, density / last), (math.pi / last) ** 2, math.pi / last
        kinks = float(self.total[order + 1]) * chance * (2.5 * last * second + 2 * first)
        return 0.5 * (float(self.most[order + 2]) * second + kinks)


def _powers(sizes: Tensor, t: Tensor) -> Tensor:
    """Return Σ_i sizes_i / t^{i+1}."""
    total = torch.zeros_like(t)
    for size in sizes.flip(0):
        total = (total + size) / t
    return total


def _derivatives(coefs: Tensor, at: Tensor) -> Tensor:
    """Rows: all derivatives at centre + at, of polynomials (pieces, d + 1) about their centres.

    >>> _derivatives(torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64), torch.tensor([3.0])).tolist()  # u²
    [[9.0, 6.0, 2.0]]
    """
    return recentre(coefs, at) * coefs.new_tensor([math.factorial(r) for r in range(coefs.shape[1])])


def _quintic(left: Tensor, right: Tensor, half: float) -> Tensor:
    """Coefficients about its middle of the quintic with given (f, f′, f″) at −half and half."""
    orders, scale = torch.arange(6), half ** torch.arange(6, dtype=torch.float64)
    ends = torch.stack(
        [_derivatives(torch.eye(6, dtype=torch.float64), at.expand(6))[:, :3] for at in scale.new_tensor([-1.0, 1.0])]
    )
    # In units of the half width the matrix does not depend on it.
    target = torch.cat([left * scale[:3], right * scale[:3]])
    return torch.linalg.solve(torch.cat([ends[0].T, ends[1].T]), target) / scale[orders]
