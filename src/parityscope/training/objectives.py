"""What descends: the risk of the population, or of a drawn sample, one value per run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.errors import InvalidInput
from parityscope.models import Cosine, ParityTransformer
from parityscope.problems import Parity
from parityscope.risk import Law, law_of, population_risk
from parityscope.training.descent import Evaluation, Objective


def population_objective(
    model: ParityTransformer, problems: Sequence[Parity], loss: str, engine: str = "auto"
) -> Objective:
    """Return the objective on all 2^n inputs; log-correlation watches the hinge risk."""
    if loss != "log-correlation":

        def descend_on_risk() -> Evaluation:
            risk = population_risk(model, problems, loss=loss, engine=engine).value
            return Evaluation(risk, risk)

        return descend_on_risk
    if not isinstance(model.readout, Cosine):
        raise InvalidInput("log-correlation has a closed form for the cosine readout only: use loss = hinge")
    law = law_of(problems)

    def descend_on_log_correlation() -> Evaluation:
        # No gradient flows through the risk here, so it need not be tracked.
        with torch.no_grad():
            risk = population_risk(model, problems, loss="hinge", engine="closed-form").value
        return Evaluation(-log_correlation(model.score_weights(), law), risk)

    return descend_on_log_correlation


def log_correlation(weights: Float[Tensor, "*runs n"], law: Law) -> Float[Tensor, "*runs"]:
    """Return log|E[y e^{iπS}]| without the factors of wrong sign: a concave function with its maximum at 1_B.

    For uniform bits it is Σ_{j∈B} log sin(πc_j/2) + Σ_{j∉B} log cos(πc_j/2), the logarithm of C = 1 − hinge risk.
    A factor is negative when a hidden bit has c_j > 2 or another bit c_j > 1: heads piled on one position. It is
    left out, because its logarithm would pull the pile together instead of apart.

    >>> from parityscope.problems import Parity
    >>> law = law_of(Parity(3, (0, 1)))
    >>> float(log_correlation(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64), law).round(decimals=12))
    0.0
    """
    half = math.pi / 2 * weights
    # |(1−p) ± p e^{iπc}|² = (1−2p)² + 4p(1−p)·sin²(πc/2) on B, cos² elsewhere
    wave = torch.where(law.mask, half.sin(), half.cos())
    kept = weights < 1 + law.mask.to(weights.dtype)
    size = (1 - 2 * law.bias) ** 2 + 4 * law.bias * (1 - law.bias) * wave.square()
    # Underflow to log 0 has no gradient to offer; the smallest normal float keeps both finite.
    safe = torch.where(kept, size, torch.ones_like(size)).clamp(min=torch.finfo(size.dtype).tiny)
    return safe.log().sum(-1) / 2
