"""What a training sees: the population, drawn examples, what those name, or fresh examples at every step.

A `Source` says which of them it is; from it come the objective that descends, one value per run, and the optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int8, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import AdditiveScore, ParityTransformer
from parityscope.models.readouts import COSINE
from parityscope.problems import Parity, draw_examples, seeded_generator
from parityscope.risk import Law, law_of, population_risk
from parityscope.risk.engines.closed_form import exact_correlation
from parityscope.risk.losses import named_loss
from parityscope.risk.sampling import sample_mean
from parityscope.training.attention_path import Evidence, evidence_of, named_set
from parityscope.training.descent import Evaluation, Objective, make_optimiser
from parityscope.training.recipes import Recipe
from parityscope.training.steps.ascent import ArmijoAscent, LimitedMemory
from parityscope.training.steps.first_order import Optimiser, Stepper
from parityscope.training.steps.log_attention import check_fair, log_correlation
from parityscope.training.steps.mirror import AttentionGradient
from parityscope.training.steps.newton import DampedNewton, GaussNewton

_EXAMPLE_BYTES = 4e9  # of all runs together
_WATCHED_EXAMPLES = 1024
# Steps that know the problem: they search on log C itself.
_ON_LOG_C: dict[str, Callable[[ParityTransformer, Law], Stepper]] = {
    "gauss-newton": GaussNewton,
    "newton": DampedNewton,
    "armijo": ArmijoAscent,
    "lbfgs": LimitedMemory,
    "attention-gradient": AttentionGradient,
}


def population_objective(
    model: ParityTransformer, problems: Sequence[Parity], loss: str, engine: str = "auto", tolerance: float = 1e-9
) -> Objective:
    """Return the objective on all 2^n inputs; log-correlation watches the hinge risk."""
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
    """Return the objective on drawn examples, each run on its own."""
    chosen = named_loss(loss)

    def descend_on_examples() -> Evaluation:
        score = widened_score(model) if wide_phase else model.additive_score()
        assert score is not None
        risk = chosen.of_mean(sample_mean(score, x, y, chosen))
        return Evaluation(risk, risk)

    return descend_on_examples


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
    """
    if model.readout.cosine_series() != COSINE:
        raise InvalidInput("wide_phase widens the phase of cos(πS): set wide_phase=False for another readout")
    if model.log_scale is not None:
        raise InvalidInput("wide_phase has a mass of its own: set wide_phase=False, or mass=k")
    mean_attention = model.attention().mean(-2)
    attended = 1 / mean_attention.detach().square().sum(-1)
    # `theory.wide_phase` for k ≪ n
    width = (2 / math.pi * ((model.k - 1) * attended).sqrt()).clamp(min=model.k)
    return AdditiveScore(width.unsqueeze(-1) * mean_attention, (model.k - width) / 2, model.readout)


