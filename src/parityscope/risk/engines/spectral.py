"""Risk of diffuse attention at large n through the characteristic function of S.

With mu = sum(c)/2 and t the frequency,
    E[exp(it(S-mu))]   = prod_j cos(t c_j/2)                                =: A(t)
    E[y exp(it(S-mu))] = (-i)^k prod_B sin(t c_j/2) prod_not-B cos(t c_j/2) =: (-i)^k B(t)
are real up to a constant.  The loss pieces are made periodic (a quintic joins the two ends where
S almost never is), so their Fourier coefficients are finite sums over the jumps of derivatives.
Only frequencies whose A(t) is not provably negligible are evaluated; docs/explanation/engines.md derives the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from parityscope.problems import bits_of
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import Job, OnPieces, Refusal, one_by_one
from parityscope.risk.means import Mean, RunMean
from parityscope.risk.pieces.pieces import TIE, Pieces, Piecewise, recentre
from parityscope.risk.pieces.represent import score_range
from parityscope.risk.pieces.rounding import UNIT, chain, extent, score_rounding

_OUTSIDE = 1e-20  # admitted probability of leaving the window
# sin x ≥ (95/96) x up to x = 1/4, squared: in Esseen's inequality; and Σ 1/m² = π²/6.
_ESSEEN, _ZETA_2 = (96 / 95) ** 2, math.pi**2 / 6
_NEGLIGIBLE = 40.0  # frequencies with |A| < exp(-40) = 4e-18, less than rounding, are bounded and not evaluated
_BLOCK = 1 << 21  # matrix entries (frequencies x positions) worked on at a time
# Frequencies are scanned up to the first, then four times as far, at most to the last.
_FIRST_REACH, _LAST_REACH = 1e6, 1e9
_BUDGET = 10**8  # frequencies x positions evaluated at most: about seven seconds


@dataclass(frozen=True)
class _Window:
    """S - mu stays in [-half, half] but for probability ``outside``; functions get this period."""

    centre: float
    half: float
    period: float
    outside: float

    @staticmethod
    def of(c: Tensor) -> _Window:
        """Return the window that Hoeffding's inequality gives for these weights."""
        reach, energy = float(c.abs().sum()) / 2, float(c.square().sum())
        # Hoeffding: P(|S − μ| ≥ t) ≤ 2·exp(−2t²/Σc_j²), since bit j moves S by c_j; solved for t.
        half = math.sqrt(energy * math.log(2 / _OUTSIDE) / 2)
        outside = 0.0 if half >= reach else _OUTSIDE
        # No wider than S can reach; the slack keeps a score on the border inside.
        half = min(half, reach * (1 + 1e-9)) + 1e-9
        # A quarter of the window is added to the period for the quintic that joins its ends.
        return _Window(float(c.sum()) / 2, half, 2.5 * half, outside)


@dataclass(frozen=True)
class _Jumps:
    """A periodic piecewise polynomial: derivative jumps (B, r) at ``where`` (relative to mu)."""

    where: Tensor
    size: Tensor
    mean: float
    peak: float  # largest |value| met, for the error of leaving the window

    def coefficients(self, t: Tensor, period: float) -> Tensor:
        """Complex Fourier coefficients at frequencies t > 0."""
        # By parts over one period: (1/period)·Σ_jumps e^{−itx}·Σ_r J_r/(it)^{r+1}, J_r the jump of the r-th
        # derivative at x. Horner in 1/(it).
        z = torch.complex(torch.zeros_like(t), -1 / t)  # 1 / (it)
        poly = self.size[:, -1:].to(z.dtype).expand(-1, len(t))
        for r in range(self.size.shape[1] - 2, -1, -1):
            poly = poly * z + self.size[:, r, None]
        phase = torch.exp(-1j * self.where[:, None] * t)
        return (poly * phase).sum(0) * z / period

    def envelope(self, t: Tensor, period: float) -> Tensor:
        """Upper bound of |coefficients|."""
        # Each term of the sum above in modulus, |e^{−itx}| = 1.
        total, power = self.size.abs().sum(0), 1 / t
        out = torch.zeros_like(t)
        for r in range(len(total)):
            out, power = out + total[r] * power, power / t
        return out / period


