"""H1's attention with its whole matrix A trained, as its text says, and not a13 and a14 alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import ClassVar

import torch
from torch import Tensor

from parityscope.models import ZigZag
from parityscope.models.positions import circle
from parityscope.papers.h1.circle import SMOOTHING, gradients_of
from parityscope.papers.h1.ends import LEARNED, Descent
from parityscope.papers.h1.minima import starts
from parityscope.problems import Parity, bits_of
from parityscope.records import Numbers, Result


def full_risk(matrices: Tensor, n: int, support: tuple[int, ...]) -> Tensor:
    """Return the population risk of every batch of matrices A_1 … A_k, (batch, k, 4, 4), at τ = 1/n.

    Tokens are w_j = (x_j, 1 − x_j, sin, cos) and the query is w_0 = (1, 0, 0, 0) (H1, Eq. (3)), so that attention
    depends on the input through a11 and a12. With those at 0 it is the model that the proof trains.

    >>> matrices = whole(starts([0], 2))
    >>> from parityscope.papers.h1.circle import Circle
    >>> by_circle = Circle(4, 2, 1 / 4, SMOOTHING).risk(starts([0], 2)[0], (0, 2))
    >>> torch.allclose(full_risk(matrices, 4, (0, 2)), by_circle)
    True
    """
    x = bits_of(torch.arange(2**n), n)
    y, bits = Parity(n, support).label(x).double(), x.double()
    places = circle(n).expand(len(bits), n, 2)
    tokens = torch.cat([bits[..., None], 1 - bits[..., None], places], dim=-1)  # (inputs, n, 4)
    query = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    scores = torch.einsum("q,bhqd,ijd->bhij", query, matrices, tokens) * n
    score = torch.einsum("bhij,ij->bi", scores.softmax(-1), bits)
    prediction = ZigZag(len(support), SMOOTHING)(score)
    return (1 - y * prediction).relu().square().mean(-1)


def whole(heads: Tensor) -> Tensor:
    """Return the matrices of H1's start: a13 and a14 on the circle, 0 otherwise, (batch, k, 4, 4).

    >>> whole(torch.tensor([[[0.6, 0.8]]]))[0, 0, 0].tolist()
    [0.0, 0.0, 0.6000000238418579, 0.800000011920929]
    """
    matrices = heads.new_zeros(*heads.shape[:-1], 4, 4)
    matrices[..., 0, 2:] = heads
    return matrices


class FullMatrixNumbers(Numbers):
    """Gradients at the start by group of entries (largest over starts), and where descent ended."""

    gradient_of_other_rows: float
    gradient_of_a11_a12: float
    gradient_of_a13_a14: float
    first_row: tuple[float, ...]  # of the first head of the first start
    risk: tuple[float, ...]
    largest_rise: float

    @property
    def learned(self) -> list[bool]:
        """Which starts reached the ε of our checks."""
        return [risk < LEARNED for risk in self.risk]


class FullMatrix(Descent):
    """The descent of all sixteen entries of every A.

    >>> [round(risk, 2) for risk in FullMatrix(n=4, support=(0, 2), seeds=(0,), steps=5).run().numbers.risk]
    [0.96]
    """

    ROWS: ClassVar[str] = "H1-full-matrix"
    NUMBERS: ClassVar[type[Numbers]] = FullMatrixNumbers

    def run(self) -> Result:
        """Measure the first gradient, then descend."""
        matrices = whole(starts(self.seeds, len(self.support)))
        first = self._gradient(matrices)
        before, rise = torch.full((len(matrices),), torch.inf, dtype=torch.float64), 0.0
        for _ in range(self.steps):
            risk = full_risk(matrices, self.n, self.support)
            rise, before = max(rise, float((risk - before).max())), risk
            matrices = matrices - self.rate * self._gradient(matrices)
        return Result(
            FullMatrixNumbers(
                gradient_of_other_rows=_longest(first[..., 1:, :]),
                gradient_of_a11_a12=_longest(first[..., 0, :2]),
                gradient_of_a13_a14=_longest(first[..., 0, 2:]),
                first_row=tuple(first[0, 0, 0].tolist()),
                risk=tuple(full_risk(matrices, self.n, self.support).tolist()),
                largest_rise=rise,
            )
        )

    def _gradient(self, matrices: Tensor) -> Tensor:
        return gradients_of(lambda at: full_risk(at, self.n, self.support), matrices)


def _longest(gradients: Tensor) -> float:
    return float(gradients.flatten(1).norm(dim=-1).max())


def first_gradient_by_hand(n: int, support: Sequence[int], heads: Sequence[Sequence[float]]) -> list[float]:
    """Return the risk's slopes in a11, a12, a13, a14 of the first head by differences over plain loops.

    A second route to the same numbers: no tensors, no autograd.

    >>> [round(slope, 3) for slope in first_gradient_by_hand(4, (0, 2), starts([0], 2)[0].tolist())]
    [3.216, -3.216, -1.059, 1.06]
    """
    places = [(math.sin(2 * math.pi * j / n), math.cos(2 * math.pi * j / n)) for j in range(1, n + 1)]

    def readout(score: float) -> float:
        value = 1.0
        for i in range(1, len(support) + 1):
            z = score + 0.5 - i
            value += (-1) ** i * (4 * i - 2) * (z + math.sqrt(z * z + SMOOTHING))
        return value

    def risk(first: Sequence[float]) -> float:
        rows = [list(first), *([0.0, 0.0, *head] for head in heads[1:])]
        total = 0.0
        for bits in product((0, 1), repeat=n):
            score = 0.0
            for row in rows:
                raised = [
                    math.exp(n * (row[0] * bit + row[1] * (1 - bit) + row[2] * place[0] + row[3] * place[1]))
                    for bit, place in zip(bits, places, strict=True)
                ]
                score += sum(weight * bit for weight, bit in zip(raised, bits, strict=True)) / sum(raised)
            label = (-1) ** sum(bits[j] for j in support)
            total += max(0.0, 1 - label * readout(score)) ** 2
        return total / 2**n

    at, step = [0.0, 0.0, *heads[0]], 1e-5
    slopes = []
    for entry in range(4):
        up, down = list(at), list(at)
        up[entry] += step
        down[entry] -= step
        slopes.append((risk(up) - risk(down)) / (2 * step))
    return slopes
