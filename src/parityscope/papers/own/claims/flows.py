"""The project's own: plain gradient flow on log C ends at 1_B, of one head and of any number with free logits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.attack import tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.own.domain import BOUNDED, BOUNDED_PROOF, SEED, ascend, draws, in_domain, place
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF
from parityscope.papers.own.flow import HeadFlow, attention_of, follow, heads_flow, loss_of
from parityscope.problems import Parity
from parityscope.theory import heads_rate
from parityscope.training.steps.log_attention import log_value

_STILL = "smallest |ṡ|²/(log C)² over its limit 4n/(k(n − k)) at 1_B, where C > e⁻⁵"
_GAP_OF_ONE = "largest 1 − C of any start at t = 10⁶"
_ONE_HEAD_CLAUSES = (
    Clause("the flow stands still nowhere else", _STILL, above(1e-3), "bounded away from 0", refuted_if=at_most(1e-6)),
    Clause("every start in D converges", _GAP_OF_ONE, at_most(1e-5), "ten times k/(4t)", refuted_if=above(1e-3)),
)
_END_OF_ONE = 1e6
_SIZES = (Parity(12, (1, 4, 9)), Parity(5, (0, 2, 3)))


def _limit(problem: Parity) -> float:
    """Return k(1 − k/n)/4."""
    return problem.k * (1 - problem.k / problem.n) / 4


def _stillness(problem: Parity, points: Tensor) -> Float[Tensor, " batch"]:
    """Return minus the speed of the flow, in units of its limit near 1_B."""
    flow, logits = HeadFlow(problem), in_domain(points, problem).log()
    height, speed = flow.height(logits), flow.rate(logits).square().sum(-1)
    relative = speed * _limit(problem) / height.square()
    return torch.where((height.abs() < 5) & (height.abs() > 1e-6), -relative, torch.nan)


def _one_head(context: Context) -> Measurement:
    """Follow one head's gradient flow on log C from random starts in D, and look for a place where it stops."""
    attacks = [ascend(partial(_stillness, problem), draws(context, problem.n + 1), context) for problem in _SIZES]
    starts, gaps, places = 0, list[float](), list[dict[str, Any]]()
    for problem in _SIZES:
        flow, drawn = HeadFlow(problem), in_domain(draws(context, problem.n + 1), problem)
        drawn = drawn[~drawn.isnan().any(-1)][: context.at(smoke=6, reference=32)]
        weights = torch.cat([torch.full((1, problem.n), problem.k / problem.n, dtype=torch.float64), drawn])
        gap = -torch.expm1(flow.height(follow(flow, weights.log(), _END_OF_ONE).z))
        starts += len(weights)
        gaps.append(float(gap.max()))
        places.append(place(problem, weights[int(gap.argmax())]))
    return Measurement(
        {_STILL: -max(attack.value for attack in attacks), _GAP_OF_ONE: max(gaps)},
        f"{starts} of {starts} starts in D converge"
        if max(gaps) < 1e-5
        else f"a start in D ends at 1 − C = {max(gaps):.1g}",
        f"{starts} starts followed to t = 10⁶; {tried_by(attacks)} for a place where the flow stops",
        {"seed": SEED, "sizes": [[problem.n, problem.k] for problem in _SIZES], "largest_gap": max(gaps)},
        "Gradient flow of one head with a free logit per position, by implicit steps; the tail falls like 1/t, which is"
        " not linear convergence.",
        {_GAP_OF_ONE: places[gaps.index(max(gaps))]},
    )


def _one_head_again(point: Mapping[str, Any]) -> Again:
    """Follow the flow again in numpy, with derivatives written out and steps of bounded error."""
    hidden = np.isin(np.arange(len(point["weights"])), point["support"])
    logits = heads_flow(np.log([point["weights"]]), hidden, np.array([_END_OF_ONE]))[-1]
    loss = loss_of(hidden.sum() * attention_of(logits)[0], hidden)
    return Again(-math.expm1(-loss), "steps of bounded error in numpy")


