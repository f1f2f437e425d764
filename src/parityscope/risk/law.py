"""What the engines need to know of the problems: hidden masks, bit bias and label noise, one run axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.problems import Parity


class Law(NamedTuple):
    """The law of (x, y): y is the parity of the masked bits, P(x_j = 1) = bias, labels flip with P = noise.

    >>> law = law_of(Parity(4, (1, 3), noise=0.1))
    >>> law.mask.tolist(), law.bias, law.noise, law.n
    ([False, True, False, True], 0.5, 0.1, 4)
    """

    mask: Bool[Tensor, "*runs n"]
    bias: float
    noise: float

    @property
    def n(self) -> int:
        """The number of bits."""
        return int(self.mask.shape[-1])


@lru_cache(maxsize=256)
def _law_of_one(problem: Parity) -> Law:
    """Return the same law for every step of a training: to make a mask takes as long as a small model does."""
    return Law(problem.mask(), problem.bias, problem.noise)


Problems = Parity | Sequence[Parity] | Law


def law_of(problem: Problems) -> Law:
    """Return the law of one problem, or of one problem per run (same n, bias and noise); a law is its own.

    >>> tuple(law_of([Parity(5, (0,)), Parity(5, (3,))]).mask.shape)
    (2, 5)
    """
    if isinstance(problem, Law):
        return problem
    if isinstance(problem, Parity):
        return _law_of_one(problem)
    if not problem:
        raise InvalidInput("the list of problems is empty: give one problem per run")
    for p in problem:
        if not isinstance(p, Parity):
            raise InvalidInput(f"a problem must be a Parity, such as Parity(20, (1, 2, 3)), got {p!r:.60}")
    first = problem[0]
    if any((p.n, p.bias, p.noise) != (first.n, first.bias, first.noise) for p in problem):
        raise InvalidInput("the problems of one batch must share n, bias and noise")
    return Law(torch.stack([p.mask() for p in problem]), first.bias, first.noise)
