"""Exact risk of a trained readout: f(S) = bias + Σ_i α_i ReLU(g_i S + h_i), with the gradient by α, g, h and bias.

Between its kinks f is linear, so the loss is again a piecewise polynomial of S. With ℓ = ∂loss/∂f, every gradient is
made of E[ℓ·1_s] and E[ℓ·S·1_s] over the segments s between kinks, which the split engine gives like any other mean.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from parityscope.core.threads import single_threaded
from parityscope.models.readouts import PiecewiseLinear, ReluSum, Segment
from parityscope.risk.engines.split import sums as split
from parityscope.risk.engines.split.tables import prepare
from parityscope.risk.means import Mean, Runs
from parityscope.risk.pieces.pieces import INF, TIE, Pieces, Piecewise, accuracy, assemble, hinge, label_noise


def relu_sum_mean(
    runs: Runs, relu: ReluSum, power: int, *, bias: float, noise: float, reach: tuple[float, float]
) -> Mean:
    """Return E[max(0, 1 − yf)^power] of every run, differentiable in the readout and in the score's weights.

    f(S) = 1 − 2 ReLU(S) is the label of the attended bit, and right half of the time when another bit is hidden:

    >>> from parityscope.models import AdditiveScore, Triangle
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> relu = ReluSum(*(torch.tensor(v, dtype=torch.float64) for v in ([-2.0], [1.0], [0.0], 1.0)))
    >>> score = AdditiveScore(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.zeros(()), Triangle(1))
    >>> runs = Runs.of(score, law_of([Parity(2, (0,)), Parity(2, (1,))]))
    >>> relu_sum_mean(runs, relu, 2, bias=0.5, noise=0.0, reach=(0, 1)).value.tolist()
    [0.0, 2.0]
    """
    count = len(runs.weights)
    means = [_one_run(runs, row, relu.row(row, count), power, bias, noise, reach) for row in range(count)]
    by_weight = torch.cat([mean.by_weight for mean in means if mean.by_weight is not None])
    by_offset = torch.cat([mean.by_offset for mean in means if mean.by_offset is not None])
    bound = torch.tensor([mean.error_bound for mean in means], dtype=by_offset.dtype)
    return Mean(torch.cat([mean.value for mean in means]), by_weight, by_offset, bound)


def relu_sum_accuracy(runs: Runs, relu: ReluSum, *, bias: float, reach: tuple[float, float]) -> Mean:
    """Return the share of right signs of every run; a prediction of 0 (up to rounding) counts as −1.

    >>> from parityscope.models import AdditiveScore, Triangle
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> relu = ReluSum(*(torch.tensor(v, dtype=torch.float64) for v in ([-2.0], [1.0], [0.0], 1.0)))  # 1 − 2 ReLU(S)
    >>> score = AdditiveScore(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.zeros(()), Triangle(1))
    >>> runs = Runs.of(score, law_of([Parity(2, (0,)), Parity(2, (1,))]))
    >>> relu_sum_accuracy(runs, relu, bias=0.5, reach=(0, 1)).value.tolist()
    [1.0, 0.5]
    """
    values, bounds = [], []
    for row in range(len(runs.weights)):
        f = relu.row(row, len(runs.weights)).piecewise_linear()
        weights, offset, mask = (tensor[row : row + 1] for tensor in runs.tensors)
        signs = accuracy(f)
        values.append(split.split_mean(weights, offset, mask, signs, bias=bias, want_gradient=False).value)
        bounds.append(split.rounding(signs, weights.shape[1], int(mask.sum()), reach))
    return Mean(torch.cat(values), None, None, torch.tensor(bounds, dtype=torch.float64))


def _one_run(
    runs: Runs, row: int, relu: ReluSum, power: int, bias: float, noise: float, reach: tuple[float, float]
) -> Mean:
    weights, offset, mask = (tensor[row : row + 1] for tensor in runs.tensors)
    f = relu.piecewise_linear()

    def noisy(pieces: Pieces) -> Pieces:
        return label_noise(pieces, noise) if noise else pieces

    with single_threaded(), torch.no_grad():
        probability = None if bias == 0.5 else torch.full_like(weights, bias)
        tables = prepare(weights, offset, mask, probability)
        loss = noisy(hinge(f, power))
        mean = split.evaluate(tables, loss)

        def expect(pieces: Pieces) -> Tensor:
            return split.evaluate(tables, noisy(pieces), want_gradient=False).value[0]

        moments = _segment_moments(f, power, expect)
    bound = split.rounding(loss, weights.shape[1], int(mask.sum()), reach)
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
