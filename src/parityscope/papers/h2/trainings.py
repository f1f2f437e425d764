"""What H2's claims share: the trainings, what counts as success, and a seed's step taken again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from parityscope.core.statistics import Share, wilson_share
from parityscope.papers.claim import Again
from parityscope.papers.h2.again import OneStepAgain
from parityscope.runs.training import Training, training
from parityscope.theory import best_uniform_step, one_step_learning_rate, polylog_numbers

NEAR_ZERO = 0.1  # our reading of "nearly 0": a twentieth of the largest loss
ISOLATED = 0.5  # less than an eighth of the weight lies off the pair, and every input is classified right
MOST = "more seeds than not, with 95 % confidence: the abstract names no probability"


def share_below(losses: Sequence[float], limit: float) -> Share:
    """Return the share of seeds whose worst input loses less than a limit.

    >>> str(share_below([0.01, 0.2], NEAR_ZERO))
    '1/2 (9%–91%)'
    """
    return wilson_share(sum(loss < limit for loss in losses), len(losses))


def one_step_training(n: int, seeds: int, variance: float | None = None) -> Training:
    """Return H2's step from initial scores of a variance: 1/log d unless given, and 0 is exactly uniform attention.

    >>> one_step_training(1000, seeds=3, variance=0.0).recipe.start_radius
    0.0
    """
    radius = "√(r/log n)" if variance is None else math.sqrt(polylog_numbers(n) * variance)
    # From exactly uniform attention the best step is shorter: nothing but the pair's imbalance is left to grow.
    units = best_uniform_step(n, polylog_numbers(n)) if variance == 0 else None
    rate = one_step_learning_rate(n, score_units=units)
    return training("one-step", n, 2, seeds=range(seeds), start_radius=radius, learning_rate=rate)


def seed_at(config: Training, losses: Sequence[float], place: int) -> dict[str, Any]:
    """Return what a replay needs to take one seed's step again.

    >>> seed_at(one_step_training(1000, seeds=3), losses=[0.1, 0.2, 0.3], place=2)["seed"]
    2
    """
    return {
        "n": config.n,
        "r": config.recipe.numbers_per_head,
        "seed": config.seeds[place],
        "start_radius": config.recipe.start_radius,
        "learning_rate": config.recipe.learning_rate,
        "value": losses[place],
    }


def step_again(point: Mapping[str, Any]) -> OneStepAgain:
    """Return one seed's step by the second route.

    >>> step = one_step_training(200, seeds=1)
    >>> point = seed_at(step, step.run().numbers.worst_loss, place=0)
    >>> abs(step_again(point).worst_loss() - point["value"]) < 1e-9
    True
    """
    return OneStepAgain(*(point[name] for name in ("n", "r", "seed", "start_radius", "learning_rate")))


def loss_again(limit: float, point: Mapping[str, Any]) -> Again:
    """Take one seed's step again; the clause is asked about the share of seeds below a limit, of this one alone.

    >>> step = one_step_training(200, seeds=1)
    >>> loss_again(ISOLATED, seed_at(step, step.run().numbers.worst_loss, place=0)).judged
    1.0
    """
    again = step_again(point).worst_loss()
    route = "the gradient as an integral of the characteristic function, the loss at named inputs"
    return Again(again, route, float(again < limit), "loss on the worst input")
