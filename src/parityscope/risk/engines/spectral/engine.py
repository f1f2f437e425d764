"""Risk of diffuse attention at large n through the characteristic function of S, certified in value and gradient.

With mu = sum(c)/2 and t the frequency,
    E[exp(it(S-mu))]   = prod_j cos(t c_j/2)                                =: A(t)
    E[y exp(it(S-mu))] = (-i)^k prod_B sin(t c_j/2) prod_not-B cos(t c_j/2) =: (-i)^k B(t)
are real up to a constant. Heavy positions are enumerated; the loss of the others' score, for every pattern of them, is
made periodic (`series`), and frequencies are evaluated where a scan cannot bound A and B (`scan`).
docs/explanation/engines.md derives the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.problems import bits_of
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import Job, OnPieces, one_by_one
from parityscope.risk.engines.spectral.scan import Bounds, Scan
from parityscope.risk.engines.spectral.series import Periodic, Tapers, Window
from parityscope.risk.means import Mean, RunMean
from parityscope.risk.pieces.pieces import Pieces
from parityscope.risk.pieces.represent import score_range
from parityscope.risk.pieces.rounding import UNIT, chain, crossing, derivative, extent, gradient_crossing

# sin x ≥ (95/96) x up to x = 1/4, squared: in Esseen's inequality.
_ESSEEN = (96 / 95) ** 2
_TINY = 1e-300
_JITTER_TOLERANCE, _ROOM = 1e-12, 1000.0  # what may be skipped, and widths of the jitter before the window ends
_BLOCK = 1 << 18  # matrix entries (frequencies x positions) worked on at a time
_BUDGET = 2 * 10**7  # frequencies x positions evaluated at most: about a second and a half
# Blocks x (positions and what each costs besides) scanned at most: about 40 seconds of processor time.
_MOST_SCANNED, _PER_BLOCK = 2e11, 30


@dataclass(frozen=True)
class _Setting:
    """One run: the light weights, and the mean over patterns of the heavy bits of each label's loss of their score."""

    c: Tensor  # of the light positions
    hidden: Tensor  # which of them are hidden
    window: Window
    plus: Periodic
    minus: Periodic
    owners: tuple[Tensor, Tensor]  # the pattern of every joint of either label
    slopes: Tensor  # of every pattern: the mean of both labels' derivatives over a period
    jitter: float | None  # the standard deviation of what is added to the score

    @classmethod
    def of(cls, c: Tensor, hidden: Tensor, patterns: Sequence[Pieces], jitter: float | None) -> _Setting:
        """Make the loss of every pattern periodic on one window, which has room for the jitter."""
        window = Window.of(c, 0.0 if jitter is None else _ROOM * jitter)
        sides = [[Periodic.of(side, window) for side in pieces.sides()] for pieces in patterns]
        plus, minus = zip(*sides, strict=True)
        owners = [
            torch.arange(len(side)).repeat_interleave(torch.tensor([len(p.where) for p in side]))
            for side in (plus, minus)
        ]
        slopes = c.new_tensor([(p.mean_slope + m.mean_slope) / 2 for p, m in sides])
        if jitter is not None:  # with the jumps' own derivatives the mean over a period is none
            slopes = torch.zeros_like(slopes)
        return cls(
            c, hidden, window, Periodic.mean_of(plus), Periodic.mean_of(minus), (owners[0], owners[1]), slopes, jitter
        )

    @property
    def base(self) -> float:
        """The lowest frequency."""
        return 2 * math.pi / self.window.period

    @property
    def spread(self) -> float:
        """The standard deviation of the light positions' score; where it is next to nothing, a share of the window."""
        return max(float(self.c.square().sum().sqrt()) / 2, self.window.half / 1000)

    @property
    def budget(self) -> int:
        """How many frequencies may be evaluated."""
        return _BUDGET // (len(self.c) + len(self.plus.where))

    def scan(self) -> Scan:
        """Return a scan of the frequencies by the positions that keep their cosines."""
        others = self.c[~self.hidden]
        return Scan(others if len(others) > 1 else self.c.new_zeros(1), self.base)

    @property
    def least(self) -> int:
        """The lowest order of jumps that the slope's coefficients have."""
        return 1 if self.jitter is None else 0

    def total(self, order: int) -> float:
        """Return the sum of |jumps| of this order, both labels."""
        return float(self.plus.total[order] + self.minus.total[order])

    def most(self, order: int) -> float:
        """Return the largest derivative of this order."""
        return float(torch.maximum(self.plus.most[order], self.minus.most[order]))

    def envelope(self, t: Tensor, least: int) -> Tensor:
        """Return the mean over labels of the bounds of coefficients."""
        return (self.plus.envelope(t, least) + self.minus.envelope(t, least)) / 2

    def uncertain(self, t: Tensor, least: int) -> Tensor:
        """Return how far rounding of the jumps moves a mean coefficient."""
        return (self.plus.uncertain(t, least) + self.minus.uncertain(t, least)) / 2

    def envelopes(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Bound what a frequency (and its negative) adds to value and slope, if the product of cosines is 1."""
        return 3 * self.envelope(t, 0), 4 * t * self.envelope(t, self.least)

    def last_frequency(self, tolerance: float, gradient_tolerance: float) -> float:
        """Return about the frequency up to which the series must go; a normal density stands for the true one."""
        density = _ESSEEN * math.sqrt(2 * math.pi) / self.spread

        def needed(order: int, wanted: float) -> float:
            bend, kinks, jumps = self.most(order + 2), self.total(order + 1), self.total(order)
            return max(math.sqrt((5 * bend + 15.5 * kinks * density) / wanted), jumps * density / (16 * wanted))

        last = max(needed(0, tolerance / 2), 64 * self.base)
        return max(last, needed(1, gradient_tolerance)) if gradient_tolerance < math.inf else last


@dataclass
class _Sums:
    """What the evaluated frequencies add up to, given the last frequency of the series."""

    value: float
    slopes: Tensor  # E[L'] of every pattern
    grad: Tensor  # by light position, without half of the mean slope
    mass: float = 0.0  # upper bound of the integral of |A| around the evaluated frequencies
    jumps: float = 0.0  # Fejér's sums for jumps of the value
    kinks: float = 0.0  # and of the slope
    value_rounding: float = 0.0
    slope_rounding: float = 0.0
    fejer_rounding: float = 0.0


def _accumulate(run: _Setting, t: Tensor, tapers: Tapers, acc: _Sums) -> None:
    """Add frequencies t."""
    c, mask, k = run.c, run.hidden, int(run.hidden.sum())
    angle = 0.5 * t[:, None] * c
    cos, tan = angle.cos(), angle.tan()
    sin_b, cos_b = angle[:, mask].sin(), cos[:, mask]
    outside = cos[:, ~mask].prod(1)
    a, b = outside * cos_b.prod(1), outside * sin_b.prod(1)
    turn = (-1j) ** k
    # L = ½(L₊ + L₋) + y·½(L₊ − L₋): the even part meets A, the odd one (−i)^k B. t and −t are conjugates.
    found = []
    for side, law, owner in ((run.plus, a + turn * b, run.owners[0]), (run.minus, a - turn * b, run.owners[1])):
        coefficients = side.coefficients(t, tapers)
        acc.value += float((coefficients.value * law).real.sum())
        acc.jumps += float((tapers.fejer * (coefficients.jumps * law).real).sum())
        acc.kinks += float((tapers.fejer * (coefficients.kinks * law).real).sum())
        by_joint = side.slope_by_joint(t, tapers, coefficients.phase, law)
        acc.slopes.index_add_(0, owner, len(acc.slopes) * by_joint)
        found.append(coefficients)
    plus, minus = found
    even, odd = (plus.slope + minus.slope) / 2, turn / 2 * (plus.slope - minus.slope)
    # ∂/∂c_j of a cosine factor is −(t/2)·tan times the product, and twice the real part counts.
    acc.grad += (-t * (even.real * a + odd.real * b)) @ tan
    sine = torch.zeros_like(t)
    if k:  # no hidden bit is left when all of them are heavy
        others = torch.stack([sin_b[:, [i for i in range(k) if i != j]].prod(1) for j in range(k)], 1)
        # A hidden position has a sine in the odd part: its tangent is taken back, and (t/2)·cos times the other
        # factors put in its place.
        back, instead = (t * odd.real * b)[:, None] * tan[:, mask], (t * odd.real * outside)[:, None] * cos_b * others
        acc.grad[mask] += (back + instead).sum(0)
        sine = outside.abs() * ((angle[:, mask] * cos_b * others).abs().sum(1) + others.abs().amax(1))
    sizes = (plus.value.abs() + minus.value.abs()) / 2, (plus.slope.abs() + minus.slope.abs()) / 2
    _round(run, t, _Products(a.abs() + b.abs(), outside.abs(), sine, angle, tan), sizes, acc)
    # |A(t + s)| ≤ exp(−g(t + s)/4), g = Σ(1 − cos tc_j) = 2·Σ sin²(tc_j/2), and for |s| ≤ base/2
    # g(t + s) ≥ g(t) − |s||g′(t)| − (s²/2)·Σc_j² (engines.md, Esseen's constant).
    square = cos.square()
    tilt = (square * tan @ c).abs()
    low = 2 * (1 - square).sum(1) - run.base * tilt - run.base**2 / 8 * c.square().sum()
    low = low - 8 * UNIT * (t * c.abs().sum() + len(c))  # phases and the sum are rounded
    acc.mass += 2 * run.base * float(torch.exp(-low.clamp(min=0) / 4).sum())


class _Products(NamedTuple):
    """At every frequency: |A| + |B|, the product outside the hidden positions, and what sines add to its rounding."""

    law: Tensor
    outside: Tensor
    sine: Tensor
    angle: Tensor
    tan: Tensor


def _round(run: _Setting, t: Tensor, at: _Products, sizes: tuple[Tensor, Tensor], acc: _Sums) -> None:
    """Add what rounding can cost: products, phases, jumps and sums (engines.md, "Rounding of the series")."""
    joints = max(len(run.plus.where), len(run.minus.where))
    tan = at.tan.abs()
    # Relative errors of a product of cosines, and of a coefficient.
    product = 2 * UNIT * (2 * len(run.c) + 10 + 2 * (at.angle.abs() * (tan + 1)).sum(1))
    phase = 2 * UNIT * (2 * joints + 64 + 2 * t * (run.window.period + abs(run.window.centre)))
    # The tangent of one position multiplies the product; a hidden one's sine is replaced by its cosine.
    steep = (1 + tan.amax(1)) * at.law + at.outside
    sine = 4 * UNIT * at.sine
    # Sums over frequencies: torch's own, and for the gradient products of matrices, in any order.
    rough = run.envelope(t, 0) * (phase + 2 * UNIT * chain(len(t))) + run.uncertain(t, 0)
    acc.value_rounding += 2 * float((sizes[0] * (at.law * product + sine) + rough * at.law).sum())
    rough = run.envelope(t, run.least) * (phase + 2 * UNIT * len(t)) + run.uncertain(t, run.least)
    noise = sizes[1] * (steep * product + sine * (1 + tan.amax(1))) + rough * steep
    acc.slope_rounding += 2 * float((noise * t).sum())
    acc.fejer_rounding += 2 * float((at.law * (product + phase + 2 * UNIT * chain(len(t))) + sine).sum())


@dataclass(frozen=True)
class _Found:
    """Value and slopes with their bounds, before patterns and positions are put together."""

    sums: _Sums
    bound: float
    gradient_bound: float

    def ratio(self, tolerance: float, gradient_tolerance: float) -> float:
        """Return how much larger than asked the bounds are."""
        return max(self.bound / tolerance, self.gradient_bound / gradient_tolerance)


def _evaluate(run: _Setting, kept: Tensor, rest: Bounds, last: float) -> _Found:
    """Evaluate these multiples of the lowest frequency, as a series that ends at ``last``; `rest` bounds the others.

    The bounds are those from the risk of the score as it is, or, where S is jittered, from that of the jittered one.
    """
    jittered = run.jitter is not None
    if not jittered:  # Vaaler's sums end at a multiple
        last = math.floor(last / run.base) * run.base
    plus, minus = run.plus, run.minus
    acc = _Sums((plus.mean + minus.mean) / 2, run.slopes.clone(), torch.zeros_like(run.c))
    if (
        int(run.hidden.sum()) == 1 and not jittered
    ):  # E[y x_j] = −½ for the only hidden bit, which meets the odd part of the mean slope
        acc.grad[run.hidden] -= (plus.mean_slope - minus.mean_slope) / 4
    for part in kept[kept.double() * run.base <= last].split(max(1, _BLOCK // (len(run.c) + len(plus.where)))):
        t = part.double() * run.base
        _accumulate(run, t, Tapers.at(t, last, run.base, jittered=jittered), acc)
    multiples = last / run.base + 1
    # Esseen: an interval of length 1/T holds at most density/T of the probability; around the frequency 0, |A| ≤ 1.
    density = _ESSEEN * (acc.mass + run.base + 2 * run.base * rest.plain)

    def error(order: int, fejer: float, skipped: float, rounding: float) -> float:
        left = run.window.outside * (run.most(order) + run.total(order + 1))
        rounding += float((plus.doubt + minus.doubt)[order]) + 64 * UNIT * run.most(order)
        if jittered:
            return skipped + rounding + left
        jumps = run.total(order)
        fejer = max(0.0, jumps / 2 + fejer) + jumps * (acc.fejer_rounding + 2 * rest.plain)
        smooth = sum(side.smoothed_away(order, last, density) for side in (plus, minus))
        return fejer / (2 * multiples) + smooth + skipped + rounding + left

    value = error(0, acc.jumps, rest.value, acc.value_rounding)
    slope = error(1, acc.kinks, rest.slope, acc.slope_rounding)
    return _Found(acc, value, slope)


def _jittered(run: _Setting, width: float) -> _Found:
    """Return the mean loss of S + u, where u has Bohman's density of this standard deviation: its series ends."""
    last, scan = math.pi / width, run.scan()
    if scan.blocks(last) * (len(run.c) + _PER_BLOCK) > _MOST_SCANNED:
        raise InvalidInput(f"a jitter of width {width:g} is too narrow for these weights: its series is too long")
    allowed = Bounds(1.0, _JITTER_TOLERANCE, _JITTER_TOLERANCE)
    sums = _envelope_sums(run, last)
    scan.extend(last, 0.01 * _JITTER_TOLERANCE / max(*sums, _TINY), run.envelopes)
    kept, rest = scan.select(allowed, run.budget, run.envelopes)
    found = _evaluate(run, kept, rest, last)
    # Bohman's density is at most 22.4/x⁴ beyond 2π, in units of 1/T: what is left for S + u to leave the window.
    away = 2 * 15 / (last * max(_ROOM * width, 0.33 * run.window.half)) ** 3
    return replace(
        found, bound=found.bound + away * run.most(0), gradient_bound=found.gradient_bound + away * run.most(1)
    )


def _search(run: _Setting, tolerance: float, gradient_tolerance: float) -> _Found:
    """Let the series go as far as the tolerances need, or work allows."""
    scan = run.scan()
    most = max(64.0, _MOST_SCANNED / (len(run.c) + _PER_BLOCK)) * scan.per * run.base
    last = min(most, run.last_frequency(tolerance, gradient_tolerance))
    # Where few positions move, what no scan can rule out is larger than what is asked, and a longer series of no use.
    value, slope = (scan.usual * total for total in _envelope_sums(run, last))
    last = min(last, run.last_frequency(max(tolerance, value), max(gradient_tolerance, slope)))
    before, longer = math.inf, 1.0
    while True:
        # Fejér's bound on the gradient, about, where none is asked for; a tenth of it all may be skipped.
        slope = min(gradient_tolerance, run.total(1) / (last * run.spread + 1))
        allowed = Bounds(0.05 / run.base / run.spread, 0.1 * tolerance, 0.1 * slope)
        # What is skipped unseen adds up to a hundredth of that, if all of it is as large as this.
        sums = _envelope_sums(run, last)
        small = 0.01 * min(wanted / max(total, _TINY) for wanted, total in zip(allowed[1:], sums, strict=True))
        scan.extend(last, small, run.envelopes, 4 * run.budget)
        kept, rest = scan.select(allowed, run.budget, run.envelopes)
        found = _evaluate(run, kept, rest, min(last, scan.reach))
        ratio = found.ratio(tolerance, gradient_tolerance)
        # A bound that a longer series hardly improves is one that it cannot improve.
        if ratio <= 1 or last >= most or scan.full(4 * run.budget) or ratio > before / math.sqrt(longer):
            return found
        before, longer = ratio, min(16.0, 1.05 * ratio)
        last = min(most, last * longer)


def _envelope_sums(run: _Setting, last: float) -> list[float]:
    """Return the sums of both envelopes over the frequencies from where the characteristic function has fallen."""
    first = 30 / run.spread
    edges = torch.logspace(math.log10(first), math.log10(max(last, 2 * first)), 200, dtype=torch.float64)
    return [torch.trapezoid(of, edges).item() / run.base for of in run.envelopes(edges)]


_MOST_HEAVY = 8  # positions: every pattern of them has a loss of its own
_HEAVY = 16.0  # times the root mean square of all lighter weights


def heavy_positions(c: Tensor) -> Tensor:
    """Return the few positions whose weight stands out from the rest, heaviest first; none when too many do.

    >>> heavy_positions(torch.tensor([0.01, 1.0, 0.02, 0.01, 0.01])).tolist()
    [1]
    """
    order = c.abs().argsort(descending=True)
    sizes = c.abs()[order]
    counts = range(min(_MOST_HEAVY, len(c) - 1), 0, -1)
    return order[: next((h for h in counts if sizes[h - 1] > _HEAVY * sizes[h:].square().mean().sqrt()), 0)]


def spectral_risk(
    c: Tensor,
    mask: Tensor,
    pieces: Pieces,
    tolerance: float,
    gradient_tolerance: float = math.inf,
    *,
    jitter: float | None = None,
) -> RunMean:
    """Return E[L(y f(S))], its gradient (n,) and bounds on both, for one run; c (n,) float64, mask (n,) bool.

    With a `jitter` of this standard deviation it is E[L(y f(S + u))], and the tolerances have no say.
    """
    pieces.check_domain(c[None], c.new_zeros(1))
    heavy = heavy_positions(c)
    light = torch.ones_like(mask)
    light[heavy] = False
    bits = bits_of(torch.arange(2 ** len(heavy)), len(heavy)).to(c.dtype)
    shifts, odd = bits @ c[heavy], (bits @ mask[heavy].to(c.dtype)) % 2 == 1
    patterns = []
    for shift, flipped in zip(shifts.tolist(), odd.tolist(), strict=True):
        moved = pieces.shifted(shift).swapped() if flipped else pieces.shifted(shift)
        # Where the heavy bits settle the label there is but one.
        patterns.append(moved if bool(mask[light].any()) else replace(moved, minus=moved.plus))
    run = _Setting.of(c[light], mask[light], patterns, jitter)
    found = _search(run, tolerance, gradient_tolerance) if jitter is None else _jittered(run, jitter)
    sums, reach = found.sums, score_range(c, c.new_zeros(()))
    grad = torch.empty_like(c)
    grad[light] = sums.grad + sums.slopes.mean() / 2
    grad[heavy] = sums.slopes @ bits / len(bits)
    # The joints are moved by the heavy bits' scores and by the window's centre, once each.
    size, moved_by = extent(pieces, *reach), (2 * len(heavy) + 8) * UNIT * max(map(abs, reach))
    bound = found.bound + run.window.outside * size.peak + moved_by * size.steepest + pieces.error
    gradient_bound = found.gradient_bound + run.window.outside * size.steepest + gradient_crossing(pieces, moved_by)
    gradient_bound += moved_by * extent(derivative(pieces), *reach).steepest
    return RunMean(
        sums.value, grad, float(sums.slopes.mean()), bound + crossing(pieces, moved_by), pieces.error_is, gradient_bound
    )


# Seconds, fitted by benchmarks/engine_costs.py: a run, a block of the scan at a position, a frequency at a
# position, and a run of so few positions that the scan settles little.
_RUN, _SCANNED, _ENTRY, _FEW = 0.01, 2e-10, 7e-8, 2.0
_RECURRING = 65  # frequencies of a recurrence
_FEW_POSITIONS = 60
# Blocks: about so many over the root of the value's tolerance, and over the gradient's.
_OF_VALUE, _OF_SLOPE = 25.0, 30.0


def _recurrences(c: Tensor, blocks: float) -> float:
    """Return about how often the characteristic function of the light weights recurs within so many blocks.

    Weights of mean m that differ by d come together again at multiples of 2π/m, until they have drifted apart.

    >>> even, uneven = torch.full((100,), 0.03), torch.arange(1.0, 101.0).sqrt()
    >>> round(_recurrences(even, 1e6)), round(_recurrences(uneven, 1e6))
    (63662, 1)
    """
    light = torch.ones_like(c, dtype=torch.bool)
    light[heavy_positions(c)] = False
    sizes = c[light].abs()
    mean, apart, energy = float(sizes.mean()), float(sizes.std(correction=0)), float(sizes.square().sum())
    if energy == 0:
        return 0.0
    within = blocks * 4 / math.sqrt(energy) * mean / (2 * math.pi)
    return min(within, mean / max(apart, _TINY) * math.sqrt(280 / len(sizes)) / (2 * math.pi))


class Spectral(OnPieces):
    """A Fourier series of the loss, for every pattern of the few heavy positions."""

    card = CARDS["spectral"]
    foresees = False  # what it reaches depends on the weights

    def cost(self, job: Job) -> float:
        """Return the seconds of one run, times the runs."""
        blocks = min(
            _OF_VALUE / math.sqrt(job.tolerance) + _OF_SLOPE / job.gradient_tolerance,
            _MOST_SCANNED / (job.n + _PER_BLOCK),
        )
        seconds = _RUN + _SCANNED * (job.n + _PER_BLOCK) * blocks
        weights = job.runs.tensors[0]
        seconds += _ENTRY * job.n * _RECURRING * max(_recurrences(c, blocks) for c in weights)
        # Positions far below the standard deviation stand still where the others do not.
        moving = (weights.abs() > weights.square().sum(-1, keepdim=True).sqrt() / 60).sum(-1).min()
        return self.fit_seconds(job) + job.count * (seconds + (_FEW if int(moving) < _FEW_POSITIONS else 0.0))

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        tolerances = job.tolerance / 2, job.gradient_tolerance
        return one_by_one(job, lambda c, mask, pieces: spectral_risk(c, mask, pieces, *tolerances))
