"""What a training sees: the population, drawn examples, what those name, or fresh examples at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Int8, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.problems import Parity, draw_examples, seeded_generator
from parityscope.risk import Law, law_of
from parityscope.risk.engines.closed_form import exact_correlation
from parityscope.training.attention_path import Evidence, evidence_of, named_set
from parityscope.training.descent import Objective, make_optimiser
from parityscope.training.objectives import online_objective, population_objective, sample_objective
from parityscope.training.recipes import Recipe
from parityscope.training.steps.armijo import ArmijoAscent
from parityscope.training.steps.first_order import Optimiser, Stepper
from parityscope.training.steps.gauss_newton import GaussNewton
from parityscope.training.steps.lbfgs import LimitedMemory
from parityscope.training.steps.log_attention import check_fair
from parityscope.training.steps.mirror import AttentionGradient
from parityscope.training.steps.newton import DampedNewton

_EXAMPLE_BYTES = 4e9
# Steps that know the problem: they search on log C itself.
_ON_LOG_C: dict[str, Callable[[ParityTransformer, Law], Stepper]] = {
    "gauss-newton": GaussNewton,
    "newton": DampedNewton,
    "armijo": ArmijoAscent,
    "lbfgs": LimitedMemory,
    "attention-gradient": AttentionGradient,
}


class Source(NamedTuple):
    """Where a training's gradients come from.

    >>> Source(samples=100, batch=None).patience_below  # six standard deviations of a correlation that is pure chance
    0.4
    """

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
