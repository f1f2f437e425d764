"""Descent on many runs at once: parameters carry a run axis, and runs never see each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.training.parts import OwnPart
from parityscope.training.recipes import Recipe
from parityscope.training.steps.first_order import Adam, GradientDescent, NormalisedMomentum, Optimiser, Stepper


class Evaluation(NamedTuple):
    """What one evaluation gives per run: the value that descends, and the risk that is watched."""

    objective: Tensor
    risk: Tensor


@runtime_checkable
class StoppingRule(Protocol):
    """When a training ends: what descent needs to know of a recipe.

    >>> from parityscope.training.recipes import RECIPES
    >>> isinstance(RECIPES["bounded"], StoppingRule), isinstance("three steps", StoppingRule)
    (True, False)
    """

    @property
    def steps(self) -> int | str:
        """Steps at most; resolved to a number."""
        ...

    @property
    def stop_risk(self) -> float | None:
        """A run stops once its risk is below this."""
        ...

    @property
    def patience(self) -> int | None:
        """A run stops after so many steps without improvement."""
        ...


_IMPROVEMENT = 1e-3
Objective = Callable[[], Evaluation]


@dataclass
class TrainingState:
    """Everything a training needs to go on: it is what a checkpoint stores."""

    step: int
    finished_at: Tensor  # (runs,) the step a run stopped at, −1 while it goes on
    diverged: Tensor  # (runs,) bool
    best_risk: Tensor  # (runs,) lowest risk so far, as far as patience counts it
    best_step: Tensor  # (runs,) when that was
    history_steps: list[int] = field(default_factory=list)
    history_risk: list[Tensor] = field(default_factory=list)

    @classmethod
    def fresh(cls, runs: int) -> TrainingState:
        """Return the state before the first step."""
        return cls(
            0,
            torch.full((runs,), -1),
            torch.zeros(runs, dtype=torch.bool),
            torch.full((runs,), torch.inf, dtype=torch.float64),
            torch.zeros(runs, dtype=torch.int64),
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as a checkpoint stores it."""
        return {
            "step": torch.tensor(self.step),
            "finished_at": self.finished_at,
            "diverged": self.diverged,
            "best_risk": self.best_risk,
            "best_step": self.best_step,
            "history_steps": torch.tensor(self.history_steps, dtype=torch.int64),
            **({"history_risk": torch.stack(self.history_risk)} if self.history_risk else {}),
        }

    @classmethod
    def of(cls, tensors: dict[str, Tensor], last: int) -> TrainingState:
        """Return the state that a checkpoint of a training of at most `last` steps stored, if it can be one."""
        step, steps = int(tensors["step"]), tensors["history_steps"].tolist()
        finished_at, best_step = tensors["finished_at"], tensors["best_step"]
        history = tensors.get("history_risk", torch.zeros(0, len(finished_at)))
        moments = [step, *finished_at.tolist(), *best_step.tolist(), *steps]
        within = 0 <= step <= last and max(moments) <= step and min(moments) >= -1
        if history.shape != (len(steps), len(finished_at)) or not within:
            raise InvalidInput("the state in the checkpoint contradicts itself: move the file away to start afresh")
        risks = list(history.unbind())
        return cls(step, finished_at, tensors["diverged"], tensors["best_risk"], best_step, steps, risks)

    @property
    def active(self) -> Tensor:
        """Which runs still move."""
        return self.finished_at < 0

    def stop(self, runs: Tensor) -> None:
        """Stop some active runs at the current step."""
        self.finished_at[runs & self.active] = self.step

    def stalled(self, risk: Tensor, patience: int, below: float) -> Tensor:
        """Say which runs have left the start (risk < below) and not improved for `patience` steps."""
        better = risk < self.best_risk - _IMPROVEMENT
        self.best_risk[better] = risk[better]
        self.best_step[better] = self.step
        return (self.best_risk < below) & (self.step - self.best_step > patience)

    def record(self, risk: Tensor) -> None:
        """Add a point to the risk curves."""
        if not self.history_steps or self.history_steps[-1] != self.step:
            self.history_steps.append(self.step)
            self.history_risk.append(risk.detach().clone())


_Betas = tuple[float, float]
_OPTIMISERS: dict[str, Callable[[list[nn.Parameter], float, _Betas], Optimiser]] = {
    "adam": Adam,
    "gradient-descent": lambda parameters, rate, betas: GradientDescent(parameters, rate),
    "head-normalised": lambda parameters, rate, betas: NormalisedMomentum(
        parameters, rate, betas, shared_dimensions=(-1,), grow=True
    ),
    "run-normalised": lambda parameters, rate, betas: NormalisedMomentum(
        parameters, rate, betas, shared_dimensions=(-2, -1), grow=False
    ),
}


