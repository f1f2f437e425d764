"""Descents from H1's own starts, of a13 and a14 or of the whole A: where they end, and what the claims make of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import torch
from mpmath import mp
from torch import Tensor

from parityscope.core.statistics import Share, median, wilson_share
from parityscope.models import ZigZag
from parityscope.models.positions import circle
from parityscope.papers.claim import Again, Context
from parityscope.papers.figure import Scale
from parityscope.papers.h1.circle import SMOOTHING, Circle, gradients_of, meets_appendix_assumption
from parityscope.papers.h1.enclosures import Enclosure, arrivals, basins
from parityscope.papers.h1.minima import Landscape, MinimumNumbers, PlainRisk, certify, descend, polish, starts
from parityscope.problems import Parity, bits_of
from parityscope.records import Config, Numbers, Result, Row

LEARNED = 0.01  # the ε of our checks; the theorem promises every ε
MOVING_RATE = 0.01  # ten thousand times the proof's rate and more, yet small enough that every step lowers the risk
# In double precision: far above rounding, far below what is found (1e-15 and 0.1).
_AT_REST, _LEAST_CURVATURE = 1e-10, 1e-3
_NEAR = 0.1  # Newton may finish what descent began, not jump to another point
_REACH, _POINTS = 0.3, 61
SPREAD = 1e-9  # of the starts that are followed in intervals: a ball around each, so that they have a probability


class EndsNumbers(Numbers):
    """What became of every start, and the different minima that were found.

    Descent and `in_strict_minimum` are double precision. `in_proved_basin`: interval arithmetic proves that the point
    where that descent stopped lies in a basin. `proved_from_start`: so does the whole way there, in exact arithmetic.
    """

    risk_at_start: tuple[float, ...]
    risk: tuple[float, ...]
    accuracy: tuple[float, ...]
    learned: tuple[bool, ...]
    in_strict_minimum: tuple[bool, ...]
    in_proved_basin: tuple[bool, ...]
    proved_from_start: tuple[bool, ...]
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
    """Where the descent of a13 and a14 ends, start by start.

    Parameters
    ----------
    constant : float
        The c of τ = c/n.
    b : float
        The smoothing.
    certified : int
        How many different minima are certified at most.
    followed : int
        For how many steps a descent that ends in a proved basin is followed from its start in intervals.
    """

    ROWS: ClassVar[str] = "H1-where-it-ends"
    NUMBERS: ClassVar[type[Numbers]] = EndsNumbers

    constant: float = 1.0
    b: float = SMOOTHING
    certified: int = 1
    followed: int = 0

    @property
    def tau(self) -> Fraction:
        """The temperature τ, without rounding."""
        return Fraction(str(self.constant)) / self.n

    def run(self) -> Result:
        """Descend, let Newton finish, sort, and prove."""
        land = Landscape(Circle(self.n, len(self.support), float(self.tau), self.b), self.support)
        begun = starts(self.seeds, len(self.support))
        ended, rise = descend(land, begun, self.rate, self.steps)
        risk = land.slopes(ended)[0]
        refined, slope, least = polish(land, ended)
        near = (refined - ended).flatten(1).norm(dim=-1) < _NEAR
        learned = risk < LEARNED
        strict = ~learned & near & (slope < _AT_REST) & (least > _LEAST_CURVATURE)
        minima = self._certified(refined, land.slopes(refined)[0], strict)
        in_basin, from_start = self._proved(land, begun, ended, refined, strict)
        numbers = EndsNumbers(
            risk_at_start=tuple(land.slopes(begun)[0].tolist()),
            risk=tuple(risk.tolist()),
            accuracy=tuple(land.accuracy(ended).tolist()),
            learned=tuple(learned.tolist()),
            in_strict_minimum=tuple(strict.tolist()),
            in_proved_basin=tuple(in_basin.tolist()),
            proved_from_start=tuple(from_start.tolist()),
            largest_rise=float(rise.max()),
            minima=minima,
        )
        return Result(numbers, {"valley": _valley(land, minima[0])} if minima else {})

    def _proved(
        self, land: Landscape, begun: Tensor, ended: Tensor, refined: Tensor, strict: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Say which descents stopped in a proved basin, and which of those are proved from the start."""
        in_basin, from_start = torch.zeros_like(strict), torch.zeros_like(strict)
        if strict.any():
            enclosure = Enclosure(self.n, self.support, self.tau, Fraction(str(self.b)))
            found = basins(enclosure, refined[strict], land.derivatives(refined[strict])[1])
            slow_enough = found.proved & (found.fastest >= self.rate)
            in_basin[strict] = slow_enough & found.boxes.hold(ended[strict].flatten(1))
            arrived = arrivals(enclosure, begun[strict], found, self.rate, min(self.followed, self.steps), SPREAD)
            from_start[strict] = slow_enough & (arrived >= 0)
        return in_basin, from_start

    def _certified(self, heads: Tensor, risk: Tensor, strict: Tensor) -> tuple[MinimumNumbers, ...]:
        """Certify the first of every group of minima with the same risk: copies by symmetry are not certified again."""
        found: dict[float, MinimumNumbers] = {}
        for run, seed in enumerate(self.seeds):
            level = round(float(risk[run]), 6)
            if strict[run] and level not in found and len(found) < self.certified:
                found[level] = certify(self.n, self.support, str(self.tau), str(self.b), heads[run], seed=seed)
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
    """Return the places at which `valley` was taken, in both directions from the minimum."""
    return torch.linspace(-_REACH, _REACH, _POINTS, dtype=torch.float64)


