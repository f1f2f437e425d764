"""Where H1's recipe ends: descent from its own starts, sorted into learned, certified strict minima and the rest."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from parityscope.papers.h1.circle import SMOOTHING, Circle
from parityscope.papers.h1.minima import Landscape, MinimumNumbers, certify, descend, polish, starts
from parityscope.records import Config, Numbers, Result

LEARNED = 0.01  # the ε of our checks; the theorem promises every ε
MOVING_RATE = 0.01  # ten thousand times the proof's rate and more, yet small enough that every step lowers the risk
# In double precision: far above rounding, far below what is found (1e-15 and 0.1).
_AT_REST, _LEAST_CURVATURE = 1e-10, 1e-3
_NEAR = 0.1  # Newton may finish what descent began, not jump to another point
_REACH, _POINTS = 0.3, 61


class EndsNumbers(Numbers):
    """What became of every start, and the different minima that were found."""

    risk_at_start: tuple[float, ...]
    risk: tuple[float, ...]
    learned: tuple[bool, ...]
    in_strict_minimum: tuple[bool, ...]
    largest_rise: float
    minima: tuple[MinimumNumbers, ...]


class Descent(Config):
    """Plain gradient descent from H1's own starts, those of the recipe `as-written`.

    Parameters
    ----------
    n : int
        Bits.
    support : tuple of int
        The hidden ones.
    seeds : tuple of int
        Starts.
    steps : int
        Steps of descent.
    rate : float
        Their rate.
    """

    n: int
    support: tuple[int, ...]
    seeds: tuple[int, ...]
    steps: int
    rate: float = MOVING_RATE


class Ends(Descent):
    """Where the descent of a13 and a14 ends, start by start; at most `certified` different minima are certified.

    >>> ended = Ends(n=4, support=(0, 2), seeds=(0,), steps=5).run().numbers
    >>> [round(risk, 2) for risk in (*ended.risk_at_start, *ended.risk)]
    [1.65, 1.58]
    """

    ROWS: ClassVar[str] = "H1-where-it-ends"
    NUMBERS: ClassVar[type[Numbers]] = EndsNumbers

    certified: int = 1

    def run(self) -> Result:
        """Descend, let Newton finish, and sort."""
        circle = Circle(self.n, len(self.support), 1 / self.n, SMOOTHING)
        land, begun = Landscape(circle, self.support), starts(self.seeds, len(self.support))
        ended, rise = descend(land, begun, self.rate, self.steps)
        risk = land.slopes(ended)[0]
        refined, slope, least = polish(land, ended)
        near = (refined - ended).flatten(1).norm(dim=-1) < _NEAR
        learned = risk < LEARNED
        strict = ~learned & near & (slope < _AT_REST) & (least > _LEAST_CURVATURE)
        minima = self._certified(refined, land.slopes(refined)[0], strict)
        numbers = EndsNumbers(
            risk_at_start=tuple(land.slopes(begun)[0].tolist()),
            risk=tuple(risk.tolist()),
            learned=tuple(learned.tolist()),
            in_strict_minimum=tuple(strict.tolist()),
            largest_rise=float(rise.max()),
            minima=minima,
        )
        return Result(numbers, {"valley": _valley(land, minima[0])} if minima else {})

    def _certified(self, heads: Tensor, risk: Tensor, strict: Tensor) -> tuple[MinimumNumbers, ...]:
        """Certify the first of every group of minima with the same risk: copies by symmetry are not certified again."""
        found: dict[float, MinimumNumbers] = {}
        for run, seed in enumerate(self.seeds):
            level = round(float(risk[run]), 6)
            if strict[run] and level not in found and len(found) < self.certified:
                found[level] = certify(self.n, self.support, f"1/{self.n}", str(SMOOTHING), heads[run], seed=seed)
        return tuple(found.values())


def _valley(land: Landscape, minimum: MinimumNumbers) -> Tensor:
    """Return the risk along each eigenvector of the Hessian through a minimum, (2k, points)."""
    point = torch.tensor([[float(a), float(b)] for a, b in minimum.heads], dtype=torch.float64)
    _, hessian = land.derivatives(point[None])
    away = torch.linspace(-_REACH, _REACH, _POINTS, dtype=torch.float64)
    ways = torch.linalg.eigh(hessian[0]).eigenvectors.T  # rows, smallest curvature first
    moved = point + (away[None, :, None] * ways[:, None, :]).unflatten(-1, point.shape)
    return torch.stack([land.slopes(line)[0] for line in moved])


def distances() -> Tensor:
    """Return the places at which `valley` was taken, in both directions from the minimum.

    >>> bool(distances()[30].abs() < 1e-12), len(distances())
    (True, 61)
    """
    return torch.linspace(-_REACH, _REACH, _POINTS, dtype=torch.float64)
