"""Training of modules that are no `ParityTransformer`: seed by seed, on the exact risk or on drawn examples.

A module trains if it maps bits (batch, n) to predictions (batch,), or names an additive score. Nothing else is asked of
it, so that what it found is read off its predictions: the bits whose flip changes their sign most often.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import largest, predicts_plus
from parityscope.measures import Accuracy, found_support, measured_accuracy
from parityscope.models.additive import additive_score
from parityscope.problems import Parity, draw_examples, seeded_generator
from parityscope.risk import population_risk
from parityscope.risk.losses import named_loss
from parityscope.training.descent import Evaluation, TrainingState, make_optimiser, step_scale
from parityscope.training.parts import OwnPart
from parityscope.training.recipes import DEFAULT_RECIPE, Recipe
from parityscope.training.sources import FreshMean, Source

# Ours: what trains a small network on most problems of a dozen bits; recipes are about attention.
_DEFAULTS = {
    "optimiser": "adam",
    "loss": "squared-hinge",
    "learning_rate": 0.01,
    "beta1": 0.9,
    "beta2": 0.999,
    "steps": 1000,
    "stop_risk": 0.01,
    "wide_phase": False,
}
_PROBED = 1024  # inputs on which bits are flipped


def own_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe as it stands, or with what trains a network in place of the default one's steps."""
    if recipe.name == DEFAULT_RECIPE:
        return recipe.overridden(name="own model", on_samples={}, on_batches={}, beyond_pairs={}, **_DEFAULTS)
    return recipe


def own_models(model: nn.Module | Sequence[nn.Module], n: int, seeds: Sequence[int], recipe: Recipe) -> list[nn.Module]:
    """Return a copy of the module for every seed, or of each seed's own; what cannot train is refused in a sentence."""
    given = [model] * len(seeds) if isinstance(model, nn.Module) else list(model)
    if len(given) != len(seeds) or not all(isinstance(one, nn.Module) for one in given):
        raise InvalidInput(f"model must be one torch module for all seeds, or one per seed: {len(seeds)} seeds")
    name = type(given[0]).__name__
    if not any(parameter.requires_grad for parameter in given[0].parameters()):
        raise InvalidInput(f"{name} has nothing to train: register its weights as torch.nn.Parameter")
    steps = recipe.optimiser
    if not isinstance(steps, OwnPart) and steps not in ("adam", "gradient-descent"):
        raise InvalidInput(f"{steps} steps are those of ParityTransformer: train {name} with optimiser='adam'")
    score = additive_score(given[0])
    if recipe.loss == "log-correlation" and (score is None or not score.readout.bounded):
        raise InvalidInput(f"log-correlation needs |ŷ| ≤ 1, which {name} does not say: train it with loss='hinge'")
    if score is None:
        _check_forward(given[0], n)
    return [copy.deepcopy(one) for one in given]


def _check_forward(model: nn.Module, n: int) -> None:
    name, x = type(model).__name__, torch.zeros(2, n, dtype=torch.int8)
    try:
        predicted = model(x)
    except (NotImplementedError, RuntimeError, TypeError, IndexError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInput(
            f"{name} needs a forward that takes bits (batch, {n}) of dtype int8, or an additive_score: {reason}"
        ) from error
    if not isinstance(predicted, Tensor) or predicted.shape != (2,) or not predicted.requires_grad:
        got = (
            f"the shape {tuple(predicted.shape)}" if isinstance(predicted, Tensor) else f"a {type(predicted).__name__}"
        )
        raise InvalidInput(f"{name} maps 2 inputs to {got}: return one differentiable number each")


def objective_of(
    model: nn.Module, problem: Parity, seed: int, source: Source, recipe: Recipe, engine: str, tolerance: float
) -> Callable[[], Evaluation]:
    """Return the risk of one module on the population, on its own drawn examples, or on fresh ones every step."""
    loss = named_loss(recipe.loss)
    if source.samples is None and source.batch is None:

        def on_population() -> Evaluation:
            risk = population_risk(model, problem, loss=loss, engine=engine, tolerance=tolerance).value.reshape(1)
            return Evaluation(risk, risk)

        return on_population

    def mean_on(x: Tensor, y: Tensor) -> Tensor:
        return loss.of_mean(loss.of_margin(y[0] * model(x[0])).mean().reshape(1))

    if source.batch is None:
        x, y = source.drawn([problem], [seed])
        return lambda: Evaluation(risk := mean_on(x, y), risk)
    size, generators, watched = source.batch, [seeded_generator(seed, "data")], FreshMean(1, source.batch)

    def on_fresh() -> Evaluation:
        risk = mean_on(*draw_examples([problem], size, generators))
        return Evaluation(risk, watched.watch(risk))

    return on_fresh


def descend_alone(
    model: nn.Module,
    objective: Callable[[], Evaluation],
    recipe: Recipe,
    patience_below: float,
    record_every: int,
) -> TrainingState:
    """Train one module until its risk is below `stop_risk`, stalls, is no longer finite, or the steps are used up."""
    state, optimiser, scale = TrainingState.fresh(1), make_optimiser(model, recipe), step_scale([recipe])
    parameters = [p for p in model.parameters() if p.requires_grad]
    while True:
        evaluation = objective()
        risk = evaluation.risk.detach().double()
        state.diverged |= ~risk.isfinite()
        state.stop(state.diverged)
        if recipe.stop_risk is not None:
            state.stop(risk < recipe.stop_risk)
        if recipe.patience is not None:
            state.stop(state.stalled(risk, recipe.patience, patience_below))
        last = state.step >= int(recipe.steps) or not bool(state.active.any())
        if last or state.step % record_every == 0:
            state.record(risk)
        if last:
            state.stop(state.active)
            return state
        optimiser.zero_grad()
        evaluation.objective.sum().backward()
        before = [p.detach().clone() for p in parameters]
        optimiser.step()
        if (share := float(scale(state.step))) != 1.0:
            with torch.no_grad():
                for p, old in zip(parameters, before, strict=True):
                    p.copy_(old + share * (p - old))
        state.step += 1


def measured(model: nn.Module, problem: Parity) -> tuple[Accuracy, Int64[Tensor, " k"]]:
    """Return the accuracy of a module on noiseless labels, and the k bits it reads."""
    clean = replace(problem, noise=0.0)
    with torch.no_grad():
        score = additive_score(model)
        found = influential(model, problem) if score is None else found_support(score.weights.abs(), problem.k)
        return measured_accuracy(model, [clean]), found


def influential(model: nn.Module, problem: Parity) -> Int64[Tensor, " k"]:
    """Return the k bits whose flip changes the predicted label most often, ascending: those of largest influence.

    >>> from parityscope.models import parity_ffnn
    >>> influential(parity_ffnn(8, (1, 4)), Parity(8, (1, 4))).tolist()
    [1, 4]
    """
    x = (torch.rand(_PROBED, problem.n, generator=seeded_generator(0, "data")) < problem.bias).to(torch.int8)
    with torch.no_grad():
        label, changes = predicts_plus(model(x)), []
        for bit in range(problem.n):
            flipped = x.clone()
            flipped[:, bit] = 1 - flipped[:, bit]
            changes.append((predicts_plus(model(flipped)) != label).double().mean())
    return largest(torch.stack(changes), problem.k)
