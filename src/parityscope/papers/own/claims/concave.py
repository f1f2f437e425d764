"""The project's own: log C is concave in log-attention, so that exponential heads learn and a softmax may not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from mpmath import mp
from mpmath.ctx_iv import MPIntervalContext
from torch import Tensor

from parityscope.models.faces import is_face
from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most, below
from parityscope.papers.own.again import log_c_by_inputs
from parityscope.papers.own.domain import PLAIN, SEED, ascend, draws
from parityscope.papers.own.exponential import (
    CONCAVE,
    CONCAVE_PROOF,
    ENOUGH,
    climb,
    drawn_codes,
    exponential_head,
    inside,
)
from parityscope.problems import Parity
from parityscope.training.steps.ascent import ArmijoAscent
from parityscope.training.steps.log_attention import log_attention, log_value

_PROBLEMS = (Parity(3, (1,)), Parity(5, (0, 2)), Parity(8, (1, 4, 6)))
_ACROSS = "smallest gain of log C halfway between log c and log c′, over ‖c − c′‖²"
_NUMBERS = "smallest gain of log C halfway between (q, β) and (q′, β′), over ‖c − c′‖²"
_SLOPE = "smallest (w − sin w)/w³, w = 2v, by intervals"
_SAME = "largest difference of log C between ascents from different starts"
_SIGN = "the sign; rounding is below 1e−12"
_CONCAVE_CLAUSES = (
    Clause("log C is strictly concave in log c on D", _ACROSS, above(0), _SIGN),
    Clause("and in the trained parameters", _NUMBERS, above(0), _SIGN),
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


def _distance_to_the_sine(w: Any, arithmetic: Any) -> Any:
    """Return w − sin w, whose sign says that v·cot v falls.

    >>> _distance_to_the_sine(0.0, math)
    0.0
    """
    return w - arithmetic.sin(w)


def _certified_slope(pieces: int = 400) -> float:
    """Return a lower bound of (w − sin w)/w³ on (0, 2π): by intervals from 1 on, by its series below."""
    intervals = MPIntervalContext()
    edges = [1 + (2 * math.pi - 1) * i / pieces for i in range(pieces)] + [2 * math.pi + 1e-9]
    pairs = pairwise(edges)
    least = min(
        float((_distance_to_the_sine(w, intervals) / w**3).a) for w in (intervals.mpf([a, b]) for a, b in pairs)
    )
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
        "log C halfway between two points of D in log c, and between two settings of an exponential head's parameters;"
        " draws, then ascent on the violation. That v·cot v falls is certified by interval arithmetic; gradient ascent"
        " with Armijo's test starts from random places of D.",
        points,
    )


def _gain_again(point: Mapping[str, Any]) -> Again:
    """Sum over all inputs at both ends and between."""
    middle, a, b = (log_c_by_inputs(weights, point["support"]) for weights in point["weights"])
    apart = sum((x - y) ** 2 for x, y in zip(point["weights"][1], point["weights"][2], strict=True))
    return Again((middle - (a + b) / 2) / apart, PLAIN)


N, K, PULL = 30, 5, 0.99  # one parameter per position: 1 on B, PULL at one other position, 0 elsewhere
_EDGE = 4.4  # of the trap
_TURNS = "smaller of the slope at q = 0 and minus that at q = 4.4, certified"
_BELOW = "largest C for q between 0 and 4.4, certified"
_ENDS = "C where the softmax of mass k ends"
_SCALE = "−log C where a head with a trained scale ends"
_BENT = "smallest gain of F⁺ at a midpoint, over its size"
_SHRUNK = "−log C where a mass of at most k ends"
_STOP = f"learned: −log C ≤ {ENOUGH}, where training stops"
_TRAP_CLAUSES = (
    Clause("the flow of mass k from uniform attention stays below q = 4.4", _TURNS, above(0), "interval arithmetic"),
    Clause("C is small there", _BELOW, below(0.29), "interval arithmetic"),
    Clause("so it is trapped", _ENDS, below(0.29), "the same bound"),
    Clause("B is a face: with a trained scale it is learned", _SCALE, at_most(ENOUGH), _STOP, above(0.1)),
    Clause("F⁺, the best mass of at most k, is concave", _BENT, at_least(-1e-9), "rounding", below(-1e-6)),
    Clause("so a mass that may shrink learns it", _SHRUNK, at_most(ENOUGH), _STOP, above(0.1)),
)


def _code() -> Float[Tensor, "n 1"]:
    return torch.tensor([1.0] * K + [PULL] + [0.0] * (N - K - 1), dtype=torch.float64)[:, None]


def _height_and_slope(q: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return log C and its derivative in q for the softmax of mass k, in any arithmetic."""
    codes = ((K, True, 1), (1, False, arithmetic.mpf(PULL)), (N - K - 1, False, 0))
    raised = [arithmetic.exp(p * q) for _, _, p in codes]
    total = sum(count * one for (count, _, _), one in zip(codes, raised, strict=True))
    mean = sum(count * p * one for (count, _, p), one in zip(codes, raised, strict=True)) / total
    height, slope = arithmetic.mpf(0), arithmetic.mpf(0)
    for (count, hidden, p), one in zip(codes, raised, strict=True):
        v = arithmetic.pi / 2 * K * one / total
        sine, cosine = arithmetic.sin(v), arithmetic.cos(v)
        height += count * arithmetic.log(sine if hidden else cosine)
        slope += count * (v * cosine / sine if hidden else -v * sine / cosine) * (p - mean)
    return height, slope