def _quintic(left: Tensor, right: Tensor, width: float) -> Tensor:
    """Coefficients about the start of the quintic with given (f, f', f'') at both ends."""
    h = torch.tensor([width**i for i in range(6)], dtype=torch.float64)
    # Three coefficients are given by the left end; the right end leaves three equations for the others, here in units
    # of the width, so that the matrix does not depend on it.
    start = torch.tensor([left[0], left[1], left[2] / 2], dtype=torch.float64)
    rows = torch.tensor([[1.0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5], [0, 0, 2, 6, 12, 20]], dtype=torch.float64)
    scaled = torch.tensor([right[0], right[1] * width, right[2] * width**2], dtype=torch.float64)
    rest = torch.linalg.solve(rows[:, 3:], scaled - rows[:, :3] @ (start * h[:3]))
    return torch.cat([start, rest / h[3:]])


def _derivatives(coefs: Tensor, at: Tensor) -> Tensor:
    """Rows: all derivatives at centre + at, of polynomials (P, d+1) about their centres."""
    fact = torch.tensor([math.factorial(r) for r in range(coefs.shape[1])], dtype=torch.float64)
    return recentre(coefs, at) * fact


def _periodic(f: Piecewise, w: _Window) -> _Jumps:
    """Restrict f to the window and close it smoothly into a periodic function."""
    low, high = w.centre - w.half, w.centre + w.half
    cuts = f.cuts + TIE  # the joints themselves
    inner = cuts[(cuts > low) & (cuts < high)]
    first = int((cuts <= low).sum())
    rows = slice(first, first + len(inner) + 1)
    coefs = torch.nn.functional.pad(f.coefs[rows], (0, max(0, 5 - f.degree)))
    centres = f.centres[rows]
    starts = torch.cat([torch.tensor([low], dtype=torch.float64), inner])
    ends = torch.cat([inner, torch.tensor([high], dtype=torch.float64)])
    at_start, at_end = _derivatives(coefs, starts - centres), _derivatives(coefs, ends - centres)
    gap = w.period - 2 * w.half
    bridge = torch.zeros(1, coefs.shape[1], dtype=torch.float64)
    bridge[0, :6] = _quintic(at_end[-1], at_start[0], gap)
    bridge_end = _derivatives(bridge, torch.tensor([gap], dtype=torch.float64))
    bridge_start = _derivatives(bridge, torch.zeros(1, dtype=torch.float64))
    before = torch.cat([bridge_end, at_end])
    after = torch.cat([at_start, bridge_start])
    size = after - before
    size[[0, -1], :3] = 0.0  # joined to second order
    local = torch.cat([recentre(coefs, starts - centres), bridge])
    length = torch.cat([ends - starts, torch.tensor([gap], dtype=torch.float64)])
    integral = torch.stack([local[:, r] * length ** (r + 1) / (r + 1) for r in range(local.shape[1])]).sum()
    grid = local[:, :, None] * length[:, None, None] ** torch.arange(local.shape[1])[None, :, None]
    where = torch.cat([starts, torch.tensor([high], dtype=torch.float64)]) - w.centre
    return _Jumps(where, size, float(integral) / w.period, float(grid.abs().sum(1).max()))


