"""One file per figure; this is their list, in the order of the report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from parityscope.errors import InvalidInput, naming_the_extra

if TYPE_CHECKING:
    from parityscope.experiments.contract import Experiment

_FILES = {
    "heads-lock-on": "heads_lock_on",
    "H1-figure-1": "h1_figure_1",
    "H1-figure-2": "h1_figure_2",
    "H1-success": "h1_success",
    "H1-why-it-fails": "h1_why_it_fails",
    "H1-risk-curves": "h1_risk_curves",
    "H1-parameter-efficiency": "h1_parameter_efficiency",
    "H1-frozen-attention": "h1_frozen_attention",
    "H1-adjacent-bits": "h1_adjacent_bits",
    "H1-temperature": "h1_temperature",
    "H1-sgd": "h1_sgd",
    "H1-reading-support": "h1_reading_support",
    "H1-other-functions": "h1_other_functions",
    "H1-input-laws": "h1_input_laws",
    "H2-one-step": "h2_one_step",
    "H2-error": "h2_error",
    "H2-parameters": "h2_parameters",
    "H2-samples": "h2_samples",
    "H2-softmax": "h2_softmax",
    "P-every-k": "p_every_k",
    **{f"W-figure-{number}": f"w_figure_{number}" for number in range(1, 12)},
    "engine-cost": "engine_cost",
    "estimator-benchmark": "estimator_benchmark",
    "phase-temperature-rate": "phase_temperature_rate",
    "phase-n-k": "phase_n_k",
    "phase-heads-noise": "phase_heads_noise",
}
EXPERIMENT_IDS = tuple(_FILES)
# Rows that several figures draw; no figure of their own.
_SHARED = {"W-training": "w_training"}


def load_experiment(experiment_id: str) -> Experiment:
    """Return the experiment called `experiment_id`.

    >>> load_experiment("H1-figure-1").ID
    'H1-figure-1'
    """
    file = {**_FILES, **_SHARED}.get(experiment_id)
    if file is None:
        raise InvalidInput(f"unknown experiment {experiment_id!r}: choose one of {', '.join(_FILES)}")
    with naming_the_extra():
        return cast("Experiment", import_module(f"parityscope.experiments.{file}"))
