"""What the page draws of one training: a frame per shown step, and what stays the same beside it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from parityscope.explorer.settings import LiveSettings
from parityscope.learning import LEARNED_ACCURACY
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.risk.score_density import exact_score_density
from parityscope.training.build import build_model
from parityscope.training.recipes import Recipe

_POINTS = 121
_CIRCLES = ("circle", "circle-as-coded")


def rounded(values: Tensor, digits: int = 5) -> Any:
    """Return nested lists with so many significant decimals that no eye could tell the difference."""
    return values.detach().double().round(decimals=digits).tolist()


def score_axis(k: int) -> Tensor:
    """Return the values of S at which the readout and the density are drawn."""
    return torch.linspace(-0.5, k + 0.5, _POINTS, dtype=torch.float64)


def opening(settings: LiveSettings, recipe: Recipe, problem: Parity) -> dict[str, Any]:
    """Return what the page needs once per training."""
    model = build_model(recipe, problem.n, problem.k, [settings.seed])
    axis = score_axis(problem.k)
    on_circle = recipe.positions in _CIRCLES
    return {
        "type": "ready",
        "n": problem.n,
        "k": problem.k,
        "support": list(problem.support),
        "recipe": recipe.model_dump(exclude={"on_samples", "beyond_pairs"}),
        "heads": model.heads,
        "parameters": model.trained_parameters(),
        "circle": rounded(model.positions) if on_circle else None,
        "score_axis": rounded(axis),
        "readout": rounded(model.readout(axis)),
    }


def frame(model: ParityTransformer, problem: Parity, step: int, risk: float) -> dict[str, Any]:
    """Return one moment of a training of one run: everything is exact or says what it is."""
    with torch.no_grad():
        attention = model.attention()[0]
        weights = model.score_weights()[0]
        accuracy = measured_accuracy(model, [problem])
        score = model.additive_score()
        assert score is not None
        density = exact_score_density(score, law_of([problem]), score_axis(problem.k))
    found = found_support(weights, problem.k).tolist()
    return {
        "type": "frame",
        "step": step,
        "risk": risk if math.isfinite(risk) else None,
        "accuracy": float(accuracy.value[0]),
        "accuracy_kind": accuracy.kind,
        "attention": rounded(attention),
        "weights": rounded(weights),
        "directions": rounded(model.directions[0]) if model.directions.shape[-1] == 2 else None,
        "found": found,
        "learned": float(accuracy.value[0]) > LEARNED_ACCURACY and found == list(problem.support),
        "density": {"plus": rounded(density.plus[0], 4), "minus": rounded(density.minus[0], 4)},
    }
