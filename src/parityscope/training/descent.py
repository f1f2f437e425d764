"""Descent on many runs at once: parameters carry a run axis, and runs never see each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from parityscope.training.normalised import NormalisedMomentum
from parityscope.training.recipes import Recipe


class Evaluation(NamedTuple):
    """What one evaluation gives per run: the value that descends, and the risk that is watched."""

    objective: Tensor
    risk: Tensor


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


def make_optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimiser of first order; none of them mixes runs."""
    rate, betas = float(recipe.learning_rate), (recipe.beta1, recipe.beta2)
    if recipe.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate, betas=betas)
    if recipe.optimiser == "gradient-descent":
        return torch.optim.SGD(model.parameters(), lr=rate)
    per_head = recipe.optimiser == "head-normalised"
    shared = (-1,) if per_head else (-2, -1)
    return NormalisedMomentum(model.parameters(), rate, betas, shared_dimensions=shared, grow=per_head)


def descend(
    model: nn.Module,
    objective: Objective,
    recipe: Recipe,
    state: TrainingState,
    optimiser: torch.optim.Optimizer,
    *,
    after_step: Callable[[TrainingState, Tensor], None] | None = None,
    record_every: int = 10,
    patience_below: float = torch.inf,
) -> TrainingState:
    """Train until every run stopped or the recipe's steps are used up; `state` may come from a checkpoint.

    A run stops when its risk falls below `stop_risk`, or below `patience_below` and then no further for the recipe's
    `patience`; one whose risk or gradient is no longer finite is marked
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
        if recipe.patience is not None:
            state.stop(state.stalled(risk, recipe.patience, patience_below))
        last = state.step >= int(recipe.steps) or not bool(state.active.any())
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
