"""`learn`: from a problem and a recipe to a trained model and what it found, for many seeds at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.core.statistics import Share, wilson_share
from parityscope.core.threads import single_threaded
from parityscope.core.ties import SCORE_TIE
from parityscope.measures import AccuracyKind, attended_support, found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.problems import Parity, seeded_generator
from parityscope.risk import Risk, estimated_risk, law_of, population_risk
from parityscope.risk.losses import named_loss
from parityscope.risk.worst_case import worst_loss
from parityscope.training.attention_path import Evidence
from parityscope.training.build import build_model, check_left_alone, check_trainable_together, ready_model, recipes_of
from parityscope.training.checkpoint import Keeper
from parityscope.training.descent import TrainingState, descend, step_scale
from parityscope.training.own_models import descend_alone, measured, objective_of, own_models, own_recipe
from parityscope.training.recipes import DEFAULT_RECIPE, Recipe, named_recipe
from parityscope.training.sources import Source, named_problems, phase_by_evidence
from parityscope.training.steps.certificate import Certificate, Certifying
from parityscope.training.steps.first_order import Optimiser

if TYPE_CHECKING:
    import pandas

LEARNED_ACCURACY = 0.99
_SEEDS_SHOWN = 4
_WORTH_A_THREAD = 2**24  # numbers in the position code; below, every operation is too short to be shared


@dataclass(frozen=True, repr=False)
class LearnedRuns:
    """The outcome of a training, one row per seed. `learn` makes it.

    Parameters
    ----------
    problems : tuple of Parity
        What each run learned.
    recipes : tuple of Recipe
        How each run learned it, every value resolved; `recipe` is the one they share.
    seeds : tuple of int
        The seed of each run.
    model : ParityTransformer or ModuleList
        As trained, with a leading run axis; of modules of your own, one per seed.
    engine : str
        How the risk was computed.
    risk : Tensor (runs,)
        Population risk without label noise, of the hinge where the training descended on log-correlation.
    accuracy : Tensor (runs,)
        The share of all 2^n inputs classified right.
    accuracy_kind : str
        Whether that is "exact", a "lower bound" or an "estimate".
    worst_loss : Tensor (runs,) or None
        The largest hinge loss over all inputs, where the readout gives a certificate.
    certificate : Certificate or None
        What the steps prove of −log C, where they prove something.
    evidence : Evidence or None
        How sure the named bits are, where examples named them before the training or k was not told.
    attention : Tensor (runs, heads, n)
        Where each head looks; a module of your own has no heads here.
    found : Tensor (runs, k)
        The support each run names, ascending; where k was not told, (runs, k_at_most), and −1 in places left over. Of
        a module without an additive score, the k bits whose flip changes the predicted label most often.
    steps : Tensor (runs,)
        The steps each run took.
    diverged : Tensor (runs,)
        Whose risk or gradient was no longer finite.
    history_steps, history_risk : Tensor (points,), Tensor (points, runs)
        What descended, as it was recorded.
    samples, batch : int or None
        Drawn examples per run, or fresh ones per step, where it was not the population.
    seconds : float
        How long the training took, with what it took before it was interrupted.

    >>> run = learn(Parity(1000, (1, 5)), "one-step", seeds=range(3))
    >>> run
    LearnedRuns(one-step at n = 1000, k = 2: 3/3 (44%–100%) learned from the population, seeds 0, 1, 2)
    >>> run.accuracy.tolist(), run.accuracy_kind, run.steps.tolist()
    ([1.0, 1.0, 1.0], 'exact', [1, 1, 1])
    """

    problems: tuple[Parity, ...]
    recipes: tuple[Recipe, ...]
    seeds: tuple[int, ...]
    model: Any
    engine: str
    risk: Float[Tensor, " runs"]
    accuracy: Float[Tensor, " runs"]
    accuracy_kind: AccuracyKind
    worst_loss: Float[Tensor, " runs"] | None
    certificate: Certificate | None
    evidence: Evidence | None
    attention: Float[Tensor, "runs heads n"]
    found: Int64[Tensor, "runs k"]
    steps: Int64[Tensor, " runs"]
    diverged: Bool[Tensor, " runs"]
    history_steps: Int64[Tensor, " points"]
    history_risk: Float[Tensor, "points runs"]
    samples: int | None
    batch: int | None
    seconds: float

    @property
    def recipe(self) -> Recipe:
        """The recipe of all runs; refused where they have recipes of their own."""
        if differing := self._differing():
            raise InvalidInput(f"the runs have recipes of their own, which differ in {differing[0]}: see `recipes`")
        return self.recipes[0]

    @property
    def recovered(self) -> Bool[Tensor, " runs"]:
        """Which runs found exactly the hidden support."""
        support = torch.full_like(self.found, -1)
        support[:, : self.problems[0].k] = torch.tensor([problem.support for problem in self.problems])
        return (self.found == support).all(-1)

    @property
    def learned(self) -> Bool[Tensor, " runs"]:
        """Which runs classify more than 99 % of all inputs right and name the support."""
        return (self.accuracy > LEARNED_ACCURACY) & self.recovered

    @property
    def proved(self) -> tuple[str, ...]:
        """What is proved of every run, in words: that no input is wrong, and what its steps prove.

        >>> learn(Parity(20, (1, 5)), "concave", positions="circle").proved
        ('no face of the code: C ≤ 0.0958 whatever the parameters',)
        """
        worst = [1.0] * len(self.seeds) if self.worst_loss is None else self.worst_loss.tolist()
        right = [f"every input right: worst loss {loss:.3g}" if loss < 1 - SCORE_TIE else "" for loss in worst]
        steps = ("",) * len(right) if self.certificate is None else self.certificate.sentences()
        return tuple("; ".join(filter(None, pair)) for pair in zip(right, steps, strict=True))

    @property
    def success(self) -> Share:
        """The share of runs that learned, with its confidence interval."""
        return wilson_share(int(self.learned.sum()), len(self.seeds))

    def frame(self) -> pandas.DataFrame:
        """Return a table of pandas, one row per seed, with a column for every setting in which the runs differ.

        >>> learn(Parity(12, (1, 5)), seeds=range(3)).frame()[["seed", "found", "learned"]]
           seed   found  learned
        0     0  (1, 5)     True
        1     1  (1, 5)     True
        2     2  (1, 5)     True
        """
        with naming_the_extra():
            import pandas
        rows = [self._run_json(row, self._differing()) for row in range(len(self.seeds))]
        for line, learned in zip(rows, self.learned.tolist(), strict=True):
            own = line.pop("settings", {})
            line.update(support=tuple(line["support"]), found=tuple(line["found"]), learned=learned, **own)
        return pandas.DataFrame(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `learn --json` prints; runs say their own settings where they differ."""
        differing = self._differing()
        return {
            "n": self.problems[0].n,
            "k": self.problems[0].k,
            "recipe": self._recipe_name,
            "engine": self.engine,
            "parameters": self._parameters,
            "samples": self.samples,
            "batch": self.batch,
            "noise": self.problems[0].noise,
            "accuracy_is": self.accuracy_kind,
            "learned": self.success._asdict(),
            "settings": self.recipes[0].model_dump(mode="json", exclude={"name", "summary", *differing}),
            "runs": [self._run_json(row, differing) for row in range(len(self.seeds))],
            "seconds": round(self.seconds, 3),
        }

    def _run_json(self, row: int, differing: list[str]) -> dict[str, Any]:
        own = self.recipes[row].model_dump(mode="json", include=set(differing))
        return {
            "seed": self.seeds[row],
            "support": list(self.problems[row].support),
            "risk": float(self.risk[row]),
            "accuracy": float(self.accuracy[row]),
            "worst_loss": None if self.worst_loss is None else float(self.worst_loss[row]),
            "found": [position for position in self.found[row].tolist() if position >= 0],
            "recovered": bool(self.recovered[row]),
            "steps": int(self.steps[row]),
            "diverged": bool(self.diverged[row]),
            "proved": self.proved[row],
            **({} if self.evidence is None else {"evidence": self.evidence.sentences()[row]}),
            **({"settings": own} if differing else {}),
        }

    def _differing(self) -> list[str]:
        """Return the settings in which the runs differ."""
        first, distinct = self.recipes[0], {id(one): one for one in self.recipes}.values()
        fields = [name for name in Recipe.model_fields if name not in ("name", "summary")]
        return [name for name in fields if any(getattr(one, name) != getattr(first, name) for one in distinct)]

    @property
    def _parameters(self) -> int:
        """The parameters that one run trains."""
        if isinstance(self.model, ParityTransformer):
            return self.model.trained_parameters()
        return sum(parameter.numel() for parameter in self.model[0].parameters() if parameter.requires_grad)

    @property
    def _recipe_name(self) -> str:
        return ", ".join(dict.fromkeys(recipe.name for recipe in self.recipes))

    def __repr__(self) -> str:
        source = "the population" if self.samples is None else f"{self.samples} examples"
        source = source if self.batch is None else f"batches of {self.batch}"
        shown = ", ".join(map(str, self.seeds[:_SEEDS_SHOWN])) + (", …" if len(self.seeds) > _SEEDS_SHOWN else "")
        return (
            f"LearnedRuns({self._recipe_name} at n = {self.problems[0].n}, k = {self.problems[0].k}:"
            f" {self.success} learned from {source}, seeds {shown})"
        )


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
    model: nn.Module | Sequence[nn.Module] | None = None,
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
    model : ParityTransformer, torch module, sequence of modules or None
        A ready model to start from, instead of the one that the recipe builds: without a run axis for all seeds, or
        with one run per seed. It stays as it is; the trained copy is the outcome's `model`. Any other torch module
        that maps bits (batch, n) to predictions (batch,), or has an additive score, trains too, by Adam on the squared
        hinge unless a recipe or overrides say otherwise: one start for all seeds, or a module per seed.
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
    source = Source(samples, batch)
    seeds = tuple(seeds)
    problems = _one_per_seed(problem, seeds)
    if model is not None and not isinstance(model, ParityTransformer):
        if k_at_most is not None or checkpoint is not None or on_record is not None or on_progress is not None:
            raise InvalidInput(
                "k_at_most, checkpoint, on_record and on_progress are for ParityTransformer: leave them out"
            )
        asked = _Options(source, engine=engine, tolerance=tolerance, record_every=record_every)
        return _trained_own(model, problems, recipe, seeds, asked, overrides)
    told = (source, model, k_at_most, engine, tolerance, on_progress, on_record, record_every, checkpoint, resume)
    options = _Options(*told)
    return _trained(problems, _recipes(recipe, problems[0], seeds, options, overrides), seeds, options)


