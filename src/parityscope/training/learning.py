"""`learn`: from a problem and a recipe to a trained model and what it found, for many seeds at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.measures import attended_support, found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.problems import Parity
from parityscope.risk import law_of, population_risk
from parityscope.risk.losses import named_loss
from parityscope.risk.worst_case import worst_loss
from parityscope.training.attention_path import Evidence
from parityscope.training.build import (
    build_model,
    check_left_alone,
    check_trainable_together,
    ready_model,
    recipes_of,
)
from parityscope.training.checkpoint import Keeper
from parityscope.training.descent import TrainingState, descend, step_scale
from parityscope.training.outcome import LEARNED_ACCURACY, LearnedRuns
from parityscope.training.recipes import DEFAULT_RECIPE, Recipe, named_recipe
from parityscope.training.sources import Source, named_problems, phase_by_evidence
from parityscope.training.steps.certificate import Certifying
from parityscope.training.steps.first_order import Optimiser

__all__ = ["LEARNED_ACCURACY", "LearnedRuns", "TrainingProgress", "learn", "train"]

_WORTH_A_THREAD = 2**24  # numbers in the position code; below, every operation is too short to be shared


@dataclass(frozen=True)
class TrainingProgress:
    """What a progress bar needs to know while a training runs.

    >>> seen: list[TrainingProgress] = []
    >>> run = learn(Parity(100, (1, 5)), seeds=range(3), on_progress=seen.append)
    >>> seen[0].finished, seen[-1].finished, bool((seen[-1].accuracy_bound > 0.99).all())
    (0, 3, True)
    """

    step: int
    steps: int
    risk: Float[Tensor, " runs"]
    accuracy_bound: Float[Tensor, " runs"]
    finished: int


def learn(
    problem: Parity | Sequence[Parity],
    recipe: str | Recipe | Sequence[Recipe] = DEFAULT_RECIPE,
    seeds: Iterable[int] = (0,),
    *,
    model: ParityTransformer | None = None,
    samples: int | None = None,
    batch: int | None = None,
    k_at_most: int | None = None,
    engine: str = "auto",
    tolerance: float = 1e-9,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    on_record: Callable[[int, ParityTransformer], None] | None = None,
    record_every: int = 10,
    checkpoint: Path | None = None,
    resume: bool = False,
    **overrides: Any,
) -> LearnedRuns:
    """Train one run per seed and measure what was learned.

    Parameters
    ----------
    problem : Parity or sequence of Parity
        One problem for all seeds, or one per seed (`draw_problems`).
    recipe : str, Recipe or sequence of Recipe
        How to train: a recipe or the name of one for all seeds, or one recipe per seed; those of different seeds may
        differ in temperature, learning rate and start radius.
    seeds : iterable of int
        One run each; a seed decides the run's position code, start and examples, alone or among others.
    model : ParityTransformer or None
        A ready model to start from, instead of the one that the recipe builds: without a run axis for all seeds, or
        with one run per seed. It stays as it is; the trained copy is the outcome's `model`.
    samples : int or None
        Train on so many drawn examples per run (labels flip with the problem's noise) instead of the population. Risk
        and accuracy stay those of the population.
    batch : int or None
        Train on so many fresh examples per run and step instead.
    k_at_most : int or None
        Do not tell the training how many bits are hidden, only that they are no more than this: evidence chooses the
        phase of the readout, and so k. For recipes with a trained mass, like `concave`.
    engine : str
        How the risk is computed; see `population_risk`.
    tolerance : float
        The error of the population's risk that a step accepts; beyond n = 48 steps on H1's readout take seconds at
        1e-9, and less than a tenth of one at 1e-4.
    on_progress : callable or None
        Called after every step with a `TrainingProgress`.
    on_record : callable or None
        Called with the step and the model whenever a point is recorded.
    record_every : int
        Steps between two recorded points.
    checkpoint : Path or None
        A file in which the state is stored every few seconds.
    resume : bool
        Go on from that file, to the same result as an uninterrupted run.
    **overrides
        Fields of the recipe that are changed, for example `learning_rate=0.2`, or `readout=` a part of your own.

    Returns
    -------
    LearnedRuns
        Tensors with one row per seed.

    >>> run = learn(Parity(n=12, support=(1, 5, 6)), seeds=range(2))
    >>> run.found.tolist(), bool(run.learned.all())
    ([[1, 5, 6], [1, 5, 6]], True)
    """
    seeds = tuple(seeds)
    problems = _one_per_seed(problem, seeds)
    told = problems[0].k if k_at_most is None else k_at_most
    recipes = _recipes(recipe, seeds, Source(samples, batch), overrides, problems[0].n, told, model)
    return train(
        problems,
        recipes,
        seeds,
        model=model,
        samples=samples,
        batch=batch,
        k_at_most=k_at_most,
        engine=engine,
        tolerance=tolerance,
        on_progress=on_progress,
        on_record=on_record,
        record_every=record_every,
        checkpoint=checkpoint,
        resume=resume,
    )


def train(
    problems: Sequence[Parity],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    *,
    model: ParityTransformer | None = None,
    samples: int | None = None,
    batch: int | None = None,
    k_at_most: int | None = None,
    engine: str = "auto",
    tolerance: float = 1e-9,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    on_record: Callable[[int, ParityTransformer], None] | None = None,
    record_every: int = 10,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> LearnedRuns:
    """Train with resolved recipes, one for all seeds or one per seed: what `learn` does once names are looked up.

    >>> from parityscope.training.recipes import RECIPES
    >>> run = train([Parity(12, (1, 5, 6))], [RECIPES["bounded"].resolved(12, 3)], [0])
    >>> run.found.tolist()
    [[1, 5, 6]]
    """
    started = time.perf_counter()
    problems, seeds, chosen = tuple(problems), tuple(seeds), recipes[0]
    n, k = problems[0].n, problems[0].k if k_at_most is None else k_at_most
    source = Source(samples, batch)
    source.check(checkpoint)
    check_trainable_together(recipes)
    if checkpoint is not None:
        chosen.check_addressable()
    model = build_model(recipes, n, k, seeds) if model is None else ready_model(model, n, k, len(seeds))
    trained, evidence = problems, None
    if source.names_first(chosen):
        sizes = (k,) if k_at_most is None else range(1, k + 1)
        trained, evidence = named_problems(problems, seeds, source, sizes)
    if k_at_most is not None:
        _start_without_k(model, trained, problems[0].k, k_at_most, source, chosen)
    objective = source.objective(model, trained, seeds, chosen, engine, tolerance)
    optimiser = source.optimiser(model, trained, recipes)
    keeper = Keeper(checkpoint, _config(recipes, problems, seeds, samples, k_at_most), model, optimiser)
    state = keeper.resumed() if resume else TrainingState.fresh(len(seeds))
    watched = named_loss(_watched_loss(chosen))

    def after_step(state: TrainingState, risk: Tensor) -> None:
        if on_record is not None and state.history_steps[-1] == state.step:
            on_record(state.step, model)
        if on_progress is not None:
            accuracy = watched.accuracy_bound(risk)
            on_progress(TrainingProgress(state.step, int(chosen.steps), risk, accuracy, int((~state.active).sum())))
        keeper.save_now_and_then(state)

    with single_threaded(model.positions.numel() < _WORTH_A_THREAD):
        descend(
            model,
            objective,
            chosen,
            state,
            keeper.optimiser,
            scale=step_scale(recipes),
            after_step=after_step,
            record_every=record_every,
            patience_below=source.patience_below,
        )
    keeper.save(state)
    if k_at_most is not None:
        model.phase = phase_by_evidence(model, law_of(trained))
        evidence = evidence or Evidence.certain(model.phase)
    seconds = time.perf_counter() - started
    return _measured(model, problems, recipes, seeds, state, (engine, tolerance), optimiser, evidence, source, seconds)


def _start_without_k(
    model: ParityTransformer, problems: Sequence[Parity], k: int, k_at_most: int, source: Source, recipe: Recipe
) -> None:
    """Let evidence choose the readout's phase, in place of k."""
    if not 1 <= k <= k_at_most:
        raise InvalidInput(f"the problem has k = {k} hidden bits: k_at_most must be at least that, got {k_at_most}")
    if model.log_scale is None or (source.samples is not None and not source.names_first(recipe)):
        raise InvalidInput("an unknown k needs a trained mass: use the recipe concave, on the population or on samples")
    model.phase = phase_by_evidence(model, law_of(problems))


def _one_per_seed(problem: Parity | Sequence[Parity], seeds: Sequence[int]) -> tuple[Parity, ...]:
    if not seeds:
        raise InvalidInput("there are no seeds: give at least one")
    if isinstance(problem, Parity):
        return (problem,) * len(seeds)
    if len(problem) != len(seeds):
        raise InvalidInput(f"give one problem for all seeds or one per seed: got {len(problem)} for {len(seeds)} seeds")
    if len({(p.n, p.k) for p in problem}) > 1:
        raise InvalidInput("the problems of one training must share n and k")
    return tuple(problem)


def _recipes(
    recipe: str | Recipe | Sequence[Recipe],
    seeds: Sequence[int],
    source: Source,
    overrides: dict[str, Any],
    n: int,
    k: int,
    model: ParityTransformer | None,
) -> tuple[Recipe, ...]:
    """Return the resolved recipe of all runs, or one per run when they were given so."""
    given = [named_recipe(recipe)] if isinstance(recipe, str) else [recipe] if isinstance(recipe, Recipe) else recipe
    if len(given) not in (1, len(seeds)):
        raise InvalidInput(f"give one recipe for all seeds or one per seed: got {len(given)} for {len(seeds)} seeds")
    distinct = {id(one): one for one in given}
    adapted = {key: one.adapted(k, **source.kind(), **overrides) for key, one in distinct.items()}
    chosen = [adapted[id(one)] for one in given]
    if model is not None:
        check_left_alone(list(overrides))
        chosen = recipes_of(model, chosen)
    return tuple(one.resolved(n, k) for one in chosen)


def _watched_loss(recipe: Recipe) -> str:
    """Return the loss whose risk is reported; descent on log C watches the hinge risk 1 − C."""
    return "hinge" if recipe.loss == "log-correlation" else recipe.loss


def _config(
    recipes: Sequence[Recipe],
    problems: Sequence[Parity],
    seeds: Sequence[int],
    samples: int | None,
    k_at_most: int | None,
) -> dict[str, Any]:
    """Return what a checkpoint must agree on to be resumed."""
    first = problems[0]
    return {
        "n": first.n,
        "bias": first.bias,
        "noise": first.noise,
        "supports": [list(p.support) for p in problems],
        "seeds": list(seeds),
        "samples": samples,
        **({} if k_at_most is None else {"k_at_most": k_at_most}),
        "recipe": recipes[0].model_dump(mode="json"),
        **({"recipes": [one.model_dump(mode="json") for one in recipes]} if len(recipes) > 1 else {}),
    }


def _measured(
    model: ParityTransformer,
    problems: tuple[Parity, ...],
    recipes: Sequence[Recipe],
    seeds: tuple[int, ...],
    state: TrainingState,
    computed_by: tuple[str, float],
    optimiser: Optimiser,
    evidence: Evidence | None,
    source: Source,
    seconds: float,
) -> LearnedRuns:
    # Risk and accuracy are measured against the parity itself, whatever noise the training saw.
    clean = tuple(replace(problem, noise=0.0) for problem in problems)
    # What steps prove is of the set they train on, and examples may have named another.
    proves = None if source.names_first(recipes[0]) else optimiser
    with torch.no_grad():
        engine, tolerance = computed_by
        risk = population_risk(model, clean, loss=_watched_loss(recipes[0]), engine=engine, tolerance=tolerance)
        accuracy = measured_accuracy(model, clean)
        weights = model.score_weights()
        return LearnedRuns(
            problems=problems,
            recipes=tuple(recipes) if len(recipes) > 1 else (recipes[0],) * len(seeds),
            seeds=seeds,
            model=model,
            engine=risk.engine,
            risk=risk.value,
            accuracy=accuracy.value,
            accuracy_kind=accuracy.kind,
            worst_loss=worst_loss(model.additive_score(), law_of(clean)),
            certificate=proves.certificate() if isinstance(proves, Certifying) else None,
            attention=model.attention(),
            evidence=evidence,
            found=found_support(weights, model.k) if model.phase is None else attended_support(weights, model.k),
            steps=state.finished_at,
            diverged=state.diverged,
            history_steps=torch.tensor(state.history_steps),
            history_risk=torch.stack(state.history_risk),
            samples=source.samples,
            batch=source.batch,
            seconds=seconds,
        )
