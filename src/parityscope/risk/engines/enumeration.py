"""Population risk by visiting all 2^n inputs, in chunks that keep memory bounded.

For an additive score the table of S is an outer sum of two half tables, S[a, b] = high[a] + low[b], and the
gradient with respect to every weight follows from the marginal sums of ∂loss/∂S over a and over b. Other models
go through `forward` chunk by chunk, recomputing each chunk in the backward pass instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import predicts_plus
from parityscope.models.readouts import Readout
from parityscope.problems import bits_of
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import Engine, Job, Refusal
from parityscope.risk.engines.subsets import subset_count
from parityscope.risk.law import Law
from parityscope.risk.losses import Loss
from parityscope.risk.means import Mean
from parityscope.risk.pieces.rounding import UNIT, chain, score_rounding

_MAX_BITS = 26
# Seconds, fitted by benchmarks/engine_costs.py: a call, an input of a run, and an input through a model's `forward`.
_CALL, _INPUT, _FORWARD = 9e-4, 5e-8, 4e-7
_CHUNK_BITS = 11  # inputs per chunk; independent of the number of runs, so that a run's sums are too
_RUNS_AT_ONCE = 256
_ULPS = 8  # by which a prediction through `forward` is taken to be rounded


class Enumeration(Engine):
    """Visit all inputs."""

    card = CARDS["enumerate"]

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
            return _forward_mean(job.model, job.law, job.loss)
        assert job.score is not None
        parts = [
            _additive_mean(weights, offset, mask, job.score.readout, job.law, job.loss)
            for weights, offset, mask in zip(*(one.split(_RUNS_AT_ONCE) for one in job.runs.tensors), strict=True)
        ]
        value, by_weight, by_offset, size, steepest = (torch.cat(columns) for columns in zip(*parts, strict=True))
        bound = _sum_rounding(job.n) * size + score_rounding(job.n, *job.reach) * steepest
        return Mean(value, by_weight, by_offset, bound)


def _sum_rounding(n: int) -> float:
    """Bound the rounding of the sum, relative to the sum of its terms in modulus: a chunk, and a chain of chunks."""
    return UNIT * (chain(2.0**_CHUNK_BITS) + n + 8 + 2.0 ** max(0, n - _CHUNK_BITS))


def _accuracy(job: Job) -> Mean:
    """Return P(sign ŷ = noiseless label); a prediction of 0 (up to rounding) counts as −1."""
    score = job.score
    total = torch.zeros((), dtype=torch.float64)
    with torch.no_grad():
        for x, labels, probability in _inputs(job.law):
            if score is None:
                predicted = _predictions(job.model, x)
            else:
                S = (x.to(score.weights.dtype) @ score.weights.unsqueeze(-1)).squeeze(-1)
                predicted = score.readout(S + score.offset.unsqueeze(-1))
            total = total + ((predicts_plus(predicted) == (labels > 0)) * probability).sum(-1)
    return Mean(total, None, None, _sum_rounding(job.n))


def _predictions(model: nn.Module, x: Tensor) -> Tensor:
    """Return what the model's `forward` says of a batch, or say in one sentence that it does not take it."""
    try:
        predicted: Tensor = model(x)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInput(f"the model does not take a batch of {x.shape[-1]} bits: {reason}") from error
    if predicted.shape[-1:] != x.shape[:1]:
        raise InvalidInput(
            f"the model maps a batch of {len(x)} inputs to the shape {tuple(predicted.shape)}: return one number each"
        )
    return predicted


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
    low = min(law.n, _CHUNK_BITS // 2 + 1)
    low_bits, low_sums, low_signs, low_probability = _half_table(weights[:, :low], mask[:, :low], law.bias)
    high_bits, high_sums, high_signs, high_probability = _half_table(weights[:, low:], mask[:, low:], law.bias)
    high_sums = high_sums + offset[:, None]
    value, size, steepest = (torch.zeros_like(offset) for _ in range(3))
    by_low, by_high = torch.zeros_like(low_sums), torch.empty_like(high_sums)
    rows = 2 ** (_CHUNK_BITS - low)
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


def _forward_mean(model: nn.Module, law: Law, loss: Loss) -> Mean:
    """Return the mean through `forward`; how that rounds is its own affair, so that the bound is an estimate."""

    def chunk_mean(x: Tensor, labels: Tensor, probability: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        predicted = _predictions(model, x)
        margin = labels * predicted
        noisy = (1 - law.noise) * loss.of_margin(margin) + law.noise * loss.of_margin(-margin)
        seen, by_margin = margin.detach(), _noisy(loss, margin.detach(), labels, law.noise)[1]
        rounding = _ULPS * torch.finfo(predicted.dtype).eps * ((by_margin * seen).abs() * probability).sum(-1)
        return (noisy * probability).sum(-1), (noisy.detach().abs() * probability).sum(-1), rounding

    total = size = rounding = torch.zeros((), dtype=torch.float64)
    for chunk in _inputs(law):
        mean, absolute, rounded = checkpoint(chunk_mean, *chunk, use_reentrant=False)
        total, size, rounding = total + mean, size + absolute, rounding + rounded
    return Mean(total, None, None, _sum_rounding(law.n) * size + rounding, "estimated")


def _inputs(law: Law) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield all inputs (chunk, n), their labels (*runs, chunk) and probabilities (chunk,)."""
    for start in range(0, 2**law.n, 2**_CHUNK_BITS):
        x = bits_of(torch.arange(start, min(start + 2**_CHUNK_BITS, 2**law.n)), law.n)
        bits = x.to(torch.float64)
        labels = 1 - 2 * ((law.mask.to(torch.float64) @ bits.T) % 2)
        ones = bits.sum(-1)
        yield x, labels, law.bias**ones * (1 - law.bias) ** (law.n - ones)