def _trained_own(
    model: nn.Module | Sequence[nn.Module],
    problems: tuple[Parity, ...],
    recipe: str | Recipe | Sequence[Recipe],
    seeds: tuple[int, ...],
    options: _Options,
    overrides: dict[str, Any],
) -> LearnedRuns:
    """Train a module per seed, one after the other."""
    started, source, first = time.monotonic(), options.source, problems[0]
    source.check(None)
    check_left_alone(list(overrides))
    named = named_recipe(recipe) if isinstance(recipe, str) else recipe
    if not isinstance(named, Recipe):
        raise InvalidInput("a model of your own trains by one recipe: call learn once for each")
    chosen = own_recipe(named).adapted(first.k, **source.kind(), **overrides).resolved(first.n, first.k)
    models = own_models(model, first.n, seeds, chosen)
    states = []
    for one, problem, seed in zip(models, problems, seeds, strict=True):
        objective = objective_of(one, problem, seed, source, chosen, options.engine, options.tolerance)
        states.append(descend_alone(one, objective, chosen, source.patience_below, options.record_every))
    seconds = time.monotonic() - started
    loss = _watched_loss(chosen)
    with torch.no_grad():
        risks = [
            _final_risk(one, problem, loss, options, seed)
            for one, problem, seed in zip(models, problems, seeds, strict=True)
        ]
        read = [measured(one, problem) for one, problem in zip(models, problems, strict=True)]
    longest = max(states, key=lambda state: state.step)
    return LearnedRuns(
        problems=problems,
        recipes=(chosen,) * len(seeds),
        seeds=seeds,
        model=nn.ModuleList(models),
        engine=risks[0].engine,
        risk=torch.stack([risk.value.double().reshape(()) for risk in risks]),
        accuracy=torch.cat([accuracy.value.reshape(1) for accuracy, _ in read]),
        accuracy_kind=read[0][0].kind,
        worst_loss=None,
        certificate=None,
        evidence=None,
        attention=torch.zeros(len(seeds), 0, first.n, dtype=torch.float64),
        found=torch.stack([found for _, found in read]),
        steps=torch.cat([state.finished_at for state in states]),
        diverged=torch.cat([state.diverged for state in states]),
        history_steps=torch.tensor(longest.history_steps),
        history_risk=torch.stack([_held(state, len(longest.history_steps)) for state in states], dim=1),
        samples=source.samples,
        batch=source.batch,
        seconds=seconds,
    )


