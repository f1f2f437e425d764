"""Population risk: the mean loss over all 2^n inputs, exact or estimated, with its gradient.

A name is imported when it is first used: help texts list the engines (`cards.py`) and need no torch for that.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parityscope.risk.jittered import jittered_risk
    from parityscope.risk.law import Law, law_of
    from parityscope.risk.population import ENGINES, Risk, population_accuracy, population_risk
    from parityscope.risk.sampling import estimated_risk

__all__ = [
    "ENGINES",
    "Law",
    "Risk",
    "estimated_risk",
    "jittered_risk",
    "law_of",
    "population_accuracy",
    "population_risk",
]

_HOMES = {"Law": "law", "law_of": "law", "estimated_risk": "sampling", "jittered_risk": "jittered"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"parityscope.risk.{_HOMES.get(name, 'population')}"), name)
