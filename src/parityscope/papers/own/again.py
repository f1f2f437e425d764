"""The bounded readout input by input, in plain Python: a second route for replays, sharing no code with the first."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from itertools import product


def _labelled_inputs(c: Sequence[float], support: Sequence[int]) -> Iterator[tuple[int, float, int]]:
    """Yield the label, the score S and the number of ones of every input."""
    for bits in product((0, 1), repeat=len(c)):
        score = sum(weight * bit for weight, bit in zip(c, bits, strict=True))
        yield (-1) ** sum(bits[j] for j in support), score, sum(bits)


def risk_by_inputs(c: Sequence[float], support: Sequence[int], bias: float, noise: float, power: int) -> float:
    """Return E[(1 − yŷ)^power] over all inputs and flipped labels; power 1 is the hinge, 2 its square.

    >>> risk_by_inputs([1.0, 0.0], [0], bias=0.5, noise=0.25, power=1)  # the right answer, one label in four wrong
    0.5
    """
    total = 0.0
    for label, score, ones in _labelled_inputs(c, support):
        margin = label * math.cos(math.pi * score)
        mean = (1 - noise) * (1 - margin) ** power + noise * (1 + margin) ** power
        total += bias**ones * (1 - bias) ** (len(c) - ones) * mean
    return total


def risk_by_products(c: Sequence[float], support: Sequence[int], bias: float, noise: float, power: int) -> float:
    """Return the same from E[y e^{iπS}] and E[e^{2πiS}], each a product over positions.

    >>> round(risk_by_products([1.0, 0.0], [0], bias=0.5, noise=0.25, power=1), 12)
    0.5
    """
    signed, doubled = complex(1), complex(1)
    for position, weight in enumerate(c):
        sign = -1 if position in support else 1
        signed *= 1 - bias + sign * bias * cmath.exp(1j * math.pi * weight)
        doubled *= 1 - bias + bias * cmath.exp(2j * math.pi * weight)
    hinge = 1 - (1 - 2 * noise) * signed.real
    return hinge if power == 1 else 2 * hinge - 1 + (1 + doubled.real) / 2


def largest_loss_by_inputs(c: Sequence[float], support: Sequence[int]) -> float:
    """Return the largest hinge loss of any input.

    >>> round(largest_loss_by_inputs([0.5, 0.5], [0]), 12)
    1.0
    """
    return max(1 - label * math.cos(math.pi * score) for label, score, _ in _labelled_inputs(c, support))


def log_c_by_inputs(c: Sequence[float], support: Sequence[int]) -> float:
    """Return log |E[y e^{iπS}]|, which is log C where the weights add up to k.

    >>> round(log_c_by_inputs([0.5, 0.5], [0]), 9) == round(math.log(0.5), 9)
    True
    """
    total = sum(label * cmath.exp(1j * math.pi * score) for label, score, _ in _labelled_inputs(c, support))
    return math.log(abs(total) / 2 ** len(c))
