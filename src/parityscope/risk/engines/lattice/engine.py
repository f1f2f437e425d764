"""Certified risk and gradient for any n and any attention, by rounding the lighter weights to a lattice.

The hidden and the heaviest positions are visited pattern by pattern, exactly. The law of the others is tabulated over
the cells of a lattice, with the first moments of what rounding left out. Where the loss is one polynomial across a cell
the mean is exact; next to a cut of its pieces the residue is taken as normal, and what this can cost at most is added
up: each bound holds for every law with that mean and variance. τ is the distance from the mean of the residue to the
cut in standard deviations. `docs/explanation/engines.md` derives the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

from parityscope.core.threads import single_threaded
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import Job, OnPieces, one_by_one
from parityscope.risk.engines.lattice.grid import Cells, LatticeTable, Query
from parityscope.risk.engines.subsets import sums_by_position
from parityscope.risk.means import Mean, RunMean
from parityscope.risk.pieces.pieces import Pieces, Piecewise, recentre
from parityscope.risk.pieces.rounding import UNIT

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


_FIRST_CELLS = 1 << 14
_WORK = 2.2e8  # cells × positions that reach them: about ten seconds with the gradient
_MOST_CELLS = 1 << 22  # three dozen numbers each at most, and so less than 1.5 GB
_PATTERNS = 16  # bits visited exactly when the pieces are polynomials of degree at most 2
_MANY, _PATTERNS_OF_MANY = 400, 14  # with many bits more cells lie around every cut, and fewer patterns are visited
# What a training needs is less than what a certificate needs: fewer exact bits and cells, in a thirtieth of the time.
LOOSE, _PATTERNS_IF_LOOSE, _FIRST_CELLS_IF_LOOSE = 1e-6, 8, 1 << 12
_PATTERNS_BY_CELL = 5  # otherwise: every pattern then visits all cells
_HIDDEN_PATTERNS = 12  # hidden bits visited before any others; more of them go by weight


def lattice_risk(
    c: Tensor,
    mask: Tensor,
    pieces: Pieces,
    tolerance: float,
    *,
    bias: float = 0.5,
    want_gradient: bool = True,
    patterns: int | None = None,
) -> RunMean:
    """Return E[L(y f(S))], its gradient and proved bounds on both, for one run; c (n,) float64, mask (n,) bool.

    The lattice is refined until the bound on the value meets `tolerance` or a dozen seconds are spent.

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips, so a hidden bit of weight c leaves a risk of 1 − c/2:
    """
    pieces.check_domain(c[None], c.new_zeros(1))
    by_cell = max(side.degree for side in pieces.sides()) > 2
    loose = tolerance >= LOOSE
    exact_bits = _PATTERNS_IF_LOOSE if loose else _PATTERNS if len(c) < _MANY else _PATTERNS_OF_MANY
    query, table = _divide(c, mask, bias, patterns or (_PATTERNS_BY_CELL if by_cell else exact_bits))

    def evaluated(cells: Cells) -> Totals:
        functional = torch.zeros_like(cells.mass).repeat(2, 1, 1) if want_gradient else None
        return _evaluate(query, table, cells, pieces, functional)

    with single_threaded(), torch.no_grad():
        most = int(min(_MOST_CELLS, _WORK / table.steps_per_cell))
        cells = Cells.of(table, table.spacing(min(_FIRST_CELLS_IF_LOOSE if loose else _FIRST_CELLS, most)))
        totals = evaluated(cells)
        wanted = min(most, _cells_for(tolerance, totals.value_bound, pieces, cells.size))
        if wanted > cells.size:
            cells = Cells.of(table, table.spacing(wanted))
            totals = evaluated(cells)
        gradient = _gradient(len(c), query, table, cells, totals)
    exact = pieces.error == 0.0 and want_gradient
    return RunMean(
        totals.value,
        gradient,
        float(totals.slope.sum()),
        totals.value_bound + pieces.error,
        pieces.error_is,
        totals.slope_bound if exact else math.inf,
    )


def _cells_for(tolerance: float, bound: float, pieces: Pieces, cells: int) -> int:
    """Return how many cells the tolerance needs: the bound falls with their square, with their number for jumps."""
    aim = 0.4 * max(tolerance - pieces.error, 0.5 * tolerance)
    if bound <= 2 * aim:
        return cells
    # A kink errs by the density times Var R, of second order in the spacing; a jump by its square root.
    power = 1.0 if max(side.degree for side in pieces.sides()) == 0 else 0.5
    return int(min(2.0 * _MOST_CELLS, cells * (bound / aim) ** power))


def _divide(c: Tensor, mask: Tensor, bias: float, patterns: int) -> tuple[Query, LatticeTable]:
    """Visit the hidden positions if they are few, then the heaviest; round the others."""
    first = (
        c.abs() + torch.where(mask, torch.inf, 0.0) if int(mask.sum()) <= min(patterns, _HIDDEN_PATTERNS) else c.abs()
    )
    order = first.argsort(descending=True, stable=True)
    visited, rounded = order[:patterns], order[patterns:]
    return Query.of(visited, c, mask, bias), LatticeTable.of(rounded, c, mask, bias)


def _evaluate(query: Query, table: LatticeTable, cells: Cells, pieces: Pieces, functional: Tensor | None) -> Totals:
    """Go through all patterns, label by label and row by row."""
    totals = Totals(torch.zeros_like(query.sums), functional)
    scale = float(table.weights.sum() + query.sums.abs().max()) + abs(cells.start)
    for row in range(cells.mass.shape[0]):
        for label in (0, 1):
            where = torch.nonzero(query.label == label).flatten()
            side = pieces.sides()[(label + row + table.flipped) % 2]
            size = scale + float(side.centres.abs().max())
            # How far rounding moves a score: engines.md, "Rounding".
            slack = 2 * (len(query.positions) + 16) * UNIT * size
            task = RowTask(side, where, query.sums[where], query.weight[where], row, slack)
            if side.degree > 2:
                _add_by_cell(task, cells, pieces.domain, totals)
            else:
                _add_by_range(task, cells, totals)
            for j in range(len(side.cuts)):
                add_straddling(task, j, cells, totals)
    return totals


def _add_by_range(task: RowTask, cells: Cells, totals: Totals) -> None:
    """Add pieces of degree at most 2 over the cells that each covers, by differences of prefix moments."""
    side, w, row = task.side, task.weight, task.row
    prefix, half = cells.prefix[:, row], 0.5 * cells.spacing * cells.size
    first, last = torch.zeros_like(task.where), torch.full_like(task.where, cells.size)
    ends = [first, *(_rank(task, cut, cells) for cut in side.cuts), last]
    jumps = w.new_zeros(2, cells.size + 1)
    slopes, size, terms, steep = (torch.zeros_like(w) for _ in range(4))
    for j, (c0, c1, c2) in enumerate(torch.nn.functional.pad(side.coefs, (0, 2 - side.degree)).tolist()):
        low, high = ends[j], ends[j + 1]
        m0, m1, m2 = prefix[:, high] - prefix[:, low]
        u = task.shift + cells.middle - side.centres[j]
        # E[s + u] and E[(s + u)²] over the range, from the moments of s.
        at_one = m1 + u * m0
        at_two = m2 + u * (m1 + at_one)
        totals.value += float(((c0 * m0 + c1 * at_one + c2 * at_two) * w).sum())
        # Cauchy and Schwarz: E|S − centre| is at most this.
        spread = (m0 * at_two).clamp_(min=0.0).sqrt_()
        terms += (abs(c0) * m0 + abs(c1) * spread + abs(c2) * at_two.abs()) * w
        slopes += (c1 * m0 + 2 * c2 * at_one) * w
        filled = (high > low) * w
        far = u.abs() + half
        size += filled * (abs(c0) + far * (abs(c1) + far * abs(c2)))
        steep += filled * (abs(c1) + 2 * abs(c2) * far)
        if totals.functional is not None:
            for order, jump in enumerate((filled * (c1 + 2 * c2 * u), filled * 2 * c2)):
                jumps[order].index_add_(0, low, jump).index_add_(0, high, jump, alpha=-1.0)
    totals.slope[task.where] += slopes
    totals.value_bound += cells.rounding * float(terms.sum()) + 2 * cells.prefix_rounding * float(size.sum())
    totals.slope_bound += (2 * cells.prefix_rounding + _functional_rounding(cells)) * float(steep.sum())
    if totals.functional is not None:
        constant, linear = jumps.cumsum(1)[:, :-1]
        totals.functional[0, row] += constant + linear * (cells.at - cells.middle)
        totals.functional[1, row] += linear


def _functional_rounding(cells: Cells) -> float:
    """Return the relative error of the backward pass: a cumulative sum, the steps back, the products with the law."""
    return UNIT * (8 * len(cells.programme.steps) + min(cells.size, 1 << 15) + 64 + 2 * cells.size)


def _add_by_cell(task: RowTask, cells: Cells, domain: tuple[float, float], totals: Totals) -> None:
    """Add pieces of any degree cell by cell: L, L′ and L″ there and the moments of R; the rest is at most R³ L‴/6."""
    row, slope = task.row, task.side.derivative()
    curve = slope.derivative()
    for where, shift, w in zip(task.where.tolist(), task.shift.tolist(), task.weight.tolist(), strict=True):
        s = cells.at + shift
        value, first, second = task.side(s), slope(s), curve(s)
        mass, one, two = cells.mass[row], cells.first[row], cells.second[row]
        # Taylor to the second order about the cell, whose residue has these moments.
        totals.value += w * float((mass * value + one * first + 0.5 * two * second).sum())
        totals.slope[where] += w * float((mass * first + one * second).sum())
        if totals.functional is not None:
            totals.functional[0, row].add_(first, alpha=w)
            totals.functional[1, row].add_(second, alpha=w)
    size, steep, third = (_largest(task.side, order, domain, cells.reach) for order in (0, 1, 3))
    share, rounding = float(task.weight.sum()), cells.rounding + 64 * UNIT
    # What Taylor leaves: sup|L‴|·E|R|³/6 of the value, sup|L‴|·E R²/2 of the slope.
    totals.value_bound += share * (rounding * size + third * gaussian_moment(3, cells.proxy) / 6)
    totals.slope_bound += share * (rounding + _functional_rounding(cells)) * steep
    totals.slope_bound += share * third * gaussian_moment(2, cells.proxy) / 2


def _largest(side: Piecewise, order: int, domain: tuple[float, float], beyond: float) -> float:
    """Return the most that a derivative of this order can be on any piece within the domain, and a little beyond."""
    ends = torch.tensor([domain[0], *side.cuts.tolist(), domain[1]], dtype=torch.float64)
    far = torch.maximum((ends[1:] - side.centres).abs(), (ends[:-1] - side.centres).abs()) + beyond
    powers = range(order, side.degree + 1)
    terms = [side.coefs[:, i].abs() * math.perm(i, order) * far ** (i - order) for i in powers]
    return float(torch.stack(terms).sum(0).max())


def _rank(task: RowTask, cut: Tensor, cells: Cells) -> Tensor:
    """Return for every pattern the first cell at or beyond the cut."""
    return ((cut - task.shift - cells.start) / cells.spacing).ceil().clamp(0, cells.size).long()


def _gradient(n: int, query: Query, table: LatticeTable, cells: Cells, totals: Totals) -> Tensor:
    """Collect E[L′ x_j]: from the slopes of the patterns, and from the programme run backwards."""
    gradient = totals.slope.new_zeros(n)
    if totals.functional is None:
        return gradient
    visited = sums_by_position(totals.slope.numpy()[None], len(query.positions))[0]
    gradient[query.positions] = torch.from_numpy(visited)
    functional = totals.functional
    functional[0] -= cells.mean_residue * functional[1]  # the programme counts residues from 0
    ones = cells.programme.by_position(functional)
    gradient[table.positions] = torch.where(table.reflected, float(totals.slope.sum()) - ones, ones)
    return gradient


# Seconds at a tolerance of 1e-9, measured by benchmarks/lattice.py: a run, and a position of it.
_RUN, _POSITION, _MOST = 0.15, 0.02, 10.0
_RUN_IF_LOOSE, _PAIR_IF_LOOSE = 0.03, 3e-6  # for a tolerance as of a training: a run, and a position times n


class Lattice(OnPieces):
    """The law of the score over the cells of a lattice, with the moments of what rounding leaves out."""

    card = CARDS["lattice"]
    foresees = False  # it ends when its budget is spent, and says what it has reached
    # A share of right signs jumps: its interval is narrow, and never as narrow as the error of a mean loss.
    takes_any_bound_of = "accuracy"
    fair_bits = False

    def cost(self, job: Job) -> float:
        """A pass over the positions, on as many cells as the budget allows."""
        loose = job.tolerance >= LOOSE
        run = _RUN_IF_LOOSE + _PAIR_IF_LOOSE * job.n**2 if loose else _RUN + _POSITION * job.n
        return self.fit_seconds(job) + job.count * min(run, _MOST)

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run, with a proved bound on its gradient too."""
        wanted = job.loss is not None and job.runs.want_gradient
        return one_by_one(job, partial(lattice_risk, tolerance=job.tolerance, bias=job.law.bias, want_gradient=wanted))
