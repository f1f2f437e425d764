"""The subset-sum programme on a lattice: the law of a rounded sum, with moments of what rounding left out.

Bits b_j with P(b_j = 1) = p_j move a sum by c_j = up_j·h + r_j, up_j ≥ 0 whole. Cell M holds the inputs with
Σ up_j b_j = M, and of R = Σ r_j b_j its moments E[R^i; M], i = 0, 1, 2. One position more is one shifted addition.
Hidden bits, if any, split every cell by the label. Masses are never negative, so that no sum cancels. The programme
runs backwards for the gradient: E[b_j H(M, R)] for every j at once, H linear in R.

Shapes: a state is (moments, rows, cells), rows 1, or 2 (label +1, label −1) when there are hidden bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

_BLOCK = 1 << 15  # cells worked on at a time: three moments of them fit in a second-level cache
_RESCALE = 64  # positions between two multiplications by the probabilities of zeros
_BRANCH = 6  # prefixes kept per level of the backward pass


@dataclass(frozen=True)
class _Step:
    """One position: how far it moves, what rounding left, the odds of its 1, its label, and a factor for all cells."""

    up: int
    residue: float
    odds: float
    hidden: bool
    scale: float


class Programme:
    """Positions from the shortest step to the longest, so that the sums reach far only at the end.

    Three fair bits that move by 1, 1 and 2 cells:
    """

    def __init__(self, up: list[int], residue: list[float], probability: list[float], hidden: list[bool]) -> None:
        self.order = sorted(range(len(up)), key=up.__getitem__)
        self.rows = 2 if any(hidden) else 1
        self.steps: list[_Step] = []
        self.lengths = [1]  # cells in use before every step, and at the end
        # A position leaves a cell with the odds of its 1; the probabilities of zeros, one factor for all cells, are
        # multiplied in now and then, before numbers grow out of range.
        pending = 1.0
        for i, j in enumerate(self.order, 1):
            pending *= 1 - probability[j]
            due = i % _RESCALE == 0 or i == len(up)
            odds = probability[j] / (1 - probability[j])
            self.steps.append(_Step(up[j], residue[j], odds, hidden[j], pending if due else 1.0))
            self.lengths.append(self.lengths[-1] + up[j])
            pending = 1.0 if due else pending

    def law(self) -> Tensor:
        """Return the moments 0, 1, 2 of R in every cell, (3, rows, cells)."""
        state = self._start(3, self.lengths[-1])
        for step, length in zip(self.steps, self.lengths, strict=False):
            _advance(state, step, length)
        return state

    def by_position(self, functional: Tensor) -> Tensor:
        """Return E[b_j (H₀(M) + H₁(M) R)] for every position; `functional` is (2, rows, cells) and is used up.

        The number of ones is what every bit adds to it:
        """
        out = functional.new_zeros(len(self.steps))
        if self.steps:
            self._back(0, len(self.steps), self._start(2, 1), functional, out)
        return torch.empty_like(out).scatter_(0, torch.tensor(self.order, dtype=torch.int64), out)

    def _start(self, moments: int, cells: int) -> Tensor:
        state = torch.zeros(moments, self.rows, cells, dtype=torch.float64)
        state[0, 0, 0] = 1.0
        return state

    def _back(self, low: int, high: int, state: Tensor, functional: Tensor, out: Tensor) -> None:
        """Go back over steps low … high − 1 from the state before them; a few prefixes are kept, the rest redone."""
        if high - low == 1:
            out[low] = _retreat(functional, state, self.steps[low], self.lengths[low])
            return
        ends = [low + (high - low) * i // _BRANCH for i in range(_BRANCH + 1)]
        parts = [part for part in pairwise(ends) if part[0] < part[1]]
        states = [state]
        for first, last in parts[:-1]:
            longer = state.new_zeros(2, self.rows, self.lengths[last])
            longer[:, :, : self.lengths[first]] = states[-1][:, :, : self.lengths[first]]
            for step, length in zip(self.steps[first:last], self.lengths[first:last], strict=True):
                _advance(longer, step, length)
            states.append(longer)
        for first, last in reversed(parts):
            self._back(first, last, states.pop(), functional, out)


def _advance(state: Tensor, step: _Step, length: int) -> None:
    """Add one position to the law, in place, from the last block to the first: what is read is not yet written."""
    up, r = step.up, step.residue
    for stop in range(length, 0, -_BLOCK):
        start = max(0, stop - _BLOCK)
        source = state[:, :, start:stop]
        if step.hidden:
            source = source.flip(1)
        target = state[:, :, start + up : stop + up]
        # E(R + r) = E R + r and E(R + r)² = E R² + r(2E R + r), times the mass.
        first = torch.add(source[1], source[0], alpha=r)
        if len(state) == 3:
            second = torch.add(source[1], first).mul_(r).add_(source[2])
            target[2].add_(second, alpha=step.odds)
        mass = source[0] if step.hidden or up >= _BLOCK else source[0].clone()
        target[1].add_(first, alpha=step.odds)
        target[0].add_(mass, alpha=step.odds)
    if step.scale != 1.0:
        state[:, :, : length + up] *= step.scale


def _retreat(functional: Tensor, state: Tensor, step: _Step, length: int) -> float:
    """Take one position off the functional, in place, and return what its ones contribute; `state` is before it."""
    up, r = step.up, step.residue
    if step.scale != 1.0:
        functional[:, :, : length + up] *= step.scale
    parts = []
    for start in range(0, length, _BLOCK):
        stop = min(length, start + _BLOCK)
        source = functional[:, :, start + up : stop + up]
        source = source.flip(1) if step.hidden else source
        constant = torch.add(source[0], source[1], alpha=r)
        slope = source[1] if step.hidden or up >= _BLOCK else source[1].clone()
        before = state[:, :, start:stop]
        parts.append(float((before[0] * constant).sum() + (before[1] * slope).sum()))
        functional[0, :, start:stop].add_(constant, alpha=step.odds)
        functional[1, :, start:stop].add_(slope, alpha=step.odds)
    return step.odds * math.fsum(parts)
