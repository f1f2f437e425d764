"""Why it fails: the risk over the angles of two heads, where training went on it, and what the gradient knows of B."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from parityscope.apps.explorer.learn import CIRCLES, LiveSettings, rounded
from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.papers.h1.gradient_parts import gradient_parts
from parityscope.problems import Parity
from parityscope.risk import population_risk
from parityscope.training.build import build_model
from parityscope.training.learning import learn
from parityscope.training.recipes import Recipe

_MOST_BITS = 14
_MOST_STEPS = 2000
_SHOWN = 120  # points of a trajectory
_SHARES = 40  # of them with the gradient split
_CHUNK = 256  # models whose risk is computed at a time


class LandscapeSettings(LiveSettings):
    """A training on the circle and the point of it at which the landscape is cut."""

    n: int = 12
    k: int | None = 2
    recipe: str = "as-written"
    steps: int | None = Field(300, ge=0, le=_MOST_STEPS)
    at: float = Field(0.0, ge=0, le=1, description="where on the trajectory: 0 is the start, 1 the end")
    first: int = Field(0, ge=0)
    second: int = Field(1, ge=0)
    side: int = Field(48, ge=8, le=96, description="points per axis")


def landscape(settings: LandscapeSettings) -> dict[str, Any]:
    """Return the risk on a grid of two heads' angles, with lengths and other heads as they are at the chosen step."""
    recipe, problem = settings.resolved(), settings.problem()
    heads = int(recipe.heads or problem.k)
    if problem.n > _MOST_BITS:
        raise InvalidInput(f"the landscape is drawn up to n = {_MOST_BITS}, got {problem.n}")
    if recipe.positions not in CIRCLES:
        raise InvalidInput(f"heads have an angle on the circle only, and {settings.recipe} has {recipe.positions}")
    if settings.first == settings.second or max(settings.first, settings.second) >= heads:
        raise InvalidInput(f"choose two different heads from 0 to {heads - 1}")
    trained = _trajectory(LandscapeSettings(**settings.model_dump(exclude={"at", "first", "second", "side"})))
    steps, path = trained.steps, trained.path
    index = round(settings.at * (len(path) - 1))
    model = build_model(recipe, problem.n, problem.k, [settings.seed])
    loss = _watched(recipe)
    angles = 2 * math.pi * (torch.arange(settings.side, dtype=torch.float64) + 0.5) / settings.side
    chosen = [settings.first, settings.second]
    return {
        "n": problem.n,
        "support": list(problem.support),
        "loss": loss,
        "steps": steps,
        "index": index,
        "risks": trained.risks,
        "temperature": float(recipe.temperature),
        "angles": rounded(angles.rad2deg(), 3),
        "risk": _grid(model, path[index], chosen, angles, problem, loss),
        "path": rounded(_angle(path[:, chosen]).rad2deg(), 3),
        "hidden": rounded(_angle(model.positions[list(problem.support)]).rad2deg(), 3),
        "positions": rounded(model.positions),
        "heads": rounded(path[index]),
        **_parts(model, path[index], problem, loss),
        "shares": trained.shares,
        "share_steps": trained.share_steps,
        "snippet": _snippet(settings, steps[index], loss),
    }


def _angle(vectors: Tensor) -> Tensor:
    """Return the angle of vectors (…, 2) in [0, 2π)."""
    return torch.atan2(vectors[..., 1], vectors[..., 0]).remainder(2 * math.pi)


class _Trajectory(NamedTuple):
    """A training on the circle: directions (points, heads, 2), risks, and how much the gradients know."""

    steps: list[int]
    path: Tensor
    risks: list[float | None]
    share_steps: list[int]
    shares: list[float | None]


