"""A frozen head behind which every parity is learned with small norms: Theorem 11's bound is not invariant under scale.

A frozen head whose weights differ tells the whole input, with H1's embeddings as with others, and an FFNN-1 behind it
interpolates any labels; Theorem 11 asks for the norms ‖α‖‖β‖ that this takes. But with embeddings M times as large, and
A and β 1/M times, the network computes the same function, and ‖α‖‖β‖ is 1/M times what it was. Since Section 4 allows
arbitrary embeddings, no positive bound in the norms alone holds, at any n. (The proof takes entries of embeddings ≤ 1.)

Here the head prefers ones two to one; position j has the embedding 5^j, a one the embedding 1 and a zero 0, all times
a large number. The sum of v*'s two coordinates is a code of the input, and an FFNN-1 with one neuron per code
interpolates the labels of the codes. Its σ is H1's, with b = 0.01.

Codes differ for every n if 5^j becomes M^{j+1} with M > 8n²: two inputs x, x′ with s and s′ ones have the same code
only if Σ_j M^{j+1} d_j = 2n(s′ − s) with whole numbers d_j = (n+s′)(1+x_j) − (n+s)(1+x′_j) of at most 4n. Unless all
d_j vanish, the left side is at least M/2 > 4n², the right one at most 2n². If they do, (1+x_j)/(1+x′_j) is the same for
all j: the inputs are equal, or all ones and all zeros, whose right side is not 0. At n = 3 … 7 base 5 is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

_SCALE = 2**60  # a power of two, so that scaling embeddings rounds nothing
_ROOT_B = Fraction(1, 10)  # √b; σ(z) = (z + √(z² + b))/2 is nowhere farther than √b/2 from ReLU(z)


def codes(n: int) -> list[Fraction]:
    """Return what the head tells of every input, before scaling."""
    values = []
    for index in range(2**n):
        ones = [index >> j & 1 for j in range(n)]
        weighted = sum((1 + one) * (5**j + one) for j, one in enumerate(ones))
        values.append(Fraction(weighted, n + sum(ones)))
    return values


class Interpolation(NamedTuple):
    """The FFNN-1 that says of every code the mean label of its inputs: start + Σ_i α_i ReLU(code − knot_i).

    >>> network = Interpolation.of([Fraction(0), Fraction(1), Fraction(1), Fraction(3)], [1, 1, -1, 1])
    >>> [str(one) for one in network.alpha], [str(value) for value in network.exactly(Fraction(3)).values()]
    (['-1', '3/2'], ['1', '0', '1'])
    """

    start: Fraction
    knots: list[Fraction]
    alpha: list[Fraction]

    @classmethod
    def of(cls, codes: Sequence[Fraction], labels: Sequence[int]) -> Interpolation:
        """Return the network for the labels of all inputs."""
        by_code: dict[Fraction, list[int]] = {}
        for code, label in zip(codes, labels, strict=True):
            by_code.setdefault(code, []).append(label)
        points = [(code, Fraction(sum(by_code[code]), len(by_code[code]))) for code in sorted(by_code)]
        slopes = [(after - before) / (right - left) for (left, before), (right, after) in pairwise(points)]
        bends = [after - before for before, after in pairwise([Fraction(0), *slopes])]
        return cls(points[0][1], [code for code, _ in points[:-1]], bends)

    def in_floats(self, codes: Sequence[Fraction]) -> Tensor:
        """Evaluate the network in double precision, on scaled embeddings."""
        features, knots = (_floats([_SCALE * one for one in some]) for some in (codes, self.knots))
        z = features[:, None] - knots
        return float(self.start) + (z + (z.square() + float(_ROOT_B) ** 2).sqrt()) / 2 @ self._scaled_alpha()

    def exactly(self, last: Fraction) -> dict[Fraction, Fraction]:
        """Evaluate the network in fractions, with ReLU for σ, at all knots and at the last code."""
        value, slope, values = self.start, Fraction(0), {(self.knots or [last])[0]: self.start}
        for alpha, (left, right) in zip(self.alpha, pairwise([*self.knots, last]), strict=True):
            slope += alpha
            value += slope * (right - left)
            values[right] = value
        return values

    def smoothing(self) -> Fraction:
        """Return a bound on what σ in place of ReLU changes, on scaled embeddings."""
        return sum(map(abs, self.alpha), Fraction(0)) / _SCALE * _ROOT_B / 2

    def norms(self) -> float:
        """Return ‖α‖‖β‖ on scaled embeddings; both input weights of every neuron are 1."""
        return float(self._scaled_alpha().norm()) * (2 * len(self.alpha)) ** 0.5

    def _scaled_alpha(self) -> Tensor:
        return _floats([one / _SCALE for one in self.alpha])


class Encoded(NamedTuple):
    """How well every parity of n bits is learned behind the head: the largest risk and the largest ‖α‖‖β‖ of any.

    >>> found = largest_risk(4)
    >>> found.risk < 1e-20, found.norms < 1e-15
    (True, True)
    """

    n: int
    support: tuple[int, ...]  # with the largest risk
    risk: float
    norms: float


def largest_risk(n: int) -> Encoded:
    """Return the largest risk over all supports, by the networks in double precision.

    >>> largest_risk(3).n
    3
    """
    told = codes(n)
    found = []
    for support in range(1, 2**n):
        labels = _labels(n, support)
        network = Interpolation.of(told, labels)
        risk = (1 - torch.tensor(labels) * network.in_floats(told)).relu().square().mean()
        found.append((float(risk), network.norms(), support))
    largest, _, worst = max(found)
    return Encoded(n, tuple(j for j in range(n) if worst >> j & 1), largest, max(norms for _, norms, _ in found))


def exact_largest_risk(n: int) -> Fraction:
    """Return a bound on the largest risk over all supports, by the networks in fractions.

    >>> 0 < exact_largest_risk(4) < Fraction(1, 10**30)
    True
    """
    told = codes(n)
    largest = Fraction(0)
    for support in range(1, 2**n):
        labels = _labels(n, support)
        network = Interpolation.of(told, labels)
        predicted, off = network.exactly(max(told)), network.smoothing()
        losses = [
            max(Fraction(0), 1 - label * predicted[code] + off) ** 2 for code, label in zip(told, labels, strict=True)
        ]
        largest = max(largest, sum(losses, Fraction(0)) / len(losses))
    return largest


def _floats(fractions: Sequence[Fraction]) -> Tensor:
    return torch.tensor([float(one) for one in fractions], dtype=torch.float64)


def _labels(n: int, support: int) -> list[int]:
    return [1 - 2 * ((index & support).bit_count() % 2) for index in range(2**n)]
