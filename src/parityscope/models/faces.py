"""Which positions a code can hold: B can be attended to, and nothing else, iff it is a face of the codes' polytope.

Scores ⟨p_j, q⟩ that are equal on B and smaller elsewhere exist iff the flat through the codes of B (their affine hull)
misses the polytope of all other codes. The distance between the two is the largest margin that a q of length 1 has, and
q is the direction of the shortest line between them: that of the point nearest to 0 of the polytope of (p̄_B − p_j)N,
where N spans the directions that are equal on B. Wolfe's algorithm finds it in finitely many corrections of a set of
corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models.positions import floating

_Floats = NDArray[np.float64]
_ROUNDING = 64 * float(np.finfo(float).eps)  # of a margin, relative to the size of the code
_RELATIVE = 1e-9  # what a corner must be nearer by to count


@dataclass(frozen=True)
class Face:
    """Whether a support is a face of a code, and how clearly. True in a condition if it is.

    Parameters
    ----------
    margin : float
        How far the scores of a q of length 1 can stay below those of B, divided by the largest distance of a code from
        the middle of B; 0 if it is no face, or by so little that double precision cannot tell.
    q : Tensor (r,)
        The direction of length 1 with that margin: equal scores on B, smaller ones elsewhere. Zeros if there is none.

    >>> bool(Face(0.0, torch.zeros(2)))
    False
    """

    margin: float
    q: Float[Tensor, " r"]

    def __bool__(self) -> bool:
        return self.margin > 0


def is_face(code: Tensor, support: Sequence[int]) -> Face:
    """Say whether the positions of a support are a face of the code's polytope: whether one head can hold them at all.

    Two numbers hold neighbours on the circle and no other pair; four, two harmonics, hold every pair.

    >>> from parityscope.models.positions import circle, harmonics
    >>> [bool(is_face(circle(8), pair)) for pair in ((2, 3), (2, 5))], bool(is_face(harmonics(8, 2), (2, 5)))
    ([True, False], True)

    Parameters
    ----------
    code : Tensor (n, r)
        One row of numbers per position, as in `parityscope.models.positions`.
    support : sequence of int
        The positions B.
    """
    if code.dim() != 2:
        raise InvalidInput(f"a code has one row of numbers per position, got a tensor of shape {tuple(code.shape)}")
    numbers = floating(code).double().numpy()
    n, inside = len(numbers), sorted(set(support))
    if len(inside) != len(support) or not inside or not 0 <= inside[0] <= inside[-1] < n:
        raise InvalidInput(f"a support is some different positions from 0 to {n - 1}, got {list(support)}")
    hidden, others = numbers[inside], np.delete(numbers, inside, axis=0)
    middle = hidden.mean(0)
    equal = _equal_on(hidden - middle)
    below = (middle - others) @ equal
    size = float(np.linalg.norm(numbers - middle, axis=1).max(initial=0.0))
    if not len(others):
        return Face(1.0, torch.zeros(numbers.shape[1], dtype=torch.float64))
    q = equal @ nearest_to_zero(below)[0]
    # What counts is the margin of the q that is returned, computed from the code itself.
    margin = float((hidden @ q).min() - (others @ q).max())
    if margin > _ROUNDING * size:
        return Face(margin / size, torch.from_numpy(q))
    return Face(0.0, torch.zeros(numbers.shape[1], dtype=torch.float64))


def _equal_on(differences: _Floats) -> _Floats:
    """Return an orthonormal basis (r, r − rank) of the directions in which all hidden codes are equal."""
    _, sizes, basis = np.linalg.svd(differences, full_matrices=True)
    rank = int((sizes > _ROUNDING * max(1.0, float(sizes.max(initial=0.0)))).sum())
    return basis[rank:].T


def nearest_to_zero(points: _Floats) -> tuple[_Floats, float]:
    """Return the direction and the distance of the point of a polytope that is nearest to 0, by Wolfe's algorithm.

    Where the polytope (of some points, one a row) holds 0, the distance is 0 up to rounding.

    >>> direction, distance = nearest_to_zero(np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 0.0]]))
    >>> direction.tolist(), distance
    ([1.0, 0.0], 1.0)
    """
    lengths = np.linalg.norm(points, axis=1)
    rounding = _ROUNDING * float(lengths.max())
    corners, shares = [int(lengths.argmin())], np.ones(1)
    direction, distance = _nearest_of_flat(points[corners])
    while distance > rounding:
        along = points @ direction
        new = int(along.argmin())
        if along[new] > (1 - _RELATIVE) * distance - rounding or new in corners:
            break
        corners, shares = _with_corner(points, [*corners, new], np.append(shares, 0.0))
        nearer, shorter = _nearest_of_flat(points[corners])
        if shorter >= distance:  # nothing but rounding is left
            break
        direction, distance = nearer, shorter
    return direction, distance


def _with_corner(points: _Floats, corners: list[int], shares: _Floats) -> tuple[list[int], _Floats]:
    """Drop corners until the point of their flat that is nearest to 0 lies between them; return its shares."""
    while True:
        wanted = _affine_shares(points[corners])
        if (wanted > 0).all():
            return corners, wanted
        # Go towards that point until a corner's share is used up.
        room = np.where(wanted < shares, shares / np.maximum(shares - wanted, np.finfo(float).tiny), np.inf)
        first = int(np.where(wanted <= 0, room, np.inf).argmin())
        shares = np.delete(shares + min(1.0, room[first]) * (wanted - shares), first)
        corners = corners[:first] + corners[first + 1 :]


def _affine_shares(corners: _Floats) -> _Floats:
    """Return the shares, of sum 1 and any sign, of the point of the flat through some corners that is nearest to 0."""
    away, *_ = np.linalg.lstsq((corners[1:] - corners[0]).T, -corners[0], rcond=None)
    return np.concatenate([[1 - away.sum()], away])


def _nearest_of_flat(corners: _Floats) -> tuple[_Floats, float]:
    """Return the direction and the distance of the point of the flat through some corners that is nearest to 0.

    The point itself is a difference of large numbers; its direction is made orthogonal to the flat again and again,
    so that a distance is known to the rounding of the corners, not to the root of it.
    """
    differences = (corners[1:] - corners[0]).T
    flat = np.linalg.qr(differences / np.maximum(np.linalg.norm(differences, axis=0), np.finfo(float).tiny))[0]
    direction = corners[0] / max(float(np.linalg.norm(corners[0])), np.finfo(float).tiny)
    for _ in range(3):
        direction = direction - flat @ (flat.T @ direction)
        length = float(np.linalg.norm(direction))
        if length <= _ROUNDING:  # the flat goes through 0
            return direction, 0.0
        direction = direction / length
    return direction, float(corners[0] @ direction)
