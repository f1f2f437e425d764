"""H1's own starts in a proved basin: a set of positive probability that fails at the proof's own learning rate.

The risk depends on A/τ alone. So where the heads of a strict minimum have almost the same length, some τ = c₁/n makes
it almost 1, and heads on the unit circle near the minimum's directions lie in its proved basin (`enclosures`). Descent
from there, at any rate up to a stated one, converges to the minimum: nothing is left to follow in steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import torch
from mpmath import mp
from torch import Tensor

from parityscope import theory
from parityscope.papers.claim import Again
from parityscope.papers.h1.circle import SMOOTHING, Circle
from parityscope.papers.h1.enclosures import Boxes, Enclosure, Intervals, basins
from parityscope.papers.h1.minima import Landscape, PlainRisk, polish

_PARTS = 3  # of every side of a box, on which the Hessian is bounded one by one
_DEPTH = 9  # halvings of a cell of angles


class Setting(NamedTuple):
    """A support, the c₁ of τ = c₁/n, and the positions (from 1) that the heads at a minimum nearly point to."""

    n: int
    support: tuple[int, ...]
    constant: Fraction
    directions: tuple[int, ...]


# Neither pair are neighbours; at these c₁ the minimum's heads have length 1, to six digits.
SETTINGS = (
    Setting(6, (0, 3), Fraction("1.036996"), (5, 2)),
    Setting(10, (0, 4), Fraction("0.662823"), (6, 3)),
)


class PartedEnclosure(Enclosure):
    """An enclosure whose Hessian is bounded part by part, and which bounds the risk itself too."""

    def hessian(self, boxes: Boxes) -> Intervals:
        """Return the hull of the Hessians on equal parts of every box."""
        places = (torch.arange(_PARTS, dtype=torch.float64) * 2 + 1 - _PARTS) / _PARTS
        moves = torch.tensor(list(product(places.tolist(), repeat=boxes.half.shape[-1])), dtype=torch.float64)
        half = boxes.half / _PARTS * (1 + 1e-6)  # overlapping, so that rounded centres leave no gap
        found = []
        for box in range(len(boxes.half)):
            centre = boxes.centre[box] + (moves * boxes.half[box]) @ boxes.basis[box].T
            parts = Boxes(centre, boxes.basis[box].expand(len(moves), -1, -1), half[box].expand(len(moves), -1))
            found.append(super().hessian(parts))
        return Intervals(
            torch.stack([one.low.amin(0) for one in found]), torch.stack([one.high.amax(0) for one in found])
        )

    def risk(self, boxes: Boxes) -> Intervals:
        """Return the risk on boxes, (batch,)."""
        return self._losses(boxes)[3].square().sum(-1) * 2.0**-self.n


@dataclass(frozen=True)
class OwnStarts:
    """A proved basin, and how many of H1's starts lie in it; the probability is 0 where nothing is proved.

    Parameters
    ----------
    setting : Setting
        Where.
    heads : Tensor
        The middle of the basin, (k, 2).
    radius : float
        That of a ball inside it.
    risk : float
        The minimum's, in double precision.
    least_risk, largest_risk : float
        Bounds on the risk in the basin.
    fastest : float
        Descent converges to the minimum for every rate up to this.
    probability : float
        At least this share of H1's starts lies in the basin.
    """

    setting: Setting
    heads: Tensor
    radius: float
    risk: float
    least_risk: float
    largest_risk: float
    fastest: float
    probability: float

    @property
    def own_rate(self) -> float:
        """The learning rate of Theorem 5's proof."""
        tau = float(self.setting.constant) / self.setting.n
        return theory.theorem_5_learning_rate(len(self.setting.support), tau, SMOOTHING)

    @property
    def failing(self) -> float:
        """The share of starts that is proved to end at a positive risk with the proof's own rate."""
        return self.probability if self.fastest >= self.own_rate and self.least_risk > 0 else 0.0

    def numbers(self) -> dict[str, Any]:
        """Return it in plain numbers, for the evidence and a replay."""
        return {
            "n": self.setting.n,
            "support": list(self.setting.support),
            "tau": str(self.setting.constant / self.setting.n),
            "b": str(SMOOTHING),
            "heads": self.heads.tolist(),
            "radius": self.radius,
            "risk_between": [self.least_risk, self.largest_risk],
            "rate_of_the_proof": self.own_rate,
            "proved_up_to_rate": self.fastest,
            "share_of_starts": self.failing,
            "value": self.risk,
        }


