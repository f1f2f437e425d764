"""H2's one step in closed form: the gradient at uniform attention, and the constants of the step."""

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


_STEP_IN_LOG_N = 4.0


def one_step_learning_rate(n: int, heads: int = 2, score_units: float | None = None) -> float:
    """Return the learning rate whose one step from uniform attention adds `score_units` to both hidden scores.

    At uniform attention ∂risk/∂s_l of a head is −(2/(m·n))·(g_l − ḡ), the same for both hidden bits; orthogonal
    positions turn it into the change of scores itself. 4·log n units unless told otherwise; the rule knows n only.

    >>> round(one_step_learning_rate(3, score_units=1.0), 12)
    3.0
    """
    gradient = majority_gradient(n)
    units = _STEP_IN_LOG_N * math.log(n) if score_units is None else score_units
    return units * n * heads / 2 / (gradient.hidden - gradient.other)


def polylog_numbers(n: int) -> int:
    """Return r = ⌈log² n⌉ (natural logarithm), our reading of H2's O(polylog n) numbers per head.

    >>> [polylog_numbers(n) for n in (100, 1000, 10**5, 10**6)]
    [22, 48, 133, 191]
    """
    return max(1, math.ceil(math.log(n) ** 2))


def one_head_numbers(n: int, k: int) -> int:
    """Return r = ⌈3k log n⌉: numbers that let one head single out k of n random-sign positions.

    Equal scores 1 on k hidden bits put scores of variance about k/r on the others; the largest of n stays below 1 when
    r > 2k log n. (At least 8, and for tiny n as many as tell the positions apart.)

    >>> one_head_numbers(1000, 10)
    208
    """
    return max(8, math.ceil(math.log2(n)), math.ceil(3 * k * math.log(n)))


def expected_outside_weight(n: int, r: int, score_units: float) -> float:
    """Return n·exp(−α + α²/r): the weight off the pair, averaged over codes, after a step of α from uniform attention.

    Scores off the pair are α·N(0, 2/r), so e^s has mean exp(α²/r); the pair itself sits at α. (An average over codes:
    once α exceeds √(r·log n) single collisions rule it, and a typical code does better.)

    >>> round(expected_outside_weight(1000, r=10**9, score_units=math.log(1000)), 6)  # e^α = n: as much off as on
    1.0
    """
    return n * math.exp(-score_units + score_units**2 / r)


def best_uniform_step(n: int, r: int) -> float:
    """Return the step in score units that best balances the weight off the pair against imbalance within it.

    From exactly uniform attention the step is α(p_i + p_j − 2p̄), and the mean position p̄ gives the two hidden bits
    scores that differ by 2α⟨p_i − p_j, p̄⟩, of size α·√(8/(rn)): the larger the step, the less equal the pair. The rule
    knows n and r only.

    >>> round(best_uniform_step(10**5, 133), 2)
    22.2
    """
    spread = math.sqrt(8 / (r * n)) * math.sqrt(2 / math.pi)
    grid = [0.01 * step for step in range(1, int(100 * min(r / 2, 12 * math.log(n) + 2)) + 1)]
    return min(grid, key=lambda units: expected_outside_weight(n, r, units) + spread * units)


def initial_score_variance(n: int) -> float:
    """Return σ² = 1/log n, the variance of initial scores H2's review names (σ² ∈ [c₁/log n, c₂/log n]).

    Of the two scores' initial differences a step of 4·log n makes differences of about 4·√(log n): each head then
    settles on one bit of the pair, and one on each. Much less and both heads stay on both bits; much more and
    attention starts concentrated on wrong positions.

    >>> [round(initial_score_variance(n), 3) for n in (100, 10_000)]
    [0.217, 0.109]
    """
    return 1 / math.log(n) if n > 2 else 1.0
