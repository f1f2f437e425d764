"""Which bits a model names."""

from __future__ import annotations

from jaxtyping import Float, Int64
from torch import Tensor

from parityscope.core.ties import largest, tolerance


def found_support(weights: Float[Tensor, "*runs n"], k: int) -> Int64[Tensor, "*runs k"]:
    """Return the k positions of largest weight c_j, ascending: what attention says the hidden bits are.

    Where weights are equal (uniform attention, mirror images on the circle) the first positions are named.

    >>> import torch
    >>> found_support(torch.tensor([0.1, 0.9, 0.0, 1.0]), 2).tolist()
    [1, 3]
    """
    return largest(weights, k)


def attended_support(weights: Float[Tensor, "runs n"], at_most: int) -> Int64[Tensor, "runs at_most"]:
    """Return the positions with a weight above ½, ascending, and −1 in the places that are left.

    What attention names when nobody says how many bits there are; of more than `at_most` the heaviest are taken.

    >>> import torch
    >>> attended_support(torch.tensor([[0.1, 0.9, 0.0, 1.0], [0.9, 0.0, 0.1, 0.2]]), 3).tolist()
    [[1, 3, -1], [0, -1, -1]]
    """
    positions = largest(weights, at_most)
    heavy = weights.gather(-1, positions) > 0.5 + tolerance(weights.dtype)
    order = (~heavy).to(positions.dtype).argsort(dim=-1, stable=True)
    return positions.where(heavy, -1).gather(-1, order)
