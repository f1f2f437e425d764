"""The project's own: one head on log C, from any start in D to 1_B, and how fast."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.attack import tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.own.domain import BOUNDED, BOUNDED_PROOF, SEED, ascend, draws, in_domain, place
from parityscope.papers.own.flow import HeadFlow, attention_of, heads_flow, loss_of, rosenbrock
from parityscope.problems import Parity


class Arrival(NamedTuple):
    """1 − C at the end, and the largest fall of log C on the way.

    >>> arrival = flow_until(HeadFlow(Parity(4, (0, 1))), torch.zeros(1, 4, dtype=torch.float64), end=200.0)
    >>> bool(arrival.gap < 0.01), arrival.fall < 0
    (True, True)
    """

    gap: Float[Tensor, " starts"]
    fall: float


def flow_until(flow: HeadFlow, logits: Float[Tensor, "starts n"], end: float) -> Arrival:
    """Follow the flow by Rosenbrock steps of second order, each a tenth of the time gone by.

    Equal weights on B are restored at once while the rest takes for ever: an explicit method would need small steps.

    >>> arrival = flow_until(HeadFlow(Parity(4, (0, 1))), torch.zeros(1, 4, dtype=torch.float64), end=1e4)
    >>> round(float(arrival.gap) * 1e4, 2)  # k(1 − k/n)/4
    0.25
    """
    time, before, fall = 0.0, flow.height(logits), -math.inf
    while time < end:
        step = min(max(1e-3, 0.1 * time), end - time)
        logits, time = rosenbrock(flow, logits, step)[0], time + step
        height = flow.height(logits)
        fall, before = max(fall, float((before - height).max())), height
    return Arrival(-torch.expm1(before), fall)


_STILL = "smallest |ṡ|²/(log C)² over its limit 4n/(k(n − k)) at 1_B, where C > e⁻⁵"
_GAP = "largest 1 − C of any start at t = 10⁶"
_UNIFORM = "distance from 1 of t(1 − C) over k(1 − k/n)/4 at t = 10⁶, uniform start"
_OTHERS = "largest t(1 − C) over k(1 − k/n)/4 at t = 10⁶, other starts"
_CONSTANT = "the corrections fall like t^{−1/2}; the steps err by 0.1 %"
_CLAUSES = (
    Clause("the flow stands still nowhere else", _STILL, above(1e-3), "bounded away from 0", refuted_if=at_most(1e-6)),
    Clause("every start in D converges", _GAP, at_most(1e-5), "ten times k/(4t)", refuted_if=above(1e-3)),
    Clause("from a uniform start t(1 − C) → k(1 − k/n)/4", _UNIFORM, at_most(0.01), _CONSTANT, above(0.05)),
    Clause("no start is slower in the end", _OTHERS, at_most(1.01), _CONSTANT, above(1.05)),
)
_END = 1e6
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
    starts, gaps, uniform, others, falls, places = 0, [], [], [], [], list[dict[str, Any]]()
    for problem in _SIZES:
        drawn = in_domain(draws(context, problem.n + 1), problem)
        drawn = drawn[~drawn.isnan().any(-1)][: context.at(smoke=6, reference=32)]
        weights = torch.cat([torch.full((1, problem.n), problem.k / problem.n, dtype=torch.float64), drawn])
        arrival = flow_until(HeadFlow(problem), weights.log(), _END)
        ratio = arrival.gap * _END / _limit(problem)
        starts += len(weights)
        falls.append(arrival.fall)
        gaps.append(float(arrival.gap.max()))
        uniform.append(float(ratio[0]))
        others += ratio[1:].tolist()
        places.append(place(problem, weights[int(arrival.gap.argmax())]))
    away = max((abs(one - 1) for one in uniform), default=math.inf)
    return Measurement(
        {
            _STILL: -max(attack.value for attack in attacks),
            _GAP: max(gaps),
            _UNIFORM: away,
            _OTHERS: max(others),
        },
        f"{starts} of {starts} starts in D converge; t(1 − C) reaches {uniform[0]:.4f}·k(1 − k/n)/4 from a uniform one"
        if max(gaps) < 1e-5
        else f"a start in D ends at 1 − C = {max(gaps):.1g}",
        f"{starts} starts followed to t = 10⁶; {tried_by(attacks)} for a place where the flow stops",
        {
            "seed": SEED,
            "sizes": [[problem.n, problem.k] for problem in _SIZES],
            "uniform_starts": uniform,
            "other_starts": [min(others), max(others)],
            "largest_gap": max(gaps),
            "largest_fall_of_log_C_in_a_step": max(falls),
        },
        "Gradient flow of one head with a free logit per position, by implicit steps; the tail falls like 1/t, which is"
        " not linear convergence. From other starts the constant is reached from below, slowly.",
        {_GAP: places[gaps.index(max(gaps))]},
    )


def _gap_again(point: Mapping[str, Any]) -> Again:
    """Follow the flow again in numpy, with derivatives written out and steps of bounded error."""
    hidden = np.isin(np.arange(len(point["weights"])), point["support"])
    logits = heads_flow(np.log([point["weights"]]), hidden, np.array([_END]))[-1]
    loss = loss_of(hidden.sum() * attention_of(logits)[0], hidden)
    return Again(-math.expm1(-loss), "steps of bounded error in numpy")


CLAIMS = (
    Claim(
        "P-one-head",
        "One head with free logits converges to 1_B from every start in D; t(1 − C) tends to k(1 − k/n)/4 from a"
        " uniform start and to no more than that from any other.",
        _CLAUSES,
        _one_head,
        f"{BOUNDED}, 5",
        seconds=2,
        proof=BOUNDED_PROOF,
        replay={_GAP: _gap_again},
    ),
)
