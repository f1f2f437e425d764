"""The split engine for readouts that are frozen and for sums of ReLUs that train.

A trained readout is f(S) = bias + Σ_i α_i ReLU(g_i S + h_i), with a gradient by α, g, h and bias. Between its kinks it
is linear, so the loss is again a piecewise polynomial of S. With ℓ = ∂loss/∂f, every gradient is made of E[ℓ·1_s] and
E[ℓ·S·1_s] over the segments s between kinks, which are means of piecewise polynomials like any other.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from parityscope.core.threads import single_threaded
from parityscope.models.readouts import PiecewiseLinear, ReluSum, Segment
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import NEEDS_A_SCORE, Job, OnPieces, Refusal
from parityscope.risk.engines.split.sums import (
    MEMORY_LIMIT,
    MOST_SCORES,
    look_up,
    prepare,
    required_bytes,
    rounding_of_gradient,
    rounding_of_look_ups,
    split_mean,
    table_size,
)
from parityscope.risk.engines.subsets import subset_count
from parityscope.risk.means import Mean
from parityscope.risk.pieces.pieces import INF, TIE, Pieces, Piecewise, accuracy, assemble, hinge, label_noise
from parityscope.risk.pieces.represent import HINGE_POWERS
from parityscope.risk.pieces.rounding import crossing, gradient_crossing, score_rounding, visited_rounding

# Seconds, fitted by benchmarks/engine_costs.py: a call, a score visited, a run, a sorted sum, a piece looked up.
_CALL, _SCORE, _RUN, _SUM, _LOOK_UP = 9e-4, 3.5e-8, 5e-6, 5.4e-8, 5.4e-8
_SMALL_CALL = 5e-4
_FITTED_PIECES = 150  # about how many


class Split(OnPieces):
    """Sort the sums of half of the positions and look up those of the others."""

    card = CARDS["split"]
    fair_bits = False

    def refuses(self, job: Job) -> Refusal | None:
        """Besides frozen readouts, sums of ReLUs that train with hinge losses; the tables must fit in memory."""
        if job.score is None:
            return NEEDS_A_SCORE
        if job.score.readout.relu_sum() is None:
            if (refusal := super().refuses(job)) is not None:
                return refusal
        elif job.loss is not None and (job.loss.own or job.loss.name not in HINGE_POWERS):
            return Refusal(f"trains a readout with hinge losses only, not with {job.loss.name}")
        if (needed := required_bytes(job.n, job.k)) <= MEMORY_LIMIT:
            return None
        sizes = f"{needed / 1e9:.0f} GB at n = {job.n}, k = {job.k} and stops at {MEMORY_LIMIT / 1e9:.0f} GB"
        return Refusal(f"needs about {sizes}", too_large=True)

    def cost(self, job: Job) -> float:
        """Every score at small n; else a sort of the table and a look-up per query and piece."""
        runs, n = job.count, job.n
        fit = self.fit_seconds(job)
        if runs << n <= MOST_SCORES:
            return fit + _SMALL_CALL + _SCORE * (runs << n)
        table = table_size(n, job.k)
        queries = subset_count(n - table)
        return fit + _CALL + runs * (_RUN + _SUM * subset_count(table) + _LOOK_UP * self._pieces(job) * queries)

    @staticmethod
    def _pieces(job: Job) -> int:
        """How many pieces there are: those of a fit are not known before it is made."""
        if not job.frozen or not job.exact or job.pieces is None:
            return _FITTED_PIECES if job.frozen else 10
        return max(len(side.centres) for side in job.pieces.sides())

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        assert job.score is not None
        relu = job.score.readout.relu_sum()
        if relu is not None:
            return _relu_accuracy(job, relu) if job.loss is None else _relu_mean(job, relu, HINGE_POWERS[job.loss.name])
        assert job.pieces is not None
        weights, offset, mask = job.runs.tensors
        wanted = job.runs.want_gradient
        mean = split_mean(weights, offset, mask, job.pieces, bias=job.law.bias, want_gradient=wanted)
        if job.count << job.n <= MOST_SCORES:
            rounding = visited_rounding(job.pieces, job.n, subset_count(job.n), *job.reach)
        else:
            rounding = rounding_of_look_ups(job.pieces, job.n, job.k, job.reach)
        moved = score_rounding(job.n, *job.reach)
        return mean._replace(
            error_bound=rounding + job.pieces.error + crossing(job.pieces, moved),
            bound_is=job.pieces.error_is,
            gradient_bound=rounding_of_gradient(job.pieces, job.n, job.k, job.reach)
            + gradient_crossing(job.pieces, moved),
        )


def _relu_mean(job: Job, relu: ReluSum, power: int) -> Mean:
    """Return E[max(0, 1 − yf)^power] of every run, differentiable in the readout and in the score's weights."""
    count = job.count
    means = [_relu_run(job, row, relu.row(row, count), power) for row in range(count)]
    by_weight = torch.cat([mean.by_weight for mean in means if mean.by_weight is not None])
    by_offset = torch.cat([mean.by_offset for mean in means if mean.by_offset is not None])
    bound = torch.tensor([mean.error_bound for mean in means], dtype=by_offset.dtype)
    return Mean(torch.cat([mean.value for mean in means]), by_weight, by_offset, bound)


