"""Every bound and constant of the papers as a pure function, with the paper's symbol names."""

from parityscope.theory.attention_learning import (
    fixed_attention_bound,
    lipschitz_of_prediction,
    lipschitz_of_prediction_times_gradient,
    parity_ffnn_parameters,
    parity_transformer_parameters,
    pl_constant,
    smoothness_of_prediction,
    smoothness_of_risk,
    theorem_5_decrement,
    theorem_5_learning_rate,
)
from parityscope.theory.one_step import (
    best_uniform_step,
    expected_outside_weight,
    initial_score_variance,
    one_head_numbers,
    one_step_learning_rate,
    polylog_numbers,
)
from parityscope.theory.sample_complexity import one_gradient_samples, phase_signal, phase_variance, wide_phase

__all__ = [
    "best_uniform_step",
    "expected_outside_weight",
    "fixed_attention_bound",
    "initial_score_variance",
    "lipschitz_of_prediction",
    "lipschitz_of_prediction_times_gradient",
    "one_gradient_samples",
    "one_head_numbers",
    "one_step_learning_rate",
    "parity_ffnn_parameters",
    "parity_transformer_parameters",
    "phase_signal",
    "phase_variance",
    "pl_constant",
    "polylog_numbers",
    "smoothness_of_prediction",
    "smoothness_of_risk",
    "theorem_5_decrement",
    "theorem_5_learning_rate",
    "wide_phase",
]
