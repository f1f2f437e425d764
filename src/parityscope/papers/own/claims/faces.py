"""The project's own: one exponential head learns B iff B is a face of its code, and otherwise the smallest face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models.faces import is_face
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.exact_faces import is_exact_face
from parityscope.papers.own.again import best_log_c
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import (
    CONCAVE,
    CONCAVE_PROOF,
    ENOUGH,
    climb,
    drawn_codes,
    drawn_supports,
    exponential_head,
)

_SIZES = ((7, 1, 2), (8, 2, 3), (8, 3, 5))  # n, k, r
_MISSED = "faces that are not learned"
_BEYOND = "sets that are no face and are learned"
_DIFFER = "sets on which rounded numbers and fractions disagree"
_SUPREMUM = "largest distance of log C from the maximum over the smallest face, where B is no face"
_CLAUSES = (
    Clause("a face is learned", _MISSED, at_most(0), f"learned: −log C ≤ {ENOUGH}, where training stops"),
    Clause("what is no face is not", _BEYOND, at_most(0), f"learned: −log C ≤ {ENOUGH}, where training stops"),
    Clause("which it is can be decided beforehand", _DIFFER, at_most(0), "the simplex method in fractions"),
    Clause("then training ends at the smallest face", _SUPREMUM, at_most(1e-6), "rounding", refuted_if=above(1e-3)),
)


class _Tried(NamedTuple):
    """One code and support: whether it is a face, by two routes, and where training ends."""

    code: Float[Tensor, "n r"]
    support: tuple[int, ...]
    face: bool
    exactly: bool
    value: float  # log C at the end
    certified: float  # −log C that no numbers go below

    @property
    def learned(self) -> bool:
        """Whether C came close to 1."""
        return -self.value <= ENOUGH

    def point(self) -> dict[str, Any]:
        """Return what a replay needs."""
        return {"code": self.code.int().tolist(), "support": list(self.support), "value": -self.value, "seed": SEED}


def _tried(context: Context) -> Iterator[_Tried]:
    generator = torch.Generator().manual_seed(SEED)
    count = context.at(smoke=4, demo=16, reference=80)
    for n, k, r in _SIZES:
        codes, supports = drawn_codes(count, n, r, generator), drawn_supports(count, n, k, generator)
        climbed = climb(*exponential_head(codes, supports), steps=60)
        proved = climbed.certificate.at_least.tolist()
        for code, support, value, least in zip(codes, supports, climbed.value.tolist(), proved, strict=True):
            exactly = is_exact_face(code.int().tolist(), support)
            yield _Tried(code, support, bool(is_face(code, support)), exactly, value, least)


def smallest_face(code: Float[Tensor, "n r"], support: tuple[int, ...]) -> tuple[int, ...]:
    """Return the positions of the smallest face that holds all of a support.

    >>> square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> smallest_face(square, (1,)), smallest_face(square, (1, 3))
    ((0, 1, 2), (0, 1, 2, 3))
    """
    others = [j for j in range(len(code)) if j not in support]
    candidates = (
        tuple(sorted((*support, *more))) for size in range(len(others) + 1) for more in combinations(others, size)
    )
    return next(one for one in candidates if is_face(code, one))


def _beside_the_supremum(one: _Tried) -> float:
    """Return how far training ended from the maximum of the product over the smallest face alone."""
    face = smallest_face(one.code, one.support)
    there = [face.index(b) for b in one.support]
    return abs(one.value - best_log_c(one.code[list(face)].tolist(), there))


def _face(context: Context) -> Measurement:
    """Train heads with random codes and compare with what geometry says beforehand."""
    tried = list(_tried(context))
    missed = [one for one in tried if one.face and not one.learned]
    beyond = [one for one in tried if not one.face and one.learned]
    differ = [one for one in tried if one.face != one.exactly]
    others = [one for one in tried if not one.face]
    apart = [(_beside_the_supremum(one), one) for one in others[:: context.at(smoke=2, demo=3, reference=1)]]
    furthest, at = max(((distance, one) for distance, one in apart), key=lambda one: one[0], default=(0.0, None))
    faces = sum(one.face for one in tried)
    return Measurement(
        {_MISSED: len(missed), _BEYOND: len(beyond), _DIFFER: len(differ), _SUPREMUM: furthest},
        f"{faces - len(missed)} of {faces} faces are learned, and {len(beyond)} of {len(others)} other sets",
        f"{len(tried)} random codes of 2, 3 and 5 whole numbers, n ≤ 8, k ≤ 3; {len(apart)} smallest faces",
        {
            "seed": SEED,
            "sizes": [list(size) for size in _SIZES],
            "faces": faces,
            "others": len(others),
            "others_with_a_certificate": sum(one.certified > 0 for one in others),
            "largest_distance_from_the_smallest_face": furthest,
        },
        "Faces are decided from the code alone, in rounded numbers and in fractions; then Newton's steps train the head"
        " from uniform attention. Where B is no face, log C ends at the maximum of the product over the smallest face"
        " that holds B, which another program finds with the other positions left out.",
        {
            quantity: one.point() if one else None
            for quantity, one in (
                (_MISSED, next(iter(missed), None)),
                (_BEYOND, next(iter(beyond), None)),
                (_DIFFER, next(iter(differ), None)),
                (_SUPREMUM, at),
            )
        },
    )


def _end_again(point: Mapping[str, Any]) -> Again:
    """Decide in fractions, and train again with a program of its own; of this one set: is the theorem broken?"""
    again = -best_log_c(point["code"], point["support"])
    broken = is_exact_face(point["code"], point["support"]) != (again <= 2 * ENOUGH)
    return Again(again, "fractions, and Newton's method in numpy", float(broken), "−log C at the end")


CLAIMS = (
    Claim(
        "P-face",
        "One head with a trained scale learns B (C → 1) iff B is a face of its position code, which can be decided"
        " beforehand; if it is none, training ends at the maximum over the smallest face that holds B.",
        _CLAUSES,
        _face,
        f"{CONCAVE}, the face theorem",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay=dict.fromkeys((_MISSED, _BEYOND, _DIFFER, _SUPREMUM), _end_again),
    ),
)
