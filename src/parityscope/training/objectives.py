"""What descends: the risk of the population, of a drawn sample, or of fresh examples at every step; one per run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import AdditiveScore, ParityTransformer
from parityscope.models.readouts import COSINE
from parityscope.problems import Parity, draw_examples, seeded_generator
from parityscope.risk import law_of, population_risk
from parityscope.risk.engines.closed_form import exact_correlation
from parityscope.risk.losses import named_loss
from parityscope.risk.sampling import sample_mean
from parityscope.training.descent import Evaluation, Objective
from parityscope.training.steps.log_attention import log_correlation


def population_objective(
    model: ParityTransformer, problems: Sequence[Parity], loss: str, engine: str = "auto", tolerance: float = 1e-9
) -> Objective:
    """Return the objective on all 2^n inputs; log-correlation watches the hinge risk.

    >>> from parityscope.models import Cosine
    >>> directions = torch.zeros(1, 1, 2, dtype=torch.float64)  # uniform attention over two bits, one hidden: C = ½
    >>> model = ParityTransformer(2, 1, directions=directions, readout=Cosine())
    >>> value, risk = population_objective(model, [Parity(2, (0,))], "log-correlation")()
    >>> round(value.item(), 6), round(risk.item(), 6)
    (0.693147, 0.5)
    """
    # The law is made once: stacking the masks of hundreds of runs at every step would cost more than the risk.
    if loss != "log-correlation":
        noisy = law_of(problems)

        def descend_on_risk() -> Evaluation:
            risk = population_risk(model, noisy, loss=loss, engine=engine, tolerance=tolerance).value
            return Evaluation(risk, risk)

        return descend_on_risk
    if not model.readout.bounded:
        raise InvalidInput("log-correlation needs a bounded readout, |ŷ| ≤ 1: choose another, or use loss = hinge")
    # Label noise scales the correlation by a constant: its logarithm has the same gradient, the clean risk says when
    # to stop.
    law = law_of(problems)._replace(noise=0.0)

    def descend_on_log_mean() -> Evaluation:
        value = population_risk(model, law, loss=loss, engine=engine, tolerance=tolerance).value
        return Evaluation(value, 1 - (-value.detach()).exp())

    if model.readout.cosine_series() != COSINE:
        return descend_on_log_mean

    def descend_on_log_correlation() -> Evaluation:
        score = model.additive_score()
        assert score is not None
        # No gradient flows through the risk here, so it need not be tracked.
        with torch.no_grad():
            risk = 1 - exact_correlation(score, law)
        return Evaluation(-log_correlation(score.weights, law), risk)

    return descend_on_log_correlation


def sample_objective(
    model: ParityTransformer,
    x: Int8[Tensor, "runs count n"],
    y: Int8[Tensor, "runs count"],
    loss: str,
    *,
    wide_phase: bool,
) -> Objective:
    """Return the objective on drawn examples, each run on its own.

    >>> from parityscope.models import Cosine
    >>> directions = torch.zeros(1, 1, 2, dtype=torch.float64)  # uniform attention: ŷ = cos(π(x₁ + x₂)/2)
    >>> model = ParityTransformer(2, 1, directions=directions, readout=Cosine())
    >>> x, y = torch.tensor([[[0, 0], [1, 1]]], dtype=torch.int8), torch.tensor([[1, 1]], dtype=torch.int8)
    >>> round(sample_objective(model, x, y, "hinge", wide_phase=False)().risk.item(), 12)  # losses 0 and 2
    1.0
    """
    chosen = named_loss(loss)

    def descend_on_examples() -> Evaluation:
        score = widened_score(model) if wide_phase else model.additive_score()
        assert score is not None
        risk = chosen.of_mean(sample_mean(score, x, y, chosen))
        return Evaluation(risk, risk)

    return descend_on_examples


_WATCHED_EXAMPLES = 1024


class FreshMean:
    """The mean loss over about the last 1024 examples, each judged before the step it belongs to.

    None of them was trained on before, so it estimates the population's without bias. It starts from a loss of 1:
    until enough examples have passed, a low mean says little.

    >>> watched = FreshMean(runs=1, batch=256)
    >>> [watched.watch(torch.zeros(1)).item() for _ in range(2)]  # (1 − 256/1024)^batches
    [0.75, 0.5625]
    """

    def __init__(self, runs: int, batch: int) -> None:
        self.weight = min(1.0, batch / _WATCHED_EXAMPLES)
        self.mean = torch.ones(runs, dtype=torch.float64)

    def watch(self, mean: Float[Tensor, " runs"]) -> Float[Tensor, " runs"]:
        """Take in a batch's mean loss and return the running one."""
        self.mean = self.mean + self.weight * (mean.detach().double() - self.mean)
        return self.mean


def online_objective(
    model: ParityTransformer,
    problems: Sequence[Parity],
    seeds: Sequence[int],
    batch: int,
    loss: str,
    *,
    wide_phase: bool,
) -> Objective:
    """Return the objective of stochastic descent: `batch` fresh examples per run and step, none seen twice.

    Every run draws from its own seed's data stream, so it is the same alone or among others.

    >>> from parityscope.models import Cosine
    >>> model = ParityTransformer(6, 2, directions=torch.zeros(1, 2, 2, dtype=torch.float64), readout=Cosine())
    >>> objective = online_objective(model, [Parity(6, (0, 1))], [0], 64, "hinge", wide_phase=False)
    >>> first, second = objective().objective, objective().objective
    >>> bool((first != second).all())  # other examples
    True
    """
    chosen = named_loss(loss)
    generators = [seeded_generator(seed, "data") for seed in seeds]
    watched = FreshMean(len(seeds), batch)

    def descend_on_fresh_examples() -> Evaluation:
        x, y = draw_examples(problems, batch, generators)
        score = widened_score(model) if wide_phase else model.additive_score()
        assert score is not None
        mean = sample_mean(score, x, y, chosen)
        return Evaluation(chosen.of_mean(mean), chosen.of_mean(watched.watch(mean)))

    return descend_on_fresh_examples


def widened_score(model: ParityTransformer) -> AdditiveScore:
    """Return the score with its phase widened while attention is diffuse: ŷ = cos(π(S_λ − λ/2) + πk/2), Σc = λ.

    Its expectation against y is the same product of sines and cosines, but from few examples a diffuse start gives a
    far stronger signal at λ ≈ (2/π)√((k−1)·n) than at λ = k. Here n is the effective number of attended positions
    1/Σγ̄², so λ falls to k by itself as attention concentrates.

    >>> from parityscope.models import Cosine
    >>> model = ParityTransformer(100, 2, directions=torch.zeros(1, 2, 2, dtype=torch.float64), readout=Cosine())
    >>> score = widened_score(model)
    >>> round(score.weights.sum().item(), 4), round(2 / math.pi * 100**0.5, 4)  # λ at uniform attention
    (6.3662, 6.3662)
    """
    if model.readout.cosine_series() != COSINE:
        raise InvalidInput("wide_phase widens the phase of cos(πS): set wide_phase=False for another readout")
    if model.log_scale is not None:
        raise InvalidInput("wide_phase has a mass of its own: set wide_phase=False, or mass=k")
    mean_attention = model.attention().mean(-2)
    attended = 1 / mean_attention.detach().square().sum(-1)
    width = (2 / math.pi * ((model.k - 1) * attended).sqrt()).clamp(min=model.k)
    return AdditiveScore(width.unsqueeze(-1) * mean_attention, (model.k - width) / 2, model.readout)