_END = 1e7
_CASES: tuple[tuple[Parity, tuple[float, ...]], ...] = (
    (Parity(6, (0, 2, 5)), (1.0, 1.0, 1.0)),
    (Parity(5, (1, 2)), (0.3, 0.7, 1.0)),
    (Parity(4, (0, 1, 3)), (1.2, 1.8)),
)
_GAP = "largest 1 − C of any start at t = 10⁷"
_FALL = "largest fall of log C in a step"
_DRIFT = "largest drift of the sum of a head's logits"
_LEFT = "wrong resting places that no head leaves"
_MANY_HEADS_CLAUSES = (
    Clause("every start in D converges to 1_B", _GAP, at_most(1e-4), "a tail of 1/t is 1e−7", refuted_if=above(1e-2)),
    Clause("log C never falls", _FALL, at_most(1e-6), "the error of a step", refuted_if=above(1e-3)),
    Clause("the product of a head's e^{−s} is conserved", _DRIFT, at_most(1e-6), "rounding", refuted_if=above(1e-3)),
    Clause("every wrong resting place is left", _LEFT, at_most(0), "all sets of attended positions, in fractions"),
)


def _starts(problem: Parity, heads: int, count: int, generator: torch.Generator) -> Tensor:
    """Return logits in D: random ones, and ones where heads stand beside a wrong face."""
    n, mask = problem.n, problem.mask()
    drawn = 2 * torch.randn(20 * count, heads, n, generator=generator, dtype=torch.float64)
    piled = torch.randn(20 * count, heads, n, generator=generator, dtype=torch.float64)
    # Every head stands on one position, on the same as others or on a wrong one.
    at = torch.randint(0, n, (20 * count, heads, 1), generator=generator)
    piled.scatter_add_(-1, at, torch.full_like(at, 6, dtype=torch.float64))
    flow = HeadFlow(problem, [problem.k / heads] * heads)
    chosen = []
    for logits in (drawn, piled):
        c = flow.weights(logits.flatten(1))
        chosen.append(logits.flatten(1)[torch.isfinite(log_value(c, mask))][:count])
    return torch.cat(chosen)


def _resting_levels(problem: Parity, masses: Sequence[Fraction], attended: Sequence[set[int]]) -> list[Fraction] | None:
    """Return f⁻¹ of the slope at every position where heads rest that attend to given positions; None if none does.

    Heads whose positions meet share a level z: c = 1 − z on B and −z elsewhere, with their masses as its sum.

    >>> _resting_levels(Parity(3, (0, 1)), [Fraction(2)], [{0, 1}])  # 1_B: all slopes are 0
    [Fraction(0, 1), Fraction(0, 1), Fraction(0, 1)]
    """
    hidden, levels = set(problem.support), [Fraction(int(j in problem.support)) for j in range(problem.n)]
    groups = [({h}, set(positions)) for h, positions in enumerate(attended)]
    merged: list[tuple[set[int], set[int]]] = []
    for heads, positions in groups:
        meeting = [one for one in merged if one[1] & positions]
        merged = [one for one in merged if one not in meeting]
        merged.append((heads.union(*(one[0] for one in meeting)), positions.union(*(one[1] for one in meeting))))
    for heads, positions in merged:
        z = (len(positions & hidden) - sum(masses[h] for h in heads)) / Fraction(len(positions))
        if not -1 < z < 1 or (z >= 0 and positions - hidden):
            return None
        for j in positions:
            levels[j] = z
    return levels if all(levels[b] < 1 for b in hidden) else None


def _left_alone(problem: Parity, masses: Sequence[Fraction]) -> Iterator[list[set[int]]]:
    """Yield the wrong resting places in D at which every head has the largest slope of all."""
    subsets = [set(one) for size in range(1, problem.n + 1) for one in combinations(range(problem.n), size)]
    for attended in product(subsets, repeat=len(masses)):
        levels = _resting_levels(problem, masses, attended)
        if levels is None or not any(levels):
            continue
        if all(levels[j] == max(levels) for positions in attended for j in positions):
            yield list(attended)


def _resting_places(context: Context) -> int:
    """Count what no head leaves, over all sets of positions that some heads may attend to."""
    half = Fraction(1, 2)
    cases: list[tuple[Parity, list[Fraction]]] = [
        (Parity(4, (0, 1)), [Fraction(1), Fraction(1)]),
        (Parity(3, (0, 1)), [half, half, Fraction(1)]),
        (Parity(5, (0, 1, 2)), [Fraction(1), Fraction(2)]),
        (Parity(4, (0, 1, 2)), [Fraction(1)] * 3),
    ]
    return sum(len(list(_left_alone(*case))) for case in cases[: context.at(smoke=2, demo=3, reference=4)])


