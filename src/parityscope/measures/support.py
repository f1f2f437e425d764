"""Which bits a model names."""

from __future__ import annotations

from jaxtyping import Float, Int64
from torch import Tensor

from parityscope.core.ties import largest


def found_support(weights: Float[Tensor, "*runs n"], k: int) -> Int64[Tensor, "*runs k"]:
    """Return the k positions of largest weight c_j, ascending: what attention says the hidden bits are.

    Where weights are equal (uniform attention, mirror images on the circle) the first positions are named.

    >>> import torch
    >>> found_support(torch.tensor([0.1, 0.9, 0.0, 1.0]), 2).tolist()
    [1, 3]
    """
    return largest(weights, k)