def _certified_ceiling(pieces: int) -> float:
    """Return what log C does not exceed for q from 0 to the edge: on every piece its middle and the slope over it."""
    intervals, width, highest = MPIntervalContext(), _EDGE / pieces, -math.inf
    for i in range(pieces):
        piece = intervals.mpf([i * width, (i + 1) * width])
        middle = intervals.mpf((i + 0.5) * width)
        bound = _height_and_slope(middle, intervals)[0] + _height_and_slope(piece, intervals)[1] * (piece - middle)
        highest = max(highest, float(bound.b))
    return highest


def best_scale(scores: Float[Tensor, "runs n"], hidden: Tensor, k: int) -> Float[Tensor, " runs"]:
    """Return the β ≤ log k − log Σ_j e^{s_j} with the largest log C of c = exp(s + β)."""
    high = math.log(k) - scores.logsumexp(-1)
    edges = torch.where(hidden, math.log(2), 0.0) - scores  # beyond, C is 0
    high = torch.minimum(high, edges.amin(-1) - 1e-12)
    low = high - 8  # where every weight is so small that more mass is better
    for _ in range(34):
        middle = (low + high) / 2
        c = (scores + middle[:, None]).exp()
        rising = (c * log_attention(c, hidden).gradient).sum(-1) > 0
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return high


def _best_mass(q: Float[Tensor, "runs r"], code: Float[Tensor, "n r"], hidden: Tensor, k: int) -> Tensor:
    """Return F⁺(q), the log C of the best mass of at most k."""
    scores = q @ code.T
    return log_value((scores + best_scale(scores.detach(), hidden, k)[:, None]).exp(), hidden)


def _bend(context: Context) -> Any:
    """Attack the concavity of F⁺ on random codes of two numbers."""
    generator = torch.Generator().manual_seed(SEED)
    n, k = 8, 3
    code, hidden = torch.randn(n, 2, generator=generator, dtype=torch.float64), torch.arange(n) < k

    def violation(points: Tensor) -> Tensor:
        ends = points.chunk(2, -1)
        middle, a, b = (_best_mass(q, code, hidden, k) for q in ((ends[0] + ends[1]) / 2, *ends))
        return ((a + b) / 2 - middle) / (1 + a.abs() + b.abs())

    steps = context.at(smoke=15, demo=15, reference=60)
    return maximise(lambda points, index: violation(points), draws(context, 4)[:60], steps=steps)


def _along(heights: Tensor, numbers: Tensor) -> float:
    """Return log C where an ascent from 0 along some numbers first turns down, or the last."""
    falls = (heights[1:] < heights[:-1]).nonzero()[:, 0]
    return float(heights[int(falls[0]) if len(falls) else len(numbers) - 1])


