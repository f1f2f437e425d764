"""What many descents of H1's heads came to: shares, certified minima, and a stored minimum computed again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from mpmath import mp

from parityscope.core.statistics import Share, median, wilson_share
from parityscope.papers.claim import Again, Context
from parityscope.papers.figure import Scale
from parityscope.papers.h1.circle import Circle
from parityscope.papers.h1.digits import PlainRisk
from parityscope.papers.h1.ends import LEARNED, Ends, EndsNumbers
from parityscope.papers.h1.full_matrix import FullMatrix
from parityscope.papers.h1.minima import MinimumNumbers
from parityscope.records import Row


def _supports(n: int, three: bool) -> list[tuple[int, ...]]:
    """Return one pair of hidden bits for every distance on the circle, and two triples."""
    pairs = [(0, distance) for distance in range(1, n // 2 + 1)]
    triples = dict.fromkeys([(0, 1, 2), (0, n // 3, 2 * n // 3)])  # the same one at n = 4
    return [*pairs, *triples] if three else [*pairs]


def _ends(sizes: Iterable[int], seeds: int, steps: int, certified: int, *, three: bool = True) -> list[Ends]:
    return [
        Ends(n=n, support=support, seeds=tuple(range(seeds)), steps=steps, certified=certified)
        for n in sizes
        for support in _supports(n, three)
    ]


def _full(cells: Iterable[tuple[int, tuple[int, ...]]], seeds: int, steps: int) -> list[FullMatrix]:
    return [FullMatrix(n=n, support=support, seeds=tuple(range(seeds)), steps=steps) for n, support in cells]


_SHOWN = ((0, 1), (0, 3))  # neighbours, and the farthest apart at n = 6
# What the figure shows and the claims judge.
DESCENTS: dict[Scale, list[Ends | FullMatrix]] = {
    "smoke": [*_ends((4, 6), 8, 600, 1, three=False), *_full([(4, (0, 2))], 16, 60)],
    "demo": [
        *(one for one in _ends((6, 8), 16, 2000, 1, three=False) if one.support in _SHOWN),
        *_full([(6, (0, 1))], 16, 600),
    ],
    "reference": [
        *_ends((4, 6, 8, 10), 32, 10_000, 3),
        *_full([(4, (0, 1)), (4, (0, 2)), (6, (0, 1)), (6, (0, 2)), (6, (0, 3))], 32, 5000),
    ],
}

_AT_REST_IN_DIGITS = 1e-30  # in 40 digits; double precision ends at 1e-15


@dataclass(frozen=True)
class Descents:
    """The rows of one scale's descents.

    Parameters
    ----------
    rows : sequence of Row
        Rows of `Ends`.

    >>> from parityscope.papers.claim import computed
    >>> found = Descents([computed(Ends(n=4, support=(0, 2), seeds=(0, 1, 2), steps=5))])
    >>> str(found.share("learned")), found.minima, found.point()
    ('0/3 (0%–56%)', [], None)
    """

    rows: Sequence[Row[Ends, EndsNumbers]]

    @staticmethod
    def configs(context: Context) -> list[Ends]:
        """Return the descents of a scale, those of the figure."""
        return [one for one in DESCENTS[context.scale] if isinstance(one, Ends)]

    @classmethod
    def of(cls, context: Context) -> Descents:
        """Return the descents of a scale with their rows."""
        return cls([context.row(one) for one in cls.configs(context)])

    @property
    def minima(self) -> list[MinimumNumbers]:
        """The minima whose certificate is complete: at rest in 40 digits, convex on a box around."""
        found = [minimum for row in self.rows for minimum in row.numbers.minima]
        return [
            one for one in found if one.gradient < _AT_REST_IN_DIGITS and one.least_curvature > 0 and one.radius > 0
        ]

    @property
    def highest(self) -> MinimumNumbers | None:
        """The certified minimum with the largest risk."""
        return max(self.minima, key=lambda one: float(one.risk), default=None)

    def share(self, kind: str) -> Share:
        """Return the share of starts that "learned", or ended "in_strict_minimum"."""
        flags = [flag for row in self.rows for flag in getattr(row.numbers, kind)]
        return wilson_share(sum(flags), len(flags))

    def point(self) -> dict[str, Any] | None:
        """Return the highest minimum with its risk, as a counterexample has it; none where there is none."""
        highest = self.highest
        return None if highest is None else {**highest.model_dump(mode="json"), "value": float(highest.risk)}

    def cells(self) -> list[dict[str, Any]]:
        """Return every size and support in plain numbers."""
        return [
            {
                "n": row.config.n,
                "support": list(row.config.support),
                "starts": len(row.config.seeds),
                "steps": row.config.steps,
                "rate": row.config.rate,
                "learned": sum(row.numbers.learned),
                "in_strict_minimum": sum(row.numbers.in_strict_minimum),
                "median_risk": median(row.numbers.risk),
                "largest_rise_of_the_risk": row.numbers.largest_rise,
            }
            for row in self.rows
        ]


def _risk(point: Mapping[str, Any], risk: float, slope: float) -> float:
    return risk


def learned_from(point: Mapping[str, Any], risk: float, slope: float) -> float:
    """Return the share of starts that learn, of this one alone.

    >>> learned_from({}, risk=0.5, slope=0.0)
    0.0
    """
    return float(risk <= LEARNED)


def minimum_again(
    point: Mapping[str, Any], judged: Callable[[Mapping[str, Any], float, float], float] = _risk
) -> Again:
    """Compute a stored minimum again: the risk by the model itself, its slope and curvature by differences.

    `judged` says what the clause is asked about a strict minimum: its risk, unless given.

    >>> from parityscope.papers.h1.minima import certify
    >>> heads = torch.tensor([[-0.005169, -0.964309], [-0.005169, 0.964309]])
    >>> point = certify(6, (0, 1), "1/6", "0.01", heads, seed=0).model_dump()
    >>> again = minimum_again(point)
    >>> again.value == again.judged, round(again.value - float(point["risk"]), 9)
    (True, 0.0)
    """
    heads = torch.tensor([[float(a), float(b)] for a, b in point["heads"]], dtype=torch.float64)
    support = tuple(point["support"])
    risk = float(Circle(point["n"], len(support), 1 / point["n"], float(point["b"])).risk(heads, support))
    slope, curvature = _by_differences(point)
    at_rest = slope < 1e-15 and curvature > 0
    route = f"the model on all inputs; slope {slope:.0e}, least curvature {curvature:.2g} by differences in 40 digits"
    return Again(risk, route, judged(point, risk, slope) if at_rest else math.nan, "risk of a strict minimum")


def _by_differences(stored: Mapping[str, Any]) -> tuple[float, float]:
    """Return the length of the gradient and the Hessian's least eigenvalue at a stored point, from risks alone."""
    size = 2 * len(stored["heads"])
    with mp.workdps(40):
        plain = PlainRisk(mp, stored["n"], tuple(stored["support"]), stored["tau"], stored["b"])
        point = [mp.mpf(text) for head in stored["heads"] for text in head]
        step = mp.mpf(10) ** -10

        def risk(*moves: tuple[int, int]) -> Any:
            moved = list(point)
            for axis, sign in moves:
                moved[axis] += sign * step
            return plain.risk([moved[start : start + 2] for start in range(0, size, 2)])

        here, up, down = risk(), [risk((i, 1)) for i in range(size)], [risk((i, -1)) for i in range(size)]
        slope = mp.norm(mp.matrix([(up[i] - down[i]) / (2 * step) for i in range(size)]))
        hessian = mp.matrix(size, size)
        for i in range(size):
            hessian[i, i] = (up[i] + down[i] - 2 * here) / step**2
            for j in range(i):
                both = risk((i, 1), (j, 1)) + risk((i, -1), (j, -1))
                hessian[i, j] = hessian[j, i] = (both - up[i] - down[i] - up[j] - down[j] + 2 * here) / (2 * step**2)
        return float(slope), float(min(mp.eigsy(hessian, eigvals_only=True)))
