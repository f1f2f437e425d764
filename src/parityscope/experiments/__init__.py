"""One file per figure; this is their list, in the order of the report."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from parityscope.errors import InvalidInput
from parityscope.experiments.contract import Experiment

_FILES = {
    "H1-figure-1": "h1_figure_1",
    "H1-figure-2": "h1_figure_2",
    "H1-success": "h1_success",
    "H1-risk-curves": "h1_risk_curves",
    "engine-cost": "engine_cost",
    "phase-temperature-rate": "phase_temperature_rate",
    "phase-n-k": "phase_n_k",
    "phase-heads-noise": "phase_heads_noise",
}
EXPERIMENT_IDS = tuple(_FILES)


def load_experiment(experiment_id: str) -> Experiment:
    """Return the experiment called `experiment_id`.

    >>> load_experiment("H1-figure-1").ID
    'H1-figure-1'
    """
    if experiment_id not in _FILES:
        raise InvalidInput(f"unknown experiment {experiment_id!r}: choose one of {', '.join(_FILES)}")
    return cast(Experiment, import_module(f"parityscope.experiments.{_FILES[experiment_id]}"))