def _many_heads(context: Context) -> Measurement:
    """Follow several heads from random starts and from starts beside wrong faces."""
    generator = torch.Generator().manual_seed(SEED)
    gaps, falls, drifts, starts, places = [], [], [], 0, list[dict[str, Any]]()
    for problem, masses in _CASES[: context.at(smoke=2, reference=3)]:
        flow, heads = HeadFlow(problem, masses), len(masses)
        logits = _starts(problem, heads, context.at(smoke=3, demo=6, reference=40), generator)
        logits = logits[torch.isfinite(log_value(flow.weights(logits), problem.mask()))]
        followed = follow(flow, logits, _END)
        gap = -torch.expm1(flow.height(followed.z))
        moved = (followed.z - logits).reshape(len(logits), heads, -1).sum(-1)
        starts += len(logits)
        gaps.append(float(gap.max()))
        falls.append(followed.fall)
        drifts.append(float(moved.abs().max()))
        worst = logits[int(gap.argmax())].reshape(heads, -1).tolist()
        places.append({"support": list(problem.support), "masses": list(masses), "logits": worst, "seed": SEED})
    left = _resting_places(context)
    return Measurement(
        {_GAP: max(gaps), _FALL: max(falls), _DRIFT: max(drifts), _LEFT: left},
        f"{starts} of {starts} starts end with 1 − C ≤ {max(gaps):.1g}"
        if max(gaps) <= 1e-4
        else f"a start ends with 1 − C = {max(gaps):.1g}",
        f"{starts} starts of 2 and 3 heads, half of them beside wrong faces, followed to t = 10⁷; all sets of positions"
        " that few heads may attend to",
        {
            "seed": SEED,
            "largest_gaps": gaps,
            "largest_fall_of_log_C": max(falls),
            "largest_drift": max(drifts),
            "wrong_resting_places_left_alone": left,
        },
        "Plain gradient flow of all heads' logits by implicit steps of bounded error. Half of the starts have each head"
        " on one position, shared or wrong. Where the flow could rest with wrong weights, fractions show that some head"
        " has less than the largest slope, so that it leaves.",
        {_GAP: places[gaps.index(max(gaps))]},
    )


def _many_heads_again(point: Mapping[str, Any]) -> Again:
    """Follow the flow again in plain Python, by explicit steps in which no logit moves by more than 0.05."""
    support, masses, logits = point["support"], point["masses"], [list(one) for one in point["logits"]]

    def state() -> tuple[list[list[float]], list[float]]:
        raised = [[math.exp(s - max(head)) for s in head] for head in logits]
        attention = [[one / sum(head) for one in head] for head in raised]
        c = [sum(mass * a for mass, a in zip(masses, column, strict=True)) for column in zip(*attention, strict=True)]
        return attention, c

    for _ in range(5000):
        attention, c = state()
        half = [math.pi / 2 * one for one in c]
        g = [math.pi / 2 * (1 / math.tan(v) if j in support else -math.tan(v)) for j, v in enumerate(half)]
        rates = []
        for mass, head in zip(masses, attention, strict=True):
            mean = sum(a * slope for a, slope in zip(head, g, strict=True))
            rates.append([mass * a * (slope - mean) for a, slope in zip(head, g, strict=True)])
        # Where the heads stand still the height cannot change either.
        step = 0.05 / max(1e-9, *(abs(rate) for head in rates for rate in head))
        logits = [
            [s + min(step, 0.5) * rate for s, rate in zip(*pair, strict=True)]
            for pair in zip(logits, rates, strict=True)
        ]
    height = math.prod(
        math.sin(math.pi * one / 2) if j in support else math.cos(math.pi * one / 2) for j, one in enumerate(state()[1])
    )
    return Again(1 - height, "explicit steps in plain Python")


_RATE_END = 1e6
_RATE_CASES = (Parity(6, (0, 2, 5)), Parity(8, (1, 3)), Parity(5, (0, 1, 2, 4)), Parity(7, (2,)))
_HEADS = (1, 2, 4)
_LEMMA = "largest 4V² over |ṡ|²·Σ_h n·Var_j(a*_hj/a_hj), a* feasible"
_EXPLICIT = "largest V over k(π/(2C(0)))²/(4t), one head"
_FROM_UNIFORM = "largest V over n(n − k)/(4kt), one head from uniform attention"
_STEPPED = "largest V over k(π/(2C(0)))²/(2Ση), one head, steps of Armijo's test with constant ½"
_LIMIT_RATE = "largest t·V over (H/4)·max_{σ≤k} σ(1 − σ/n) at t = 10⁶"
_ATTAINED = "largest distance of t·V over that from 1, equal heads from uniform attention, k ≤ n/2 or one head"
_TAIL = "the corrections fall like t^{−1/2}; the steps err by 0.1 %"
_RATE_CLAUSES = (
    Clause("|ṡ|²·W ≥ 4V² on D", _LEMMA, at_most(1 + 1e-6), "the lemma; rounding"),
    Clause("V ≤ k(π/(2C(0)))²/(4t) with one head", _EXPLICIT, at_most(1), "the theorem's constant"),
    Clause("V ≤ n(n − k)/(4kt) from uniform attention", _FROM_UNIFORM, at_most(1), "the theorem's constant"),
    Clause("steps have the same with 2Ση for 4t", _STEPPED, at_most(1), "the theorem's constant"),
    Clause("limsup t·V is at most the theorem's for any heads", _LIMIT_RATE, at_most(1.01), _TAIL, above(1.05)),
    Clause("and no smaller constant would do", _ATTAINED, at_most(0.01), _TAIL, above(0.05)),
)


