"""Frozen position codes: one row of r numbers per position, shape (n, r)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int8, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput

_KEY_SIGNS = 64  # what fits into one whole number
_BLOCK_NUMBERS = 2**17


def circle(n: int) -> Float[Tensor, "n 2"]:
    """Return H1's positions on the circle, [sin(2πj/n), cos(2πj/n)] for j = 1 … n."""
    # H1, Eq. (3); the paper's position j is index j − 1.
    return harmonics(n, 1)


def circle_as_coded(n: int) -> Float[Tensor, "n 2"]:
    """Return the positions of H1's published code, [cos(2πj/n), sin(2πj/n)] for j = 0 … n−1.

    Differs from H1's text by a rotation and a swap of the two coordinates; since starts are uniform on the
    circle, the two are the same model in law.
    """
    angle = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    return torch.stack([angle.cos(), angle.sin()], dim=-1)


def harmonics(n: int, count: int) -> Float[Tensor, "n r"]:
    """Return the first `count` harmonics of the circle, [sin(2πhj/n), cos(2πhj/n)] for h = 1 … count."""
    angle = 2 * math.pi * torch.arange(1, n + 1, dtype=torch.float64) / n
    waves = angle[:, None] * torch.arange(1, count + 1)  # (n, count)
    return torch.stack([waves.sin(), waves.cos()], dim=-1).reshape(n, 2 * count)


def random_signs(n: int, r: int, generator: torch.Generator) -> Float[Tensor, "n r"]:
    """Return random signs ±1/√r: unit vectors that are nearly orthogonal once r ≫ log n."""
    return draw_signs(n, r, generator).double() / math.sqrt(r)


def draw_signs(n: int, r: int, generator: torch.Generator) -> Int8[Tensor, "n r"]:
    """Return n different rows of r random signs, one byte each."""
    if n > 2**r:
        raise InvalidInput(f"{r} signs tell at most {2**r} positions apart, got n = {n}")
    signs = _draw_signs(n, r, generator)
    # Two equal rows could never be told apart, so repeated ones are drawn again (only short codes ever need it).
    while len(repeated := _repeated_rows(signs)):
        signs[repeated] = _draw_signs(len(repeated), r, generator)
    return signs


def _draw_signs(n: int, r: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (n, r), generator=generator, dtype=torch.int8) * 2 - 1


def _repeated_rows(rows: Tensor) -> Tensor:
    """Return the indices of rows that occurred before."""
    # Equal rows have equal beginnings, and whole numbers sort fast: long rows are compared only if beginnings repeat.
    start = np.zeros((len(rows), _KEY_SIGNS), dtype=bool)
    start[:, : rows.shape[1]] = rows[:, :_KEY_SIGNS].numpy() > 0
    key = torch.from_numpy(np.packbits(start, axis=1).view(np.int64)[:, 0])
    _, group, counts = torch.unique(key, return_inverse=True, return_counts=True)
    if rows.shape[1] > _KEY_SIGNS and bool((counts > 1).any()):
        _, group = torch.unique(rows, dim=0, return_inverse=True)
    order = group.argsort(stable=True)
    repeats = group[order][1:] == group[order][:-1]
    return order[1:][repeats]


def gaussian(n: int, r: int, generator: torch.Generator) -> Float[Tensor, "n r"]:
    """Return random unit vectors: Gaussian numbers, every row scaled to length 1."""
    return torch.nn.functional.normalize(torch.randn(n, r, generator=generator, dtype=torch.float64), dim=-1)


class _SignScores(torch.autograd.Function):
    """directions @ signsᵀ/√r, the signs turned into floating point a few rows at a time, which stay in the cache."""

    @staticmethod
    def forward(ctx: Any, directions: Tensor, signs: Tensor) -> Tensor:
        ctx.save_for_backward(signs)
        n, r = signs.shape[-2:]
        scores = directions.new_empty(*directions.shape[:-1], n)
        for run, rows, block in _blocks(directions, signs):
            torch.mm(directions[run], block.T, out=scores[run][:, rows])
        return scores / math.sqrt(r)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (signs,), (gradient,) = ctx.saved_tensors, gradients
        r = signs.shape[-1]
        total = gradient.new_zeros(*gradient.shape[:-1], r)
        for run, rows, block in _blocks(gradient, signs):
            total[run].addmm_(gradient[run][:, rows], block)
        return total / math.sqrt(r), None


