"""Recipe R at (n, k) with some seeds: the one config and row of a training of heads, wherever it is asked for."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.statistics import Share, median, wilson_share
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.problems import Parity, draw_problems
from parityscope.records import Config, Numbers, Result
from parityscope.training.learning import LEARNED_ACCURACY, LearnedRuns, train
from parityscope.training.recipes import DEFAULT_RECIPE, OF_A_RUN, Recipe, named_recipe
from parityscope.training.sources import Source

Watched = Literal["risk", "attention", "weights", "learned"]


class TrainingNumbers(Numbers):
    """What a training found, one entry per seed."""

    supports: tuple[tuple[int, ...], ...]
    found: tuple[tuple[int, ...], ...]
    recovered: tuple[bool, ...]
    learned: tuple[bool, ...]
    risk: tuple[float, ...]
    accuracy: tuple[float, ...]
    accuracy_is: str
    worst_loss: tuple[float, ...] | None
    steps: tuple[int, ...]
    diverged: tuple[bool, ...]
    parameters: int
    engine: str
    learned_at: tuple[int | None, ...] | None = None  # the first recorded step at which a run had learned, if watched

    @property
    def share(self) -> Share:
        """The share of seeds that learned, with Wilson's 95 % interval."""
        return wilson_share(sum(self.learned), len(self.learned))

    @property
    def median_steps(self) -> float | None:
        """The median of the steps taken by the seeds that learned; none where none did."""
        steps = [count for count, learned in zip(self.steps, self.learned, strict=True) if learned]
        return median(steps) if steps else None


class Training(Config):
    """One recipe on one size of problem, for some seeds; support, positions, start and data come from each seed.

    Parameters
    ----------
    n, k : int
        Bits, and hidden bits.
    recipe : Recipe
        With every value resolved; `training` looks a name up and resolves it. Parts of your own stand in it with a hash
        of their code and of everything they use in their own package.
    seeds : tuple of int
        One run each.
    support : tuple of int or None
        The hidden bits of all runs; none: every seed draws its own.
    samples, batch : int or None
        Train on so many drawn examples, or on so many fresh ones at every step; neither: on the population.
    noise, bias : float
        The probability that a label is flipped, and that a bit is 1.
    watch : tuple of str
        What to keep beyond the numbers: risk curves, the final attention, every position's weight at each record, the
        first step at which a run had learned.
    record_every : int
        Steps between two records.
    device : str
        Where it runs: exact engines run on the processor.

    >>> training("bounded", 12, 3, learning_rate=0.1).key == training("bounded", 12, 3).key
    False
    """

    ROWS: ClassVar[str] = "training"
    NUMBERS: ClassVar[type[Numbers]] = TrainingNumbers
    PACK: ClassVar[int] = 256  # beyond, a tensor program is not bound by its overhead, and a kill costs more

    n: int
    k: int
    recipe: Recipe
    seeds: tuple[int, ...] = (0,)
    support: tuple[int, ...] | None = None
    samples: int | None = None
    batch: int | None = None
    noise: float = 0.0
    bias: float = 0.5
    watch: tuple[Watched, ...] = ()
    record_every: int = Field(10, ge=1)
    device: Literal["cpu"] = "cpu"

    @field_validator("recipe")
    @classmethod
    def _addressable(cls, recipe: Recipe) -> Recipe:
        recipe.check_addressable()
        return recipe

    def problems(self) -> list[Parity]:
        """Return the problem of every seed."""
        if self.support is None:
            return draw_problems(self.n, self.k, self.seeds, bias=self.bias, noise=self.noise)
        if len(self.support) != self.k:
            raise InvalidInput(f"a support of k = {self.k} bits is needed, got {self.support}")
        return [Parity(self.n, self.support, bias=self.bias, noise=self.noise)] * len(self.seeds)

    def run(self) -> Result:
        """Train all seeds at once."""
        watcher = _Watcher(self)
        trained = train(
            self.problems(),
            [self.recipe],
            self.seeds,
            samples=self.samples,
            batch=self.batch,
            on_record=watcher.record if {"weights", "learned"} & set(self.watch) else None,
            record_every=self.record_every,
        )
        return Result(_numbers(trained, slice(None), watcher.learned_at()), watcher.arrays(trained))

    def batch_shape(self) -> Hashable:
        """Return what trainings must share to be one tensor program: all but the seeds and `OF_A_RUN`.

        Examples carry their own label noise; the law of a population is one for the whole program. A training that is
        watched is a program of its own.
        """
        if self.watch:
            return self.key
        shared = self.recipe.model_dump(mode="json", exclude=set(OF_A_RUN))
        noise = self.noise if self.samples is None else None
        sizes = (self.n, self.k, self.samples, self.batch, noise, self.bias, self.record_every)
        return (*sizes, json.dumps(shared, sort_keys=True))

    def places(self) -> int:
        """Return how many runs it is."""
        return len(self.seeds)

    @classmethod
    def run_batch(cls, configs: Sequence[Any]) -> list[Result]:
        """Train the seeds of all configs of one batch shape at once."""
        first = configs[0]
        trained = train(
            [problem for config in configs for problem in config.problems()],
            [config.recipe for config in configs for _ in config.seeds],
            [seed for config in configs for seed in config.seeds],
            samples=first.samples,
            batch=first.batch,
            record_every=first.record_every,
        )
        ends = accumulate(len(config.seeds) for config in configs)
        runs = [slice(end - len(config.seeds), end) for config, end in zip(configs, ends, strict=True)]
        return [Result(_numbers(trained, rows)) for rows in runs]


