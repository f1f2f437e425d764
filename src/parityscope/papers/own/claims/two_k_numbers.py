"""The project's own: min(2k, n − 1) numbers per position hold every set of k, and fewer do not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models.faces import is_face
from parityscope.models.positions import harmonics
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most
from parityscope.papers.exact_faces import is_exact_face, radon_support
from parityscope.papers.own.again import best_log_c
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOF, ENOUGH, Supports, climb, exponential_head

_ENOUGH_NUMBERS = ((4, 3), (6, 2), (5, 1), (7, 3), (8, 2), (5, 4))  # n, k; a simplex where n ≤ 2k
_LARGER = ((9, 4), (10, 3), (12, 2), (12, 4))
_TOO_FEW = ((5, 2, 3), (8, 2, 3), (9, 3, 5), (6, 3, 4), (12, 4, 7), (6, 1, 1))  # n, k, r = min(2k, n − 1) − 1
_NO_FACE = "sets of k that min(2k, n − 1) numbers do not hold"
_NOT_LEARNED = "sets of k that they hold and one head does not learn"
_POLYNOMIAL = "largest part of −Π(1 − cos(θ − θ_b)) that k harmonics and a constant miss"
_ALL_HELD = "codes with one number less that hold Radon's set of k"
_CLAUSES = (
    Clause("2k harmonics, or n − 1 numbers, hold every set of k", _NO_FACE, at_most(0), "all sets are tried"),
    Clause("their scores are polynomials", _POLYNOMIAL, at_most(1e-9), "rounding, relative", at_least(1e-3)),
    Clause("what they hold is learned", _NOT_LEARNED, at_most(0), f"−log C ≤ {ENOUGH}, where training stops"),
    Clause("fewer numbers do not hold every set", _ALL_HELD, at_most(0), "Radon's set, in fractions and rounded"),
)


def enough_numbers(n: int, k: int) -> Float[Tensor, "n r"]:
    """Return a code of min(2k, n − 1) numbers that holds every set of k: harmonics, or the corners of a simplex.

    >>> [tuple(enough_numbers(n, k).shape) for n, k in ((7, 2), (4, 2), (4, 3))]
    [(7, 4), (4, 3), (4, 3)]
    """
    if n > 2 * k:
        return harmonics(n, k)
    return torch.cat([torch.eye(n - 1), torch.zeros(1, n - 1)]).double()


def _missed_by_harmonics(n: int, supports: Supports) -> float:
    """Return how much of Gale's polynomials is no score of k harmonics, relative to their size."""
    k = len(supports[0])
    angle = 2 * math.pi * torch.arange(1, n + 1, dtype=torch.float64) / n
    apart = angle[:, None, None] - angle[torch.tensor(supports)]  # (n, supports, k)
    wanted = -(1 - apart.cos()).prod(-1)
    scores = torch.cat([harmonics(n, k), torch.ones(n, 1, dtype=torch.float64)], dim=1)
    fitted = scores @ torch.linalg.lstsq(scores, wanted).solution
    return float(((fitted - wanted).abs().amax(0) / wanted.abs().amax(0)).max())


def _radon(context: Context) -> tuple[int, list[dict[str, Any]]]:
    """Return how many codes with a number too few were tried, and those that hold Radon's set all the same."""
    generator = torch.Generator().manual_seed(SEED)
    tried, held = 0, []
    for n, k, r in _TOO_FEW:
        for _ in range(context.at(smoke=5, demo=20, reference=100)):
            code = torch.randint(-50, 51, (n, r), generator=generator)
            support = radon_support(code.tolist(), k)
            tried += 1
            if is_face(code.double(), support) or is_exact_face(code.tolist(), support):
                held.append({"code": code.tolist(), "support": list(support), "value": 1.0, "seed": SEED})
    return tried, held


def _two_k_numbers(context: Context) -> Measurement:
    """Try every set of k at small sizes, and Radon's set with one number less."""
    sizes = (
        _ENOUGH_NUMBERS[: context.at(smoke=2, reference=6)]
        + _LARGER[: context.at(smoke=0, demo=1, reference=len(_LARGER))]
    )
    missing, missed, remainders, sets, steps = [], [], [], 0, 0
    for n, k in sizes:
        code, supports = enough_numbers(n, k), list(combinations(range(n), k))
        climbed = climb(*exponential_head(code, supports))
        sets, steps = sets + len(supports), max(steps, climbed.steps)
        if n > 2 * k:
            remainders.append(_missed_by_harmonics(n, supports))
        for support, value, learned in zip(supports, climbed.value.tolist(), climbed.learned.tolist(), strict=True):
            at = {"code": code.tolist(), "support": list(support), "value": -value, "seed": SEED}
            missing += [] if is_face(code, support) else [at]
            missed += [] if learned else [at]
    tried, held = _radon(context)
    return Measurement(
        {_NO_FACE: len(missing), _NOT_LEARNED: len(missed), _POLYNOMIAL: max(remainders), _ALL_HELD: len(held)},
        f"min(2k, n − 1) numbers hold {sets - len(missing)} of {sets} sets and learn {sets - len(missed)}; with one "
        f"less {len(held)} of {tried} codes hold Radon's set",
        f"all {sets} sets at {len(sizes)} sizes, {tried} random codes of whole numbers",
        {
            "seed": SEED,
            "sizes": [list(size) for size in sizes],
            "too_few": [list(size) for size in _TOO_FEW],
            "most_steps": steps,
            "largest_remainder": max(remainders),
        },
        "Every set of k is tried against harmonics, or a simplex where n ≤ 2k, and trained by Newton's steps. With one"
        " number less, Radon's relation of r + 2 codes names a set of k that no values of the numbers hold; fractions"
        " and rounded numbers agree that it is no face.",
        {
            quantity: next(iter(sets), None)
            for quantity, sets in ((_NO_FACE, missing), (_NOT_LEARNED, missed), (_ALL_HELD, held))
        },
    )


def _learned_again(point: Mapping[str, Any]) -> Again:
    """Train again with a program and a code of its own; of this one set: is it not learned?"""
    n, k = len(point["code"]), len(point["support"])
    turns = 2 * np.pi * np.outer(np.arange(n), np.arange(1, k + 1)) / n
    code = np.hstack([np.cos(turns), np.sin(turns)]) if n > 2 * k else np.eye(n)[:, :-1]
    again = -best_log_c(code.tolist(), point["support"])
    return Again(again, "Newton's method in numpy", float(again > 2 * ENOUGH), "−log C at the end")


def _held_again(point: Mapping[str, Any]) -> Again:
    return Again(float(is_exact_face(point["code"], point["support"])), "fractions", what="whether the set is held")


CLAIMS = (
    Claim(
        "P-two-k-numbers",
        "The least number r for which some code of r numbers per position makes every set of k of n positions a face"
        " is min(2k, n − 1); k harmonics of the circle do it with 2k, and one head learns them all.",
        _CLAUSES,
        _two_k_numbers,
        f"{CONCAVE}, 2k numbers",
        seconds=2,
        proof=CONCAVE_PROOF,
        replay={_NO_FACE: _learned_again, _NOT_LEARNED: _learned_again, _ALL_HELD: _held_again},
    ),
)
