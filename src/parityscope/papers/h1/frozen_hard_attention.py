"""Exact Bayes risk behind frozen hard attention: what any classification head on the attended tokens must lose.

A hard head ranks the 2n tokens (position j, bit b) by its frozen scores and attends to the first one that is present.
That it attends to (j, b) says that every token ranked higher is absent, which fixes those bits: the event is a subcube.
The tuple of attended tokens of m heads is an intersection of m subcubes, again a subcube or empty, so inputs fall into
cells of fixed bits F, and given a cell all other bits keep their law. For bits with P(1) = p and labels flipped with
probability ν therefore E[y | cell] = ±(1−2ν)(1−2p)^{|B∖F|}. The best squared-hinge prediction on a cell with
η = P(y = 1 | cell) loses 4η(1−η) = 1 − E[y | cell]², and the Bayes risk is

    1 − (1−2ν)² Σ_cells P(cell) (1−2p)^{2|B∖F|},   for uniform bits and clean labels P(B is not inside F).

H1's classification head sees the average of the attended tokens; the tuple says at least as much, so this is a lower
bound for every head and is reached by one that reads the tuple.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int8
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import first_largest, ranked
from parityscope.models import ParityTransformer
from parityscope.problems import Parity

_MOST_NUMBERS = 2**29  # cells × bits, one byte each
_FREE = -1
_SUPPORTS_AT_ONCE = 256


class HardAttentionCells(NamedTuple):
    """A partition of all inputs into subcubes: `fixed` holds 0, 1 or −1 where the bit is free; `bias` is P(bit = 1).

    >>> HardAttentionCells(torch.tensor([[-1, 0], [1, 1], [0, 1]], dtype=torch.int8), bias=0.25).probability.tolist()
    [0.75, 0.0625, 0.1875]
    """

    fixed: Int8[Tensor, "cells n"]
    bias: float

    @property
    def is_fixed(self) -> Bool[Tensor, "cells n"]:
        """Which bits the attended tokens tell."""
        return self.fixed != _FREE

    @property
    def probability(self) -> Float[Tensor, " cells"]:
        """The probability of every cell; they add up to 1."""
        ones, zeros = (self.fixed == 1).sum(-1).double(), (self.fixed == 0).sum(-1).double()
        return self.bias**ones * (1 - self.bias) ** zeros


class Worst(NamedTuple):
    """The support with the largest Bayes risk, and that risk.

    >>> worst_support(hard_attention_cells(torch.zeros(1, 3, 2)), 1)  # one head, always at position 0
    Worst(support=(1,), risk=1.0)
    """

    support: tuple[int, ...]
    risk: float


def token_scores(heads: ParityTransformer) -> Float[Tensor, "heads n 2"]:
    """Return the score of every token: bit b at position j, for one run's heads."""
    by_position = (heads.directions @ heads.positions.transpose(-1, -2)).detach()
    if by_position.dim() != 2:
        raise InvalidInput(f"give the heads of one run, got a run axis of shape {tuple(by_position.shape[:-2])}")
    if not heads.full_matrix:
        return by_position.unsqueeze(-1).expand(*by_position.shape, 2)
    # H1, Eq. (3): w_j = [x_j, 1 − x_j, …], so a 1 adds a11 and a 0 adds a12.
    a11, a12 = heads.matrix.detach()[:, 0, 0, None], heads.matrix.detach()[:, 0, 1, None]
    return torch.stack([by_position + a12, by_position + a11], dim=-1)


def hard_attention_cells(scores: Float[Tensor, "heads n 2"], bias: float = 0.5) -> HardAttentionCells:
    """Return the cells of inputs whose attended tokens agree; equal scores go to the first position.

    One head that only sees positions always attends to the same one, and so splits the inputs in two:
    """
    joint = torch.full((1, scores.shape[1]), _FREE, dtype=torch.int8)
    for head in scores:
        own = _cells_of_one_head(head)
        if len(joint) * len(own) * scores.shape[1] > _MOST_NUMBERS:
            raise InvalidInput(
                f"{len(joint)} × {len(own)} cells of {scores.shape[1]} bits need more than "
                f"{_MOST_NUMBERS / 1e9:.1f} GB: take fewer heads or bits"
            )
        a, b = joint[:, None], own[None]
        agree = ((a == b) | (a == _FREE) | (b == _FREE)).all(-1)
        joint = torch.maximum(a, b)[agree]
    return HardAttentionCells(joint, bias)


def _cells_of_one_head(scores: Float[Tensor, "n 2"]) -> Int8[Tensor, "cells n"]:
    """Return one head's cells, from the highest token down until some token is certain to be present."""
    n = len(scores)
    cells: list[Tensor] = []
    absent = torch.full((n,), _FREE, dtype=torch.int8)
    for token in ranked(scores.flatten()).tolist():
        position, bit = divmod(token, 2)
        cell = absent.clone()
        cell[position] = bit
        cells.append(cell)
        if absent[position] != _FREE:
            # The other bit was ranked higher and is absent, so this token is there.
            break
        absent[position] = 1 - bit
    return torch.stack(cells)


def exact_bayes_risk(cells: HardAttentionCells, problem: Parity) -> float:
    """Return the Bayes squared-hinge risk E[4η(1−η)] of predicting the problem's label from the attended tokens."""
    if problem.bias != cells.bias:
        raise InvalidInput(f"the cells are for bits with bias {cells.bias}, the problem has {problem.bias}")
    unseen = (~cells.is_fixed & problem.mask()).sum(-1)
    told = (cells.probability * _label_told(unseen, cells.bias)).sum()
    return float(1 - (1 - 2 * problem.noise) ** 2 * told)


def worst_support(cells: HardAttentionCells, k: int) -> Worst:
    """Return the support of size k that hard attention tells least about, the first of equals, by visiting all."""
    n = cells.fixed.shape[1]
    if not 1 <= k <= n:
        raise InvalidInput(f"k must lie between 1 and n = {n}, got {k}")
    free, probability = (~cells.is_fixed).to(torch.int8), cells.probability
    supports = torch.combinations(torch.arange(n), k)
    told = []
    for some in supports.split(_SUPPORTS_AT_ONCE):
        unseen = torch.zeros(len(cells.fixed), len(some), dtype=torch.int8)
        for column in some.unbind(-1):
            unseen += free[:, column]
        told.append(probability @ _label_told(unseen, cells.bias))
    least = torch.cat(told)
    row = first_largest(-least)  # many supports are mirror images: the first of them
    return Worst(tuple(supports[row].tolist()), float(1 - least[row]))


def _label_told(unseen: Tensor, bias: float) -> Tensor:
    """Return E[label | cell]² = (1−2p)^{2·unseen} for the number of hidden bits a cell leaves free."""
    return ((1 - 2 * bias) ** 2) ** unseen.double()
