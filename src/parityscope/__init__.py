"""parityscope: how does attention learn which few bits matter?

A name is imported when it is first used: torch takes seconds to load, and help and completion need none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parityscope import theory
    from parityscope.core.errors import InvalidInput
    from parityscope.fit import SparseParityClassifier, SparseParityRegressor
    from parityscope.measures import attention_entropy
    from parityscope.models import (
        FFNN1,
        GPT,
        Cosine,
        Face,
        FrozenAttention,
        ParityTransformer,
        PiecewiseLinear,
        Readout,
        Triangle,
        ZigZag,
        is_face,
        parity_ffnn,
    )
    from parityscope.papers.phase_diagram import phase_diagram
    from parityscope.problems import Parity, draw_problems
    from parityscope.risk import Risk, estimated_risk, jittered_risk, population_accuracy, population_risk
    from parityscope.training.learning import LearnedRuns, learn
    from parityscope.training.recipes import RECIPES, Recipe

__version__ = "0.2.0"
__all__ = [
    "FFNN1",
    "GPT",
    "RECIPES",
    "Cosine",
    "Face",
    "FrozenAttention",
    "InvalidInput",
    "LearnedRuns",
    "Parity",
    "ParityTransformer",
    "PiecewiseLinear",
    "Readout",
    "Recipe",
    "Risk",
    "SparseParityClassifier",
    "SparseParityRegressor",
    "Triangle",
    "ZigZag",
    "attention_entropy",
    "draw_problems",
    "estimated_risk",
    "is_face",
    "jittered_risk",
    "learn",
    "parity_ffnn",
    "phase_diagram",
    "population_accuracy",
    "population_risk",
    "theory",
]

_HOMES = {
    "core.errors": ("InvalidInput",),
    "fit": ("SparseParityClassifier", "SparseParityRegressor"),
    "training.learning": ("LearnedRuns", "learn"),
    "measures": ("attention_entropy",),
    "models": (
        "FFNN1",
        "GPT",
        "Cosine",
        "Face",
        "FrozenAttention",
        "ParityTransformer",
        "PiecewiseLinear",
        "Readout",
        "Triangle",
        "ZigZag",
        "is_face",
        "parity_ffnn",
    ),
    "papers.phase_diagram": ("phase_diagram",),
    "problems": ("Parity", "draw_problems"),
    "risk": ("Risk", "estimated_risk", "jittered_risk", "population_accuracy", "population_risk"),
    "theory": ("theory",),
    "training.recipes": ("RECIPES", "Recipe"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            module = import_module(f"parityscope.{home}")
            globals()[name] = module if name == home else getattr(module, name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