def _final_risk(model: nn.Module, problem: Parity, loss: str, options: _Options, seed: int) -> Risk:
    """Return the exact risk on noiseless labels, or a sampled one where n is too large for any engine."""
    clean = replace(problem, noise=0.0)
    try:
        return population_risk(model, clean, loss=loss, engine=options.engine, tolerance=options.tolerance)
    except InvalidInput:
        if options.source.samples is None and options.source.batch is None:
            raise
        return estimated_risk(model, clean, 2**16, seeded_generator(seed, "held-out"), loss=loss)


def _held(state: TrainingState, points: int) -> Tensor:
    """Return a risk curve that stays at its last value once its run has stopped."""
    risks = torch.cat(state.history_risk)
    return torch.cat([risks, risks[-1:].expand(points - len(risks))])


def train(
    problems: Sequence[Parity],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    *,
    samples: int | None = None,
    batch: int | None = None,
    tolerance: float = 1e-9,
    on_record: Callable[[int, ParityTransformer], None] | None = None,
    record_every: int = 10,
) -> LearnedRuns:
    """Train with resolved recipes, one for all seeds or one per seed: what a stored row needs of `learn`."""
    options = _Options(Source(samples, batch), tolerance=tolerance, on_record=on_record, record_every=record_every)
    return _trained(tuple(problems), recipes, tuple(seeds), options)


