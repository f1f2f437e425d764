"""parityscope: how does attention learn which few bits matter?"""

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
