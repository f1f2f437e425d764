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
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.problems import Parity, draw_examples, seeded_generator
from parityscope.risk import law_of, population_risk
from parityscope.risk.losses import named_loss
from parityscope.risk.worst_case import worst_loss
from parityscope.training.build import (
    build_model,
    check_left_alone,
    check_trainable_together,
    ready_model,
    recipes_of,
)
from parityscope.training.checkpoint import Keeper
from parityscope.training.descent import Objective, TrainingState, descend, make_optimiser, step_scale
from parityscope.training.gauss_newton import GaussNewton
from parityscope.training.objectives import online_objective, population_objective, sample_objective
from parityscope.training.optimisers import Optimiser
from parityscope.training.outcome import LEARNED_ACCURACY, LearnedRuns
from parityscope.training.recipes import DEFAULT_RECIPE, Recipe, named_recipe

__all__ = ["LEARNED_ACCURACY", "LearnedRuns", "TrainingProgress", "learn", "train"]

_EXAMPLE_BYTES = 4e9
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
    engine: str = "auto",
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
    engine : str
        How the risk is computed; see `population_risk`.
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
    recipes = _recipes(recipe, seeds, bool(samples or batch), overrides, problems[0], model)
    return train(
        problems,
        recipes,
        seeds,
        model=model,
        samples=samples,
        batch=batch,
        engine=engine,
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
    engine: str = "auto",
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
    n, k = problems[0].n, problems[0].k
    _check_examples(samples, batch, checkpoint)
    check_trainable_together(recipes)
    if checkpoint is not None:
        chosen.check_addressable()
    model = build_model(recipes, n, k, seeds) if model is None else ready_model(model, n, k, len(seeds))
    objective = _objective(model, problems, seeds, chosen, samples, batch, engine)
    optimiser = _optimiser(model, problems, recipes, from_examples=bool(samples or batch))
    keeper = Keeper(checkpoint, _config(recipes, problems, seeds, samples), model, optimiser)
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
            patience_below=_patience_below(samples, batch),
        )
    keeper.save(state)
    seconds = time.perf_counter() - started
    return _measured(model, problems, recipes, seeds, state, engine, samples=samples, batch=batch, seconds=seconds)


def _check_examples(samples: int | None, batch: int | None, checkpoint: Path | None) -> None:
    if batch is None:
        return
    if batch < 1:
        raise InvalidInput(f"batch must be at least 1, got {batch}")
    if samples is not None:
        raise InvalidInput(f"give samples (a fixed set) or batch (fresh ones every step), not both: {samples}, {batch}")
    if checkpoint is not None:
        raise InvalidInput("training on fresh examples is not stored: drop the checkpoint, or use samples")


def _patience_below(samples: int | None, batch: int | None) -> float:
    """Return the risk below which a run counts as having left its start, so that patience applies."""
    if batch is not None:
        return -torch.inf  # fresh examples are never used up, and a noisy risk is no reason to stop
    # From examples: six standard deviations of a correlation that is pure chance.
    return torch.inf if samples is None else 1 - 6 / samples**0.5


def _objective(
    model: ParityTransformer,
    problems: Sequence[Parity],
    seeds: Sequence[int],
    recipe: Recipe,
    samples: int | None,
    batch: int | None,
    engine: str,
) -> Objective:
    if recipe.loss == "log-correlation" and (batch or samples):
        raise InvalidInput("log-correlation needs the population: use loss = hinge for examples")
    if batch is not None:
        return online_objective(model, problems, seeds, batch, recipe.loss, wide_phase=recipe.wide_phase)
    if samples is None:
        return population_objective(model, problems, recipe.loss, engine)
    x, y = _draw_examples(problems, seeds, samples)
    return sample_objective(model, x, y, recipe.loss, wide_phase=recipe.wide_phase)


def _optimiser(
    model: ParityTransformer, problems: Sequence[Parity], recipes: Sequence[Recipe], *, from_examples: bool
) -> Optimiser:
    if recipes[0].optimiser != "gauss-newton":
        return make_optimiser(model, *recipes)
    if from_examples:
        raise InvalidInput("gauss-newton steps need the population: choose another optimiser for examples")
    return GaussNewton(model, law_of([replace(problem, noise=0.0) for problem in problems]))


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
    from_examples: bool,
    overrides: dict[str, Any],
    problem: Parity,
    model: ParityTransformer | None,
) -> tuple[Recipe, ...]:
    """Return the resolved recipe of all runs, or one per run when they were given so."""
    given = [named_recipe(recipe)] if isinstance(recipe, str) else [recipe] if isinstance(recipe, Recipe) else recipe
    if len(given) not in (1, len(seeds)):
        raise InvalidInput(f"give one recipe for all seeds or one per seed: got {len(given)} for {len(seeds)} seeds")
    distinct = {id(one): one for one in given}
    adapted = {key: one.adapted(problem.k, from_examples=from_examples, **overrides) for key, one in distinct.items()}
    chosen = [adapted[id(one)] for one in given]
    if model is not None:
        check_left_alone(list(overrides))
        chosen = recipes_of(model, chosen)
    return tuple(one.resolved(problem.n, problem.k) for one in chosen)


def _draw_examples(problems: Sequence[Parity], seeds: Sequence[int], samples: int) -> tuple[Tensor, Tensor]:
    """Return every run's own examples, (runs, samples, n) and (runs, samples)."""
    size = len(seeds) * samples * problems[0].n
    if size > _EXAMPLE_BYTES:
        raise InvalidInput(
            f"{len(seeds)} runs × {samples} examples × {problems[0].n} bits need {size / 1e9:.1f} GB of memory, and "
            f"at most {_EXAMPLE_BYTES / 1e9:.0f} GB are used: take fewer runs at a time"
        )
    return draw_examples(problems, samples, [seeded_generator(seed, "data") for seed in seeds])


def _watched_loss(recipe: Recipe) -> str:
    """Return the loss whose risk is reported; descent on log C watches the hinge risk 1 − C."""
    return "hinge" if recipe.loss == "log-correlation" else recipe.loss


def _config(
    recipes: Sequence[Recipe], problems: Sequence[Parity], seeds: Sequence[int], samples: int | None
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
        "recipe": recipes[0].model_dump(mode="json"),
        **({"recipes": [one.model_dump(mode="json") for one in recipes]} if len(recipes) > 1 else {}),
    }


def _measured(
    model: ParityTransformer,
    problems: tuple[Parity, ...],
    recipes: Sequence[Recipe],
    seeds: tuple[int, ...],
    state: TrainingState,
    engine: str,
    *,
    samples: int | None,
    batch: int | None,
    seconds: float,
) -> LearnedRuns:
    # Risk and accuracy are measured against the parity itself, whatever noise the training saw.
    clean = tuple(replace(problem, noise=0.0) for problem in problems)
    with torch.no_grad():
        risk = population_risk(model, clean, loss=_watched_loss(recipes[0]), engine=engine)
        accuracy = measured_accuracy(model, clean)
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
            attention=model.attention(),
            found=found_support(model.score_weights(), problems[0].k),
            steps=state.finished_at,
            diverged=state.diverged,
            history_steps=torch.tensor(state.history_steps),
            history_risk=torch.stack(state.history_risk),
            samples=samples,
            batch=batch,
            seconds=seconds,
        )
