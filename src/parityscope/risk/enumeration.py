"""Population risk by visiting all 2^n inputs, in chunks that keep memory bounded.

For an additive score the table of S is an outer sum of two half tables, S[a, b] = high[a] + low[b], and the
gradient with respect to every weight follows from the marginal sums of ∂loss/∂S over a and over b. Other models
go through `forward` chunk by chunk, recomputing each chunk in the backward pass instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import predicts_plus
from parityscope.models.additive import additive_score
from parityscope.models.readouts import Readout
from parityscope.problems import bits_of
from parityscope.risk.law import Law
from parityscope.risk.losses import Loss
from parityscope.risk.runs import Mean, Runs

_MAX_BITS = 26
_CHUNK_BITS = 11  # inputs per chunk; independent of the number of runs, so that a run's sums are too
_RUNS_AT_ONCE = 256


def enumerated_mean(model: nn.Module, law: Law, loss: Loss) -> Float[Tensor, "*runs"]:
    """Return E[loss(yŷ)] over all 2^n inputs, differentiable in the model's parameters.

    Uniform attention over two bits, one of them hidden: of the four inputs only (1, 0) is misread, and loses (1 + 1)².

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> from parityscope.risk.losses import named_loss
    >>> model = ParityTransformer(n=2, k=1, directions=torch.zeros(1, 2, dtype=torch.float64))
    >>> enumerated_mean(model, law_of(Parity(2, (0,))), named_loss("squared-hinge")).item()
    1.0
    """
    _check_size(law.n)
    score = additive_score(model)
    if score is None or any(p.requires_grad for p in score.readout.parameters()):
        return _forward_mean(model, law, loss)
    runs = Runs.of(score, law)
    pieces = [
        _additive_mean(weights, offset, mask, score.readout, law, loss)
        for weights, offset, mask in zip(*(tensor.split(_RUNS_AT_ONCE) for tensor in runs.tensors), strict=True)
    ]
    value, by_weight, by_offset = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    return runs.with_gradient(Mean(value, by_weight, by_offset))


def enumerated_accuracy(model: nn.Module, law: Law) -> Float[Tensor, "*runs"]:
    """Return P(sign ŷ = noiseless label); a prediction of 0 (up to rounding) counts as −1.

    Without bit 1 the parity of bits 0 and 1 is right whenever bit 1 is 0:

    >>> from parityscope.models import parity_ffnn
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> enumerated_accuracy(parity_ffnn(5, (0,)), law_of(Parity(5, (0, 1), bias=0.25))).item()
    0.75
    """
    _check_size(law.n)
    score = additive_score(model)
    total = torch.zeros((), dtype=torch.float64)
    with torch.no_grad():
        for x, labels, probability in _inputs(law):
            if score is None:
                predicted = model(x)
            else:
                S = (x.to(score.weights.dtype) @ score.weights.unsqueeze(-1)).squeeze(-1)
                predicted = score.readout(S + score.offset.unsqueeze(-1))
            total = total + ((predicts_plus(predicted) == (labels > 0)) * probability).sum(-1)
    return total


def _check_size(n: int) -> None:
    if n > _MAX_BITS:
        raise InvalidInput(
            f"enumeration visits 2^{n} = {2**n:.2g} inputs and is limited to n ≤ {_MAX_BITS}: n = {n} would take"
            f" about {2 ** (n - _MAX_BITS)} times as long as n = {_MAX_BITS} (seconds to minutes per evaluation)"
        )


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
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean loss (runs,), its gradient by weight (runs, n) and by offset (runs,)."""
    low = min(law.n, _CHUNK_BITS // 2 + 1)
    low_bits, low_sums, low_signs, low_probability = _half_table(weights[:, :low], mask[:, :low], law.bias)
    high_bits, high_sums, high_signs, high_probability = _half_table(weights[:, low:], mask[:, low:], law.bias)
    high_sums = high_sums + offset[:, None]
    value = torch.zeros_like(offset)
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
        by_score = by_margin.mul_(direction).mul_(probability)
        by_low += by_score.sum(-2)
        by_high[:, part] = by_score.sum(-1)
    return value, torch.cat([by_low @ low_bits, by_high @ high_bits], dim=-1), by_low.sum(-1)


def _noisy(loss: Loss, margin: Tensor, direction: Tensor, noise: float) -> tuple[Tensor, Tensor]:
    """Return the loss and its slope by the margin, averaged over the flip of a noisy label."""
    value, slope = loss.of_margin(margin), loss.slope_along(margin, direction)
    if noise == 0:
        return value, slope
    flipped, flipped_slope = loss.of_margin(-margin), loss.slope_along(-margin, -direction)
    return (1 - noise) * value + noise * flipped, (1 - noise) * slope - noise * flipped_slope


def _forward_mean(model: nn.Module, law: Law, loss: Loss) -> Tensor:
    def chunk_mean(x: Tensor, labels: Tensor, probability: Tensor) -> Tensor:
        margin = labels * model(x)
        noisy = (1 - law.noise) * loss.of_margin(margin) + law.noise * loss.of_margin(-margin)
        return (noisy * probability).sum(-1)

    total: Tensor = torch.zeros((), dtype=torch.float64)
    for chunk in _inputs(law):
        total = total + checkpoint(chunk_mean, *chunk, use_reentrant=False)
    return total


def _inputs(law: Law) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield all inputs (chunk, n), their labels (*runs, chunk) and probabilities (chunk,)."""
    for start in range(0, 2**law.n, 2**_CHUNK_BITS):
        x = bits_of(torch.arange(start, min(start + 2**_CHUNK_BITS, 2**law.n)), law.n)
        bits = x.to(torch.float64)
        labels = 1 - 2 * ((law.mask.to(torch.float64) @ bits.T) % 2)
        ones = bits.sum(-1)
        yield x, labels, law.bias**ones * (1 - law.bias) ** (law.n - ones)