class Source(NamedTuple):
    """Where a training's gradients come from."""

    samples: int | None
    batch: int | None

    def check(self, checkpoint: Path | None) -> None:
        """Refuse what does not go together."""
        if self.batch is None:
            return
        if self.batch < 1:
            raise InvalidInput(f"batch must be at least 1, got {self.batch}")
        if self.samples is not None:
            raise InvalidInput(
                f"give samples (a fixed set) or batch (fresh ones every step), not both: {self.samples}, {self.batch}"
            )
        if checkpoint is not None:
            raise InvalidInput("training on fresh examples is not stored: drop the checkpoint, or use samples")

    @property
    def patience_below(self) -> float:
        """The risk below which a run counts as having left its start, so that patience applies."""
        if self.batch is not None:
            return -torch.inf  # fresh examples are never used up, and a noisy risk is no reason to stop
        return torch.inf if self.samples is None else 1 - 6 / self.samples**0.5

    def names_first(self, recipe: Recipe) -> bool:
        """Say whether drawn examples name the hidden bits before anything is trained."""
        return self.samples is not None and recipe.optimiser in _ON_LOG_C

    def kind(self) -> dict[str, bool]:
        """Return what a recipe adapts to."""
        return {"from_examples": bool(self.samples or self.batch), "from_batches": bool(self.batch)}

    def drawn(
        self, problems: Sequence[Parity], seeds: Sequence[int]
    ) -> tuple[Int8[Tensor, "runs count n"], Int8[Tensor, "runs count"]]:
        """Return every run's own examples."""
        assert self.samples is not None
        size = len(seeds) * self.samples * problems[0].n
        if size > _EXAMPLE_BYTES:
            raise InvalidInput(
                f"{len(seeds)} runs × {self.samples} examples × {problems[0].n} bits need {size / 1e9:.1f} GB of"
                f" memory, and at most {_EXAMPLE_BYTES / 1e9:.0f} GB are used: take fewer runs at a time"
            )
        return draw_examples(problems, self.samples, [seeded_generator(seed, "data") for seed in seeds])

    def objective(
        self,
        model: ParityTransformer,
        problems: Sequence[Parity],
        seeds: Sequence[int],
        recipe: Recipe,
        engine: str,
        tolerance: float,
    ) -> Objective:
        """Return what descends."""
        if (self.samples is None and self.batch is None) or self.names_first(recipe):
            return population_objective(model, problems, recipe.loss, engine, tolerance)
        if recipe.loss == "log-correlation":
            raise InvalidInput("log-correlation needs the population: use loss = hinge for examples")
        if self.batch is not None:
            return online_objective(model, problems, seeds, self.batch, recipe.loss, wide_phase=recipe.wide_phase)
        x, y = self.drawn(problems, seeds)
        return sample_objective(model, x, y, recipe.loss, wide_phase=recipe.wide_phase)

    def optimiser(self, model: ParityTransformer, problems: Sequence[Parity], recipes: Sequence[Recipe]) -> Optimiser:
        """Return what steps."""
        name = recipes[0].optimiser
        if name not in _ON_LOG_C:
            return make_optimiser(model, *recipes)
        if self.batch is not None:
            raise InvalidInput(f"{name} steps need the population or samples: choose another optimiser for batches")
        return _ON_LOG_C[str(name)](model, law_of([replace(problem, noise=0.0) for problem in problems]))


def named_problems(
    problems: Sequence[Parity], seeds: Sequence[int], source: Source, sizes: Sequence[int]
) -> tuple[tuple[Parity, ...], Evidence]:
    """Return the problem that every run's examples name, with one of some numbers of bits, and how sure that is.

    >>> named, evidence = named_problems([Parity(20, (3, 7))], [0], Source(100, None), sizes=(1, 2, 3))
    >>> named[0].support, evidence.k.tolist()
    ((3, 7), [2])
    """
    check_fair(law_of(problems[:1]), "attention-path")
    x, y = source.drawn(problems, seeds)
    best = [
        min((named_set(bits, labels, k) for k in sizes), key=lambda one: one.log_chance)
        for bits, labels in zip(x, y, strict=True)
    ]
    named = [replace(problem, support=one.support) for problem, one in zip(problems, best, strict=True)]
    return tuple(named), evidence_of(best, len(sizes))


@torch.no_grad()
def phase_by_evidence(model: ParityTransformer, law: Law) -> Int64[Tensor, " runs"]:
    """Return which of the four phases of the readout every run's exact correlation speaks for, nearest to its mass.

    E[y e^{iπ(S − Λ/2)}] = C·e^{−iπk/2} with C > 0: of the shifts by 0, 1, 2, 3 the one that is k mod 4 correlates by C,
    the others by 0 or −C. Once attention is on the hidden bits, k itself is what is nearest to the mass Λ.

    >>> from parityscope.models import Cosine
    >>> start, quarter = torch.zeros(1, 1, 2, dtype=torch.float64), torch.tensor([0.25], dtype=torch.float64)
    >>> model = ParityTransformer(8, 7, 1, 1.0, directions=start, log_scale=quarter.log(), readout=Cosine())
    >>> phase_by_evidence(model, law_of([Parity(8, (0, 1, 4))])).tolist()
    [3]
    """
    score = model.additive_score()
    assert score is not None
    mass = score.weights.sum(-1)
    turned = torch.stack([exact_correlation(score._replace(offset=(k - mass) / 2), law) for k in range(4)])
    phase = turned.argmax(0)
    return phase + 4 * ((mass - phase) / 4).round().long()
