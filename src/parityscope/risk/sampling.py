"""Risk on drawn examples: an estimate of the population's with a confidence interval, or what a training sees."""

from __future__ import annotations

from statistics import NormalDist

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore
from parityscope.problems import Parity
from parityscope.risk.losses import AnyLoss, Loss, as_loss
from parityscope.risk.population import Risk

_CHUNK = 2**16


def estimated_risk(
    model: nn.Module,
    problem: Parity,
    samples: int,
    generator: torch.Generator,
    *,
    loss: AnyLoss = "squared-hinge",
    confidence: float = 0.95,
) -> Risk:
    """Return the mean loss on drawn examples; `error_bound` is the half-width of its confidence interval.

    Parameters
    ----------
    model : nn.Module
        Maps bits (batch, n) to predictions (batch,).
    problem : Parity
        What the examples are drawn from, label noise included.
    samples : int
        How many examples.
    generator : torch.Generator
        Where they come from.
    loss : str or callable
        One of the losses of `population_risk`.
    confidence : float
        How sure the interval is to contain the population's risk.

    Returns
    -------
    Risk
        Differentiable in the model's parameters.

    >>> from parityscope.models import parity_ffnn
    >>> risk = estimated_risk(parity_ffnn(8, (1, 4)), Parity(8, (1, 4)), 100, torch.Generator().manual_seed(0))
    >>> risk.value.item(), risk.error_bound.item(), risk.engine
    (0.0, 0.0, 'sampled')
    """
    if not 0 < confidence < 1:
        raise InvalidInput(f"confidence must lie strictly between 0 and 1, got {confidence}")
    chosen = as_loss(loss)
    total: Tensor = torch.zeros((), dtype=torch.float64)
    squares: Tensor = torch.zeros((), dtype=torch.float64)
    for start in range(0, samples, _CHUNK):
        x, y = problem.sample(min(_CHUNK, samples - start), generator)
        losses = chosen.of_margin(y * model(x))
        total = total + losses.sum(-1)
        squares = squares + losses.detach().square().sum(-1)
    mean = total / samples
    spread = (squares / samples - mean.detach().square()).clamp(min=0).sqrt()
    half_width = NormalDist().inv_cdf((1 + confidence) / 2) * spread / samples**0.5
    with torch.no_grad():
        ends = torch.stack([chosen.of_mean(mean + sign * half_width) for sign in (-1, 1)])
        error_bound = (ends - chosen.of_mean(mean)).abs().amax(0)
    return Risk(chosen.of_mean(mean), error_bound, "sampled", "estimated")


def sample_mean(
    score: AdditiveScore, x: Int8[Tensor, "runs count n"], y: Int8[Tensor, "runs count"], loss: Loss
) -> Float[Tensor, " runs"]:
    """Return each run's mean loss on its own examples, differentiable in the score's weights.

    Bits stay one byte each; only a chunk of rows at a time becomes floating point.
    """
    weights, offset = score.weights.detach(), score.offset.detach()
    value = weights.new_zeros(weights.shape[:-1])
    by_weight = torch.zeros_like(weights)
    rows = max(1, _CHUNK // max(1, x.shape[-1]))
    for bits, labels in zip(x.split(rows, dim=1), y.split(rows, dim=1), strict=True):
        floats = bits.to(weights.dtype)
        S = (floats @ weights.unsqueeze(-1)).squeeze(-1) + offset.unsqueeze(-1)
        prediction, slope = score.readout.value_and_slope(S)
        margin = labels * prediction
        value += loss.of_margin(margin).sum(-1)
        direction = slope * labels  # of the margin, as the score grows
        by_weight += ((loss.slope_along(margin, direction) * direction).unsqueeze(-2) @ floats).squeeze(-2)
    count = x.shape[1]
    # A linear term that is zero in value carries the gradient already computed.
    return value / count + ((score.weights - weights) * (by_weight / count)).sum(-1)
