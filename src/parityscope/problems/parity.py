"""The k-parity problem: label, sample, enumerate; the law of the bits and label noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Int8
from torch import Tensor

from parityscope.core.errors import InvalidInput

Stream = Literal["support", "positions", "start", "data", "held-out"]
_STREAMS: tuple[Stream, ...] = ("support", "positions", "start", "data", "held-out")


def seeded_generator(seed: int, stream: Stream, *index: int) -> torch.Generator:
    """Return the generator of one seed's `stream`.

    Every random choice of a run (support, position code, start, data, held-out data) has a stream of its own, so that
    changing one of them leaves the others as they were, and a run is the same alone or in a batch. An `index`, such as
    the number of a step, names a stream within the stream.

    >>> a, b = (torch.rand(3, generator=seeded_generator(7, "start")) for _ in range(2))
    >>> bool((a == b).all())
    True
    """
    if seed < 0:
        raise InvalidInput(f"seed must be 0 or more, got {seed}")
    entropy = np.random.SeedSequence([seed, _STREAMS.index(stream), *index]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(entropy) >> 1)


@dataclass(frozen=True)
class Parity:
    """The parity of the bits in a hidden support B: y = Π_{i∈B} (−1)^{x_i}.

    Bits are 0/1 and labels ±1. Positions are 0-based (H1's position j is index j − 1).

    Parameters
    ----------
    n : int
        The number of bits.
    support : tuple of int
        The hidden positions B, in any order.
    bias : float
        The probability that a bit is 1.
    noise : float
        The probability that a drawn label is flipped.

    >>> problem = Parity(n=4, support=(0, 2))
    >>> problem.label(torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])).tolist()
    [1, -1]
    """

    n: int
    support: tuple[int, ...]
    bias: float = 0.5
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InvalidInput(f"n must be at least 1, got {self.n}")
        _check_k(self.n, len(self.support))
        if len(set(self.support)) < len(self.support):
            raise InvalidInput(f"support repeats a position: {','.join(map(str, self.support))}")
        outside = [i for i in self.support if not 0 <= i < self.n]
        if outside:
            raise InvalidInput(f"support position {outside[0]} is out of range: 0 to {self.n - 1} for n = {self.n}")
        if not 0.0 < self.bias < 1.0:
            raise InvalidInput(f"bias must lie strictly between 0 and 1, got {self.bias}")
        if not 0.0 <= self.noise < 0.5:
            raise InvalidInput(f"noise must be at least 0 and below 0.5, got {self.noise}")
        object.__setattr__(self, "support", tuple(sorted(self.support)))

    @property
    def k(self) -> int:
        """The number of hidden bits."""
        return len(self.support)

    @classmethod
    def random(cls, n: int, k: int, generator: torch.Generator, *, bias: float = 0.5, noise: float = 0.0) -> Parity:
        """Draw a support of size k uniformly.

        >>> generator = torch.Generator().manual_seed(0)
        >>> counts = torch.zeros(4)
        >>> for _ in range(400):
        ...     counts += Parity.random(4, 2, generator).mask()
        >>> bool(((counts - 200).abs() < 50).all())  # every position is hidden half of the time: 200 ± 10
        True
        """
        _check_k(n, k)
        drawn = torch.randperm(n, generator=generator)[:k]
        return cls(n, tuple(drawn.tolist()), bias, noise)

    def mask(self) -> Bool[Tensor, " n"]:
        """Return which positions are hidden bits, as booleans of shape (n,)."""
        mask = torch.zeros(self.n, dtype=torch.bool)
        mask[list(self.support)] = True
        return mask

    def label(self, x: Tensor) -> Int8[Tensor, "*batch"]:
        """Return the noiseless labels ±1 of bits of shape (…, n).

        >>> Parity(3, (0, 1, 2)).label(torch.tensor([[1, 1, 1], [0, 1, 1]])).tolist()
        [-1, 1]
        """
        _check_bits(x, self.n)
        ones = x[..., list(self.support)].long().sum(-1)
        return (1 - 2 * (ones % 2)).to(torch.int8)

    def sample(self, count: int, generator: torch.Generator) -> tuple[Int8[Tensor, "count n"], Int8[Tensor, " count"]]:
        """Draw bits and (possibly flipped) labels.

        >>> x, y = Parity(5, (1, 3)).sample(8, torch.Generator().manual_seed(0))
        >>> tuple(x.shape), tuple(y.shape)
        ((8, 5), (8,))
        """
        if count < 1:
            raise InvalidInput(f"the number of samples must be at least 1, got {count}")
        x = (torch.rand(count, self.n, generator=generator) < self.bias).to(torch.int8)
        flipped = torch.rand(count, generator=generator) < self.noise
        return x, torch.where(flipped, -self.label(x), self.label(x))

    def enumerate(self, chunk: int = 2**16) -> Iterator[tuple[Int8[Tensor, "chunk n"], Int8[Tensor, " chunk"]]]:
        """Yield all 2^n inputs with their noiseless labels, at most `chunk` rows at a time.

        Row number `index` has bits x_j = (index >> j) & 1.

        >>> sum(len(x) for x, _ in Parity(10, (0,)).enumerate(chunk=100))
        1024
        """
        for start in range(0, 2**self.n, chunk):
            x = bits_of(torch.arange(start, min(start + chunk, 2**self.n)), self.n)
            yield x, self.label(x)


def bits_of(index: Tensor, n: int) -> Int8[Tensor, "count n"]:
    """Return the n low bits of each index, lowest first: x_j = (index >> j) & 1.

    >>> bits_of(torch.tensor([6]), 4).tolist()
    [[0, 1, 1, 0]]
    """
    return ((index[:, None] >> torch.arange(n)) & 1).to(torch.int8)


def draw_problems(n: int, k: int, seeds: Sequence[int], *, bias: float = 0.5, noise: float = 0.0) -> list[Parity]:
    """Draw one problem per seed, each with the support of its own seed.

    Parameters
    ----------
    n, k : int
        Bits, and hidden bits.
    seeds : sequence of int
        One problem each; a seed's support does not depend on the others.
    bias, noise : float
        As in `Parity`.

    Returns
    -------
    list of Parity

    >>> draw_problems(20, 3, [4]) == draw_problems(20, 3, range(8))[4:5]
    True
    """
    return [Parity.random(n, k, seeded_generator(seed, "support"), bias=bias, noise=noise) for seed in seeds]


def draw_examples(
    problems: Sequence[Parity], count: int, generators: Sequence[torch.Generator]
) -> tuple[Int8[Tensor, "runs count n"], Int8[Tensor, "runs count"]]:
    """Draw every problem's own examples, each from its own generator.

    >>> problems, seeds = draw_problems(20, 3, range(2)), range(2)
    >>> x, y = draw_examples(problems, 5, [seeded_generator(seed, "data") for seed in seeds])
    >>> tuple(x.shape), bool((problems[1].label(x[1]) == y[1]).all())
    ((2, 5, 20), True)
    """
    drawn = [problem.sample(count, generator) for problem, generator in zip(problems, generators, strict=True)]
    return torch.stack([x for x, _ in drawn]), torch.stack([y for _, y in drawn])


def _check_k(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise InvalidInput(f"k must lie between 1 and n = {n}, got {k}")


def _check_bits(x: Tensor, n: int) -> None:
    if x.shape[-1] != n:
        raise InvalidInput(f"inputs must have n = {n} bits in the last dimension, got {x.shape[-1]}")
    if x.is_floating_point() and bool(torch.isnan(x).any()):
        raise InvalidInput("inputs contain NaN; bits must be 0 or 1")
    wrong = x[(x != 0) & (x != 1)]
    if wrong.numel():
        raise InvalidInput(f"bits must be 0 or 1, got {wrong.flatten()[0].item()}")
