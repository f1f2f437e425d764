"""What can go wrong in a lattice cell next to a cut, when only mean and variance of the residue are known.

τ is the distance from the mean of the residue to the cut in standard deviations. The model takes the residue as normal;
each bound holds for every law with that mean and variance. `docs/explanation/engines.md` has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from parityscope.risk.engines.lattice.grid import Cells
from parityscope.risk.pieces.pieces import Piecewise, recentre

_ROOT = math.sqrt(2 * math.pi)


class Straddle(NamedTuple):
    """With z = |τ| and u of mean 0 and variance 1: the normal model beyond the cut and the most it can err."""

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
        # For a normal u: E(u − z)₊ = φ(z) − zΦ(−z) and E(u − z)₊² = (1 + z²)Φ(−z) − zφ(z).
        excess = (density - z * beyond).clamp_(min=0.0)
        square = ((1 + z * z) * beyond - z * density).clamp_(0.0, 1.0)
        # The numbers are those of engines.md, "At a cut". (1) Cantelli, for every law of mean 0 and variance 1.
        cantelli = 1 / (1 + z * z)  # P(u ≥ z) at most
        # (2) Scarf: ½(√(1 + z²) − z), written so that nothing cancels.
        scarf = 0.5 / (torch.sqrt(1 + z * z) + z)  # E(u − z)₊ at most
        # (4) by the triangle inequality and E|u| ≤ 1; (5) by E X² with E[u; u ≥ z] ≥ z·P(u ≥ z). Both hold.
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
    # ∫ i·t^{i−1}·2e^{−t²/2v²} dt over t > 0.
    return order * 2 ** (order / 2) * math.gamma(order / 2) * proxy**order


def _gaussian_tail(order: int, proxy: float, at: float) -> float:
    """Return a bound on E[|R|^order; |R| > at] under the same tails, for order 0, 1, 2.

    >>> _gaussian_tail(0, 1.0, 9.0) < 1e-17
    True
    """
    if proxy == 0.0:
        return 0.0
    # The same integral from `at`: engines.md, "How far to look".
    chance = 2 * math.exp(-0.5 * (at / proxy) ** 2)
    return chance * (1.0, at + proxy**2 / at, at**2 + 2 * proxy**2)[order]


_CHUNK = 1 << 17  # cells worked on at a time


@dataclass
class Totals:
    """What the patterns add up to.

    >>> Totals(torch.zeros(4), None).value_bound  # before any of them
    0.0
    """

    slope: Tensor  # (patterns,): E[L′] given the pattern, times its probability
    functional: Tensor | None  # (2, rows, cells): L′ ≈ H₀(M) + H₁(M)·R, summed over patterns
    value: float = 0.0
    value_bound: float = 0.0
    slope_bound: float = 0.0


@dataclass(frozen=True)
class RowTask:
    """The patterns of one label against the cells of one row.

    >>> size = Piecewise(torch.zeros(1), torch.tensor([[0.0, -1.0], [0.0, 1.0]]), torch.zeros(2))  # |S|
    >>> task = RowTask(size, torch.tensor([0]), torch.tensor([-0.5]), torch.ones(1), 0, 1e-15)
    >>> task.side(task.shift).item()  # of the only pattern, if the rounded bits are all 0
    0.5
    """

    side: Piecewise
    where: Tensor  # of the patterns
    shift: Tensor
    weight: Tensor
    row: int
    slack: float  # how far a score may be off by rounding


def add_straddling(task: RowTask, j: int, cells: Cells, totals: Totals) -> None:
    """Correct the cells around a cut, whose inputs may lie beyond it, and add up what the correction can err.

    E|S| for S = 0.3 x₁ + 0.7 x₂ − 0.5, rounded to two steps of 0.5: the cell at S = 0 holds −0.2 and 0.2, so that it
    adds ½·0.2, of which the model of a normal residue misses a little:

    >>> from parityscope.risk.engines.lattice.grid import LatticeTable
    >>> weights = torch.tensor([0.3, 0.7], dtype=torch.float64)
    >>> cells = Cells.of(LatticeTable.of(torch.tensor([0, 1]), weights, torch.zeros(2, dtype=torch.bool), 0.5), 0.5)
    >>> coefs = torch.tensor([[0.0, -1.0], [0.0, 1.0]], dtype=torch.float64)
    >>> size = Piecewise(coefs.new_zeros(1), coefs, coefs.new_zeros(2))
    >>> totals = Totals(coefs.new_zeros(1), None)
    >>> task = RowTask(size, torch.tensor([0]), coefs.new_tensor([-0.5]), coefs.new_ones(1), 0, 1e-15)
    >>> add_straddling(task, 0, cells, totals)
    >>> round(totals.value, 3), abs(totals.value - 0.1) <= totals.value_bound < 0.09
    (0.08, True)
    """
    side, cut = task.side, task.side.cuts[j]
    about = cut - side.centres[j : j + 2]
    before, after = recentre(side.coefs[j : j + 2], about)
    jump = torch.nn.functional.pad(after - before, (0, max(0, 2 - side.degree))).tolist()
    share = float(task.weight.sum())
    # What is not modelled is bounded whole: terms beyond the second, |D_i|·E|R|^i, and inputs that cross the cut from
    # beyond the window, |D_i|·E[|R|^i; |R| > w].
    for order, size in enumerate(jump):
        if order > 2:
            totals.value_bound += share * abs(size) * gaussian_moment(order, cells.proxy)
            totals.slope_bound += share * abs(size) * order * gaussian_moment(order - 1, cells.proxy)
        elif cells.window < cells.reach:
            totals.value_bound += share * abs(size) * _gaussian_tail(order, cells.proxy, cells.window)
            if order:
                totals.slope_bound += share * abs(size) * order * _gaussian_tail(order - 1, cells.proxy, cells.window)
    width = int((cells.window + task.slack) / cells.spacing) + 2
    place = ((cut - task.shift - cells.start) / cells.spacing).ceil()
    near = torch.nonzero((place > -width) & (place < cells.size + width)).flatten()
    for chunk in near.split(max(1, _CHUNK // (2 * width))):
        _Around(task, cells, chunk, float(cut), place[chunk].long(), width).add(jump[:3], totals)


@dataclass(frozen=True)
class _Around:
    """The cells around a cut, (patterns, 2·width): distance, residue and mass of each."""

    task: RowTask
    cells: Cells
    chunk: Tensor  # of the patterns of the task
    cut: float
    place: Tensor
    width: int
    index: Tensor = field(init=False)

    def __post_init__(self) -> None:
        index = self.place[:, None] + torch.arange(-self.width, self.width)
        object.__setattr__(self, "index", index)

    @cached_property
    def distance(self) -> Tensor:
        """From the cell to the cut."""
        shift = self.task.shift[self.chunk][:, None]
        return self.cut - shift - (self.cells.start + self.cells.spacing * self.index.double())

    def add(self, jump: list[float], totals: Totals) -> None:
        """Add the correction for a polynomial that starts at the cut, and its bound."""
        cells, row, slack = self.cells, self.task.row, self.task.slack
        possible = (self.index >= 0) & (self.index < cells.size) & (self.distance.abs() <= cells.reach + slack)
        if not bool(possible.any()):
            return
        pattern, column = torch.nonzero(possible, as_tuple=True)
        index, distance = self.index[pattern, column], self.distance[pattern, column]
        w = self.task.weight[self.chunk][pattern]
        deviation, tau = cells.deviation[row, index], distance - cells.mean[row, index]
        mass = cells.mass[row, index] * w
        tau /= deviation
        at, low = Straddle.of(tau.abs()), tau < 0
        hard = (column >= self.width).double()  # the cell was counted as beyond the cut
        # Rounding moves a score by up to `slack`: so much of the cell, in deviations, may cross the cut by it.
        blur = (slack / deviation).clamp_(max=1.0)
        d0, d1, d2 = jump
        # What is missing is E[(R − d)^i (1{R ≥ d} − 1{d ≤ 0})]. `Straddle` knows z = |τ|, and u → −u serves τ < 0:
        # P(u ≥ τ) = 1 − P(u ≥ z), E(u − τ)₊ = E(u − z)₊ − τ, E(u − τ)₊² = 1 + τ² − E(u − z)₊².
        beyond = torch.where(low, 1 - at.beyond, at.beyond) - hard
        excess = torch.where(low, at.excess - tau, at.excess) + hard * tau
        value, bound = d0 * beyond + d1 * deviation * excess, abs(d0) * (at.share_error + blur)
        bound += abs(d1) * (deviation * at.excess_error + slack)
        if d2:
            square = torch.where(low, 1 + tau * tau - at.square, at.square) - hard * (1 + tau * tau)
            value += d2 * deviation.square() * square
            bound += abs(d2) * deviation.square() * (torch.maximum(at.square, 1 - at.square) + blur)
        totals.value += float((value * mass).sum())
        totals.value_bound += float((bound * mass).sum())
        slope = d1 * beyond + 2 * d2 * deviation * excess
        where = self.task.where[self.chunk][pattern]
        totals.slope.index_add_(0, where, slope * mass)
        error = abs(d1) * (at.tagged_share_error + 2 * blur)
        error += 2 * abs(d2) * deviation * (at.tagged_excess_error + 2 * blur)
        totals.slope_bound += float((error * mass).sum())
        if totals.functional is not None:
            # The best linear fit of 1{u ≥ τ} under the normal model is Φ(−τ) + φ(τ)u, and that of (u − τ)₊ has the
            # slope Φ(−τ); u = (R − μ)/σ.
            linear = (d1 * at.density / deviation + 2 * d2 * beyond) * w
            totals.functional[0, row].index_add_(0, index, slope * w - linear * cells.mean[row, index])
            totals.functional[1, row].index_add_(0, index, linear)