def _relu_accuracy(job: Job, relu: ReluSum) -> Mean:
    """Return the share of right signs of every run; a prediction of 0 (up to rounding) counts as −1."""
    values, bounds = [], []
    for row in range(job.count):
        weights, offset, mask = (tensor[row : row + 1] for tensor in job.runs.tensors)
        signs = accuracy(relu.row(row, job.count).piecewise_linear())
        values.append(split_mean(weights, offset, mask, signs, bias=job.law.bias, want_gradient=False).value)
        bounds.append(rounding_of_look_ups(signs, job.n, int(mask.sum()), job.reach))
    return Mean(torch.cat(values), None, None, torch.tensor(bounds, dtype=torch.float64))


def _relu_run(job: Job, row: int, relu: ReluSum, power: int) -> Mean:
    weights, offset, mask = (tensor[row : row + 1] for tensor in job.runs.tensors)
    f, (bias, noise) = relu.piecewise_linear(), (job.law.bias, job.law.noise)

    def noisy(pieces: Pieces) -> Pieces:
        return label_noise(pieces, noise) if noise else pieces

    with single_threaded(), torch.no_grad():
        probability = None if bias == 0.5 else torch.full_like(weights, bias)
        tables = prepare(weights, offset, mask, probability)  # one for all means of the run
        loss = noisy(hinge(f, power))
        mean = look_up(tables, loss)

        def expect(pieces: Pieces) -> Tensor:
            return look_up(tables, noisy(pieces), want_gradient=False).value[0]

        moments = _segment_moments(f, power, expect)
    bound = rounding_of_look_ups(loss, job.n, int(mask.sum()), job.reach)
    return mean._replace(value=mean.value + _first_order(relu, f, moments), error_bound=bound)


def _segment_moments(f: PiecewiseLinear, power: int, expect: Callable[[Pieces], Tensor]) -> Tensor:
    """Return E[ℓ·1_s] and E[ℓ·S·1_s] of every segment: shape (segments, 2)."""
    return torch.stack(
        [
            torch.stack([expect(_loss_slope(segment, power, times_score)) for times_score in (False, True)])
            for segment in f.segments()
        ]
    )


def _first_order(relu: ReluSum, f: PiecewiseLinear, moments: Tensor) -> Tensor:
    """Return a term that is zero in value and carries the gradient by the readout's numbers."""
    alpha, g, h, _ = (tensor.detach() for tensor in relu)
    middles = torch.tensor([_inside(s.low, s.high, s.anchor) for s in f.segments()], dtype=alpha.dtype)
    active = (middles[:, None] * g + h > 0).to(alpha.dtype)  # (segments, neurons)
    count, first = active.T @ moments[:, 0], active.T @ moments[:, 1]  # E[ℓ·1{on}], E[ℓ·S·1{on}]
    # ∂f/∂α = ReLU(gS + h), ∂f/∂g = α·S·1{on}, ∂f/∂h = α·1{on}, ∂f/∂bias = 1, each times ℓ.
    gradients = (g * first + h * count, alpha * first, alpha * count, moments[:, 0].sum())
    return torch.stack(
        [((now - now.detach()) * gradient).sum() for now, gradient in zip(relu, gradients, strict=True)]
    ).sum()


def _loss_slope(segment: Segment, power: int, times_score: bool) -> Pieces:
    """Return ∂loss/∂f on one segment and 0 elsewhere, times S if asked, for both labels."""
    plus, minus = (_loss_slope_side(segment, y, power, times_score) for y in (1, -1))
    return Pieces(plus, minus)


def _loss_slope_side(segment: Segment, y: int, power: int, times_score: bool) -> Piecewise:
    low, high, anchor, value, slope = segment
    margin, rate = 1.0 - y * value, -y * slope  # 1 − yf = margin + rate·(S − anchor)
    root = anchor - margin / rate if rate else INF
    spans = [(low, root), (root, high)] if low < root < high else [(low, high)]
    # ∂/∂f of (1 − yf)₊ is −y, and of (1 − yf)₊² is −2y(1 − yf); both only where 1 − yf > 0.
    base = [-float(y)] if power == 1 else [-2.0 * y * margin, -2.0 * y * rate]
    if times_score:  # S = anchor + (S − anchor)
        base = [anchor * a + b for a, b in zip([*base, 0.0], [0.0, *base], strict=True)]
    parts: list[tuple[float, list[float], float]] = [(-INF, [0.0], anchor)] if low > -INF else []
    for a, b in spans:
        positive = margin + rate * (_inside(a, b, anchor) - anchor) > 0
        parts.append((a - TIE, base if positive else [0.0], anchor))
    if high < INF:
        parts.append((high - TIE, [0.0], anchor))
    return assemble(parts, power + times_score - 1)


def _inside(low: float, high: float, anchor: float) -> float:
    if low == -INF:
        return (anchor if high == INF else high) - 1.0
    return low + 1.0 if high == INF else 0.5 * (low + high)
