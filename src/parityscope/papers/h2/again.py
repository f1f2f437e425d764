"""H2's one step by a second route, for replays: the gradient as an integral, and losses at inputs that are named.

It shares the draws of a seed with the trainings and no formula: neither the engines, nor autograd, nor the certificate.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from parityscope.models.positions import draw_signs
from parityscope.models.transformer import unit_directions
from parityscope.problems import draw_problems, seeded_generator

_NODES = 300
_STANDARD_DEVIATIONS = 12.0  # beyond, a Gaussian characteristic function is below 1e-31


def hinge_loss(c: Float[np.ndarray, " n"], x: Float[np.ndarray, " n"], pair: tuple[int, int]) -> float:
    """Return H2's loss at one input of signs: y = −x_i x_j and ŷ = 1 − |Σ_l c_l x_l|.

    >>> hinge_loss(np.array([0.9, 1.0, 0.1]), np.array([1.0, -1.0, -1.0]), (0, 1))  # y = 1, |v| = 0.2
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
    return max(hinge_loss(c, x, pair) for x in (differ, against))


def score_gradient(c: Float[np.ndarray, " n"], pair: tuple[int, int]) -> Float[np.ndarray, " n"]:
    """Return ∂E[x_i x_j |v|]/∂c_l = E[x_i x_j x_l sign v] with sign v = (2/π) ∫ sin(tv)/t dt, for spread-out weights.

    At uniform attention it is a Fourier coefficient of the majority function:

    >>> from parityscope.theory.h2 import majority_gradient
    >>> exact = majority_gradient(1001)
    >>> pair, other = score_gradient(np.full(1001, 2 / 1001), (0, 1))[1:3]
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
        slope = score_gradient(before.sum(0), self.pair)
        by_score = before * (slope - before @ slope[:, None])  # the softmax's own derivative
        return _softmax((self.start + self.learning_rate * by_score @ self.code) @ self.code.T).sum(0)

    def worst_loss(self) -> float:
        """Return the larger loss of the two inputs that a pair has to fear."""
        return named_worst_loss(self.weights(), self.pair)


def _softmax(scores: Float[np.ndarray, "heads n"]) -> Float[np.ndarray, "heads n"]:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)
