"""Descent on many runs at once: parameters carry a run axis, and runs never see each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from parityscope.training.recipes import Recipe


class Evaluation(NamedTuple):
    """What one evaluation gives per run: the value that descends, and the risk that is watched."""

    objective: Tensor
    risk: Tensor


Objective = Callable[[], Evaluation]


@dataclass
class TrainingState:
    """Everything a training needs to go on: it is what a checkpoint stores."""

    step: int
    finished_at: Tensor  # (runs,) the step a run stopped at, −1 while it goes on
    diverged: Tensor  # (runs,) bool
    history_steps: list[int] = field(default_factory=list)
    history_risk: list[Tensor] = field(default_factory=list)

    @classmethod
    def fresh(cls, runs: int) -> TrainingState:
        """Return the state before the first step."""
        return cls(0, torch.full((runs,), -1), torch.zeros(runs, dtype=torch.bool))

    @property
    def active(self) -> Tensor:
        """Which runs still move."""
        return self.finished_at < 0

    def stop(self, runs: Tensor) -> None:
        """Stop some active runs at the current step."""
        self.finished_at[runs & self.active] = self.step

    def record(self, risk: Tensor) -> None:
        """Add a point to the risk curves."""
        if not self.history_steps or self.history_steps[-1] != self.step:
            self.history_steps.append(self.step)
            self.history_risk.append(risk.detach().clone())


def make_optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimiser; both kinds act elementwise, so runs stay independent."""
    rate = float(recipe.learning_rate)
    if recipe.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate)
    return torch.optim.SGD(model.parameters(), lr=rate)


def descend(
    model: nn.Module,
    objective: Objective,
    recipe: Recipe,
    state: TrainingState,
    optimiser: torch.optim.Optimizer,
    *,
    after_step: Callable[[TrainingState, Tensor], None] | None = None,
    record_every: int = 10,
) -> TrainingState:
    """Train until every run stopped or the recipe's steps are used up; `state` may come from a checkpoint.

    A run stops when its risk falls below `stop_risk`; one whose risk or gradient is no longer finite is marked
    as diverged and keeps its last finite parameters.
    """
    while True:
        evaluation = objective()
        risk = evaluation.risk.detach()
        broken = ~torch.isfinite(risk) & state.active
        state.diverged |= broken
        state.stop(broken)
        if recipe.stop_risk is not None:
            state.stop(risk < recipe.stop_risk)
        last = state.step >= recipe.steps or not bool(state.active.any())
        if last or state.step % record_every == 0:
            state.record(risk)
        if after_step is not None:
            after_step(state, risk)
        if last:
            state.stop(state.active)
            return state
        _step(model, evaluation.objective, state, optimiser)


def _step(model: nn.Module, objective: Tensor, state: TrainingState, optimiser: torch.optim.Optimizer) -> None:
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser.zero_grad()
    objective.sum().backward()
    for p in parameters:
        assert p.grad is not None
        broken = ~torch.isfinite(p.grad).flatten(1).all(-1) & state.active
        state.diverged |= broken
        state.stop(broken)
        p.grad[~state.active] = 0.0
    before = [p.detach().clone() for p in parameters]
    optimiser.step()
    with torch.no_grad():
        for p, old in zip(parameters, before, strict=True):
            p[~state.active] = old[~state.active]
    state.step += 1
