"""The project's own: geometry of log C (docs/explanation/bounded-readout.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import grad

from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least
from parityscope.papers.own.again import log_c_by_inputs
from parityscope.papers.own.domain import BOUNDED, BOUNDED_PROOF, PLAIN, SEED, ascend, draws, in_domain, place
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_correlation

_DOMAINS = (Parity(3, (1,)), Parity(4, (0, 2)), Parity(8, (1, 4, 6)), Parity(12, (3, 8, 11)))
_GAIN = "smallest gain of log C at a midpoint over ‖a − b‖²"
_DEPTH = "smallest −log C over ‖c − 1_B‖²"
_LEAST_GAIN = math.pi**2 / 32
_CURVED = "every second derivative is at most −π²/4; rounding"
_CONCAVITY_CLAUSES = (
    Clause("log C is concave on D", _GAIN, at_least(_LEAST_GAIN - 1e-9), _CURVED),
    Clause("its only maximum is C = 1 at 1_B", _DEPTH, at_least(4 * _LEAST_GAIN - 1e-9), _CURVED),
)
_APART = 1e-3  # squared distance below which rounding would be divided by nearly nothing


def _value(found: tuple[Attack, Parity]) -> float:
    return found[0].value


def _height(problem: Parity) -> Callable[[Tensor], Tensor]:
    law = law_of(problem)
    return lambda c: log_correlation(c, law)


def _concavity(context: Context) -> Measurement:
    """Attack midpoint concavity on D, and the maximum."""
    gains, depths = [], []
    for problem in _DOMAINS:
        height = _height(problem)

        def gain(points: Tensor, height: Any = height, problem: Parity = problem) -> Tensor:
            a, b = (in_domain(half, problem) for half in points.chunk(2, -1))
            apart = (a - b).square().sum(-1)
            rise = height((a + b) / 2) - (height(a) + height(b)) / 2
            return torch.where(apart > _APART, -rise / apart, torch.nan)

        def depth(points: Tensor, height: Any = height, problem: Parity = problem) -> Tensor:
            c = in_domain(points, problem)
            apart = (c - problem.mask().double()).square().sum(-1)
            return torch.where(apart > _APART, height(c) / apart, torch.nan)

        gains.append((ascend(gain, draws(context, 2 * problem.n + 2), context), problem))
        depths.append(ascend(depth, draws(context, problem.n + 1), context))
    attack, problem = max(gains, key=_value)
    least_gain, least_depth = -attack.value, -max(one.value for one in depths)
    ends = [in_domain(half[None], problem)[0] for half in attack.point.chunk(2, -1)]
    return Measurement(
        {_GAIN: least_gain, _DEPTH: least_depth},
        f"smallest gain of a midpoint {least_gain:.4f}·‖a−b‖² (bound π²/32 = {_LEAST_GAIN:.4f})",
        tried_by([*(one for one, _ in gains), *depths]),
        {"seed": SEED, "bound_on_the_gain": _LEAST_GAIN, "bound_on_the_depth": 4 * _LEAST_GAIN},
        "log C at midpoints of pairs of D, and at points of D against its value 0 at 1_B; draws, then ascent on the"
        " violation inside D, at n = 3, 4, 8 and 12.",
        {_GAIN: place(problem, torch.stack(ends))},
    )


def _gain_again(point: Mapping[str, Any]) -> Again:
    """Sum over all inputs at both ends and in the middle."""
    (a, b), support = point["weights"], point["support"]
    middle = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
    rise = log_c_by_inputs(middle, support) - (log_c_by_inputs(a, support) + log_c_by_inputs(b, support)) / 2
    return Again(rise / sum((x - y) ** 2 for x, y in zip(a, b, strict=True)), PLAIN)


_ON, _OFF = "smallest slope over 1 − c_j on B", "smallest slope over −c_j off B"
_SIGNS_CLAUSES = (
    Clause("hidden weights are raised below 1 and lowered above", _ON, above(0), "the sign; the bound is π²/4"),
    Clause("no other weight is raised", _OFF, above(0), "the sign; the bound is π²/4"),
)


def _slopes(points: Tensor, problem: Parity, chosen: Bool[Tensor, " n"]) -> Float[Tensor, "batch n"]:
    """Return the slope towards 1_B per distance from it, at the chosen positions that are not there."""
    c, height = in_domain(points, problem), _height(problem)
    slope = grad(lambda weights: height(weights).sum())(c)
    towards = problem.mask().double() - c
    apart = chosen & (towards.abs() > 1e-6)
    return torch.where(apart, slope / torch.where(apart, towards, 1.0), torch.inf)


def _gradient_signs(context: Context) -> Measurement:
    """Attack the signs of ∂log C/∂c_j."""
    found: dict[str, list[tuple[Attack, Parity]]] = {_ON: [], _OFF: []}
    for problem, quantity in product(_DOMAINS, (_ON, _OFF)):
        chosen = problem.mask() if quantity == _ON else ~problem.mask()

        def violation(points: Tensor, problem: Parity = problem, chosen: Tensor = chosen) -> Tensor:
            return -_slopes(points, problem, chosen).amin(-1)

        found[quantity].append((ascend(violation, draws(context, problem.n + 1), context), problem))
    worst = {quantity: max(attacks, key=_value) for quantity, attacks in found.items()}
    least = {quantity: -attack.value for quantity, (attack, _) in worst.items()}
    points = {}
    for quantity, (attack, problem) in worst.items():
        chosen, point = problem.mask() if quantity == _ON else ~problem.mask(), attack.point[None]
        position = int(_slopes(point, problem, chosen)[0].argmin())
        points[quantity] = {**place(problem, in_domain(point, problem)[0]), "position": position}
    return Measurement(
        least,
        f"slope towards 1_B at least {min(least.values()):.4f} per distance (π²/4 = {math.pi**2 / 4:.4f})",
        tried_by([attack for attacks in found.values() for attack, _ in attacks]),
        {"seed": SEED, "smallest_slope_per_distance": least, "bound": math.pi**2 / 4},
        "(π/2)cot(πc/2) on B, positive below 1; −(π/2)tan(πc/2) off B, never positive; by automatic differentiation at"
        " draws and by ascent on the violation inside D.",
        points,
    )


def _slope_again(point: Mapping[str, Any]) -> Again:
    """Take differences of sums over all inputs."""
    weights, support, j, step = point["weights"], point["support"], point["position"], 1e-6
    up, down = ([*weights[:j], weights[j] + move, *weights[j + 1 :]] for move in (step, -step))
    slope = (log_c_by_inputs(up, support) - log_c_by_inputs(down, support)) / (2 * step)
    return Again(slope / ((j in support) - weights[j]), PLAIN)


CLAIMS = (
    Claim(
        "P-concavity",
        "log C is strictly concave on D, which contains uniform attention; its only maximum is C = 1 at 1_B.",
        _CONCAVITY_CLAUSES,
        _concavity,
        f"{BOUNDED}, 3",
        seconds=2,
        proof=BOUNDED_PROOF,
        replay={_GAIN: _gain_again},
    ),
    Claim(
        "P-gradient-signs",
        "On D the gradient of log C raises hidden weights below 1 and no other.",
        _SIGNS_CLAUSES,
        _gradient_signs,
        f"{BOUNDED}, 4",
        seconds=2,
        proof=BOUNDED_PROOF,
        replay=dict.fromkeys((_ON, _OFF), _slope_again),
    ),
)