def _blocks(batch: Tensor, signs: Tensor) -> Iterator[tuple[tuple[int, ...], slice, Tensor]]:
    """Yield every run's place in the batch with some rows of its code as numbers; codes may be shared by all runs."""
    n, r = signs.shape[-2:]
    rows = max(1, _BLOCK_NUMBERS // r)
    for run in np.ndindex(*batch.shape[:-2]):
        code = signs[run] if signs.dim() > 2 else signs
        for start in range(0, n, rows):
            yield run, slice(start, start + rows), code[start : start + rows].to(batch.dtype)


def position_scores(directions: Float[Tensor, "*runs heads r"], code: Tensor) -> Float[Tensor, "*runs heads n"]:
    """Return s_j = ⟨q, p_j⟩ of every head; a code of one-byte signs (n, r) stands for ±1/√r.

    >>> signs = draw_signs(6, 4, torch.Generator().manual_seed(0))
    >>> q = torch.ones(1, 4, dtype=torch.float64)
    >>> torch.equal(position_scores(q, signs), position_scores(q, signs.double() / 2))
    True
    """
    if code.dtype == torch.int8:
        return _SignScores.apply(directions, code)
    return directions @ code.transpose(-1, -2)


def weighted_gram(
    code: Float[Tensor, "*#runs n r"] | Int8[Tensor, "*#runs n r"], weights: Float[Tensor, "runs n"]
) -> Float[Tensor, "runs lifted lifted"]:
    """Return Σ_j w_j p̃_j p̃_jᵀ of every run, p̃_j = (p_j, 1): a code with one more number that all positions share.

    >>> weighted_gram(orthogonal(2), torch.tensor([[1.0, 3.0]], dtype=torch.float64))[0].tolist()
    [[1.0, 0.0, 1.0], [0.0, 3.0, 3.0], [1.0, 3.0, 4.0]]
    """
    runs, (n, r) = len(weights), code.shape[-2:]
    total = weights.new_zeros(runs, r + 1, r + 1)
    # A few runs, or a few rows of one, at a time: a weighted copy of all codes would be as large as they are.
    some, rows = max(1, _BLOCK_NUMBERS // (n * r)), max(r, _BLOCK_NUMBERS // r)
    for first in range(0, runs, some):
        for start in range(0, n, rows):
            own = code[first : first + some] if code.dim() == 3 else code
            block = floating(own[..., start : start + rows, :])
            shares = weights[first : first + some, start : start + rows, None]
            weighted = shares * block
            total[first : first + some, :r, :r] += weighted.transpose(-1, -2) @ block
            total[first : first + some, :r, r] += weighted.sum(-2)
    total[:, r, :r], total[:, r, r] = total[:, :r, r], weights.sum(-1)
    return total


def floating(code: Float[Tensor, "*runs n r"] | Int8[Tensor, "*runs n r"]) -> Float[Tensor, "*runs n r"]:
    """Return the code in floating point."""
    return code.double() / math.sqrt(code.shape[-1]) if code.dtype == torch.int8 else code


def lifted_code(code: Float[Tensor, "n r"] | Int8[Tensor, "n r"]) -> Float[Tensor, "n lifted"]:
    """Return p̃_j = (p_j, 1): the code with one more number that all positions share.

    >>> lifted_code(orthogonal(2)).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    return torch.cat([floating(code), torch.ones(len(code), 1, dtype=torch.float64)], dim=-1)


def sent_back(
    gradient: Float[Tensor, "runs n"], code: Float[Tensor, "*#runs n r"] | Int8[Tensor, "*#runs n r"]
) -> Float[Tensor, "runs r"]:
    """Return Pᵀg of every run, what a gradient at the scores is at the numbers: the derivative of ⟨g, Pq⟩.

    >>> sent_back(torch.tensor([[1.0, 2.0]], dtype=torch.float64), orthogonal(2)).tolist()
    [[1.0, 2.0]]
    """
    with torch.enable_grad():
        q = gradient.new_zeros(len(gradient), 1, code.shape[-1], requires_grad=True)
        (back,) = torch.autograd.grad((position_scores(q, code)[:, 0] * gradient).sum(), q)
    return back[:, 0]


def codes_of(
    code: Float[Tensor, "*#runs n r"] | Int8[Tensor, "*#runs n r"], runs: Int64[Tensor, " some"]
) -> Float[Tensor, "*#some n r"] | Int8[Tensor, "*#some n r"]:
    """Return the codes of some runs; one that all share, and all of them, are not copied.

    >>> tuple(codes_of(torch.zeros(3, 5, 2), torch.tensor([0, 2])).shape)
    (2, 5, 2)
    """
    return code if code.dim() == 2 or len(runs) == len(code) else code[runs]


def orthogonal(n: int) -> Float[Tensor, "n n"]:
    """Return one free coordinate per position: a head then trains one logit per position."""
    return torch.eye(n, dtype=torch.float64)


def default_numbers_per_head(n: int) -> int:
    """Return 8⌈log₂ n⌉, the length of the default random-sign code (at least 8).

    >>> [default_numbers_per_head(n) for n in (1, 2, 20, 1000)]
    [8, 8, 40, 80]
    """
    return 8 * max(1, math.ceil(math.log2(n)))
