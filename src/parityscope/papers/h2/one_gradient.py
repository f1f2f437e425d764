"""H2's one step from exactly uniform attention: by its scores alone, and one gradient from N examples.

The step is q = α(p_i + p_j − 2p̄) in both heads, for softmax and for every substitute that starts uniform, so that all
of them are functions of the same scores and differ only in how scores become weights.

Of examples none is kept: a block is drawn as random bytes, its share of the gradient is added, and it is gone. The same
pass reads the gradient off at any number of smaller N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int8
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import SCORE_TIE, largest
from parityscope.models import positions
from parityscope.models.positions import draw_signs, position_scores
from parityscope.problems import Parity, seeded_generator
from parityscope.theory import wide_phase

_Weights = Callable[[Tensor], Tensor]
_BLOCK_ROWS = 2**14


def unit_scores(signs: Int8[Tensor, "n r"]) -> Float[Tensor, " n"]:
    """Return every position's score after a step of one unit; the hidden pair is positions 0 and 1.

    Codes are drawn alike for all positions, so which two are hidden does not matter.
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
    """
    c = c.double()
    rest = c[2:].abs()
    outside, pair = float(rest.sum()), float((c[0] + c[1]).abs())
    # Up to rounding equal means that some input brings |v| to 0.
    smallest = max(0.0, pair - outside) if outside <= pair + SCORE_TIE else float(rest.max())
    return max(float((c[0] - c[1]).abs()) + outside, 2 - smallest, 0.0)


def _best_step(scores: Tensor, weights: _Weights, steps: Tensor) -> tuple[float, float]:
    """Return the smallest worst loss over the given step sizes, and the step that gives it.

    >>> scores = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    >>> loss, step = _best_step(scores, substitutes(4)["softmax"], torch.tensor([1.0, 5.0, 20.0]))
    >>> loss < 1e-8, step  # the pair's scores are equal, so the longest step is best
    (True, 20.0)
    """
    losses = [least_worst_loss(weights(float(step) * scores)) for step in steps]
    best = min(range(len(losses)), key=losses.__getitem__)
    return losses[best], float(steps[best])


def smallest_code(n: int, seed: int, most: int, loss: float = 0.5) -> int | None:
    """Return the fewest signs per position with which the best single step has a worst loss below `loss`.

    One code of `most` signs is drawn and its first r are used, so that codes are nested; doubling, then bisection.
    """
    signs = draw_signs(n, most, seeded_generator(seed, "positions"))
    steps = torch.tensor([math.log(n) * part / 4 for part in range(4, 41)])

    def works(r: int) -> bool:
        return _best_step(unit_scores(signs[:, :r]), substitutes(n)["softmax"], steps)[0] < loss

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


def best_step_loss(n: int, r: int, seed: int) -> float:
    """Return the least that the worst input loses after a single step, over 37 lengths, with a code of r signs.

    >>> best_step_loss(1000, 400, seed=0) < 0.1
    True
    """
    signs = draw_signs(n, r, seeded_generator(seed, "positions"))
    steps = torch.tensor([math.log(n) * part / 4 for part in range(4, 41)])
    return _best_step(unit_scores(signs), substitutes(n)["softmax"], steps)[0]


def fitted_exponent(x: list[float], y: list[float]) -> float:
    """Return the slope of log y against log x by least squares.

    >>> round(fitted_exponent([1.0, 10.0, 100.0], [2.0, 20.0, 200.0]), 9)
    1.0
    """
    log_x, log_y = (torch.tensor(values, dtype=torch.float64).log() for values in (x, y))
    centred = log_x - log_x.mean()
    return float((centred * (log_y - log_y.mean())).sum() / centred.square().sum())


_BLOCK_BITS = 2**22
_ENOUGH = 0.9  # of the trials


def streamed_gradients(
    problem: Parity, counts: Sequence[int], generator: torch.Generator, *, two_neuron: bool = False
) -> Float[Tensor, "counts n"]:
    """Return the ascent direction of (1/N) Σ yŷ at uniform attention, for every N in `counts`.

    Entry l is the mean of y·w·s_l, s = 1 − 2·bit: with w = sign Σs for H2's two-neuron readout |v| − 1, and otherwise
    w = sin(πk/2 − (πλ/2n)·Σs) for the bounded readout with its phase widened to λ.
    """
    if problem.bias != 0.5:
        raise InvalidInput(f"examples are streamed as fair bits: bias must be 0.5, got {problem.bias}")
    if two_neuron and problem.k != 2:
        raise InvalidInput(f"the two-neuron readout is for pairs: k must be 2, got {problem.k}")
    total = torch.zeros(problem.n, dtype=torch.float64)
    read: dict[int, Tensor] = {}
    wanted, done = sorted(set(counts)), 0
    for count in wanted:
        for rows in _blocks(count - done, problem.n):
            total += _block_sum(problem, rows, generator, two_neuron)
        done = count
        read[count] = total / count
    return torch.stack([read[count] for count in counts])


def _blocks(rows: int, n: int) -> Iterator[int]:
    most = max(1, _BLOCK_BITS // n)
    for start in range(0, rows, most):
        yield min(most, rows - start)


def _block_sum(problem: Parity, rows: int, generator: torch.Generator, two_neuron: bool) -> Tensor:
    n, k = problem.n, problem.k
    packed = torch.randint(0, 256, (rows, (n + 7) // 8), generator=generator, dtype=torch.uint8)
    bits = torch.from_numpy(np.unpackbits(packed.numpy(), axis=1, count=n))
    y = problem.label(bits)
    if problem.noise:
        y = torch.where(torch.rand(rows, generator=generator) < problem.noise, -y, y)
    sum_of_signs = n - 2 * bits.sum(-1, dtype=torch.float64)
    phase = math.pi * wide_phase(n, k) / (2 * n)
    weight = sum_of_signs.sign() if two_neuron else (math.pi * k / 2 - phase * sum_of_signs).sin()
    # Single precision for the sum over a block: its rounding is far below the noise of the examples.
    signs = 1 - 2 * bits.to(torch.float32)
    return ((y * weight).to(torch.float32) @ signs).double()


def named_by_one_gradient(gradients: Float[Tensor, "counts n"], problem: Parity) -> Bool[Tensor, " counts"]:
    """Say for every gradient whether its k largest entries are the hidden bits.

    From few examples many entries are equal; then the first positions are named, hidden or not.
    """
    # Blocks of examples were added up in single precision, so that is how well equal entries agree.
    return (largest(gradients.float(), problem.k) == torch.tensor(problem.support)).all(-1)


def through_code(gradients: Float[Tensor, "counts n"], code: Float[Tensor, "n r"]) -> Float[Tensor, "counts n"]:
    """Return the scores one step gives when a head has r numbers: P Pᵀ(g − ḡ)."""
    centred = gradients - gradients.mean(-1, keepdim=True)
    return (centred @ code) @ code.T


class SmallestSamples(NamedTuple):
    """The smallest N of a geometric grid from which 90 % of trials succeed, and the share at every N.

    >>> smallest_samples(5, 2, trials=4, counts=[1, 1000])  # 1000^0.9
    SmallestSamples(samples=501, counts=(1, 1000), shares=(0.0, 1.0))
    """

    samples: int | None
    counts: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, counts: Sequence[int], named: Bool[Tensor, "trials counts"]) -> SmallestSamples:
        """Sum up trials (log-interpolated)."""
        shares = named.float().mean(0).tolist()
        return cls(_crossing(counts, shares), tuple(counts), tuple(shares))


def counts_around(predicted: float) -> list[int]:
    """Return numbers of examples to try, from a quarter of the predicted one to nearly three times it.

    >>> counts_around(1000)
    [250, 350, 500, 700, 1000, 1400, 2000, 2800]
    """
    return [int(factor * predicted) for factor in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)]


def named_in_trials(
    n: int,
    k: int,
    trials: int,
    counts: Sequence[int],
    *,
    r: int | None = None,
    two_neuron: bool = False,
    noise: float = 0.0,
) -> Bool[Tensor, "trials counts"]:
    """Say for every trial and every N whether one gradient names all hidden bits.

    Every trial has its own support, code and examples, from its seed, and is read off at all counts in one pass.
    """
    named = torch.zeros(trials, len(counts), dtype=torch.bool)
    for seed in range(trials):
        problem = Parity.random(n, k, seeded_generator(seed, "support"), noise=noise)
        gradients = streamed_gradients(problem, counts, seeded_generator(seed, "data"), two_neuron=two_neuron)
        if r is not None:
            gradients = through_code(gradients, positions.random_signs(n, r, seeded_generator(seed, "positions")))
        named[seed] = named_by_one_gradient(gradients, problem)
    return named


def smallest_samples(n: int, k: int, trials: int, counts: Sequence[int], **settings: Any) -> SmallestSamples:
    """Return the smallest N with which one gradient recovers the support in 90 % of trials."""
    return SmallestSamples.of(counts, named_in_trials(n, k, trials, counts, **settings))


def _crossing(counts: Sequence[int], shares: Sequence[float]) -> int | None:
    """Return where the share last rises through 90 %, interpolated in log N; None when it ends below."""
    below = [place for place, share in enumerate(shares) if share < _ENOUGH]
    if not below:
        return counts[0]
    if below[-1] == len(shares) - 1:
        return None
    low, high = below[-1], below[-1] + 1
    part = (_ENOUGH - shares[low]) / (shares[high] - shares[low])
    return round(math.exp((1 - part) * math.log(counts[low]) + part * math.log(counts[high])))
