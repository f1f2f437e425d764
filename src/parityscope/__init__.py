"""parityscope: how does attention learn which few bits matter?"""

from typing import TYPE_CHECKING, Any

from parityscope import theory
from parityscope.errors import InvalidInput
from parityscope.learning import Learned, learn
from parityscope.measures import attention_entropy
from parityscope.models import (
    FFNN1,
    GPT,
    Cosine,
    FrozenAttention,
    ParityTransformer,
    Triangle,
    ZigZag,
    parity_ffnn,
)
from parityscope.problems import Parity, draw_problems
from parityscope.risk import Risk, estimated_risk, population_accuracy, population_risk
from parityscope.training.recipes import RECIPES, Recipe

if TYPE_CHECKING:
    from parityscope.estimator import SparseParityClassifier

__version__ = "0.1.0"
__all__ = [
    "FFNN1",
    "GPT",
    "RECIPES",
    "Cosine",
    "FrozenAttention",
    "InvalidInput",
    "Learned",
    "Parity",
    "ParityTransformer",
    "Recipe",
    "Risk",
    "SparseParityClassifier",
    "Triangle",
    "ZigZag",
    "attention_entropy",
    "draw_problems",
    "estimated_risk",
    "learn",
    "parity_ffnn",
    "population_accuracy",
    "population_risk",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Import the estimator when it is asked for: scikit-learn is optional, and takes a second."""
    if name == "SparseParityClassifier":
        from parityscope.estimator import SparseParityClassifier

        return SparseParityClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
