"""One step (H2): attention before and after one gradient, for inputs of up to ten thousand bits."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from parityscope.apps.explorer.learn import rounded
from parityscope.core.ties import largest
from parityscope.models import ParityTransformer
from parityscope.problems import Parity, draw_problems
from parityscope.training.learning import learn
from parityscope.training.recipes import named_recipe

_MOST_BITS = 10_000
_MOST_HIDDEN = 10
_SHOWN = 40  # positions named one by one
_BINS = 60


class OneStepSettings(BaseModel):
    """A problem for the recipe `one-step`; k = 2 is H2's own, other k take a few steps of one head."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n: int = Field(1000, ge=2, le=_MOST_BITS)
    k: int = Field(2, ge=1, le=_MOST_HIDDEN)
    seed: int = Field(0, ge=0, lt=2**32)
    numbers_per_head: int | None = Field(None, ge=1, le=1024)

    def problem(self) -> Parity:
        """Return the problem of this seed."""
        return draw_problems(self.n, self.k, [self.seed])[0]

    def overrides(self) -> dict[str, Any]:
        """Return what was given."""
        return {} if self.numbers_per_head is None else {"numbers_per_head": self.numbers_per_head}


def one_step(settings: OneStepSettings) -> dict[str, Any]:
    """Return weights c_j and scores of every head before and after, and what was found."""
    problem = settings.problem()
    moments: list[tuple[int, Tensor, Tensor, Tensor]] = []

    def remember(step: int, model: ParityTransformer) -> None:
        with torch.no_grad():
            moments.append((step, model.scores()[0].clone(), model.attention()[0].clone(), model.score_weights()[0]))

    named_recipe("one-step").adapted(problem.k, **settings.overrides()).resolved(problem.n, problem.k)
    run = learn(problem, "one-step", [settings.seed], on_record=remember, record_every=1, **settings.overrides())
    before, after = moments[0], moments[-1]
    leading = largest(after[3], min(_SHOWN, problem.n))
    shown = torch.unique(torch.cat([leading, torch.tensor(problem.support)]))
    return {
        "n": problem.n,
        "k": problem.k,
        "support": list(problem.support),
        "found": run.found[0].tolist(),
        "learned": bool(run.learned[0]),
        "accuracy": float(run.accuracy[0]),
        "accuracy_kind": run.accuracy_kind,
        "risk": float(run.risk[0]),
        "steps": int(run.steps[0]),
        "parameters": run.model.trained_parameters(),
        "numbers_per_head": int(run.recipe.numbers_per_head or 0),
        "learning_rate": float(run.recipe.learning_rate),
        "seconds": run.seconds,
        "worst_loss": None if run.worst_loss is None else float(run.worst_loss[0]),
        "positions": shown.tolist(),
        "before": {"weights": rounded(before[3][shown], 6), **_scores(before[1], problem)},
        "after": {"weights": rounded(after[3][shown], 6), **_scores(after[1], problem)},
        "snippet": _snippet(settings, problem),
    }


def _scores(scores: Tensor, problem: Parity) -> dict[str, Any]:
    """Return how scores are spread: a histogram over positions that are not hidden, and the hidden ones, per head."""
    mask = problem.mask()
    low, high = float(scores.min()), float(scores.max())
    counts = torch.histc(scores[:, ~mask].flatten(), _BINS, low, max(high, low + 1e-9))
    return {
        "low": low,
        "high": max(high, low + 1e-9),
        "others": counts.long().tolist(),
        "hidden": rounded(scores[:, mask], 4),
    }


def _snippet(settings: OneStepSettings, problem: Parity) -> str:
    given = "".join(f", {name}={value!r}" for name, value in settings.overrides().items())
    return (
        "import parityscope as ps\n\n"
        f"problem = ps.Parity(n={problem.n}, support={problem.support})\n"
        f'run = ps.learn(problem, "one-step", seeds=[{settings.seed}]{given})\n'
        f'start = ps.learn(problem, "one-step", seeds=[{settings.seed}]{given}, steps=0)\n'
        "print(run.risk, run.accuracy, run.found, run.steps)\n"
        "for model in (start.model, run.model):  # before and after\n"
        "    print(model.scores()[0], model.score_weights()[0])  # heads × positions, and the weight of each position\n"
    )
