"""log C as a sum over positions, and its derivatives: in u = log c it is concave, which is why learning is.

For uniform bits C = Π_{j∈B} sin v_j · Π_{j∉B} cos v_j with v = πc/2. The derivative of log C in u_j is v·cot v on B and
−v·tan v elsewhere, and both fall as v grows on the domain 0 < c < 2 (B), c < 1 (elsewhere). With exponential attention
u = Pq + β is affine in the trained numbers, so that log C is a concave function of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.risk import Law

_SMALL = 0.02  # below, v²/sin²v − v·cot v cancels, and three terms of its series are exact to rounding


class LogAttention(NamedTuple):
    """log C at given weights, −∞ outside its domain; its gradient by c, and −∂²/∂u_j² for u = log c.

    >>> mask = torch.tensor([True, False])
    >>> at = log_attention(torch.tensor([1.0, 0.0], dtype=torch.float64), mask)
    >>> [round(abs(float(number)), 9) for number in (at.value, *at.gradient)]  # the maximum
    [0.0, 0.0, 0.0]
    """

    value: Float[Tensor, "*runs"]
    gradient: Float[Tensor, "*runs n"]
    curvature: Float[Tensor, "*runs n"]


def log_attention(c: Float[Tensor, "*runs n"], hidden: Bool[Tensor, "*#runs n"]) -> LogAttention:
    """Return log C and its derivatives, every run on its own."""
    v = math.pi / 2 * c.clamp(min=torch.finfo(c.dtype).tiny)
    sine, cosine = v.sin(), v.cos()
    cot, tan = cosine / sine, sine / cosine
    gradient = math.pi / 2 * torch.where(hidden, cot, -tan)
    # −∂²/∂u² = −v·d/dv of v·cot v = 1 − v²/3 − v⁴/45 − 2v⁶/945 − … on B, and of −v·tan v elsewhere.
    series = 2 / 3 * v.square() + 4 / 45 * v**4 + 4 / 315 * v**6
    on_hidden = torch.where(v < _SMALL, series, (v / sine).square() - v * cot)
    curvature = torch.where(hidden, on_hidden, v * tan + (v / cosine).square())
    return LogAttention(log_value(c, hidden), gradient, curvature)


def log_value(c: Float[Tensor, "*runs n"], hidden: Bool[Tensor, "*#runs n"]) -> Float[Tensor, "*runs"]:
    """Return log C alone, −∞ outside its domain."""
    v = math.pi / 2 * c
    inside = ((c > 0) & (c < 1 + hidden.to(c.dtype))) | ((c == 0) & ~hidden)
    return torch.where(inside, torch.where(hidden, v.sin(), v.cos()), 0.0).log().sum(-1)


def log_correlation(weights: Float[Tensor, "*runs n"], law: Law) -> Float[Tensor, "*runs"]:
    """Return log|E[y e^{iπS}]| continued beyond its domain: a function with its maximum at 1_B.

    For uniform bits it is Σ_{j∈B} log sin(πc_j/2) + Σ_{j∉B} log cos(πc_j/2), the logarithm of C = 1 − hinge risk. A
    factor is negative when a hidden bit has c_j > 2 or another bit c_j > 1: heads piled on one position. Its
    logarithm would pull the pile together, so beyond that point the term is a straight line that falls with slope π/2
    instead.
    """
    half = math.pi / 2 * weights
    # |(1−p) ± p e^{iπc}|² = (1−2p)² + 4p(1−p)·sin²(πc/2) on B, cos² elsewhere
    wave = torch.where(law.mask, half.sin(), half.cos())
    size = (1 - 2 * law.bias) ** 2 + 4 * law.bias * (1 - law.bias) * wave.square()
    excess = weights - (1 + law.mask.to(weights.dtype))
    # Underflow to log 0 has no gradient to offer; the smallest normal float keeps both finite.
    inside = torch.where(excess < 0, size, torch.ones_like(size)).clamp(min=torch.finfo(size.dtype).tiny)
    return (inside.log() / 2 - math.pi / 2 * excess.relu()).sum(-1)


def check_fair(law: Law, steps: str) -> None:
    """Refuse biased bits: neither the concavity of log C nor the readout's shift holds for them.

    With a = 4p(1 − p) < 1 a hidden bit has the factor √(1 − a + a·sin²v), whose logarithm is convex in log c near
    c = 0: its slope there, a·v²/(1 − a) to leading order, grows. And it is no less than |1 − 2p|, so that a hidden bit
    may be lost for ever.

    >>> check_fair(Law(torch.tensor([True]), bias=0.5, noise=0.0), "newton")
    """
    if law.bias != 0.5:
        raise InvalidInput(
            f"{steps} steps need fair bits, got bias = {law.bias}, with which log|C| is not concave: use the recipe"
            " bounded"
        )