@lru_cache(maxsize=32)
def _trajectory(settings: LandscapeSettings) -> _Trajectory:
    """Train with the library's own `learn` and keep about a hundred points, evenly in steps."""
    points: list[tuple[int, Tensor]] = []

    def remember(step: int, model: ParityTransformer) -> None:
        points.append((step, model.directions[0].detach().clone()))

    recipe, problem = settings.resolved(), settings.problem()
    run = learn(
        problem,
        settings.recipe,
        [settings.seed],
        on_record=remember,
        record_every=max(1, int(settings.steps or 0) // _SHOWN),
        **settings.overrides(),
    )
    steps, path = [step for step, _ in points], torch.stack([point for _, point in points])
    some = slice(None, None, max(1, len(path) // _SHARES))
    return _Trajectory(
        steps,
        path,
        [float(value) if math.isfinite(float(value)) else None for value in run.history_risk[:, 0]],
        steps[some],
        [_share(run.model, point, problem, _watched(recipe)) for point in path[some]],
    )


def _watched(recipe: Recipe) -> str:
    """Return the loss whose landscape is drawn: descent on log C watches the hinge risk."""
    return "hinge" if recipe.loss == "log-correlation" else recipe.loss


def _grid(
    model: ParityTransformer, point: Tensor, chosen: list[int], angles: Tensor, problem: Parity, loss: str
) -> list[list[float]]:
    """Return the risk, one row per angle of the second head, one column per angle of the first."""
    side = len(angles)
    directions = point.expand(side * side, *point.shape).clone()
    units = torch.stack([angles.cos(), angles.sin()], -1)
    lengths = point[chosen].norm(dim=-1)
    directions[:, chosen[0]] = lengths[0] * units.repeat(side, 1)
    directions[:, chosen[1]] = lengths[1] * units.repeat_interleave(side, 0)
    with torch.no_grad():
        risk = [
            population_risk(model.with_directions(chunk), [problem] * len(chunk), loss=loss).value
            for chunk in directions.split(_CHUNK)
        ]
    return rounded(torch.cat(risk).reshape(side, side), 6)


def _split_gradient(model: ParityTransformer, point: Tensor, problem: Parity, loss: str) -> tuple[Tensor, Tensor]:
    """Return the gradient's part that depends on B and the part that does not, each (heads, 2)."""
    here = model.with_directions(point[None])
    if loss != "squared-mean-hinge":
        dependent, free = gradient_parts(here, [problem], loss)
        return dependent.reshape(point.shape), free.reshape(point.shape)
    # The square of a mean is no mean: its gradient is 2·mean times the mean's, and that one splits.
    with torch.no_grad():
        stretch = 2 * population_risk(here, [problem], loss="hinge").value
    dependent, free = gradient_parts(here, [problem], "hinge")
    return (stretch * dependent).reshape(point.shape), (stretch * free).reshape(point.shape)


def _parts(model: ParityTransformer, point: Tensor, problem: Parity, loss: str) -> dict[str, Any]:
    """Return both parts of the descent direction: in the plane of each head, and as turns (descent of the angle)."""
    dependent, free = _split_gradient(model, point, problem, loss)
    # dθ moves a head of length ρ along ρ·(−sin θ, cos θ), so ∂risk/∂θ = x·g₂ − y·g₁.
    turns = [-(point[:, 0] * part[:, 1] - point[:, 1] * part[:, 0]) for part in (dependent, free)]
    return {
        "dependent": (-dependent).tolist(),
        "free": (-free).tolist(),
        "turn_dependent": turns[0].tolist(),
        "turn_free": turns[1].tolist(),
    }


def _share(model: ParityTransformer, point: Tensor, problem: Parity, loss: str) -> float | None:
    """Return the share of the gradient's length that depends on B; none where the gradient vanishes."""
    dependent, free = (float(part.norm()) for part in _split_gradient(model, point, problem, loss))
    return dependent / (dependent + free) if dependent + free > 0 else None


def _snippet(settings: LandscapeSettings, step: int, loss: str) -> str:
    """Return the Python lines that split the gradient at this moment, and draw the risk over two heads' angles."""
    splits = "hinge" if loss == "squared-mean-hinge" else loss
    stretch = (
        "stretch = 2 * ps.population_risk(run.model, run.problems, loss='hinge').value.item()  # (mean)² is no mean\n"
        "dependent, free = stretch * dependent, stretch * free\n"
    )
    return settings.snippet(step) + (
        "\nimport math\n\nimport torch\nfrom parityscope.papers.h1.gradient_parts import gradient_parts\n\n"
        f'dependent, free = gradient_parts(run.model, run.problems, "{splits}")\n'
        f"{stretch if splits != loss else ''}"
        "print(dependent, free)  # runs × (heads · 2): the part that depends on B, and the part that does not\n\n"
        f"angles = 2 * math.pi * (torch.arange({settings.side}, dtype=torch.float64) + 0.5) / {settings.side}\n"
        "risk = []\n"
        "for second in angles:\n"
        "    heads = run.model.directions.detach().repeat(len(angles), 1, 1)\n"
        "    lengths = heads.norm(dim=-1)\n"
        f"    for head, angle in (({settings.first}, angles), ({settings.second}, second.expand(len(angles)))):\n"
        "        heads[:, head] = lengths[:, head, None] * torch.stack([angle.cos(), angle.sin()], -1)\n"
        "    turned = run.model.with_directions(heads)\n"
        f'    risk.append(ps.population_risk(turned, [problem] * len(angles), loss="{loss}").value.tolist())\n'
        f"print(risk)  # a row for each angle of head {settings.second}, a column for each of head {settings.first}\n"
    )