def own_starts(setting: Setting) -> OwnStarts:
    """Prove a basin around the minimum near the setting's directions.

    >>> found = own_starts(SETTINGS[0])
    >>> found.failing > 1e-8, found.own_rate < 1e-6, 1.7 < found.least_risk < found.largest_risk < 1.9
    (True, True, True)
    """
    n, k = setting.n, len(setting.support)
    tau = setting.constant / n
    circle = Circle(n, k, float(tau), SMOOTHING)
    land = Landscape(circle, setting.support)
    heads = polish(land, circle.model.positions[[place - 1 for place in setting.directions]][None])[0][0]
    enclosure = PartedEnclosure(n, setting.support, tau, Fraction(str(SMOOTHING)))
    basin = basins(enclosure, heads[None], land.derivatives(heads[None])[1])
    risk, proved = enclosure.risk(basin.boxes), bool(basin.proved)
    # Exchanging heads gives another basin with as many starts.
    share = math.factorial(k) * _share_inside(basin.boxes, heads) if proved else 0.0
    radius = float(basin.boxes.half.min())
    return OwnStarts(
        setting,
        heads,
        radius,
        float(land.slopes(heads[None])[0]),
        float(risk.low),
        float(risk.high),
        float(basin.fastest),
        share,
    )


def own_starts_again(point: Mapping[str, Any]) -> Again:
    """Compute the share again from the ball alone: unit heads nearer to the minimum than the ball's radius.

    The minimum by Newton's method over plain loops in 40 digits, with the curvature there; no intervals. The heads of
    norm 1 nearest to it are as far from it as their lengths differ from 1.
    """
    support = tuple(point["support"])
    k = len(support)
    with mp.workdps(40):
        plain = PlainRisk(mp, point["n"], support, point["tau"], point["b"])
        at = mp.matrix([number for head in point["heads"] for number in head])
        for _ in range(2):  # from double precision
            found = plain.derivatives([[at[2 * head], at[2 * head + 1]] for head in range(k)])
            at -= mp.lu_solve(mp.matrix(found.hessian), mp.matrix(found.gradient))
        lengths = [mp.sqrt(at[2 * head] ** 2 + at[2 * head + 1] ** 2) for head in range(k)]
        curvatures = mp.eigsy(mp.matrix(found.hessian), eigvals_only=True)
        room = mp.mpf(point["radius"]) - mp.sqrt(sum((length - 1) ** 2 for length in lengths))
        stays = min(curvatures) > 0 and max(curvatures) * point["rate_of_the_proof"] < 1 and room > 0
        ball = mp.pi ** (mp.mpf(k) / 2) / mp.gamma(mp.mpf(k) / 2 + 1) * (room / (2 * mp.pi)) ** k
        share = float(mp.factorial(k) * ball) if stays else 0.0
    route = (
        f"plain loops in 40 digits, least curvature {float(min(curvatures)):.2g}; a ball of starts: share {share:.0e}"
    )
    return Again(float(found.risk), route, share, "risk of the minimum in the basin")


def _share_inside(box: Boxes, heads: Tensor) -> float:
    """Return a lower bound on the share of angles whose unit heads lie in a box: cells that do, added up."""
    angles = torch.atan2(heads[:, 1], heads[:, 0])[None]  # a13 = cos ω, a14 = sin ω
    side, proved = float(box.half.max()) * math.sqrt(box.half.shape[-1]), 0.0
    for _ in range(_DEPTH):
        unit = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)
        inside = box.hold(unit, side * math.sqrt(len(heads)))  # a chord is shorter than its arc
        proved += float(inside.sum()) * (2 * side) ** len(heads)
        side /= 2
        corners = torch.tensor(list(product((-side, side), repeat=len(heads))), dtype=torch.float64)
        angles = (angles[~inside][:, None] + corners).flatten(0, 1)
    return proved / (2 * math.pi) ** len(heads)
