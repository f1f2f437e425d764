"""H1's Theorem 5 with all of A trained: a strict minimum that one of H1's starts provably leads to.

Tokens are (x_j, 1 − x_j, sin, cos) and the query is (1, 0, 0, 0) (H1, Eq. (3)), so that scores see a13, a14 and
a11 − a12 alone: a11 + a12 moves all scores of a head together, and the other rows move none. With v = (a11 − a12)/√2,
an orthonormal coordinate, descent of all sixteen entries is plain descent in (v, a13, a14) at the same rate, and what
else there is in A stays where it started. A minimum is strict in these three numbers of every head.

The risk depends on A/τ alone. Everything here is in these units, in which τ is 1, a start has length 1/τ, and a rate η
of A is η/τ².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import torch
from mpmath import mp
from torch import Tensor
from torch.nn.functional import pad

from parityscope.papers.claim import Again
from parityscope.papers.h1.circle import SMOOTHING, gradients_of
from parityscope.papers.h1.descents import SPREAD, by_differences, full_risk
from parityscope.papers.h1.enclosures import Boxes, Enclosure, Intervals, arrivals, basins
from parityscope.papers.h1.minima import Number, PlainRisk

_N, _SUPPORT, _RATE = 4, (0, 1), 0.04  # τ = 1/n
# On the mirror axis of the support (ω₁ + ω₂ = 3π/2), where descent crosses into the minimum's slow direction at its
# bottom: a hundred steps arrive, where a start drawn at random needs ten thousand.
_ANGLES = (2.574781762, 2.137607218)
_STEPS = 150
_DIGITS = 40
_ENTRIES = torch.tensor([[0.5**0.5, -(0.5**0.5), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.float64)


def whole_risk(points: Tensor) -> Tensor:
    """Return the risks at (v, a13, a14)/τ of every head, (batch, k, 3), through all sixteen entries of every A."""
    return full_risk(pad((points @ _ENTRIES / _N)[..., None, :], (0, 0, 0, 3)), _N, _SUPPORT)


def _begun() -> Tensor:
    """Return H1's start with these angles, (1, k, 3)."""
    return torch.tensor([[[0.0, _N * math.cos(at), _N * math.sin(at)] for at in _ANGLES]], dtype=torch.float64)


