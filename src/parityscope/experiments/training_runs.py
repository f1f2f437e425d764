"""One training per config, packed with others of its shape: what a sweep over seeds, rates, temperatures needs.

A spec imports `Training`, `run`, `run_batch` and `batch_shape`, and adds its own ID and CONFIGS.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from parityscope.experiments.contract import Config, Result
from parityscope.learning import Learned, learn
from parityscope.problems import Parity, draw_problems
from parityscope.training.recipes import DEFAULT_RECIPE, OF_A_RUN, Recipe, named_recipe


class Training(Config):
    """One run of a recipe: its support, positions, start and data come from the seed."""

    n: int
    k: int
    seed: int = 0
    recipe: str = DEFAULT_RECIPE
    samples: int | None = None
    noise: float = 0.0
    settings: dict[str, Any] = Field({}, description="fields of the recipe that are changed")


def batch_shape(config: Training) -> tuple[Any, ...]:
    """Return what trainings must share to be one tensor program: all but seed, rate, temperature and start radius.

    Examples carry their own label noise; the law of a population is one for the whole program.
    """
    shared = {name: value for name, value in config.settings.items() if name not in OF_A_RUN}
    noise = config.noise if config.samples is None else None
    return config.n, config.k, config.recipe, config.samples, noise, json.dumps(shared, sort_keys=True)


def train_together(configs: Sequence[Training]) -> Learned:
    """Return the outcome of trainings of one batch shape, one run each.

    >>> configs = [Training(n=8, k=2, settings={"learning_rate": rate}) for rate in (0.05, 0.1)]
    >>> train_together(configs).learned.tolist()
    [True, True]
    """
    first, seeds = configs[0], [config.seed for config in configs]
    problems: list[Parity] = [
        draw_problems(config.n, config.k, [config.seed], noise=config.noise)[0] for config in configs
    ]
    recipes: dict[str, Recipe] = {}
    for config in configs:
        recipes.setdefault(_settings(config), _recipe(config))
    return learn(problems, [recipes[_settings(config)] for config in configs], seeds, samples=first.samples)


def _settings(config: Training) -> str:
    return json.dumps(config.settings, sort_keys=True)


def _recipe(config: Training) -> Recipe:
    """Return the recipe with this training's settings, which also go before those for examples."""
    adapted = named_recipe(config.recipe).adapted(config.k, from_examples=bool(config.samples), **config.settings)
    return adapted.overridden(on_samples={}, beyond_pairs={})


def run_batch(configs: Sequence[Training]) -> list[Result]:
    """Train all configs at once and return a row for each."""
    trained = train_together(configs)
    columns = {
        "learned": trained.learned,
        "recovered": trained.recovered,
        "found": trained.found,
        "risk": trained.risk,
        "accuracy": trained.accuracy,
        "steps": trained.steps,
        "diverged": trained.diverged,
    }
    values = {name: column.tolist() for name, column in columns.items()}
    return [
        Result({"support": list(problem.support), **{name: column[row] for name, column in values.items()}})
        for row, problem in enumerate(trained.problems)
    ]


def run(config: Training) -> Result:
    """Train one config."""
    return run_batch([config])[0]
