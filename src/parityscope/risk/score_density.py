"""How the score S is distributed over all inputs, split by label: a picture of what the readout sees, for any n."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models.additive import AdditiveScore
from parityscope.risk.law import Law

_NEGLIGIBLE = 6.5  # standard deviations of the kernel after which its transform, e^{-t²/2} < 1e-9, counts as zero


class ScoreDensity(NamedTuple):
    """The density of S where the label is +1 and where it is −1; the two together integrate to 1."""

    plus: Float[Tensor, "*runs points"]
    minus: Float[Tensor, "*runs points"]


def exact_score_density(
    score: AdditiveScore, law: Law, at: Float[Tensor, " points"], width: float = 0.03
) -> ScoreDensity:
    """Return the density of S + width·N(0, 1) at some points, for noiseless labels, without visiting an input.

    S takes up to 2^n values, so its law is shown through a narrow Gaussian; beyond that nothing is approximated (the
    Fourier series leaves out terms below 1e-9). Independent bits make the characteristic function a product:

    >>> from parityscope.models import Cosine
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> score = AdditiveScore(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.zeros(()), Cosine())
    >>> at = torch.tensor([0.0, 1.0], dtype=torch.float64)
    >>> density = exact_score_density(score, law_of(Parity(2, (0,))), at, width=0.1)
    >>> [round(float(value), 6) for value in (density.plus[0], density.minus[0], density.minus[1])]
    [1.994711, 0.0, 1.994711]
    """
    weights = score.weights.detach()
    low = float((weights.clamp(max=0).sum(-1) + score.offset).min()) - _NEGLIGIBLE * width
    high = float((weights.clamp(min=0).sum(-1) + score.offset).max()) + _NEGLIGIBLE * width
    period = max(high, float(at.max())) - min(low, float(at.min()))
    last = math.ceil(_NEGLIGIBLE / width * period / (2 * math.pi))
    t = 2 * math.pi / period * torch.arange(last + 1, dtype=weights.dtype)
    angle = t[:, None] * weights[..., None, :]  # (*runs, frequencies, n)
    turn = law.bias * torch.polar(torch.ones_like(angle), angle)
    mask = law.mask.unsqueeze(-2).to(angle.device)
    # E[e^{itS}] and E[y e^{itS}] of independent bits
    whole = (1 - law.bias + turn).prod(-1)
    signed = (1 - law.bias + torch.where(mask, -turn, turn)).prod(-1)
    kernel = torch.exp(-((width * t) ** 2) / 2) * torch.where(t == 0, 1.0, 2.0) / period
    back = torch.polar(torch.ones_like(at * t[:, None]), t[:, None] * (score.offset - at))  # (frequencies, points)
    total, difference = (((phi * kernel) @ back).real for phi in (whole, signed))
    return ScoreDensity(((total + difference) / 2).clamp(min=0.0), ((total - difference) / 2).clamp(min=0.0))