def full_risk(matrices: Tensor, n: int, support: tuple[int, ...]) -> Tensor:
    """Return the population risk of every batch of matrices A_1 … A_k, (batch, k, 4, 4), at τ = 1/n.

    Tokens are w_j = (x_j, 1 − x_j, sin, cos) and the query is w_0 = (1, 0, 0, 0) (H1, Eq. (3)), so that attention
    depends on the input through a11 and a12. With those at 0 it is the model that the proof trains.
    """
    x = bits_of(torch.arange(2**n), n)
    y, bits = Parity(n, support).label(x).double(), x.double()
    places = circle(n).expand(len(bits), n, 2)
    tokens = torch.cat([bits[..., None], 1 - bits[..., None], places], dim=-1)  # (inputs, n, 4)
    query = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    scores = torch.einsum("q,bhqd,ijd->bhij", query, matrices, tokens) * n
    score = torch.einsum("bhij,ij->bi", scores.softmax(-1), bits)
    prediction = ZigZag(len(support), SMOOTHING)(score)
    return (1 - y * prediction).relu().square().mean(-1)


def whole(heads: Tensor) -> Tensor:
    """Return the matrices of H1's start: a13 and a14 on the circle, 0 otherwise, (batch, k, 4, 4)."""
    matrices = heads.new_zeros(*heads.shape[:-1], 4, 4)
    matrices[..., 0, 2:] = heads
    return matrices


class FullMatrixNumbers(Numbers):
    """Gradients at the start by group of entries (largest over starts), and where descent ended."""

    gradient_of_other_rows: float
    gradient_of_a11_a12: float
    gradient_of_a13_a14: float
    first_row: tuple[float, ...]  # of the first head of the first start
    risk: tuple[float, ...]
    largest_rise: float

    @property
    def learned(self) -> list[bool]:
        """Which starts reached the ε of our checks."""
        return [risk < LEARNED for risk in self.risk]


class FullMatrix(Descent):
    """The descent of all sixteen entries of every A."""

    ROWS: ClassVar[str] = "H1-full-matrix"
    NUMBERS: ClassVar[type[Numbers]] = FullMatrixNumbers

    def run(self) -> Result:
        """Measure the first gradient, then descend."""
        matrices = whole(starts(self.seeds, len(self.support)))
        first = self._gradient(matrices)
        before, rise = torch.full((len(matrices),), torch.inf, dtype=torch.float64), 0.0
        for _ in range(self.steps):
            risk = full_risk(matrices, self.n, self.support)
            rise, before = max(rise, float((risk - before).max())), risk
            matrices = matrices - self.rate * self._gradient(matrices)
        return Result(
            FullMatrixNumbers(
                gradient_of_other_rows=_longest(first[..., 1:, :]),
                gradient_of_a11_a12=_longest(first[..., 0, :2]),
                gradient_of_a13_a14=_longest(first[..., 0, 2:]),
                first_row=tuple(first[0, 0, 0].tolist()),
                risk=tuple(full_risk(matrices, self.n, self.support).tolist()),
                largest_rise=rise,
            )
        )

    def _gradient(self, matrices: Tensor) -> Tensor:
        return gradients_of(lambda at: full_risk(at, self.n, self.support), matrices)


def _longest(gradients: Tensor) -> float:
    return float(gradients.flatten(1).norm(dim=-1).max())


