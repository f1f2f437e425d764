"""What can go wrong in a lattice cell next to a cut, when only mean and variance of the residue are known.

τ is the distance from the mean of the residue to the cut in standard deviations. The model takes the residue as normal;
each bound holds for every law with that mean and variance. `docs/explanation/engines.md` has the proofs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

_ROOT = math.sqrt(2 * math.pi)


class Straddle(NamedTuple):
    """With z = |τ| and u of mean 0 and variance 1: the normal model beyond the cut and the most it can err.

    >>> at = Straddle.of(torch.tensor([0.0, 30.0], dtype=torch.float64))
    >>> [round(float(x), 3) for x in (at.beyond[0], at.excess[0], at.share_error[0], at.excess_error[0])]
    [0.5, 0.399, 0.5, 0.399]
    >>> [float(x) < 0.01 for x in (at.beyond[1], at.share_error[1])]
    [True, True]
    """

    beyond: Tensor  # P(u ≥ z)
    density: Tensor  # of u at z
    excess: Tensor  # E(u − z)₊
    square: Tensor  # E(u − z)₊²
    share_error: Tensor  # of `beyond`
    excess_error: Tensor  # of `excess`
    tagged_share_error: Tensor  # E|1{u ≥ z} − beyond − density·u|
    tagged_excess_error: Tensor  # E|(u − z)₊ − excess − beyond·u|

    @classmethod
    def of(cls, z: Tensor) -> Straddle:
        """Return model and errors at distances z ≥ 0."""
        beyond, density = torch.special.ndtr(-z), torch.exp(-0.5 * z * z) / _ROOT
        excess = (density - z * beyond).clamp_(min=0.0)
        square = ((1 + z * z) * beyond - z * density).clamp_(0.0, 1.0)
        cantelli = 1 / (1 + z * z)  # P(u ≥ z) at most
        scarf = 0.5 / (torch.sqrt(1 + z * z) + z)  # E(u − z)₊ at most
        by_size = cantelli + beyond + density
        factor = (1 - 2 * beyond - 2 * density * z).clamp_(min=0.0)
        by_square = torch.sqrt(cantelli * factor + beyond * beyond + density * density)
        return cls(
            beyond,
            density,
            excess,
            square,
            torch.maximum(cantelli - beyond, beyond),
            torch.maximum(scarf - excess, excess),
            torch.minimum(by_size, by_square),
            scarf + excess + beyond,
        )


def gaussian_moment(order: int, proxy: float) -> float:
    """Return a bound on E|R|^order when P(|R| ≥ t) ≤ 2 exp(−t²/2·proxy²).

    >>> round(gaussian_moment(2, 1.0), 9)
    4.0
    """
    return order * 2 ** (order / 2) * math.gamma(order / 2) * proxy**order


def gaussian_tail(order: int, proxy: float, at: float) -> float:
    """Return a bound on E[|R|^order; |R| > at] under the same tails, for order 0, 1, 2.

    >>> gaussian_tail(0, 1.0, 9.0) < 1e-17
    True
    """
    if proxy == 0.0:
        return 0.0
    chance = 2 * math.exp(-0.5 * (at / proxy) ** 2)
    return chance * (1.0, at + proxy**2 / at, at**2 + 2 * proxy**2)[order]
