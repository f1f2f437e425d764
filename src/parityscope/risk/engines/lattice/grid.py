"""Which positions are visited, which are rounded to a lattice, and the law of the rounded ones cell by cell.

The law is that of a subset-sum programme. Bits b_j with P(b_j = 1) = p_j move a sum by c_j = up_j·h + r_j, up_j ≥ 0
whole. Cell M holds the inputs with Σ up_j b_j = M, and of R = Σ r_j b_j its moments E[R^i; M], i = 0, 1, 2. One
position more is one shifted addition. Hidden bits, if any, split every cell by the label. Masses are never negative, so
that no sum cancels. The programme runs backwards for the gradient: E[b_j H(M, R)] for every j at once, H linear in R.

Shapes: a state is (moments, rows, cells), rows 1, or 2 (label +1, label −1) when there are hidden bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from parityscope.risk.engines.subsets import subset_products, subset_sums
from parityscope.risk.pieces.rounding import UNIT

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


_CANDIDATES = 4096  # spacings tried for one lattice
_COMMON = 64  # weights that are multiples of a common part: that part is the smallest one divided by at most this
_DEVIATIONS = 9.0  # of the residue, looked at around a cut; beyond lies 2·exp(−9²/2) = 5e-18
_PREFIX_BLOCK = 16  # numbers added one after the other


@dataclass(frozen=True)
class Query:
    """The positions that are visited one pattern at a time: sums, labels (0: +1, 1: −1) and probabilities.

    >>> c, hidden = torch.tensor([0.5, 0.25], dtype=torch.float64), torch.tensor([True, False])
    >>> query = Query.of(torch.tensor([0, 1]), c, hidden, 0.5)
    >>> query.sums.tolist(), query.label.tolist(), query.weight.tolist()
    ([0.0, 0.25, 0.5, 0.75], [0, 0, 1, 1], [0.25, 0.25, 0.25, 0.25])
    """

    positions: Tensor
    sums: Tensor
    label: Tensor
    weight: Tensor

    @staticmethod
    def of(positions: Tensor, c: Tensor, mask: Tensor, bias: float) -> Query:
        """Visit every pattern of the given positions."""
        p = np.full((1, len(positions)), bias)
        hidden, sums = (subset_sums(part[positions].double().numpy()[None])[0] for part in (mask, c))
        label = torch.from_numpy(hidden % 2).long()
        return Query(positions, torch.from_numpy(sums), label, torch.from_numpy(subset_products(1 - p, p)[0]))


@dataclass(frozen=True)
class LatticeTable:
    """The positions that are rounded, reflected so that no weight is negative: −c·x = −c + c·(1 − x)."""

    positions: Tensor
    reflected: Tensor
    weights: Tensor
    probability: Tensor
    hidden: Tensor
    origin: float
    flipped: bool

    @staticmethod
    def of(positions: Tensor, c: Tensor, mask: Tensor, bias: float) -> LatticeTable:
        """Reflect the negative weights; a reflected hidden bit flips the label."""
        weights, hidden = c[positions], mask[positions]
        reflected = weights < 0
        probability = torch.where(reflected, 1 - bias, torch.full_like(weights, bias))
        flips = int((reflected & hidden).sum()) % 2 == 1
        origin = float(weights[reflected].sum())
        return LatticeTable(positions, reflected, weights.abs(), probability, hidden, origin, flips)

    @property
    def steps_per_cell(self) -> float:
        """How many positions reach the average cell, lightest first; at least one.

        >>> c = torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)  # they reach a quarter, a half and all of the cells
        >>> LatticeTable.of(torch.arange(3), c, torch.zeros(3, dtype=torch.bool), 0.5).steps_per_cell
        1.75
        """
        reached = self.weights.sort().values.cumsum(0)
        return max(1.0, float((reached / reached[-1]).sum())) if len(reached) and reached[-1] > 0 else 1.0

    def spacing(self, cells: int) -> float:
        """Return the distance of about `cells` cells at which the weights are best rounded.

        Equal weights need one cell each:

        >>> c = torch.full((50,), 0.06, dtype=torch.float64)
        >>> LatticeTable.of(torch.arange(50), c, torch.zeros(50, dtype=torch.bool), 0.5).spacing(1000)
        0.06
        """
        used = self.weights[self.weights > 0]
        if not len(used):
            return 1.0
        total = float(used.sum())
        common = float(used.min()) / torch.arange(1, _COMMON + 1, dtype=torch.float64)
        left = (used - (used / common[:, None]).round() * common[:, None]).abs().sum(1)
        # Weights that are multiples of one number leave no residue: nothing is rounded then.
        exact = (left <= 4 * UNIT * total) & (total / common <= cells)
        if bool(exact.any()):
            return float(common[exact][0])
        target = total / cells
        tried = [target * (1 + 0.25 * torch.arange(_CANDIDATES // 8, dtype=torch.float64) * 8 / _CANDIDATES)]
        for reference in (float(used.max()), float(used.median())):
            first, last = math.ceil(reference / (1.25 * target)), math.floor(reference / target)
            if 1 <= first <= last:
                share = max(1, (last - first + 1) // (_CANDIDATES // 2))
                tried.append(reference / torch.arange(first, last + 1, share, dtype=torch.float64))
        every = torch.cat(tried)
        left = (used - (used / every[:, None]).round() * every[:, None]).square().sum(1)
        return float(every[left.argmin()])


@dataclass(frozen=True)
class Cells:
    """The law of the rounded positions: cell M lies at start + spacing·M, and S there is that plus a residue R.

    R has mean 0 over all cells, |R| ≤ reach, and tails P(|R| ≥ t) ≤ 2 exp(−t²/2·proxy²). Two weights of 0.3 and 0.7 on
    a lattice of spacing 0.5 are one cell each, and leave −0.2 and 0.2:

    >>> c, hidden = torch.tensor([0.3, 0.7], dtype=torch.float64), torch.tensor([False, False])
    >>> cells = Cells.of(LatticeTable.of(torch.tensor([0, 1]), c, hidden, 0.5), 0.5)
    >>> cells.mass.tolist(), round(cells.reach, 9), cells.deviation.square()[0].round(decimals=9).tolist()
    ([[0.25, 0.5, 0.25]], 0.2, [0.0, 0.04, 0.0])
    """

    programme: Programme
    start: float
    spacing: float
    mean_residue: float  # of the bits as the programme counts them
    reach: float
    proxy: float
    mass: Tensor  # (rows, cells)
    first: Tensor  # E[R; M]
    second: Tensor  # E[R²; M]

    @staticmethod
    def of(table: LatticeTable, spacing: float) -> Cells:
        """Round the weights and run the programme."""
        up = (table.weights / spacing).round()
        residue, p = table.weights - up * spacing, table.probability
        programme = Programme(up.long().tolist(), residue.tolist(), p.tolist(), table.hidden.tolist())
        mass, first, second = programme.law()
        mean = float((residue * p).sum())
        # (R − m)² = R² − 2mR + m²: moments about the mean residue, which goes into the place of the cells.
        second = second.sub_(first, alpha=2 * mean).add_(mass, alpha=mean * mean)
        first = first.sub_(mass, alpha=mean)
        return Cells(
            programme,
            table.origin + mean,
            spacing,
            mean,
            # ρ = Σ|r_j|·max(p_j, 1 − p_j), and v with v² = Σr_j²/4 (Hoeffding).
            float((residue.abs() * torch.maximum(p, 1 - p)).sum()),
            0.5 * float(residue.square().sum().sqrt()),
            mass,
            first,
            second,
        )

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.mass.shape[1]

    @cached_property
    def at(self) -> Tensor:
        """Where the cells lie."""
        return self.start + self.spacing * torch.arange(self.size, dtype=torch.float64)

    @property
    def rounding(self) -> float:
        """The relative error of a mass; moments i have as much relative to reach^i."""
        return 8 * (len(self.programme.steps) + 16) * UNIT

    @cached_property
    def mean(self) -> Tensor:
        """E[R | M]."""
        return self.first / self.mass.clamp(min=torch.finfo(torch.float64).tiny)

    @cached_property
    def deviation(self) -> Tensor:
        """The standard deviation of R in each cell, never too small by rounding."""
        square = self.second / self.mass.clamp(min=torch.finfo(torch.float64).tiny) - self.mean.square()
        # The moments err by the rounding times (2ρ)^i (engines.md, "Rounding"); eight times that is added.
        return (square.clamp(min=0.0) + 32 * self.rounding * self.reach**2).sqrt_()

    @cached_property
    def window(self) -> float:
        """How far from a cut a residue is looked at."""
        return min(self.reach, _DEVIATIONS * self.proxy)

    @property
    def middle(self) -> float:
        """Half way between the first and the last cell."""
        return self.start + 0.5 * self.spacing * (self.size - 1)

    @cached_property
    def prefix(self) -> Tensor:
        """Moments 0, 1, 2 of the rounded sum about the middle, over the cells before each: (3, rows, cells + 1)."""
        s = self.at - self.middle
        second = self.second + 2 * s * self.first + s * s * self.mass
        return torch.stack([prefix_sums(x) for x in (self.mass, self.first + s * self.mass, second)])

    @property
    def prefix_rounding(self) -> float:
        """The relative error of a prefix sum of as many numbers, without that of the numbers."""
        levels = math.ceil(math.log(max(2, self.size), _PREFIX_BLOCK))
        return (_PREFIX_BLOCK + 4) * levels * UNIT


def prefix_sums(x: Tensor) -> Tensor:
    """Return sums over the entries before each and over all: (rows, m) -> (rows, m + 1), in blocks, rounded little."""
    rows, m = x.shape
    if m <= _PREFIX_BLOCK:
        return torch.nn.functional.pad(x.cumsum(1), (1, 0))
    blocks = -(-m // _PREFIX_BLOCK)
    padded = torch.nn.functional.pad(x, (0, blocks * _PREFIX_BLOCK - m)).view(rows, blocks, _PREFIX_BLOCK).cumsum(2)
    before = prefix_sums(padded[:, :, -1].contiguous())[:, :-1]
    return torch.nn.functional.pad((padded + before[:, :, None]).view(rows, -1)[:, :m], (1, 0))
