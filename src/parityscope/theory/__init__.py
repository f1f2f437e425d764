"""Every bound and constant of the papers as a pure function, with the paper's symbol names."""

from parityscope.theory.attention_learning import (
    fixed_attention_bound,
    fixed_hard_attention_bound,
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

__all__ = [
    "fixed_attention_bound",
    "fixed_hard_attention_bound",
    "lipschitz_of_prediction",
    "lipschitz_of_prediction_times_gradient",
    "parity_ffnn_parameters",
    "parity_transformer_parameters",
    "pl_constant",
    "smoothness_of_prediction",
    "smoothness_of_risk",
    "theorem_5_decrement",
    "theorem_5_learning_rate",
]