def make_optimiser(model: nn.Module, *recipes: Recipe) -> Optimiser:
    """Return the optimiser of a recipe, or of one per run: at the largest of their rates, see `step_scale`."""
    recipe, parameters = recipes[0], [p for p in model.parameters() if p.requires_grad]
    if isinstance(recipe.optimiser, OwnPart):
        made = recipe.optimiser.value(parameters)
        if not isinstance(made, Optimiser):
            raise InvalidInput(
                f"{recipe.optimiser} made a {type(made).__name__}: an optimiser has zero_grad, step, state_dict and "
                "load_state_dict, as torch's have"
            )
        return made
    if recipe.optimiser not in _OPTIMISERS:
        raise InvalidInput(f"{recipe.optimiser!r} is no optimiser of first order: these are {', '.join(_OPTIMISERS)}")
    rate = max(float(one.learning_rate) for one in recipes)
    return _OPTIMISERS[recipe.optimiser](parameters, rate, (recipe.beta1, recipe.beta2))


_SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda step, steps: 1.0,
    "linear": lambda step, steps: 1 - step / steps,
}


def step_scale(recipes: Sequence[Recipe]) -> Callable[[int], Tensor | float]:
    """Return what every run's step is multiplied by: its share of the largest rate, and the schedule's factor.

    A step is proportional to the learning rate in all optimisers here, so that this is what another rate would do. One
    of your own, and steps that are searched, are whole at a rate of 1.
    """
    recipe, rates = recipes[0], [float(one.learning_rate) for one in recipes]
    own, steps = recipe.schedule, int(recipe.steps)
    shares = shares_of(rates, max(rates) if recipe.optimiser in _OPTIMISERS else 1.0)
    if isinstance(own, OwnPart):
        return lambda step: shares * float(own.value(step))
    return lambda step: shares * _SCHEDULES[own](step, steps)


def shares_of(rates: Sequence[float], rate: float) -> Tensor | float:
    """Return every run's share of a rate; one number where they have the same."""
    if len(set(rates)) == 1:
        return 1.0 if rates[0] == rate else rates[0] / rate
    return torch.tensor(rates, dtype=torch.float64) / rate


def descend(
    model: nn.Module,
    objective: Objective,
    rule: StoppingRule,
    state: TrainingState,
    optimiser: Optimiser,
    *,
    scale: Callable[[int], Tensor | float] = lambda step: 1.0,
    after_step: Callable[[TrainingState, Tensor], None] | None = None,
    record_every: int = 10,
    patience_below: float = torch.inf,
) -> TrainingState:
    """Train until every run stopped or the rule's steps are used up; `state` may come from a checkpoint.

    A run stops when its risk falls below `stop_risk`, or below `patience_below` and then no further for the rule's
    `patience`, or when the optimiser's search is stuck; one whose risk or gradient is no longer finite is marked as
    diverged and keeps its last finite parameters. Every step is multiplied by `scale`, one number or one per run.
    """
    while True:
        evaluation = objective()
        risk = evaluation.risk.detach()
        broken = ~torch.isfinite(risk) & state.active
        state.diverged |= broken
        state.stop(broken)
        if rule.stop_risk is not None:
            state.stop(risk < rule.stop_risk)
        if rule.patience is not None:
            state.stop(state.stalled(risk, rule.patience, patience_below))
        last = state.step >= int(rule.steps) or not bool(state.active.any())
        if last or state.step % record_every == 0:
            state.record(risk)
        if after_step is not None:
            after_step(state, risk)
        if last:
            state.stop(state.active)
            return state
        _step(model, evaluation.objective, state, optimiser, scale(state.step))


def _step(
    model: nn.Module, objective: Tensor, state: TrainingState, optimiser: Optimiser, scale: Tensor | float
) -> None:
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser.zero_grad()
    objective.sum().backward()
    for p in parameters:
        assert p.grad is not None
        broken = ~torch.isfinite(p.grad).reshape(len(p.grad), -1).all(-1) & state.active
        state.diverged |= broken
        state.stop(broken)
        p.grad[~state.active] = 0.0
    before = [p.detach().clone() for p in parameters]
    optimiser.step()
    with torch.no_grad():
        for p, old in zip(parameters, before, strict=True):
            if isinstance(scale, Tensor):
                p.copy_(old + scale.to(p).reshape(-1, *[1] * (p.dim() - 1)) * (p - old))
            elif scale != 1.0:
                p.copy_(old + scale * (p - old))
            p[~state.active] = old[~state.active]
    state.step += 1
    if isinstance(optimiser, Stepper) and optimiser.stuck is not None:
        state.stop(optimiser.stuck)
