"""The loss on the worst of all 2^n inputs, exactly, for bounded readouts: a certificate, not a sample.

Put d_j = c_j − 1_B(j) and D = Σ_j |d_j|. What S misses of Σ_{j∈B} x_j is Σ_j d_j x_j, which ranges from the sum of the
negative d_j to that of the positive ones: an interval of length D around Σ_j d_j / 2 = (Λ−k)/2, where Λ = Σ_j c_j.
Softmax weights have Λ = k; otherwise the score is shifted by (k−Λ)/2. Either way S stays within D/2 of its integer, and
both ends are inputs. A bounded readout f has f(s) = (−1)^s at integers and loses at distance e ≤ 1 from one
1 − cos(πe) (cosine) or 2e (triangle), increasing in e; each readout knows its own.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.ties import tolerance
from parityscope.models.additive import AdditiveScore
from parityscope.risk.law import Law


def worst_loss(score: AdditiveScore | None, law: Law) -> Float[Tensor, "*runs"] | None:
    """Return the largest hinge loss over all inputs with noiseless labels, or None where there is no certificate.

    Exact while D ≤ 2; beyond, the bound 2 that holds for every bounded readout.
    """
    if score is None:
        return None
    weights, k = score.weights.detach(), law.mask.sum(-1)
    centred = (score.offset.detach() + (weights.sum(-1) - k) / 2).abs() < 1e-9
    if bool((weights < 0).any()) or not bool(centred.all()):
        return None
    # D = Σ_j |c_j − 1_B(j)|; beyond 2 some input may lose the most that a bounded readout can.
    distance = (weights - law.mask.to(weights.dtype)).abs().sum(-1).clamp(max=2.0)
    return score.readout.worst_loss(distance, k)


def certified_by_worst_loss(score: AdditiveScore | None, law: Law) -> Bool[Tensor, "*runs"]:
    """Say which runs classify every single input right: the worst of them loses less than 1, beyond rounding.

    A worst loss of 1 is a prediction of 0, which is not right; such a run is not certified on any processor.
    """
    worst = worst_loss(score, law)
    if worst is None:
        return torch.zeros(law.mask.shape[:-1], dtype=torch.bool)
    return worst < 1 - tolerance(worst.dtype)