def first_gradient_by_hand(n: int, support: Sequence[int], heads: Sequence[Sequence[float]]) -> list[float]:
    """Return the risk's slopes in a11, a12, a13, a14 of the first head by differences over plain loops.

    A second route to the same numbers: no tensors, no autograd.
    """
    places = [(math.sin(2 * math.pi * j / n), math.cos(2 * math.pi * j / n)) for j in range(1, n + 1)]

    def readout(score: float) -> float:
        value = 1.0
        for i in range(1, len(support) + 1):
            z = score + 0.5 - i
            value += (-1) ** i * (4 * i - 2) * (z + math.sqrt(z * z + SMOOTHING))
        return value

    def risk(first: Sequence[float]) -> float:
        rows = [list(first), *([0.0, 0.0, *head] for head in heads[1:])]
        total = 0.0
        for bits in product((0, 1), repeat=n):
            score = 0.0
            for row in rows:
                raised = [
                    math.exp(n * (row[0] * bit + row[1] * (1 - bit) + row[2] * place[0] + row[3] * place[1]))
                    for bit, place in zip(bits, places, strict=True)
                ]
                score += sum(weight * bit for weight, bit in zip(raised, bits, strict=True)) / sum(raised)
            label = (-1) ** sum(bits[j] for j in support)
            total += max(0.0, 1 - label * readout(score)) ** 2
        return total / 2**n

    at, step = [0.0, 0.0, *heads[0]], 1e-5
    slopes = []
    for entry in range(4):
        up, down = list(at), list(at)
        up[entry] += step
        down[entry] -= step
        slopes.append((risk(up) - risk(down)) / (2 * step))
    return slopes


