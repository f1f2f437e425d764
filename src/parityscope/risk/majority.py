"""Fourier coefficients of the majority function: the gradient of H2's risk at uniform attention, in closed form."""

from __future__ import annotations

import math
from typing import NamedTuple

from parityscope.core.errors import InvalidInput


class MajorityGradient(NamedTuple):
    """∂E[y|v|]/∂c_l at equal weights: `hidden` for the two hidden bits, `other` for every other bit.

    >>> n = 10**4
    >>> gradient = majority_gradient(n)
    >>> round(gradient.hidden / math.sqrt(2 / (math.pi * n)), 3), round(-n * gradient.other / gradient.hidden, 3)
    (1.0, 1.0)
    """

    hidden: float
    other: float


def majority_gradient(n: int) -> MajorityGradient:
    """Return E[s_i sign Σs] and E[s_i s_j s_l sign Σs] for n fair signs, with sign 0 = 0.

    At uniform attention v = Σ_l c_l s_l has the sign of the majority, and ∂E[s_i s_j|v|]/∂c_l = E[s_i s_j s_l sign v]:
    Fourier coefficients of the majority function, of degree 1 for a hidden bit and 3 for any other. They are about
    √(2/(πn)) and −√(2/(πn))/n, so one gradient already tells hidden bits from others, for every n.

    >>> [round(number, 12) for number in majority_gradient(3)]
    [0.5, -0.5]
    """
    if n < 2:
        raise InvalidInput(f"a pair needs at least 2 bits, got n = {n}")
    # The majority changes with one sign only when the other n − 1 are (almost) tied; with three only when n − 3 are.
    hidden = _central(n - 1)
    if n == 2:
        return MajorityGradient(hidden, 0.0)
    return MajorityGradient(hidden, -_central(n - 3) / (n - 1 if n % 2 else n))


def _central(coins: int) -> float:
    """Return the largest probability of a sum of fair signs: C(coins, ⌊coins/2⌋)/2^coins."""
    half = coins // 2
    return math.exp(
        math.lgamma(coins + 1) - math.lgamma(half + 1) - math.lgamma(coins - half + 1) - coins * math.log(2)
    )