@dataclass(frozen=True)
class _Scan:
    """|A(t)|^4 <= exp(-n + Re sum_j exp(i t c_j)); the mean of exp(i t (c_j - mean c)) moves by at
    most mean|c_j - mean c| per unit of t, so one evaluation bounds a whole block of frequencies."""

    c: Tensor
    base: float

    @property
    def spread(self) -> float:
        """The mean distance of a weight from their mean."""
        return float((self.c - self.c.mean()).abs().mean())

    def _alive(self, starts: Tensor, per: int) -> tuple[Tensor, Tensor, float]:
        """Blocks of ``per`` multiples that may matter, with their mean phase factor."""
        n, dev = len(self.c), self.c - self.c.mean()
        slack = self.spread * self.base * (per - 1) / 2
        kept, factor = [], []
        for part in starts.split(max(1, _BLOCK // n)):
            angle = ((part.double() + (per - 1) / 2) * self.base)[:, None] * dev
            psi = torch.complex(angle.cos().mean(1), angle.sin().mean(1))
            # log|A| ≤ −(n/4)(1 − |ψ|) for the mean phase factor ψ, which moves by at most the slack within a block.
            live = (1 - psi.abs() - slack) * n / 4 < _NEGLIGIBLE
            kept.append(part[live])
            factor.append(psi[live])
        return torch.cat(kept), torch.cat(factor), slack

    def select(self, first: int, last: int, budget: int) -> tuple[Tensor, int]:
        """Multiples in [first, last) to evaluate, and the multiple actually reached."""
        n, mean = len(self.c), float(self.c.mean())
        most = max(1, budget // n)
        # The bound on a block is never smaller than exp(−n/4): here it cannot show that anything is negligible.
        if n / 4 <= _NEGLIGIBLE:
            last = min(last, first + most)
            return torch.arange(first, last), last
        # Blocks so short that ψ moves by at most 0.025 from their middle.
        fine = int(max(1, min(2**18, 0.05 / (self.spread * self.base + 1e-300))))
        coarse, _, _ = self._alive(torch.arange(first, last, 16 * fine), 16 * fine)
        starts = (coarse[:, None] + fine * torch.arange(16)).flatten()
        starts, factor, slack = self._alive(starts[starts < last], fine)
        chosen, count, size = [torch.empty(0, dtype=torch.int64)], 0, max(1, 2**20 // fine)
        for part, psi in zip(starts.split(size), factor.split(size), strict=True):
            i = part[:, None] + torch.arange(fine)
            # Within a block the factor e^{it·mean c} turns fast and is known; the rest stands still but for the
            # slack.
            bound = (psi[:, None] * torch.exp(1j * self.base * mean * i.double())).real + slack
            i = i[((1 - bound) * n / 4 < _NEGLIGIBLE) & (i < last)]
            chosen.append(i)
            count += len(i)
            if count > most:
                return torch.cat(chosen), int(part[-1]) + fine
        return torch.cat(chosen), last


@dataclass
class _Sums:
    """What the evaluated frequencies add up to."""

    value: float
    shared: float  # half of E[P'(S)]: the same for every position
    grad: Tensor
    mass: float  # upper bound of the integral of |A| around the evaluated frequencies
    value_rounding: float


def _accumulate(
    c: Tensor, mask: Tensor, t: Tensor, even: Tensor, odd: Tensor, size: Tensor, base: float, acc: _Sums
) -> None:
    """Add frequencies t with coefficients ``even``, ``odd`` (already times (-i)^k)."""
    angle = 0.5 * t[:, None] * c
    cos, tan = angle.cos(), angle.tan()
    sin_b, cos_b = angle[:, mask].sin(), cos[:, mask]
    outside = cos[:, ~mask].prod(1)
    a, b = outside * cos_b.prod(1), outside * sin_b.prod(1)
    both = even * a + odd * b
    # t and −t are conjugates: twice the real part. Every weight moves μ by half of itself, which adds half of E[L′] to
    # its gradient, a sum of −2t·Im.
    acc.value += 2 * float(both.real.sum())
    acc.shared -= float((t * both.imag).sum())
    # ∂/∂c_j of a cosine factor is −(t/2)·tan times the product, and twice the real part counts.
    plain = -t * both.real
    acc.grad += plain @ tan
    k, near_zero = sin_b.shape[1], torch.zeros_like(t)
    if k:  # no hidden bit is left when all of them are heavy
        others = torch.stack([sin_b[:, [i for i in range(k) if i != j]].prod(1) for j in range(k)], 1)
        # A hidden position has a sine in the odd part: its tangent is taken back, and (t/2)·cos times the other
        # factors put in its place.
        fix = (t * odd.real * b)[:, None] * tan[:, mask] + (t * odd.real * outside)[:, None] * cos_b * others
        acc.grad[mask] += fix.sum(0)
        near_zero = outside.abs() * (angle[:, mask] * cos_b * others).abs().sum(1)
    # bounds: relative error of a product (of a sine: absolute), and |A| between neighbouring frequencies
    drift = (angle.abs() * tan.abs()).sum(1)
    weight = (
        2
        * UNIT
        * (
            (even.abs() * a.abs() + odd.abs() * b.abs()) * (4 * len(c) + 2 * drift)
            + 2 * odd.abs() * near_zero
            + size * (a.abs() + b.abs()) * (chain(len(t)) + 64 + 2 * t * math.pi / base)
        )
    )
    acc.value_rounding += 2 * float(weight.sum())
    # |A(t + s)| ≤ exp(−g(t + s)/4), g = Σ(1 − cos tc_j) = 2·Σ sin²(tc_j/2), and for |s| ≤ base/2
    # g(t + s) ≥ g(t) − |s||g′(t)| − (s²/2)·Σc_j² (engines.md, Esseen's constant).
    square = cos.square()
    tilt = (square * tan @ c).abs()
    low = 2 * (1 - square).sum(1) - base * tilt - base**2 / 8 * c.square().sum()
    acc.mass += 2 * base * float(torch.exp(-low.clamp(min=0) / 4).sum())


def _beyond(jump: Tensor, density: float, reach: float, period: float) -> float:
    """Bound of E|Fourier remainder| beyond ``reach`` of a function with these derivative jumps.

    Each shell around a jump holds at most density / reach of the probability; the 4 is for shells cut by the window.
    """
    # 2(1 + ln J) + 4 with J = R·period/2 shells; a jump of the r-th derivative, r ≥ 2, leaves at most v/(πrR^r)
    # (engines.md, frequencies beyond R).
    log = 6 + 2 * math.log(max(math.e, reach * period / 2))
    total = jump.abs().sum(0).tolist()
    out = total[0] * density / reach * (2 + log) + total[1] * density / reach**2 * (2 / math.pi + log)
    return out + sum(v / (math.pi * r * reach**r) for r, v in enumerate(total) if r >= 2)


def _value_bound(
    k: int, pieces: Pieces, sides: list[_Jumps], w: _Window, acc: _Sums, reach: float, peak: float
) -> float:
    """Proved error: rounding, frequencies beyond reach or skipped, sums outside the window, the pieces.

    docs/explanation/engines.md derives every term.
    """
    base, jump = 2 * math.pi / w.period, torch.cat([s.size for s in sides])
    unseen = math.exp(-_NEGLIGIBLE)
    # Esseen: an interval of length 1/R holds at most density/R of the probability.
    density = _ESSEEN * (acc.mass + 2 * reach * unseen)
    # Σ_{m≤M} 1/m ≤ 1 + ln M, and Σ 1/m^{r+1} ≤ π²/6 for r ≥ 1 (engines.md, frequencies skipped).
    total, many = jump.abs().sum(0).tolist(), [1 + math.log(reach / base)] + [_ZETA_2] * jump.shape[1]
    skipped = sum(v * many[r] / base ** (r + 1) for r, v in enumerate(total))
    return (
        acc.value_rounding
        + _beyond(jump, density, reach, w.period)
        + unseen * math.exp(k / 2) * 2 / w.period * skipped
        + w.outside * (max(s.peak for s in sides) + peak)
        + pieces.error
    )


def _spectral_risk(c: Tensor, mask: Tensor, pieces: Pieces, tol: float) -> RunMean:
    """Return E[L(y f(S))], its gradient and a bound on the value's error, for one run; c (n,) float64, mask (n,) bool.

    Frequencies are scanned until the bound is below ``tol``, the last reach is scanned, or the budget is spent;
    the bound holds in every case. The gradient jumps wherever an S meets a corner of the loss and has no bound.
    """
    pieces.check_domain(c[None], c.new_zeros(1))
    w, k, n = _Window.of(c), int(mask.sum()), len(c)
    if k == 0:  # the label is always +1
        pieces = replace(pieces, minus=pieces.plus)
    base, reachable = 2 * math.pi / w.period, score_range(c, c.new_zeros(()))
    size = extent(pieces, *reachable)
    shift = score_rounding(n, *reachable) * size.steepest
    sides = [_periodic(f, w) for f in pieces.sides()]
    # The frequency 0 is the mean over a period; around it |A| ≤ 1.
    acc = _Sums(0.5 * (sides[0].mean + sides[1].mean), 0.0, torch.zeros_like(c), 2 * base, 0.0)
    scan, first, count, reach = _Scan(c, base), 1, 0, _FIRST_REACH
    while True:
        chosen, last = scan.select(first, int(reach / base) + 2, _BUDGET - count * n)
        for part in chosen.split(max(1, _BLOCK // n)):
            t = part.double() * base
            p, m = (s.coefficients(t, w.period) for s in sides)
            envelope = 0.5 * (sides[0].envelope(t, w.period) + sides[1].envelope(t, w.period))
            # L = ½(L₊ + L₋) + y·½(L₊ − L₋): the even part meets A, the odd one (−i)^k B.
            _accumulate(c, mask, t, 0.5 * (p + m), 0.5 * (p - m) * (-1j) ** k, envelope, base, acc)
        count += len(chosen)
        bound = _value_bound(k, pieces, sides, w, acc, (last - 1) * base, size.peak) + shift
        enough = bound - pieces.error <= tol
        if enough or last * base < reach or reach >= _LAST_REACH or count * n >= _BUDGET:
            return RunMean(acc.value, acc.grad + acc.shared, 2 * acc.shared, bound, pieces.error_is)
        first, reach = last, min(_LAST_REACH, 4 * reach)


_MOST_HEAVY = 8  # positions: each pattern of them is a series of its own
# Seconds, fitted by benchmarks/engine_costs.py: a run, and a frequency at a position.
_RUN, _ENTRY = 0.02, 7e-8
_EVERY_FREQUENCY = 160  # n up to which exp(-n/4) is not negligible, so that every frequency is evaluated
_DIFFUSE = 0.2  # of their mean: what light weights may differ by on average for frequencies to die out soon
_PATIENCE = 120.0  # seconds a run may take
_HEAVY = 3.0  # times the root mean square of the weights not heavier than it


def heavy_positions(c: Tensor) -> Tensor:
    """Return the few positions whose weight stands out from the rest, heaviest first; none when too many do."""
    order = c.abs().argsort(descending=True)
    sizes = c.abs()[order]
    for h in range(min(_MOST_HEAVY + 1, len(c) - 1)):
        if sizes[h] <= _HEAVY * sizes[h:].square().mean().sqrt():
            return order[:h]
    return order[:0]


def _hybrid_risk(c: Tensor, mask: Tensor, pieces: Pieces, tolerance: float) -> RunMean:
    """Return E[L(y f(S))], its gradient (n,) and a bound on the value's error, for one run."""
    heavy = heavy_positions(c)
    light = torch.ones_like(mask)
    light[heavy] = False
    patterns = bits_of(torch.arange(2 ** len(heavy)), len(heavy)).to(c.dtype)
    shifts, odd = patterns @ c[heavy], (patterns @ mask[heavy].to(c.dtype)) % 2 == 1
    results = []
    for shift, flipped in zip(shifts.tolist(), odd.tolist(), strict=True):
        moved = pieces.shifted(shift).swapped() if flipped else pieces.shifted(shift)
        results.append(_spectral_risk(c[light], mask[light], moved, tol=tolerance))
    slopes = c.new_tensor([result.by_offset for result in results])
    grad = torch.empty_like(c)
    grad[light] = torch.stack([result.by_weight for result in results]).mean(0)
    grad[heavy] = slopes @ patterns / len(patterns)
    return RunMean(
        sum(result.value for result in results) / len(results),
        grad,
        float(slopes.mean()),
        sum(result.error_bound for result in results) / len(results),
        pieces.error_is,
    )


def _diffuse(c: Tensor) -> bool:
    """Say whether the weights are nearly equal, but for the few heavy ones."""
    light = torch.ones_like(c, dtype=torch.bool)
    light[heavy_positions(c)] = False
    mean = c[light].mean()
    return bool((c[light] - mean).abs().mean() <= _DIFFUSE * mean.abs())


class Spectral(OnPieces):
    """A Fourier series of the loss, for every pattern of the few heavy positions."""

    card = CARDS["spectral"]
    foresees = False  # what it reaches depends on the weights

    def refuses(self, job: Job) -> Refusal | None:
        """Every pattern of the heavy positions has a budget of its own, which uneven attention spends."""
        if (refusal := super().refuses(job)) is not None:
            return refusal
        if (seconds := self._seconds(job)) <= _PATIENCE:
            return None
        return Refusal(f"would take {seconds / 60:.0f} minutes for attention this uneven", too_large=True)

    def cost(self, job: Job) -> float:
        """Return the seconds of one run, times the runs."""
        return self.fit_seconds(job) + job.count * self._seconds(job)

    def _seconds(self, job: Job) -> float:
        """Up to n of about 160 no frequency can be skipped and the budget is spent; beyond, fewer and fewer matter."""
        weights = job.runs.tensors[0]
        share = min(1.0, (_EVERY_FREQUENCY / job.n) ** 2) if all(map(_diffuse, weights)) else 1.0
        patterns = 2 ** max(len(heavy_positions(c)) for c in weights)
        return patterns * (_RUN + _ENTRY * _BUDGET * share)

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        return one_by_one(job, lambda c, mask, pieces: _hybrid_risk(c, mask, pieces, job.tolerance / 2))