def feasible_attention(problem: Parity, masses: Sequence[float], mix: Tensor) -> Float[Tensor, "points heads n"]:
    """Return distributions with Σκ_h a*_h = 1_B: if all κ are 1 mixtures of ways to give each head a bit, else uniform.

    >>> feasible_attention(Parity(3, (0, 2)), [1.0, 1.0], torch.tensor([[0.0, -999.0]], dtype=torch.float64)).tolist()
    [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]]
    """
    k, hidden = problem.k, problem.mask().double()
    if list(masses) != [1.0] * k:
        return (hidden / k).expand(len(mix), len(masses), -1)
    turns = torch.stack([torch.eye(k, dtype=torch.float64).roll(turn, 1) for turn in range(k)])
    placed = torch.zeros(len(mix), k, problem.n, dtype=torch.float64)
    placed[:, :, list(problem.support)] = (torch.softmax(mix[:, :k], -1)[..., None, None] * turns).sum(1)
    return placed


def _lemma_ratio(problem: Parity, masses: Sequence[float], points: Tensor) -> Float[Tensor, " points"]:
    """Return 4V²/(|ṡ|²W) at some logits, the first numbers, and feasible a*, from the last."""
    heads, flow = len(masses), HeadFlow(problem, masses)
    logits = 2 * points[:, : heads * problem.n]
    c = flow.weights(logits)
    attention = flow.shares(logits) / flow.masses[:, None]
    ratio = feasible_attention(problem, masses, points[:, heads * problem.n :]) / attention
    spread = problem.n * ratio.var(-1, correction=0).sum(-1)
    height, speed = log_value(c, problem.mask()), flow.rate(logits).square().sum(-1)
    inside = torch.isfinite(height) & (height < -1e-4) & (height > -50)
    return torch.where(inside, 4 * height.square() / (speed * spread), torch.nan)


def _one_head_bounds(problem: Parity, context: Context) -> dict[str, float]:
    """Return the largest ratios of V to its three explicit bounds, along flows and along searched steps."""
    n, k, flow, hidden = problem.n, problem.k, HeadFlow(problem), problem.mask()
    drawn = in_domain(draws(context, n + 1), problem)
    drawn = drawn[~drawn.isnan().any(-1)][: context.at(smoke=6, reference=32)]
    start = torch.cat([torch.full((1, n), k / n, dtype=torch.float64), drawn]).log()
    largest = dict.fromkeys((_EXPLICIT, _FROM_UNIFORM, _STEPPED), 0.0)
    constant = k * (math.pi / 2 * (-log_value(start.exp(), hidden)).exp()).square()

    def watch(time: Tensor, logits: Tensor) -> None:
        loss = -flow.height(logits)
        largest[_EXPLICIT] = max(largest[_EXPLICIT], float((4 * time * loss / constant).max()))
        largest[_FROM_UNIFORM] = max(largest[_FROM_UNIFORM], float((4 * time * loss)[0] * k / (n * (n - k))))

    follow(flow, start, context.at(smoke=1000, reference=100_000), watch=watch)
    z, length, total = start, torch.ones(len(start), dtype=torch.float64), torch.zeros(len(start), dtype=torch.float64)
    for _ in range(context.at(smoke=50, reference=400)):
        rate, before, length = flow.rate(z).detach(), log_value(flow.weights(z), hidden), 2 * length
        for _ in range(60):
            rise = log_value(flow.weights(z + length[:, None] * rate), hidden) - before
            short = ~(rise >= length / 2 * rate.square().sum(-1))
            if not bool(short.any()):
                break
            length = torch.where(short, length / 2, length)
        z, total = z + length[:, None] * rate, total + length
        loss = -log_value(flow.weights(z), hidden)
        largest[_STEPPED] = max(largest[_STEPPED], float((2 * total * loss / constant).max()))
    return largest


