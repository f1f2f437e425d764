"""H2's one step from exactly uniform attention, by its scores alone: softmax and its substitutes on equal terms.

From uniform attention the step is q = α(p_i + p_j − 2p̄) in both heads, for softmax and for every substitute that starts
uniform, so that all of them are functions of the same scores and differ only in how scores become weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from parityscope.core.ties import SCORE_TIE
from parityscope.models.positions import draw_signs, position_scores
from parityscope.problems import seeded_generator

_Weights = Callable[[Tensor], Tensor]
_BLOCK_ROWS = 2**14


def unit_scores(signs: Int8[Tensor, "n r"]) -> Float[Tensor, " n"]:
    """Return every position's score after a step of one unit; the hidden pair is positions 0 and 1.

    Codes are drawn alike for all positions, so which two are hidden does not matter.

    >>> signs = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.int8)  # mean 0: q = p_1 + p_2
    >>> unit_scores(signs).round(decimals=9).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    r = signs.shape[-1]
    # Sums of single-byte blocks, exact in single precision, keep the code at one byte per sign.
    mean = sum(block.float().sum(0).double() for block in signs.split(_BLOCK_ROWS)) / len(signs)
    query = (signs[0].double() + signs[1].double() - 2 * mean) / math.sqrt(r)
    return position_scores(query[None], signs)[0]


def seeded_scores(n: int, r: int, seed: int) -> Float[Tensor, " n"]:
    """Return `unit_scores` of one seed's random code.

    >>> scores = seeded_scores(1000, 300, seed=0)
    >>> bool(scores[:2].min() > scores[2:].max())
    True
    """
    return unit_scores(draw_signs(n, r, seeded_generator(seed, "positions")))


def _component_wise(offset: float) -> _Weights:
    return lambda scores: 2 * torch.sigmoid(scores - offset)


def substitutes(n: int) -> dict[str, _Weights]:
    """Return c = γ_1 + γ_2 as a function of the scores, by name; at scores 0 each is (nearly) uniform, Σc ≈ 2.

    Linear attention is softmax to first order; component-wise attention is a sigmoid per position, scaled by 1/n or
    shifted by log n as is usual, and once by 2 log n, which starts near zero instead of uniform.

    >>> for name in ("softmax", "linear", "sigmoid/n"):
    ...     name, substitutes(4)[name](torch.zeros(4)).tolist()
    ('softmax', [0.5, 0.5, 0.5, 0.5])
    ('linear', [0.5, 0.5, 0.5, 0.5])
    ('sigmoid/n', [0.5, 0.5, 0.5, 0.5])
    """
    shift = math.log(n)
    return {
        "softmax": lambda scores: 2 * torch.softmax(scores, -1),
        "linear": lambda scores: 2 * (1 + scores) / n,
        "linear, rectified": lambda scores: 2 * (1 + scores).relu() / n,
        "sigmoid/n": lambda scores: 4 * torch.sigmoid(scores) / n,
        "sigmoid, shifted log n": _component_wise(shift),
        "sigmoid, shifted 2 log n": _component_wise(2 * shift),
    }


def least_worst_loss(c: Float[Tensor, " n"]) -> float:
    """Return a lower bound on the largest hinge loss over all inputs, for any weights; the pair is positions 0 and 1.

    Where the label is +1 in H2's sign (x_i = −x_j) the loss |v| reaches |c_i − c_j| + R with R = Σ_{∉B}|c_l|. Elsewhere
    it is 2 − |v|, and the signs outside bring |v| down to |c_i + c_j| − R when that is positive (both exact), and else
    to within the largest single |c_l| of 0.

    >>> least_worst_loss(torch.tensor([1.0, 1.0, 0.0]))
    0.0
    """
    c = c.double()
    rest = c[2:].abs()
    outside, pair = float(rest.sum()), float((c[0] + c[1]).abs())
    # Up to rounding equal means that some input brings |v| to 0.
    smallest = max(0.0, pair - outside) if outside <= pair + SCORE_TIE else float(rest.max())
    return max(float((c[0] - c[1]).abs()) + outside, 2 - smallest, 0.0)


def best_step(scores: Tensor, weights: _Weights, steps: Tensor) -> tuple[float, float]:
    """Return the smallest worst loss over the given step sizes, and the step that gives it.

    >>> scores = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    >>> loss, step = best_step(scores, substitutes(4)["softmax"], torch.tensor([1.0, 5.0, 20.0]))
    >>> loss < 1e-8, step  # the pair's scores are equal, so the longest step is best
    (True, 20.0)
    """
    losses = [least_worst_loss(weights(float(step) * scores)) for step in steps]
    best = min(range(len(losses)), key=losses.__getitem__)
    return losses[best], float(steps[best])


def smallest_code(n: int, seed: int, most: int, loss: float = 0.5) -> int | None:
    """Return the fewest signs per position with which the best single step has a worst loss below `loss`.

    One code of `most` signs is drawn and its first r are used, so that codes are nested; doubling, then bisection.

    >>> [smallest_code(50, seed=0, most=most) is None for most in (8, 200)]  # 8 signs are too few
    [True, False]
    """
    signs = draw_signs(n, most, seeded_generator(seed, "positions"))
    steps = torch.tensor([math.log(n) * part / 4 for part in range(4, 41)])

    def works(r: int) -> bool:
        return best_step(unit_scores(signs[:, :r]), substitutes(n)["softmax"], steps)[0] < loss

    low, high = 0, 8
    while not works(high):
        low, high = high, 2 * high
        if low >= most:
            return None
        high = min(high, most)
    while high - low > max(1, high // 32):
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def fitted_exponent(x: list[float], y: list[float]) -> float:
    """Return the slope of log y against log x by least squares.

    >>> round(fitted_exponent([1.0, 10.0, 100.0], [2.0, 20.0, 200.0]), 9)
    1.0
    """
    log_x, log_y = (torch.tensor(values, dtype=torch.float64).log() for values in (x, y))
    centred = log_x - log_x.mean()
    return float((centred * (log_y - log_y.mean())).sum() / centred.square().sum())