@dataclass(frozen=True)
class _Options:
    """What a training is asked for besides its problems, recipes and seeds; `learn` says what each of them is."""

    source: Source
    model: ParityTransformer | None = None
    k_at_most: int | None = None
    engine: str = "auto"
    tolerance: float = 1e-9
    on_progress: Callable[[TrainingProgress], None] | None = None
    on_record: Callable[[int, ParityTransformer], None] | None = None
    record_every: int = 10
    checkpoint: Path | None = None
    resume: bool = False

    def told(self, problem: Parity) -> int:
        """Return the number of hidden bits that the training is told, or the most there may be."""
        return problem.k if self.k_at_most is None else self.k_at_most


def _trained(
    problems: tuple[Parity, ...], recipes: Sequence[Recipe], seeds: tuple[int, ...], options: _Options
) -> LearnedRuns:
    started = time.monotonic()
    source, chosen = options.source, recipes[0]
    n, k = problems[0].n, options.told(problems[0])
    source.check(options.checkpoint)
    check_trainable_together(recipes)
    if options.checkpoint is not None:
        chosen.check_addressable()
    given = options.model
    model = build_model(recipes, n, k, seeds) if given is None else ready_model(given, n, k, len(seeds))
    trained, evidence = problems, None
    if source.names_first(chosen):
        sizes = (k,) if options.k_at_most is None else range(1, k + 1)
        trained, evidence = named_problems(problems, seeds, source, sizes)
    if options.k_at_most is not None:
        _start_without_k(model, trained, problems[0].k, options, chosen)
    objective = source.objective(model, trained, seeds, chosen, options.engine, options.tolerance)
    optimiser = source.optimiser(model, trained, recipes)
    config = _config(recipes, problems, seeds, options)
    keeper = Keeper(options.checkpoint, config, model, optimiser, started=started)
    state = TrainingState.fresh(len(seeds))
    if options.resume and (stored := keeper.stored(state.tensors())) is not None:
        state = TrainingState.of(stored, int(chosen.steps))
    with single_threaded(model.positions.numel() < _WORTH_A_THREAD):
        descend(
            model,
            objective,
            chosen,
            state,
            optimiser,
            scale=step_scale(recipes),
            after_step=_observer(model, chosen, keeper, options),
            record_every=options.record_every,
            patience_below=source.patience_below,
        )
    keeper.save(state.tensors())
    if options.k_at_most is not None:
        model.phase = phase_by_evidence(model, law_of(trained))
        evidence = evidence or Evidence.certain(model.phase)
    return _measured(model, problems, recipes, seeds, state, optimiser, evidence, options, keeper.spent())