def _rate_of_heads(context: Context) -> Measurement:
    """Attack the lemma, and follow flows of one to five heads far beyond their start."""
    generator, cases = torch.Generator().manual_seed(SEED + 1), _RATE_CASES[: context.at(smoke=1, demo=3, reference=4)]
    attacks, shares, attained, places, flows = [], [], [], list[dict[str, Any]](), 0
    for problem in cases:
        for masses in ([problem.k], [1.0] * problem.k, [0.3, problem.k - 0.3]):
            numbers = len(masses) * problem.n + problem.k
            attacks.append(ascend(partial(_lemma_ratio, problem, masses), draws(context, numbers), context))
    for problem, heads in product(cases, _HEADS[: context.at(smoke=2, reference=3)]):
        flow = HeadFlow(problem, [problem.k / heads] * heads)
        random = _starts(problem, heads, context.at(smoke=1, demo=3, reference=12), generator)
        logits = torch.cat([torch.zeros_like(random[:1]), random])
        share = -flow.height(follow(flow, logits, _RATE_END, tolerance=2e-3).z) * _RATE_END
        share = share / heads_rate(problem.n, problem.k, heads)
        flows += len(logits)
        shares.append(float(share.max()))
        attained += [abs(float(share[0]) - 1)] if heads == 1 or 2 * problem.k <= problem.n else []
        worst = logits[int(share.argmax())].reshape(heads, -1).tolist()
        places.append({"support": list(problem.support), "logits": worst, "seed": SEED + 1})
    bounds = [_one_head_bounds(problem, context) for problem in cases]
    measured = {name: max(one[name] for one in bounds) for name in (_EXPLICIT, _FROM_UNIFORM, _STEPPED)}
    measured |= {_LEMMA: max(one.value for one in attacks), _LIMIT_RATE: max(shares), _ATTAINED: max(attained)}
    return Measurement(
        measured,
        f"t·V reaches {max(shares):.4f} of its bound at t = 10⁶, and is within {max(attained):.1g} of it with equal"
        " heads",
        f"{flows} flows of 1 to {_HEADS[-1]} heads to t = 10⁶; {tried_by(attacks)} on the lemma",
        {"seed": SEED + 1, "measured": measured, "shares": shares},
        "V = −log C along plain gradient flows by implicit steps of bounded error, from random logits, from heads"
        " beside wrong faces and from uniform attention; the lemma by draws and ascent over logits and feasible"
        " attention; explicit bounds of one head along flows and searched steps.",
        {_LIMIT_RATE: places[shares.index(max(shares))]},
    )


def _rate_again(point: Mapping[str, Any]) -> Again:
    """Follow the flow again in numpy, with derivatives written out."""
    logits = np.array(point["logits"])
    (heads, n), k = logits.shape, len(point["support"])
    hidden = np.isin(np.arange(n), point["support"])
    end = heads_flow(logits, hidden, np.array([_RATE_END]))[-1]
    loss = loss_of(k * attention_of(end).mean(0), hidden)
    most = heads / 4 * max(size * (1 - size / n) for size in range(1 if heads > 1 else k, k + 1))
    return Again(loss * _RATE_END / most, "steps of bounded error in numpy")


CLAIMS = (
    Claim(
        "P-one-head",
        "One head with free logits, trained by plain gradient flow on log C, converges to 1_B from every start in D.",
        _ONE_HEAD_CLAUSES,
        _one_head,
        f"{BOUNDED}, 5",
        seconds=2,
        proof=BOUNDED_PROOF,
        replay={_GAP_OF_ONE: _one_head_again},
    ),
    Claim(
        "P-k-heads",
        "Any number of softmax heads with free logits and masses that add up to k, trained by plain gradient flow on"
        " log C, converge to 1_B from every start in D.",
        _MANY_HEADS_CLAUSES,
        _many_heads,
        f"{CONCAVE}, k heads",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay={_GAP: _many_heads_again},
    ),
    Claim(
        "P-rate-of-heads",
        "Any number H of softmax heads with free logits, plain gradient flow on log C, any finite start in D: limsup"
        " t·(−log C) ≤ (H/4)·max_{σ≤k} σ(1 − σ/n), which equal heads from uniform attention attain for k ≤ n/2; one"
        " head has σ = k, −log C ≤ k(π/(2C(0)))²/(4t) for all t, and n(n − k)/(4kt) from uniform attention.",
        _RATE_CLAUSES,
        _rate_of_heads,
        f"{CONCAVE}, k heads",
        seconds=6,
        proof=CONCAVE_PROOF,
        replay={_LIMIT_RATE: _rate_again},
    ),
)
