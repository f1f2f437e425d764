"""The project's own: log C is concave in the logarithm of attention, and so in the numbers of an exponential head."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from mpmath.ctx_iv import MPIntervalContext
from torch import Tensor

from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.own.again import log_c_by_inputs
from parityscope.papers.own.domain import PLAIN, SEED, ascend, draws
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF, drawn_codes, exponential_head, inside
from parityscope.problems import Parity
from parityscope.training.steps.ascent import ArmijoAscent
from parityscope.training.steps.log_attention import log_value

_PROBLEMS = (Parity(3, (1,)), Parity(5, (0, 2)), Parity(8, (1, 4, 6)))
_ACROSS = "smallest gain of log C halfway between log c and log c′, over ‖c − c′‖²"
_NUMBERS = "smallest gain of log C halfway between (q, β) and (q′, β′), over ‖c − c′‖²"
_SLOPE = "smallest (w − sin w)/w³, w = 2v, by intervals"
_SAME = "largest difference of log C between ascents from different starts"
_SIGN = "the sign; rounding is below 1e−12"
_CLAUSES = (
    Clause("log C is strictly concave in log c on D", _ACROSS, above(0), _SIGN),
    Clause("and in the trained numbers", _NUMBERS, above(0), _SIGN),
    Clause("v·cot v falls: its derivative is −(w − sin w)/(2 sin² v)", _SLOPE, above(0), "the sign, certified"),
    Clause("ascents from all starts end alike", _SAME, at_most(1e-6), "rounding", refuted_if=above(1e-3)),
)
_APART = 1e-3  # squared distance below which rounding would be divided by nearly nothing


def _gain(middle: Tensor, a: Tensor, b: Tensor, hidden: Tensor) -> Tensor:
    """Return minus the gain of log C at the middle, per squared distance of the ends."""
    apart = (a - b).square().sum(-1)
    rise = log_value(middle, hidden) - (log_value(a, hidden) + log_value(b, hidden)) / 2
    return torch.where(apart > _APART, -rise / apart, torch.nan)


def _across(points: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights of D and those halfway between in the logarithm: geometric means."""
    a, b = ((1 + hidden.double()) * torch.sigmoid(half) for half in points.chunk(2, -1))
    return (a * b).sqrt(), a, b


def _between_numbers(points: Tensor, hidden: Tensor, code: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights at numbers of D and at those halfway between."""
    ends = [inside(code, hidden, half) for half in points.chunk(2, -1)]
    middle, a, b = ((z[:, :-1] @ code.T + z[:, -1:]).exp() for z in ((ends[0] + ends[1]) / 2, *ends))
    return middle, a, b


def distance_to_the_sine(w: Any, arithmetic: Any) -> Any:
    """Return w − sin w, whose sign says that v·cot v falls.

    >>> distance_to_the_sine(0.0, math)
    0.0
    """
    return w - arithmetic.sin(w)


def _certified_slope(pieces: int = 400) -> float:
    """Return a lower bound of (w − sin w)/w³ on (0, 2π): by intervals from 1 on, by its series below."""
    intervals = MPIntervalContext()
    edges = [1 + (2 * math.pi - 1) * i / pieces for i in range(pieces)] + [2 * math.pi + 1e-9]
    pairs = pairwise(edges)
    least = min(float((distance_to_the_sine(w, intervals) / w**3).a) for w in (intervals.mpf([a, b]) for a, b in pairs))
    near_zero = 1 / 6 - 1 / 120  # w − sin w ≥ w³/6 − w⁵/120
    return min(least, near_zero)


def _from_all_starts(context: Context) -> list[float]:
    """Return how far apart log C is after gradient ascent from different starts, one number per code."""
    generator = torch.Generator().manual_seed(SEED)
    starts, spreads = context.at(smoke=6, reference=16), []
    for _ in range(context.at(smoke=1, demo=1, reference=10)):
        code = drawn_codes(1, 8, 2, generator)[0] / 4
        supports, numbers = [(1, 4, 6)] * starts, torch.randn(starts, 3, generator=generator, dtype=torch.float64)
        hidden = torch.zeros(8, dtype=torch.bool)
        hidden[[1, 4, 6]] = True
        model, law = exponential_head(code, supports, inside(code, hidden, numbers))
        ascent = ArmijoAscent(model, law)
        for _ in range(context.at(smoke=100, demo=100, reference=300)):
            ascent.zero_grad()
            (-log_value(model.score_weights(), law.mask).sum()).backward()
            ascent.step()
        reached = log_value(model.score_weights().detach(), law.mask)
        spreads.append(float(reached.max() - reached.min()))
    return spreads


def _concave(context: Context) -> Measurement:
    """Attack concavity in both forms, certify its reason, and climb from many starts."""
    generator = torch.Generator().manual_seed(SEED)
    attacks: dict[str, list[tuple[Attack, Parity, Tensor]]] = {_ACROSS: [], _NUMBERS: []}
    for problem in _PROBLEMS:
        hidden, code = problem.mask(), torch.randn(problem.n, 2, generator=generator, dtype=torch.float64)

        def across(points: Tensor, hidden: Tensor = hidden) -> Tensor:
            return _gain(*_across(points, hidden), hidden)

        def numbers(points: Tensor, hidden: Tensor = hidden, code: Tensor = code) -> Tensor:
            return _gain(*_between_numbers(points, hidden, code), hidden)

        attacks[_ACROSS].append((ascend(across, draws(context, 2 * problem.n), context), problem, code))
        attacks[_NUMBERS].append((ascend(numbers, draws(context, 6), context), problem, code))
    worst = {name: max(found, key=lambda one: one[0].value) for name, found in attacks.items()}
    least = {name: -found[0].value for name, found in worst.items()}
    points = {}
    for name, (attack, problem, code) in worst.items():
        point, hidden = attack.point[None], problem.mask()
        triple = _across(point, hidden) if name == _ACROSS else _between_numbers(point, hidden, code)
        points[name] = {"weights": [one[0].tolist() for one in triple], "support": list(problem.support)}
    slope, spreads = _certified_slope(), _from_all_starts(context)
    return Measurement(
        {**least, _SLOPE: slope, _SAME: max(spreads)},
        f"smallest gain of a midpoint {min(least.values()):.4f}·‖c − c′‖²; ascents from all starts end within "
        f"{max(spreads):.1g}",
        tried_by([attack for found in attacks.values() for attack, _, _ in found]),
        {"seed": SEED, "smallest_gains": least, "certified_slope": slope, "spreads": spreads},
        "log C halfway between two points of D in log c, and between two settings of an exponential head's numbers;"
        " draws, then ascent on the violation. That v·cot v falls is certified by interval arithmetic; gradient ascent"
        " with Armijo's test starts from random places of D.",
        points,
    )


def _gain_again(point: Mapping[str, Any]) -> Again:
    """Sum over all inputs at both ends and between."""
    middle, a, b = (log_c_by_inputs(weights, point["support"]) for weights in point["weights"])
    apart = sum((x - y) ** 2 for x, y in zip(point["weights"][1], point["weights"][2], strict=True))
    return Again((middle - (a + b) / 2) / apart, PLAIN)


CLAIMS = (
    Claim(
        "P-concave",
        "log C is concave in log c on D, hence in the trained numbers (q, β) of a head with c = exp(Pq + β): ascents"
        " from all starts in D reach the same supremum.",
        _CLAUSES,
        _concave,
        f"{CONCAVE}, the concavity lemma",
        seconds=1,
        proof=CONCAVE_PROOF,
        replay=dict.fromkeys((_ACROSS, _NUMBERS), _gain_again),
    ),
)
