"""What the page draws of one training: a frame per shown step, and what stays the same beside it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from parityscope.apps.explorer.score_density import exact_score_density
from parityscope.apps.explorer.settings import LiveSettings
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.build import build_model
from parityscope.training.learning import LEARNED_ACCURACY
from parityscope.training.recipes import Recipe

_POINTS = 121
CIRCLES = ("circle", "circle-as-coded")  # position codes on which a head has an angle


def rounded(values: Tensor, digits: int = 5) -> Any:
    """Return nested lists with so many decimals that no eye could tell the difference.

    >>> rounded(torch.tensor([[1 / 3, 2 / 3]]), 3)
    [[0.333, 0.667]]
    """
    return values.detach().double().round(decimals=digits).tolist()


def _score_axis(k: int) -> Tensor:
    """Return the values of S at which the readout and the density are drawn."""
    return torch.linspace(-0.5, k + 0.5, _POINTS, dtype=torch.float64)


def opening(settings: LiveSettings, recipe: Recipe, problem: Parity) -> dict[str, Any]:
    """Return what the page needs once per training.

    >>> settings = LiveSettings(n=20, support=(7, 10, 17), recipe="as-written")
    >>> first = opening(settings, settings.resolved(), settings.problem())
    >>> first["heads"], first["parameters"], len(first["circle"])  # a direction in the plane for each of k heads
    (3, 6, 20)
    """
    model = build_model(recipe, problem.n, problem.k, [settings.seed])
    axis = _score_axis(problem.k)
    on_circle = recipe.positions in CIRCLES
    return {
        "type": "ready",
        "n": problem.n,
        "k": problem.k,
        "support": list(problem.support),
        "recipe": recipe.model_dump(mode="json", exclude={"on_samples", "beyond_pairs"}),
        "heads": model.heads,
        "parameters": model.trained_parameters(),
        "circle": rounded(model.positions) if on_circle else None,
        "score_axis": rounded(axis),
        "readout": rounded(model.readout(axis)),
    }


def frame(model: ParityTransformer, problem: Parity, step: int, risk: float) -> dict[str, Any]:
    """Return one moment of a training of one run: everything is exact or says what it is.

    >>> places = ParityTransformer(8, 2).positions
    >>> model = ParityTransformer(8, 2, temperature=0.01, directions=places[None, [1, 4]])  # H1, Eq. (2)
    >>> shown = frame(model, Parity(8, (1, 4)), step=0, risk=0.0)
    >>> shown["found"], shown["accuracy"], shown["accuracy_kind"], shown["learned"]
    ([1, 4], 1.0, 'exact', True)
    """
    with torch.no_grad():
        attention = model.attention()[0]
        weights = model.score_weights()[0]
        accuracy = measured_accuracy(model, [problem])
        score = model.additive_score()
        assert score is not None
        density = exact_score_density(score, law_of([problem]), _score_axis(problem.k))
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
