"""Which positions a code can hold: B can be attended to, and nothing else, iff it is a face of the codes' polytope.

Scores ⟨p_j, q⟩ that are equal on B and smaller elsewhere exist iff the flat through the codes of B (their affine hull)
misses the polytope of all other codes. The distance between the two is the largest margin that a q of length 1 has, and
q is the direction of the shortest line between them: that of the point nearest to 0 of the polytope of (p̄_B − p_j)N,
where N spans the directions that are equal on B. Wolfe's algorithm finds it in finitely many corrections of a set of
corners.

A code is known to rounding only, and so is the answer: it is a face by a margin above that, or surely none, since 0 is
deep inside that polytope, or neither is shown.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models.positions import floating

_Floats = NDArray[np.float64]
_ROUNDING = 64 * float(np.finfo(float).eps)  # of a margin, relative to the size of the code
_RELATIVE = 1e-9  # what a corner must be nearer by to count
_UNEQUAL = 1 / 8  # of the margin: what scores on B may differ by, which is their rounding
_DEEP = 8  # times the rounding: how far inside a polytope 0 must be to stay there when its corners are rounded


@dataclass(frozen=True)
class Face:
    """Whether a support is a face of a code, and how clearly. True in a condition if it is shown to be one.

    Parameters
    ----------
    margin : float
        How far the scores of a q of length 1 can stay below those of B, divided by the largest distance of a code from
        the middle of B; 0 if that is not shown to be positive.
    q : Tensor (r,)
        The direction of length 1 with that margin: equal scores on B, smaller ones elsewhere. Zeros if there is none.
    at_most : float
        What the margin of no q exceeds: `margin` for a face, 0 where B is surely none. In between rounding hides it.

    >>> none, hidden = Face(0.0, torch.zeros(2)), Face(0.0, torch.zeros(2), at_most=2e-14)
    >>> bool(none), none.decided, bool(hidden), hidden.decided
    (False, True, False, False)
    """

    margin: float
    q: Float[Tensor, " r"]
    at_most: float = 0.0

    def __bool__(self) -> bool:
        return self.margin > 0

    @property
    def decided(self) -> bool:
        """Whether it is shown to be a face, or to be none; else neither is."""
        return bool(self) or self.at_most == 0

    def sentence(self) -> str:
        """Say which of the three it is.

        >>> Face(0.0, torch.zeros(2), at_most=2e-14).sentence()
        'no face of the code, or one of margin 2e-14 at most, which rounding hides'
        """
        if self:
            return f"a face of margin {self.margin:.1g}"
        hidden = f", or one of margin {self.at_most:.1g} at most, which rounding hides"
        return "no face of the code" + ("" if self.decided else hidden)


def is_face(code: Tensor | ArrayLike, support: Sequence[int] | Tensor | ArrayLike) -> Face:
    """Say whether the positions of a support are a face of the code's polytope: whether one head can hold them at all.

    Two numbers hold neighbours on the circle and no other pair; four, two harmonics, hold every pair.

    >>> from parityscope.models.positions import circle, harmonics
    >>> [bool(is_face(circle(8), pair)) for pair in ((2, 3), (2, 5))], bool(is_face(harmonics(8, 2), (2, 5)))
    ([True, False], True)
    >>> is_face(harmonics(1000, 5), range(0, 10, 2)).decided  # a face of margin 1e-21
    False

    Parameters
    ----------
    code : Tensor or array (n, r)
        One row of numbers per position, as in `parityscope.models.positions`.
    support : sequence of int
        The positions B.
    """
    numbers = _checked_code(code)
    r, inside = numbers.shape[1], _checked_support(support, len(numbers))
    nothing = torch.zeros(r, dtype=torch.float64)
    numbers = _in_units(_in_units(numbers) - _in_units(numbers)[inside[0]])
    hidden, others = numbers[inside], np.delete(numbers, inside, axis=0)
    if not len(others):
        return Face(1.0, nothing, 1.0)
    middle = hidden.mean(0)
    size = float(np.linalg.norm(numbers - middle, axis=1).max())
    equal = _equal_on(hidden - middle, _ROUNDING * size)
    below = (middle - others) @ equal
    direction, distance = nearest_to_zero(below)
    q = equal @ direction
    # What counts is the margin of the q that is returned, computed from the code itself.
    scores = hidden @ q
    margin = float(scores.min() - (others @ q).max())
    if margin > max(_ROUNDING * size, float(np.ptp(scores)) / _UNEQUAL):
        return Face(margin / size, torch.from_numpy(q), margin / size)
    if _deep_inside(below, _ROUNDING * size):
        return Face(0.0, nothing)
    return Face(0.0, nothing, max(distance / size, 0.0) + _ROUNDING if size else _ROUNDING)


def _checked_code(code: Tensor | ArrayLike) -> _Floats:
    """Return the code as doubles, refusing what is none."""
    try:
        given = code if isinstance(code, Tensor) else torch.as_tensor(np.asarray(code))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a code is a tensor or an array of numbers, one row per position, got {code!r}") from error
    if given.dim() != 2 or given.is_complex():
        kind = "complex numbers" if given.is_complex() else "numbers"
        shape = tuple(given.shape)
        raise InvalidInput(
            f"a code has one row of numbers per position, got {kind} of shape {shape}: pass (n, r) reals"
        )
    given = given.detach().cpu()
    numbers: _Floats = floating(given if given.dtype == torch.int8 else given.double()).numpy()
    for position in np.flatnonzero(~np.isfinite(numbers).all(1))[:1].tolist():
        row = numbers[position].tolist()
        raise InvalidInput(f"a code has finite numbers, got {row} at position {position}: replace what is not finite")
    return numbers


def _checked_support(support: Any, n: int) -> list[int]:
    """Return the positions in order, refusing what is no set of some of n."""
    try:
        inside = sorted({operator.index(position) for position in support})
        some = bool(inside) and len(inside) == len(support)
    except TypeError:
        some = False
    if not some or not 0 <= inside[0] <= inside[-1] < n:
        got = list(support) if isinstance(support, Sequence) and not isinstance(support, str) else support
        raise InvalidInput(f"a support is some different positions from 0 to {n - 1}, whole numbers, got {got!r}")
    return inside


def _in_units(numbers: _Floats) -> _Floats:
    """Return numbers of size 1 or less, divided by a power of two, which rounds nothing."""
    scaled: _Floats = np.ldexp(numbers, -int(np.frexp(np.abs(numbers).max(initial=0.0))[1]))
    return scaled


def _equal_on(differences: _Floats, rounding: float) -> _Floats:
    """Return an orthonormal basis (r, r − rank) of the directions in which all hidden codes are equal, to rounding."""
    _, sizes, basis = np.linalg.svd(differences, full_matrices=True)
    return basis[int((sizes > rounding).sum()) :].T


def _deep_inside(points: _Floats, rounding: float) -> bool:
    """Say whether 0 stays in the polytope of some points when they are rounded.

    The polytope holds a ball around the points' mean, with their least spread over their number as its radius. If it
    also holds a point on the other side of 0, −t times the mean, then it holds that ball about 0, t/(1 + t) times it.
    """
    if not points.shape[1]:  # all directions differ on B: a score that is equal there is equal everywhere
        return True
    mean = points.mean(0)
    spread = np.linalg.svd(points - mean, compute_uv=False)
    if len(points) <= points.shape[1] or not spread[-1] > 0:
        return False
    beyond = 2 * _DEEP * rounding * len(points) / float(spread[-1])
    return beyond < 1 and nearest_to_zero(points + beyond * mean)[1] <= rounding


def nearest_to_zero(points: _Floats) -> tuple[_Floats, float]:
    """Return the direction and the distance of the point of a polytope that is nearest to 0, by Wolfe's algorithm.

    Where the polytope (of some points, one a row) holds 0, the distance is 0 up to rounding.
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
