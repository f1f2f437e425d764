"""The project's own: a softmax of mass exactly k can be trapped beside a face; a mass that may shrink is not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from mpmath import mp
from mpmath.ctx_iv import MPIntervalContext
from torch import Tensor

from parityscope.models.faces import is_face
from parityscope.papers.attack import maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most, below
from parityscope.papers.own.domain import SEED, draws
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF, ENOUGH, climb, exponential_head
from parityscope.training.steps.log_attention import log_attention, log_value

N, K, PULL = 30, 5, 0.99  # one number per position: 1 on B, PULL at one other position, 0 elsewhere
_EDGE = 4.4  # of the trap
_TURNS = "smaller of the slope at q = 0 and minus that at q = 4.4, certified"
_BELOW = "largest C for q between 0 and 4.4, certified"
_ENDS = "C where the softmax of mass k ends"
_SCALE = "−log C where a head with a trained scale ends"
_BENT = "smallest gain of F⁺ at a midpoint, over its size"
_SHRUNK = "−log C where a mass of at most k ends"
_STOP = f"learned: −log C ≤ {ENOUGH}, where training stops"
_CLAUSES = (
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
    """Return the β ≤ log k − log Σ_j e^{s_j} with the largest log C of c = exp(s + β).

    >>> hidden = torch.tensor([True, False])
    >>> beta = best_scale(torch.tensor([[0.0, -9.0]], dtype=torch.float64), hidden, 1)
    >>> bool(beta.exp() < 1), round(float(beta.exp()), 3)
    (True, 1.0)
    """
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
        "n = 30, k = 5, one number per position: 1 on B, 0.99 at one other, 0 elsewhere. Slopes and C are bounded by"
        " intervals; with one number the flow is a walk along a line.",
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
        "P-softmax-trap",
        "A softmax of mass exactly k does not learn every face: at n = 30, k = 5 with codes 1 on B, 0.99 at one other"
        " position and 0 elsewhere its gradient flow stays at C < 0.29. With a trained scale, or a mass of at most k,"
        " it is learned.",
        _CLAUSES,
        _softmax_trap,
        f"{CONCAVE}, softmax of mass k",
        seconds=1,
        proof=CONCAVE_PROOF,
        replay={_TURNS: _slope_again},
    ),
)
