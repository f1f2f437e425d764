"""W, Lemmas 28 and 29: singular values of random matrices."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.claim import Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most
from parityscope.problems import seeded_generator

_SHAPES = (((60, 60), (240, 240)), ((120, 30), (480, 120)))  # rows × columns, the second four times the first
_T = 1.5  # the lemmas' t: their probability 1 − 2 exp(−t²) is then 79 %
_GROWTH = "a universal constant does not grow with the size; dependent entries make it grow like its square root"


def _entries(rows: int, columns: int, seed: int) -> Float[Tensor, "rows columns"]:
    """Return independent signs, the sub-Gaussian entries that the paper needs the lemmas for."""
    signs = torch.randint(2, (rows, columns), generator=seeded_generator(seed, "positions"))
    return signs.double() * 2 - 1


def _needed(rows: int, columns: int, draws: int, constant: Callable[[float, float, int, int], float]) -> float:
    """Return the constant that is enough with the lemmas' probability, from the extreme singular values."""
    found = []
    for seed in range(draws):
        values = torch.linalg.svdvals(_entries(rows, columns, seed))
        found.append(constant(float(values[0]), float(values[-1]), rows, columns))
    return float(torch.tensor(found).quantile(1 - 2 * math.exp(-(_T**2))))


def _growth(context: Context, constant: Callable[[float, float, int, int], float]) -> tuple[float, float, str]:
    """Return the power of the size by which the needed constant grows, the largest needed, and how many were drawn."""
    draws = context.at(smoke=5, demo=20, reference=100)
    pairs = [[_needed(*shape, draws, constant) for shape in shapes] for shapes in _SHAPES]
    power = max(math.log(large / small, 4) for small, large in pairs)
    return power, max(map(max, pairs)), f"{draws} draws of each of {2 * len(_SHAPES)} shapes"


def _norm(largest: float, smallest: float, rows: int, columns: int) -> float:
    return largest / (math.sqrt(rows) + math.sqrt(columns) + _T)


def _distance(largest: float, smallest: float, rows: int, columns: int) -> float:
    return max(largest - math.sqrt(rows), math.sqrt(rows) - smallest) / (math.sqrt(columns) + _T)


def _gram(largest: float, smallest: float, rows: int, columns: int) -> float:
    x = (math.sqrt(columns) + _T) / math.sqrt(rows)
    return max(abs(largest**2 / rows - 1), abs(smallest**2 / rows - 1)) / max(x, x**2)


_NORM_GROWTH, _DISTANCE_GROWTH, _GRAM_GROWTH = (
    f"power of the size in the constant that {what} needs" for what in ("‖A‖", "each singular value", "AᵀA/m")
)


def _lemma_28(context: Context) -> Measurement:
    power, needed, tried = _growth(context, _norm)
    return Measurement(
        {_NORM_GROWTH: power},
        f"C·K = {needed:.2f} suffices",
        tried,
        {"smallest_constant": needed, "t": _T},
        "The norms of random sign matrices were compared with √m + √n + t; the constant C is left open.",
    )


def _lemma_29(context: Context) -> Measurement:
    power, needed, tried = _growth(context, _distance)
    gram, needed_by_gram, _ = _growth(context, _gram)
    return Measurement(
        {_DISTANCE_GROWTH: power, _GRAM_GROWTH: gram},
        f"C·K² = {needed:.2f} suffices, {needed_by_gram:.2f} for AᵀA/m",
        tried,
        {"smallest_constant": needed, "smallest_constant_for_the_gram_matrix": needed_by_gram, "t": _T},
        "The extreme singular values of random sign matrices were compared with both bounds; C is left open.",
    )


def _no_growth(says: str, quantity: str) -> Clause:
    return Clause(says, quantity, at_most(0.25), _GROWTH, at_least(0.4))


CLAIMS = (
    Claim(
        "W-lemma-28",
        "‖A‖ ≤ CK(√m + √n + t) with probability 1 − 2 exp(−t²) for random sub-Gaussian A and a universal C.",
        (_no_growth("‖A‖ ≤ CK(√m + √n + t)", _NORM_GROWTH),),
        _lemma_28,
        "Appendix B.6, Lemma 28",
        seconds=0.5,
    ),
    Claim(
        "W-lemma-29",
        "Singular values lie within CK²(√n + t) of √m, and ‖AᵀA/m − I‖ ≤ K² max(δ, δ²) for δ = C(√n + t)/√m.",
        (
            _no_growth("√m − CK²(√n + t) ≤ s_n(A) ≤ s_1(A) ≤ √m + CK²(√n + t)", _DISTANCE_GROWTH),
            _no_growth("‖AᵀA/m − I‖ ≤ K² max(δ, δ²)", _GRAM_GROWTH),
        ),
        _lemma_29,
        "Appendix B.6, Lemma 29",
        seconds=1,
    ),
)