def _softmax_trap(context: Context) -> Measurement:
    """Certify the trap, follow all three masses, and attack the concavity of the repair."""
    code, hidden, intervals = _code(), torch.arange(N) < K, MPIntervalContext()
    start, edge = (_height_and_slope(intervals.mpf(q), intervals)[1] for q in (0, _EDGE))
    turns = min(float(start.a), -float(edge.b))
    ceiling = math.exp(_certified_ceiling(context.at(smoke=80, demo=100, reference=2000)))
    # One number: an ascent is a walk along a line, up to where the height turns.
    numbers = torch.linspace(0, 1500, 15_001, dtype=torch.float64)
    scores = numbers[:, None] @ code.T
    ends = math.exp(_along(log_value(K * torch.softmax(scores, -1), hidden), numbers))
    shrunk = -_along(_best_mass(numbers[:, None][::100], code, hidden, K), numbers[::100])
    climbed, attack = climb(*exponential_head(code, [tuple(range(K))])), _bend(context)
    return Measurement(
        {
            _TURNS: turns,
            _BELOW: ceiling,
            _ENDS: ends,
            _SCALE: -float(climbed.value),
            _BENT: -attack.value,
            _SHRUNK: shrunk,
        },
        f"mass k is trapped at C = {ends:.3f} (certified below {ceiling:.3f}); a trained scale ends at −log C = "
        f"{-float(climbed.value):.1g}, a mass of at most k at {shrunk:.1g}",
        f"interval arithmetic on all of 0 ≤ q ≤ 4.4; {tried_by([attack])}",
        {
            "seed": SEED,
            "code": [1] * K + [PULL] + [0] * (N - K - 1),
            "margin": is_face(code, range(K)).margin,
            "slope_at_0": [float(start.a), float(start.b)],
            "slope_at_4.4": [float(edge.a), float(edge.b)],
            **attack.evaluations(),
        },
        "n = 30, k = 5, one parameter per position: 1 on B, 0.99 at one other, 0 elsewhere. Slopes and C are bounded by"
        " intervals; with one parameter the flow is a walk along a line.",
        {_TURNS: {"q": _EDGE, "seed": SEED}},
    )


def _slope_again(point: Mapping[str, Any]) -> Again:
    """Take differences of products over all positions in 40 digits."""
    codes = [1] * 5 + [mp.mpf(99) / 100] + [0] * 24

    def height(q: Any) -> Any:
        raised = [mp.exp(p * q) for p in codes]
        waves = [mp.pi / 2 * 5 * one / sum(raised) for one in raised]
        return sum(mp.log(mp.sin(v) if j < 5 else mp.cos(v)) for j, v in enumerate(waves))

    with mp.workdps(40):
        step = mp.mpf(10) ** -12
        start, edge = (float((height(q + step) - height(q - step)) / (2 * step)) for q in (0, point["q"]))
    return Again(min(start, -edge), "differences in 40 digits")


CLAIMS = (
    Claim(
        "P-concave",
        "log C is concave in log c on D, hence in the trained parameters (q, β) of a head with c = exp(Pq + β): ascents"
        " from all starts in D reach the same supremum.",
        _CONCAVE_CLAUSES,
        _concave,
        f"{CONCAVE}, the concavity lemma",
        proof=CONCAVE_PROOF,
        replay=dict.fromkeys((_ACROSS, _NUMBERS), _gain_again),
    ),
    Claim(
        "P-softmax-trap",
        "A softmax of mass exactly k does not learn every face: at n = 30, k = 5 with codes 1 on B, 0.99 at one other"
        " position and 0 elsewhere its gradient flow stays at C < 0.29. With a trained scale, or a mass of at most k,"
        " it is learned.",
        _TRAP_CLAUSES,
        _softmax_trap,
        f"{CONCAVE}, softmax of mass k",
        proof=CONCAVE_PROOF,
        replay={_TURNS: _slope_again},
    ),
)