def _descended(points: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        points = points - _RATE * _N**2 * gradients_of(whole_risk, points)
    return points


class WholePlainRisk(PlainRisk):
    """The risk by plain loops, attention depending on the input."""

    def risk(self, heads: Sequence[Sequence[Number]]) -> Number:
        """Return the risk at (v, a13, a14) of every head, (k, 3)."""
        total = self.arithmetic.mpf(0)
        for bits in product((0, 1), repeat=self.n):
            label = (-1) ** sum(bits[j] for j in self.support)
            value, _, _ = self._readout(self._sum(self._attended(head, bits) for head in heads))
            total += max(self.arithmetic.mpf(0), 1 - label * value) ** 2
        return total / 2**self.n

    def _attended(self, head: Sequence[Number], bits: Sequence[int]) -> Number:
        """Return Σ_j γ_j x_j of one head."""
        tokens = [(self.arithmetic.sqrt(2) * bit, *place) for bit, place in zip(bits, self._places, strict=True)]
        raised = [self.arithmetic.exp(self._dot(head, token) / self._tau) for token in tokens]
        return self._dot(raised, bits) / self._sum(raised)


class WholeEnclosure(Enclosure):
    """An enclosure of the risk in (v, a13, a14) of every head; attention depends on the input."""

    def gradient(self, boxes: Boxes) -> Intervals:
        """Return the gradient on boxes, (batch, 3k)."""
        slopes, _, first, _, _ = self._by_input(boxes)
        return (slopes * first[..., None]).sum(1) * 2.0**-self.n

    def hessian(self, boxes: Boxes) -> Intervals:
        """Return the Hessian on boxes, (batch, 3k, 3k); where an input's hinge may switch, both cases are inside."""
        slopes, bends, first, second, _ = self._by_input(boxes)
        whole = ((slopes[..., :, None] * slopes[..., None, :]) * second[..., None, None]).sum(1)
        own = (bends * first[:, None, :, None, None]).sum(2)
        for head in range(len(self.support)):
            at = (slice(None), slice(3 * head, 3 * head + 3), slice(3 * head, 3 * head + 3))
            block = whole[at] + own[:, head]
            whole.low[at], whole.high[at] = block.low, block.high
        return whole * 2.0**-self.n

    @cached_property
    def _tokens(self) -> Intervals:
        """(√2 x_j, sin, cos)/τ of every input, (inputs, n, 3)."""
        root = Intervals.exact(torch.tensor(2.0, dtype=torch.float64)).sqrt() * Intervals.around(1 / self.tau)
        places = [self._codes[:, axis] + 0 * self._inputs for axis in (0, 1)]
        parts = [Intervals.exact(self._inputs) * root, *places]
        return Intervals(*(torch.stack([getattr(one, end) for one in parts], -1) for end in ("low", "high")))

    def risk(self, boxes: Boxes) -> Intervals:
        """Return the risk on boxes, (batch,)."""
        return self._by_input(boxes)[4].square().sum(-1) * 2.0**-self.n

    def _by_input(self, boxes: Boxes) -> tuple[Intervals, ...]:
        """Return ∂S, (batch, inputs, 3k), ∂²S of each head, two derivatives of the loss by S, and its root."""
        shape = (len(boxes.centre), len(self.support), 1, 1, 1, 3)
        score, slopes, bends = self._scores(boxes.hull().shaped(*shape))
        if boxes.half.any():  # the mean value theorem narrows what plain intervals give
            there, _, _ = self._scores(Intervals.exact(boxes.centre).shaped(*shape))
            score = score.within(there + boxes.variation(Intervals(slopes.low.mT, slopes.high.mT)))
        value, slope, bend = self._readout(score)
        margin = value * -self._labels + 1.0
        active = Intervals(margin.low.clamp(min=0), margin.high.clamp(min=0))
        squared = slope.square()
        on = Intervals(torch.where(active.low > 0, squared.low, 0.0), torch.where(active.high > 0, squared.high, 0.0))
        towards = -2 * self._labels
        return slopes, bends, active * slope * towards, on * 2.0 + active * bend * towards, active

    def _scores(self, heads: Intervals) -> tuple[Intervals, Intervals, Intervals]:
        """Return S, ∂S = Σ_j γ_j (x_j − x̄)(z_j − z̄)/τ, and ∂²S, with (z_j − z̄)(z_j − z̄)ᵀ/τ², of every input."""
        tokens, bits = self._tokens, self._inputs
        apart = tokens[:, None] - tokens[:, :, None]  # (inputs, own, other, 3)
        gamma = (heads * apart).sum(-1).exp().sum(-1).inverse()  # (batch, k, inputs, n)
        seen = (gamma * bits).sum(-1)  # x̄
        weight = gamma * (-seen[..., None] + bits)
        moved = tokens - (gamma[..., None] * tokens).sum(-2)[..., None, :]
        slopes = (weight[..., None] * moved).sum(-2)
        bends = (weight[..., None, None] * (moved[..., :, None] * moved[..., None, :])).sum(-3)
        flat = Intervals(slopes.low.movedim(1, 2).flatten(2), slopes.high.movedim(1, 2).flatten(2))
        return seen.sum(1), flat, bends


def whole_minimum() -> dict[str, Any]:
    """Refine the minimum to 40 digits, prove a box around it, and follow the descent from H1's start into it.

    `proved_risk` bounds the risk at which descent from the start, and from all within `SPREAD`, ends; 0 if not proved.

    >>> found = whole_minimum()
    >>> found["risk"][:9], found["proved_risk"] > 1.345, found["arrives_after_steps"] < 150
    ('1.3451683', True, True)
    """
    enclosure = WholeEnclosure(_N, _SUPPORT, Fraction(1), Fraction(str(SMOOTHING)))
    points, bent = _polished(enclosure, _descended(_begun(), _STEPS))
    box = basins(enclosure, points, bent)
    arrived = int(arrivals(enclosure, _begun(), box, _RATE * _N**2, _STEPS, SPREAD))
    refined, risk = _refined(points)
    return {
        "n": _N,
        "support": list(_SUPPORT),
        "tau": f"1/{_N}",
        "b": str(SMOOTHING),
        "rate": _RATE,
        "angles_of_the_start": list(_ANGLES),
        "points_over_tau": refined,
        "risk": risk,
        "eigenvalues_over_tau": torch.linalg.eigvalsh(bent[0]).tolist(),
        "radius_over_tau": float(box.boxes.half.min()),
        "least_curvature": float(box.least_curvature),
        "proved_up_to_rate": float(box.fastest) / _N**2,
        "arrives_after_steps": arrived,
        "proved_risk": float(enclosure.risk(box.boxes).low) if box.proved and arrived >= 0 else 0.0,
        "value": float(risk),
    }


def _polished(enclosure: WholeEnclosure, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return where Newton's steps in double precision lead, by the middles of the intervals, and the Hessian."""
    for _ in range(4):
        here = Boxes.cubes(points.flatten(1), 0.0)
        gradient, bent = ((one.low + one.high) / 2 for one in (enclosure.gradient(here), enclosure.hessian(here)))
        points = points - torch.linalg.solve(bent, gradient).reshape(points.shape)
    return points, bent


def _plain() -> Callable[[Sequence[Number]], Number]:
    plain = WholePlainRisk(mp, _N, _SUPPORT, "1", str(SMOOTHING))
    return lambda flat: plain.risk([flat[at : at + 3] for at in range(0, len(flat), 3)])


def _refined(points: Tensor) -> tuple[list[list[str]], str]:
    """Return points and risk after Newton's steps, whose derivatives are differences in twice as many digits."""
    with mp.workdps(2 * _DIGITS + 20):
        at = [mp.mpf(value) for value in points.flatten().tolist()]
        for _ in range(3):
            gradient, bent = by_differences(_plain(), at, mp.mpf(10) ** -(_DIGITS // 2 + 5))
            at = list(mp.matrix(at) - mp.lu_solve(bent, gradient))
        texts = [mp.nstr(value, _DIGITS) for value in at]
        return [texts[:3], texts[3:]], mp.nstr(_plain()(at), _DIGITS)


def whole_minimum_again(point: Mapping[str, Any]) -> Again:
    """Descend again with all sixteen entries in double precision, and look at the stored minimum by differences."""
    stored = torch.tensor([[[float(text) for text in head] for head in point["points_over_tau"]]], dtype=torch.float64)
    away = float((_descended(_begun(), _STEPS) - stored).norm())
    with mp.workdps(_DIGITS):
        at = [mp.mpf(text) for head in point["points_over_tau"] for text in head]
        gradient, bent = by_differences(_plain(), at, mp.mpf(10) ** -10)
        slope, curvature = float(mp.norm(gradient)), float(min(mp.eigsy(bent, eigvals_only=True)))
    risk = float(whole_risk(stored))
    ends_there = away < 1e-6 and slope < 1e-15 and curvature > 0
    route = (
        f"all sixteen entries of every A by autograd, {_STEPS} steps: {away:.0e} away; slope {slope:.0e}, least "
        f"curvature {curvature:.1e} by differences in {_DIGITS} digits"
    )
    return Again(risk, route, risk if ends_there else math.nan, "risk of a strict minimum, all of A trained")