def training(
    recipe: str | Recipe = DEFAULT_RECIPE,
    n: int = 20,
    k: int = 3,
    *,
    seeds: Iterable[int] = (0,),
    support: tuple[int, ...] | None = None,
    samples: int | None = None,
    batch: int | None = None,
    noise: float = 0.0,
    bias: float = 0.5,
    watch: tuple[Watched, ...] = (),
    record_every: int = 10,
    **changes: Any,
) -> Training:
    """Return the config of a training by a recipe's name, with some of the recipe's fields changed.

    Apart from `Training`, so that a row depends on the recipe it was made with and not on the list of all recipes.

    Parameters
    ----------
    recipe : str or Recipe
        A recipe or the name of one.
    changes : any
        Fields of the recipe that are changed, such as `learning_rate=0.1`, or `readout=` a part of your own that is
        defined at the top level of a file; the others are those of `Training`.

    >>> training("bounded", 12, 3, learning_rate=0.1).recipe.learning_rate
    0.1
    """
    named = named_recipe(recipe) if isinstance(recipe, str) else recipe
    resolved = named.adapted(k, **Source(samples, batch).kind(), **changes).resolved(n, k)
    resolved.check_addressable()
    return Training(
        n=n,
        k=k,
        # Without what no longer decides anything: its text, and changes already made.
        recipe=resolved.model_copy(update={"summary": "", "beyond_pairs": {}, "on_samples": {}, "on_batches": {}}),
        seeds=tuple(seeds),
        # Sorted, so that another order is not another training.
        support=None if support is None else tuple(sorted(support)),
        samples=samples,
        batch=batch,
        noise=noise,
        bias=bias,
        watch=tuple(sorted(watch)),
        record_every=record_every,
    )


def _numbers(trained: LearnedRuns, rows: slice, learned_at: tuple[int | None, ...] | None = None) -> TrainingNumbers:
    def column(values: Tensor) -> Any:
        return values[rows].tolist()

    return TrainingNumbers(
        supports=tuple(problem.support for problem in trained.problems[rows]),
        found=column(trained.found),
        recovered=column(trained.recovered),
        learned=column(trained.learned),
        risk=column(trained.risk),
        accuracy=column(trained.accuracy),
        accuracy_is=trained.accuracy_kind,
        worst_loss=None if trained.worst_loss is None else column(trained.worst_loss),
        steps=column(trained.steps),
        diverged=column(trained.diverged),
        parameters=trained.model.trained_parameters(),
        engine=trained.engine,
        learned_at=learned_at,
    )


class _Watcher:
    """Keeps what a training's config asks for while it runs."""

    def __init__(self, config: Training) -> None:
        self.config, self.problems = config, config.problems()
        self.support = torch.tensor([problem.support for problem in self.problems])
        self.steps: list[int] = []
        self.weights: list[Tensor] = []
        self.first = torch.full((len(config.seeds),), -1)

    def record(self, step: int, model: ParityTransformer) -> None:
        with torch.no_grad():
            weights = model.score_weights()
            if "weights" in self.config.watch:
                self.steps.append(step)
                self.weights.append(weights.float())
            if "learned" in self.config.watch:
                named = (found_support(weights, self.config.k) == self.support).all(-1) & (self.first < 0)
                if bool(named.any()):
                    right = measured_accuracy(model, self.problems).value > LEARNED_ACCURACY
                    self.first[named & right] = step

    def learned_at(self) -> tuple[int | None, ...] | None:
        if "learned" not in self.config.watch:
            return None
        return tuple(step if step >= 0 else None for step in self.first.tolist())

    def arrays(self, trained: LearnedRuns) -> dict[str, Tensor]:
        """Return `steps` and `risk` (records, runs), `attention` (runs, heads, n), `weights` (records, runs, n)."""
        arrays: dict[str, Tensor] = {}
        if "risk" in self.config.watch:
            arrays |= {"steps": trained.history_steps, "risk": trained.history_risk}
        if "attention" in self.config.watch:
            arrays["attention"] = trained.attention.float()
        if "weights" in self.config.watch:
            arrays |= {"steps": torch.tensor(self.steps), "weights": torch.stack(self.weights)}
        return arrays