def _supports(n: int, three: bool) -> list[tuple[int, ...]]:
    """Return one pair of hidden bits for every distance on the circle, and two triples."""
    pairs = [(0, distance) for distance in range(1, n // 2 + 1)]
    triples = dict.fromkeys([(0, 1, 2), (0, n // 3, 2 * n // 3)])  # the same one at n = 4
    return [*pairs, *triples] if three else [*pairs]


def _ends(
    sizes: Iterable[int], seeds: int, steps: int, certified: int, *, three: bool = True, followed: int = 0
) -> list[Ends]:
    return [
        Ends(
            n=n,
            support=support,
            seeds=tuple(range(seeds)),
            steps=steps,
            certified=certified,
            followed=followed if n <= 8 and len(support) == 2 else 0,  # what is larger costs minutes a cell
        )
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
        *_ends((4, 6, 8, 10), 32, 10_000, 3, followed=1000),
        *_full([(4, (0, 1)), (4, (0, 2)), (6, (0, 1)), (6, (0, 2)), (6, (0, 3))], 32, 5000),
    ],
}

_FIRST_FRESH = 3000  # seeds on which nothing was chosen
_CONSTANTS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def _temperatures(
    cells: Iterable[tuple[int, tuple[int, ...]]], constants: Iterable[float], seeds: int, steps: int
) -> list[Ends]:
    """Return descents at τ = c/n with two rates: that of all others, and the one that moves a/τ as far at every c."""
    fresh = tuple(range(_FIRST_FRESH, _FIRST_FRESH + seeds))
    return [
        Ends(n=n, support=support, seeds=fresh, steps=count, rate=rate, constant=constant)
        for n, support in cells
        for constant in constants
        for rate, count in ((MOVING_RATE, steps), (round(2 * MOVING_RATE * constant**2, 6), 2 * steps // 5))
    ]


def _smoothings(cells: Iterable[tuple[int, tuple[int, ...]]], seeds: int, steps: int) -> list[Ends]:
    """Return descents at τ = 1/n with ten times less and ten times more smoothing."""
    fresh = tuple(range(_FIRST_FRESH, _FIRST_FRESH + seeds))
    return [Ends(n=n, support=support, seeds=fresh, steps=steps, b=b) for n, support in cells for b in (0.001, 0.1)]


# No two of the hidden bits are neighbours.
OTHER_SETTINGS: dict[Scale, list[Ends]] = {
    "smoke": _temperatures([(6, (0, 3))], (1.0, 3.0), 5, 250),
    "demo": [
        *_temperatures([(6, (0, 2)), (6, (0, 3))], _CONSTANTS, 8, 2000),
        *_smoothings([(6, (0, 2))], 8, 2000),
    ],
    "reference": [
        *_temperatures([(6, (0, 2)), (6, (0, 3)), (8, (0, 3)), (8, (0, 3, 5)), (10, (0, 4))], _CONSTANTS, 16, 10_000),
        *_smoothings([(6, (0, 2)), (8, (0, 3)), (10, (0, 4))], 16, 10_000),
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

    @classmethod
    def elsewhere(cls, context: Context) -> Descents:
        """Return the descents at other temperatures and smoothings."""
        return cls([context.row(one) for one in OTHER_SETTINGS[context.scale]])

    @property
    def minima(self) -> list[MinimumNumbers]:
        """The minima whose certificate is complete: at rest in 40 digits, convex on a box around."""
        found = [minimum for row in self.rows for minimum in row.numbers.minima]
        return [
            one for one in found if one.gradient < _AT_REST_IN_DIGITS and one.least_curvature > 0 and one.radius > 0
        ]

    def elsewhere_than(self, constant: float, b: float) -> list[MinimumNumbers]:
        """Return the different minima at other settings than τ = constant/n and b, with τ ≤ 1 as in Section 2.2.

        Two rates that lead to the same minimum count once.
        """
        found = {
            (one.n, one.support, one.tau, one.b, round(float(one.risk), 6)): one
            for one in self.minima
            if Fraction(one.tau) <= 1 and (Fraction(one.tau) * one.n, float(one.b)) != (Fraction(str(constant)), b)
        }
        return list(found.values())

    @property
    def assumed(self) -> list[MinimumNumbers]:
        """The certified minima whose attention is as the appendix assumes it, c₁ that of τ = c₁/n."""
        return [one for one in self.minima if _is_as_assumed(one)]

    @property
    def highest(self) -> MinimumNumbers | None:
        """The certified minimum that is shown: as the appendix assumes it, and not of neighbours, where there is one.

        Of those the one with the largest risk. Neighbours are the hardest pair to tell apart, and nobody's typical one.
        """
        chosen = self.assumed or self.minima
        return max(chosen, key=lambda one: (not _has_neighbours(one), float(one.risk)), default=None)

    def learned_at(self, constant: float) -> list[int]:
        """Return how many starts of every cell learn at τ = constant/n ≤ 1, at the rate that moves a/τ as at c = 1."""
        rate = round(2 * MOVING_RATE * constant**2, 6)
        asked = [row for row in self.rows if (row.config.constant, row.config.rate) == (constant, rate)]
        return [sum(row.numbers.learned) for row in asked if row.config.tau <= 1]

    def share(self, kind: str) -> Share:
        """Return the share of starts with a flag: "learned", "in_strict_minimum", "in_proved_basin" and so on."""
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
                "constant": row.config.constant,
                "b": row.config.b,
                "every_input_right": sum(share == 1 for share in row.numbers.accuracy),
                "in_strict_minimum": sum(row.numbers.in_strict_minimum),
                "in_proved_basin": sum(row.numbers.in_proved_basin),
                "proved_from_start": sum(row.numbers.proved_from_start),
                "median_risk": median(row.numbers.risk),
                "largest_rise_of_the_risk": row.numbers.largest_rise,
            }
            for row in self.rows
        ]


def _is_as_assumed(minimum: MinimumNumbers) -> bool:
    """Say whether the heads of a minimum meet the appendix's assumption."""
    circle = Circle(minimum.n, len(minimum.support), float(Fraction(minimum.tau)), float(minimum.b))
    heads = torch.tensor([[float(a), float(b)] for a, b in minimum.heads], dtype=torch.float64)
    return meets_appendix_assumption(circle, heads)


def _has_neighbours(minimum: MinimumNumbers) -> bool:
    """Say whether two hidden bits are neighbours on the circle."""
    return any((one + 1) % minimum.n in minimum.support for one in minimum.support)


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
    circle = Circle(point["n"], len(support), float(Fraction(point["tau"])), float(point["b"]))
    risk = float(circle.risk(heads, support))
    with mp.workdps(40):
        plain = PlainRisk(mp, point["n"], support, point["tau"], point["b"])
        at = [mp.mpf(text) for head in point["heads"] for text in head]
        gradient, hessian = by_differences(
            lambda flat: plain.risk([flat[start : start + 2] for start in range(0, len(flat), 2)]),
            at,
            mp.mpf(10) ** -10,
        )
        slope, curvature = float(mp.norm(gradient)), float(min(mp.eigsy(hessian, eigvals_only=True)))
    at_rest = slope < 1e-15 and curvature > 0
    route = f"the model on all inputs; slope {slope:.0e}, least curvature {curvature:.2g} by differences in 40 digits"
    return Again(risk, route, judged(point, risk, slope) if at_rest else math.nan, "risk of a strict minimum")


def by_differences(risk: Callable[[list[Any]], Any], point: list[Any], step: Any) -> tuple[Any, Any]:
    """Return gradient and Hessian at a point in as many digits as mpmath is told, from risks alone."""
    size = len(point)

    def at(*moves: tuple[int, int]) -> Any:
        moved = list(point)
        for axis, sign in moves:
            moved[axis] += sign * step
        return risk(moved)

    here, up, down = at(), [at((i, 1)) for i in range(size)], [at((i, -1)) for i in range(size)]
    hessian = mp.matrix(size, size)
    for i in range(size):
        hessian[i, i] = (up[i] + down[i] - 2 * here) / step**2
        for j in range(i):
            both = at((i, 1), (j, 1)) + at((i, -1), (j, -1))
            hessian[i, j] = hessian[j, i] = (both - up[i] - down[i] - up[j] - down[j] + 2 * here) / (2 * step**2)
    return mp.matrix([(up[i] - down[i]) / (2 * step) for i in range(size)]), hessian
