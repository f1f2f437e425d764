"""One gradient at uniform attention from N examples: streamed, eight bits to the byte, memory bounded.

No example is kept: a block is drawn as random bytes, its share of the gradient is added, and it is gone. The same pass
reads the gradient off at any number of smaller N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import largest
from parityscope.models import positions
from parityscope.problems import Parity, seeded_generator
from parityscope.theory import wide_phase

_BLOCK_BITS = 2**22
_ENOUGH = 0.9  # of the trials


def streamed_gradients(
    problem: Parity, counts: Sequence[int], generator: torch.Generator, *, two_neuron: bool = False
) -> Float[Tensor, "counts n"]:
    """Return the ascent direction of (1/N) Σ yŷ at uniform attention, for every N in `counts`.

    Entry l is the mean of y·w·s_l, s = 1 − 2·bit: with w = sign Σs for H2's two-neuron readout |v| − 1, and otherwise
    w = sin(πk/2 − (πλ/2n)·Σs) for the bounded readout with its phase widened to λ.

    >>> gradients = streamed_gradients(Parity(6, (1, 4)), [100, 4000], torch.Generator().manual_seed(0))
    >>> sorted(gradients[1].topk(2).indices.tolist())
    [1, 4]
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

    >>> gradients = torch.tensor([[0.9, 0.1, 0.8], [0.1, 0.9, 0.8]])
    >>> named_by_one_gradient(gradients, Parity(3, (0, 2))).tolist()
    [True, False]
    """
    # Blocks of examples were added up in single precision, so that is how well equal entries agree.
    return (largest(gradients.float(), problem.k) == torch.tensor(problem.support)).all(-1)


def through_code(gradients: Float[Tensor, "counts n"], code: Float[Tensor, "n r"]) -> Float[Tensor, "counts n"]:
    """Return the scores one step gives when a head has r numbers: P Pᵀ(g − ḡ).

    >>> through_code(torch.tensor([[3.0, 0.0, 0.0]]), torch.eye(3)).tolist()  # a number per position: only centred
    [[2.0, -1.0, -1.0]]
    """
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
        """Sum up trials (log-interpolated).

        >>> SmallestSamples.of([10, 1000], torch.tensor([[False, True]])).samples  # 10 · 100^0.9
        631
        """
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

    >>> named_in_trials(5, 2, trials=2, counts=[1, 1000]).tolist()
    [[False, True], [False, True]]
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
    """Return the smallest N with which one gradient names all hidden bits in 90 % of trials; `named_in_trials` has all.

    >>> found = smallest_samples(10, 2, trials=20, counts=[20, 80, 320])
    >>> 20 < found.samples < 320, found.shares[0] < found.shares[-1]
    (True, True)
    """
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
