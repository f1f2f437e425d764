"""What H2's claims share: the trainings, what counts as success, and a seed's step taken again by a second route.

That route has the gradient as an integral and losses at inputs that are named. It shares the draws of a seed with the
trainings and no formula: neither the engines, nor autograd, nor the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from parityscope.core.statistics import Share, wilson_share
from parityscope.models.positions import draw_signs
from parityscope.models.transformer import unit_directions
from parityscope.papers.claim import Again
from parityscope.problems import draw_problems, seeded_generator
from parityscope.runs.training import Training, training
from parityscope.theory import best_uniform_step, one_step_learning_rate, polylog_numbers

_NODES = 300
_STANDARD_DEVIATIONS = 12.0  # beyond, a Gaussian characteristic function is below 1e-31


def _hinge_loss(c: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"], pair: tuple[int, int]) -> float:
    """Return H2's loss at one input of signs: y = −x_i x_j and ŷ = 1 − |Σ_l c_l x_l|.

    >>> _hinge_loss(np.array([0.9, 1.0, 0.1]), np.array([1.0, -1.0, -1.0]), (0, 1))  # y = 1, |v| = 0.2
    0.19999999999999996
    """
    y = -x[pair[0]] * x[pair[1]]
    return max(0.0, 1 - float(y * (1 - abs(c @ x))))


def named_worst_loss(c: Float[np.ndarray, " n"], pair: tuple[int, int]) -> float:
    """Return the larger loss of two inputs: signs that differ on the pair, and equal ones with all others against them.

    For weights that are not negative, and a pair that outweighs the rest, no input loses more.

    >>> round(named_worst_loss(np.array([0.9, 1.0, 0.1]), (0, 1)), 12)
    0.2
    """
    i, j = pair
    differ = np.full(len(c), 1.0 if c[i] >= c[j] else -1.0)
    differ[i], differ[j] = 1, -1
    against = -np.ones(len(c))
    against[i] = against[j] = 1
    return max(_hinge_loss(c, x, pair) for x in (differ, against))


def _score_gradient(c: Float[np.ndarray, " n"], pair: tuple[int, int]) -> Float[np.ndarray, " n"]:
    """Return ∂E[x_i x_j |v|]/∂c_l = E[x_i x_j x_l sign v] with sign v = (2/π) ∫ sin(tv)/t dt, for spread-out weights.

    At uniform attention it is a Fourier coefficient of the majority function:

    >>> from parityscope.theory.h2 import majority_gradient
    >>> exact = majority_gradient(1001)
    >>> pair, other = _score_gradient(np.full(1001, 2 / 1001), (0, 1))[1:3]
    >>> round(float(pair / exact.hidden), 3), round(float(other / exact.other), 3)
    (1.0, 1.0)
    """
    i, j = pair
    others = np.ones(len(c), dtype=bool)
    others[[i, j]] = False
    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    end = _STANDARD_DEVIATIONS / float(np.linalg.norm(c))
    gradient = np.zeros(len(c))
    for node, weight in zip(nodes, node_weights, strict=True):
        t = end * (1 + node) / 2
        sine, cosine = np.sin(t * c), np.cos(t * c)
        rest = np.prod(cosine[others])
        term = -sine[i] * sine[j] * rest * sine / cosine
        term[i], term[j] = sine[j] * cosine[i] * rest, sine[i] * cosine[j] * rest
        gradient += end / 2 * weight / t * term
    return 2 / math.pi * gradient


class OneStepAgain:
    """Both heads of one seed before and after H2's step.

    >>> again = OneStepAgain(n=200, r=200, seed=0, start_radius=0.0, learning_rate=4e4)  # about 11 units of score
    >>> round(float(again.weights().sum()), 9), again.worst_loss() < 0.5
    (2.0, True)
    """

    def __init__(self, n: int, r: int, seed: int, start_radius: float, learning_rate: float) -> None:
        (problem,) = draw_problems(n, 2, [seed])
        self.pair: tuple[int, int] = (problem.support[0], problem.support[1])
        signs = draw_signs(n, r, seeded_generator(seed, "positions")).numpy()
        self.code = signs.astype(np.float64) / math.sqrt(r)
        self.start = start_radius * unit_directions(2, r, seeded_generator(seed, "start")).numpy()
        self.learning_rate = learning_rate

    def weights(self) -> Float[np.ndarray, " n"]:
        """Return c = γ_1 + γ_2 after the step."""
        before = _softmax(self.start @ self.code.T)
        slope = _score_gradient(before.sum(0), self.pair)
        by_score = before * (slope - before @ slope[:, None])  # the softmax's own derivative
        return _softmax((self.start + self.learning_rate * by_score @ self.code) @ self.code.T).sum(0)

    def worst_loss(self) -> float:
        """Return the larger loss of the two inputs that a pair has to fear."""
        return named_worst_loss(self.weights(), self.pair)


def _softmax(scores: Float[np.ndarray, "heads n"]) -> Float[np.ndarray, "heads n"]:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


NEAR_ZERO = 0.1  # our reading of "nearly 0": a twentieth of the largest loss
ISOLATED = 0.5  # less than an eighth of the weight lies off the pair, and every input is classified right
IN_OUR_READING = "in our reading"  # of the abstract: it stands beside every verdict on what it says
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
