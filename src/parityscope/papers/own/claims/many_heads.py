"""The project's own: plain gradient flow of any number of softmax heads with free logits ends at 1_B."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import torch
from torch import Tensor

from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF
from parityscope.papers.own.flow import HeadFlow, follow
from parityscope.problems import Parity
from parityscope.training.steps.log_attention import log_value

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
_CLAUSES = (
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


def resting_levels(problem: Parity, masses: Sequence[Fraction], attended: Sequence[set[int]]) -> list[Fraction] | None:
    """Return f⁻¹ of the slope at every position where heads rest that attend to given positions; None if none does.

    Heads whose positions meet share a level z: c = 1 − z on B and −z elsewhere, with their masses as its sum.

    >>> resting_levels(Parity(3, (0, 1)), [Fraction(2)], [{0, 1}])  # 1_B: all slopes are 0
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
        levels = resting_levels(problem, masses, attended)
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


def _gap_again(point: Mapping[str, Any]) -> Again:
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


CLAIMS = (
    Claim(
        "P-k-heads",
        "Any number of softmax heads with free logits and masses that add up to k, trained by plain gradient flow on"
        " log C, converge to 1_B from every start in D.",
        _CLAUSES,
        _many_heads,
        f"{CONCAVE}, k heads",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay={_GAP: _gap_again},
    ),
)
