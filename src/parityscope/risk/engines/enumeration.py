"""Population risk by visiting all 2^n inputs, in chunks that keep memory bounded.

For an additive score the table of S is an outer sum of two half tables, S[a, b] = high[a] + low[b], and the
gradient with respect to every weight follows from the marginal sums of ∂loss/∂S over a and over b. Other models
go through `forward`, as `visits.py` says.
"""

from __future__ import annotations

import torch
from torch import Tensor

from parityscope.core.ties import predicts_plus
from parityscope.models.readouts import Readout
from parityscope.problems import bits_of
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import Engine, Job, Refusal
from parityscope.risk.engines.subsets import subset_count
from parityscope.risk.engines.visits import CHUNK_BITS, forward_mean, inputs, predictions, sum_rounding
from parityscope.risk.law import Law
from parityscope.risk.losses import Loss
from parityscope.risk.means import Mean
from parityscope.risk.pieces.rounding import score_rounding

_MAX_BITS = 26
# Seconds, fitted by benchmarks/engine_costs.py: a call, an input of a run, and an input through a model's `forward`.
_CALL, _INPUT, _FORWARD = 9e-4, 5e-8, 4e-7
_RUNS_AT_ONCE = 256


class Enumeration(Engine):
    """Visit all inputs."""

    card = CARDS["enumerate"]
    finite_gradient = True

    def refuses(self, job: Job) -> Refusal | None:
        """Refuse for the time alone: each bit doubles it."""
        if job.n <= _MAX_BITS:
            return None
        return Refusal(
            f"visits 2^{job.n} inputs and is limited to n ≤ {_MAX_BITS}: n = {job.n} would take about"
            f" 2^{job.n - _MAX_BITS} times as long as n = {_MAX_BITS} (seconds to minutes per evaluation)",
            too_large=True,
        )

    def cost(self, job: Job) -> float:
        """So much per input."""
        by_score = job.frozen or (job.loss is None and job.score is not None)
        each = _INPUT if by_score else _FORWARD
        return _CALL + each * job.count * subset_count(job.n)

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run."""
        if job.loss is None:
            return _accuracy(job)
        if not job.frozen:
            return forward_mean(job.model, job.law, job.loss)
        assert job.score is not None
        parts = [
            _additive_mean(weights, offset, mask, job.score.readout, job.law, job.loss)
            for weights, offset, mask in zip(*(one.split(_RUNS_AT_ONCE) for one in job.runs.tensors), strict=True)
        ]
        value, by_weight, by_offset, size, steepest = (torch.cat(columns) for columns in zip(*parts, strict=True))
        bound = sum_rounding(job.n, CHUNK_BITS) * size + score_rounding(job.n, *job.reach) * steepest
        return Mean(value, by_weight, by_offset, bound, "estimated" if job.loss.own else "proved")


def _accuracy(job: Job) -> Mean:
    """Return P(sign ŷ = noiseless label); a prediction of 0 (up to rounding) counts as −1."""
    score = job.score
    total = torch.zeros((), dtype=torch.float64)
    with torch.no_grad():
        for x, labels, probability in inputs(job.law, CHUNK_BITS):
            if score is None:
                predicted = predictions(job.model, x)
            else:
                S = (x.to(score.weights.dtype) @ score.weights.unsqueeze(-1)).squeeze(-1)
                predicted = score.readout(S + score.offset.unsqueeze(-1))
            total = total + ((predicts_plus(predicted) == (labels > 0)) * probability).sum(-1)
    return Mean(total, None, None, sum_rounding(job.n, CHUNK_BITS))


def _half_table(weights: Tensor, mask: Tensor, bias: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return bits (2^h, h), and per run the partial sums and signs, and the probabilities, of half the inputs."""
    h = weights.shape[-1]
    bits = bits_of(torch.arange(2**h), h).to(weights.dtype)
    sums = weights @ bits.T  # (runs, 2^h)
    signs = 1 - 2 * ((mask.to(weights.dtype) @ bits.T) % 2)
    ones = bits.sum(-1)
    return bits, sums, signs, bias**ones * (1 - bias) ** (h - ones)


def _additive_mean(
    weights: Tensor, offset: Tensor, mask: Tensor, readout: Readout, law: Law, loss: Loss
) -> tuple[Tensor, ...]:
    """Return per run the mean loss, its gradient by weight (runs, n) and by offset, E|loss| and the largest slope."""
    low = min(law.n, CHUNK_BITS // 2 + 1)
    low_bits, low_sums, low_signs, low_probability = _half_table(weights[:, :low], mask[:, :low], law.bias)
    high_bits, high_sums, high_signs, high_probability = _half_table(weights[:, low:], mask[:, low:], law.bias)
    high_sums = high_sums + offset[:, None]
    value, size, steepest = (torch.zeros_like(offset) for _ in range(3))
    by_low, by_high = torch.zeros_like(low_sums), torch.empty_like(high_sums)
    rows = 2 ** (CHUNK_BITS - low)
    for start in range(0, high_sums.shape[-1], rows):
        part = slice(start, start + rows)
        S = high_sums[:, part, None] + low_sums[:, None, :]
        y = high_signs[:, part, None] * low_signs[:, None, :]
        probability = high_probability[part, None] * low_probability
        prediction, slope = readout.value_and_slope(S)
        margin = prediction.mul_(y)
        direction = slope * y  # of the margin, as the score grows
        mean, by_margin = _noisy(loss, margin, direction, law.noise)
        value += (mean * probability).sum((-1, -2))
        if loss.signed:
            size += (mean.abs() * probability).sum((-1, -2))
        by_score = by_margin.mul_(direction)
        steepest = torch.maximum(steepest, by_score.abs().amax((-1, -2)))
        by_score.mul_(probability)
        by_low += by_score.sum(-2)
        by_high[:, part] = by_score.sum(-1)
    by_weight = torch.cat([by_low @ low_bits, by_high @ high_bits], dim=-1)
    return value, by_weight, by_low.sum(-1), size if loss.signed else value, steepest


def _noisy(loss: Loss, margin: Tensor, direction: Tensor, noise: float) -> tuple[Tensor, Tensor]:
    """Return the loss and its slope by the margin, averaged over the flip of a noisy label."""
    value, slope = loss.of_margin(margin), loss.slope_along(margin, direction)
    if noise == 0:
        return value, slope
    flipped, flipped_slope = loss.of_margin(-margin), loss.slope_along(-margin, -direction)
    return (1 - noise) * value + noise * flipped, (1 - noise) * slope - noise * flipped_slope
