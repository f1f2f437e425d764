"""How the score S is distributed over all inputs, split by label: a picture of what the readout sees, for any n."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models.additive import AdditiveScore
from parityscope.risk.law import Law

_NEGLIGIBLE = 6.5  # standard deviations of the kernel after which its transform, e^{-t²/2} < 1e-9, counts as zero


class ScoreDensity(NamedTuple):
    """The density of S where the label is +1 and where it is −1; the two together integrate to 1.

    >>> from parityscope.models import Cosine
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> score = AdditiveScore(torch.full((6,), 0.3, dtype=torch.float64), torch.zeros(()), Cosine())
    >>> density = exact_score_density(score, law_of(Parity(6, (0, 1))), torch.linspace(-1, 3, 401).double())
    >>> [round(float(side.sum()) * 0.01, 6) for side in density]
    [0.5, 0.5]
    """

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
    # A whole period lets frames of one training share their frequencies.
    period = math.ceil(max(high, float(at.max())) - min(low, float(at.min())))
    t, kernel = _frequencies(period, width)
    angle = t[:, None] * weights[..., None, :]  # (*runs, frequencies, n)
    mask = law.mask.unsqueeze(-2).to(angle.device)
    if law.bias == 0.5:
        # E[e^{iax}] = e^{ia/2} cos(a/2) and E[(−1)^x e^{iax}] = −i e^{ia/2} sin(a/2)
        sine, cosine = (angle / 2).sin(), (angle / 2).cos()
        turn = t * (weights.sum(-1, keepdim=True) / 2 + score.offset)
        whole = torch.polar(kernel * cosine.prod(-1), turn)
        hidden = law.mask.sum(-1, keepdim=True).to(turn)
        signed = torch.polar(kernel * torch.where(mask, sine, cosine).prod(-1), turn - math.pi / 2 * hidden)
    else:
        factor = law.bias * torch.polar(torch.ones_like(angle), angle)
        shift = torch.polar(kernel, t * score.offset)
        whole = (1 - law.bias + factor).prod(-1) * shift
        signed = (1 - law.bias + torch.where(mask, -factor, factor)).prod(-1) * shift
    cosines, sines = _waves(period, width, tuple(at.tolist()))
    total, difference = (phi.real @ cosines + phi.imag @ sines for phi in (whole, signed))
    return ScoreDensity(((total + difference) / 2).clamp(min=0.0), ((total - difference) / 2).clamp(min=0.0))


@lru_cache(maxsize=64)
def _frequencies(period: int, width: float) -> tuple[Tensor, Tensor]:
    """Return the frequencies of a Fourier series on the period, and the Gaussian's weight of each."""
    last = math.ceil(_NEGLIGIBLE / width * period / (2 * math.pi))
    t = 2 * math.pi / period * torch.arange(last + 1, dtype=torch.float64)
    return t, torch.exp(-((width * t) ** 2) / 2) * torch.where(t == 0, 1.0, 2.0) / period


@lru_cache(maxsize=64)
def _waves(period: int, width: float, at: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Return cos(ts) and sin(ts) for every frequency t and every point s: (frequencies, points) each."""
    phase = _frequencies(period, width)[0][:, None] * torch.tensor(at, dtype=torch.float64)
    return phase.cos(), phase.sin()