def _observer(
    model: ParityTransformer, recipe: Recipe, keeper: Keeper, options: _Options
) -> Callable[[TrainingState, Tensor], None]:
    """Return what is done after every step: tell who wants to know, and store the state now and then."""
    watched = named_loss(_watched_loss(recipe))

    def after_step(state: TrainingState, risk: Tensor) -> None:
        if options.on_record is not None and state.history_steps[-1] == state.step:
            options.on_record(state.step, model)
        if options.on_progress is not None:
            finished, accuracy = int((~state.active).sum()), watched.accuracy_bound(risk)
            options.on_progress(TrainingProgress(state.step, int(recipe.steps), risk, accuracy, finished))
        if keeper.due():
            keeper.save(state.tensors())

    return after_step


def _start_without_k(
    model: ParityTransformer, problems: Sequence[Parity], k: int, options: _Options, recipe: Recipe
) -> None:
    """Let evidence choose the readout's phase, in place of k."""
    source, most = options.source, options.told(problems[0])
    if not 1 <= k <= most:
        raise InvalidInput(f"the problem has k = {k} hidden bits: k_at_most must be at least that, got {most}")
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
    problem: Parity,
    seeds: Sequence[int],
    options: _Options,
    overrides: dict[str, Any],
) -> tuple[Recipe, ...]:
    """Return the resolved recipe of all runs, or one per run when they were given so."""
    given = [named_recipe(recipe)] if isinstance(recipe, str) else [recipe] if isinstance(recipe, Recipe) else recipe
    if len(given) not in (1, len(seeds)):
        raise InvalidInput(f"give one recipe for all seeds or one per seed: got {len(given)} for {len(seeds)} seeds")
    k, distinct = options.told(problem), {id(one): one for one in given}
    adapted = {key: one.adapted(k, **options.source.kind(), **overrides) for key, one in distinct.items()}
    chosen = [adapted[id(one)] for one in given]
    if options.model is not None:
        check_left_alone(list(overrides))
        chosen = recipes_of(options.model, chosen)
    return tuple(one.resolved(problem.n, k) for one in chosen)


def _watched_loss(recipe: Recipe) -> str:
    """Return the loss whose risk is reported; descent on log C watches the hinge risk 1 − C."""
    return "hinge" if recipe.loss == "log-correlation" else recipe.loss


def _config(
    recipes: Sequence[Recipe], problems: Sequence[Parity], seeds: Sequence[int], options: _Options
) -> dict[str, Any]:
    """Return what a checkpoint must agree on to be resumed."""
    first = problems[0]
    return {
        "n": first.n,
        "bias": first.bias,
        "noise": first.noise,
        "supports": [list(p.support) for p in problems],
        "seeds": list(seeds),
        "samples": options.source.samples,
        **({} if options.k_at_most is None else {"k_at_most": options.k_at_most}),
        "recipe": recipes[0].model_dump(mode="json"),
        **({"recipes": [one.model_dump(mode="json") for one in recipes]} if len(recipes) > 1 else {}),
    }


def _measured(
    model: ParityTransformer,
    problems: tuple[Parity, ...],
    recipes: Sequence[Recipe],
    seeds: tuple[int, ...],
    state: TrainingState,
    optimiser: Optimiser,
    evidence: Evidence | None,
    options: _Options,
    seconds: float,
) -> LearnedRuns:
    # Risk and accuracy are measured against the parity itself, whatever noise the training saw.
    clean = tuple(replace(problem, noise=0.0) for problem in problems)
    # What steps prove is of the set they train on, and examples may have named another.
    proves = None if options.source.names_first(recipes[0]) else optimiser
    with torch.no_grad():
        loss = _watched_loss(recipes[0])
        risk = population_risk(model, clean, loss=loss, engine=options.engine, tolerance=options.tolerance)
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
            samples=options.source.samples,
            batch=options.source.batch,
            seconds=seconds,
        )
