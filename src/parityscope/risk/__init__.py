"""Population risk: the mean loss over all 2^n inputs, exact or estimated, with its gradient."""

from parityscope.risk.law import Law, law_of
from parityscope.risk.population import ENGINES, Risk, population_accuracy, population_risk
from parityscope.risk.sampling import estimated_risk

__all__ = ["ENGINES", "Law", "Risk", "estimated_risk", "law_of", "population_accuracy", "population_risk"]
