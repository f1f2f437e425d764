"""Frozen position codes: one row of r numbers per position, shape (n, r)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.errors import InvalidInput


def circle(n: int) -> Float[Tensor, "n 2"]:
    """Return H1's positions on the circle, [sin(2πj/n), cos(2πj/n)] for j = 1 … n.

    >>> circle(4).round(decimals=3).abs().tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
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
    """Return the first `count` harmonics of the circle, [sin(2πhj/n), cos(2πhj/n)] for h = 1 … count.

    >>> tuple(harmonics(12, 4).shape)
    (12, 8)
    """
    angle = 2 * math.pi * torch.arange(1, n + 1, dtype=torch.float64) / n
    waves = angle[:, None] * torch.arange(1, count + 1)  # (n, count)
    return torch.stack([waves.sin(), waves.cos()], dim=-1).reshape(n, 2 * count)


def random_signs(n: int, r: int, generator: torch.Generator) -> Float[Tensor, "n r"]:
    """Return random signs ±1/√r: unit vectors that are nearly orthogonal once r ≫ log n.

    >>> random_signs(5, 4, torch.Generator().manual_seed(0)).square().sum(-1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    if n > 2**r:
        raise InvalidInput(f"{r} signs tell at most {2**r} positions apart, got n = {n}")
    signs = _draw_signs(n, r, generator)
    # Two equal rows could never be told apart, so repeated ones are drawn again (only short codes ever need it).
    while len(repeated := _repeated_rows(signs)):
        signs[repeated] = _draw_signs(len(repeated), r, generator)
    return signs / math.sqrt(r)


def _draw_signs(n: int, r: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (n, r), generator=generator, dtype=torch.float64) * 2 - 1


def _repeated_rows(rows: Tensor) -> Tensor:
    """Return the indices of rows that occurred before."""
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    order = group.argsort(stable=True)
    repeats = group[order][1:] == group[order][:-1]
    return order[1:][repeats]


def orthogonal(n: int) -> Float[Tensor, "n n"]:
    """Return one free coordinate per position: a head then trains one logit per position."""
    return torch.eye(n, dtype=torch.float64)


def default_numbers_per_head(n: int) -> int:
    """Return 8⌈log₂ n⌉, the length of the default random-sign code (at least 8).

    >>> [default_numbers_per_head(n) for n in (1, 2, 20, 1000)]
    [8, 8, 40, 80]
    """
    return 8 * max(1, math.ceil(math.log2(n)))
