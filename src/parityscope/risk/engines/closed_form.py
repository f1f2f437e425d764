"""Population risk of the bounded readout ŷ = cos(πS), and of sums of cosines, in closed form: O(n) for any n.

For independent bits E[y e^{iπS}] is a product over positions. With uniform bits, Σ_j c_j = Λ and k hidden bits

    C = E[y cos πS] = Π_{j∈B} sin(πc_j/2) · Π_{j∉B} cos(πc_j/2) · cos(π(Λ−k)/2)
    hinge risk = 1 − C,   squared-hinge risk = 3/2 − 2C + ½ cos(πΛ) Π_j cos(πc_j),   accuracy ≥ C

because |ŷ| ≤ 1 keeps both hinges from clipping, and a wrong sign costs a hinge loss of at least 1. Means of a sum of
waves are sums of means, and so are those of its square.
"""

from __future__ import annotations

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.ties import SCORE_TIE
from parityscope.models.additive import AdditiveScore
from parityscope.models.readouts import COSINE, Wave
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import NEEDS_A_SCORE, Engine, Job, Refusal
from parityscope.risk.law import Law
from parityscope.risk.losses import Loss
from parityscope.risk.means import Mean
from parityscope.risk.pieces.agreement import check_cosines
from parityscope.risk.pieces.rounding import UNIT, chain

LOSSES = ("hinge", "squared-hinge", "squared-mean-hinge", "squared", "log-correlation")
_SQUARES = ("squared-hinge", "squared")  # the same while |ŷ| ≤ 1
_UNCLIPPED = ("squared", "log-correlation")  # polynomials of the margin, whatever it is


# Seconds, fitted by benchmarks/engine_costs.py: a call, and a position of a run.
_CALL, _POSITION = 4e-4, 3e-8


class ClosedForm(Engine):
    """Products over positions."""

    card = CARDS["closed-form"]
    finite_gradient = True

    def refuses(self, job: Job) -> Refusal | None:
        """Refuse all but a sum of cosines that keeps the hinge from clipping; any n."""
        if job.score is None:
            return NEEDS_A_SCORE
        if job.loss is None:
            return Refusal("does not count right signs")
        readout = job.score.readout
        if readout.cosine_series() is None:
            return Refusal("needs a readout that is a sum of cosines")
        if job.loss.own or job.loss.name not in LOSSES:
            return Refusal(f"covers {', '.join(LOSSES)}, not {job.loss.name}")
        if not readout.bounded and job.loss.name not in _UNCLIPPED:
            return Refusal("needs a bounded readout, |ŷ| ≤ 1, since a hinge could clip")
        return None

    def cost(self, job: Job) -> float:
        """So much per position."""
        assert job.score is not None
        return _CALL + _POSITION * job.count * job.n * len(_waves(job.score))

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run, differentiable as it is."""
        score, loss = job.score, job.loss
        assert score is not None
        assert loss is not None
        check_cosines(score, job.reach)
        value = closed_form_mean(score, job.law, loss)
        with torch.no_grad():
            error = _rounding(score, job.law, loss)
            if loss.name == "log-correlation" and score.readout.cosine_series() == COSINE and job.law.bias == 0.5:
                error = torch.minimum(error, _relative_rounding(score, job.law) * value.detach().abs())
        return Mean(value, None, None, error.expand(value.shape))


def _rounding(score: AdditiveScore, law: Law, loss: Loss) -> Tensor:
    """Bound the rounding of sums of products: every factor is at most 1 and known to a few roundings of its angle."""
    waves = _waves(score)
    square = 2 if loss.name in _SQUARES else 1
    fastest = square * math.pi * max(abs(wave.frequency) for wave in waves)
    angles, shift = fastest * score.weights.abs().sum(-1), fastest * score.offset.abs()
    longest = chain(law.n) + 6
    # The phase is known to (h + 6)uΣ|a_j| + 5ku, a product of n factors to Σ(3|a_j| + 3)u; what is above is to spare
    # (engines.md, "Closed form").
    one = UNIT * (longest * angles + 8 * law.n + 5 * law.mask.sum(-1) + 8 * shift + 4)
    sizes = sum(abs(wave.size) for wave in waves)
    return (2 * sizes + sizes**2) * (one + 8 * UNIT) if square == 2 else sizes * one + 4 * UNIT


def _relative_rounding(score: AdditiveScore, law: Law) -> Tensor:
    """Bound the rounding of E[y cos πS] relative to itself, for fair bits: small factors are known as well as large."""
    angle, mask = math.pi / 2 * score.weights, law.mask.to(score.weights.device)
    # A factor known to 3u|a| is known relative to itself to 3u|a tan a|, and to 3u|a cot a| if it is a sine.
    steep = angle.abs() * torch.where(mask, 1 / angle.tan(), angle.tan()).abs()
    phase = angle.sum(-1) - math.pi / 2 * mask.sum(-1) + math.pi * score.offset
    drift = UNIT * ((chain(law.n) + 6) * angle.abs().sum(-1) + 5 * mask.sum(-1) + 8 * score.offset.abs())
    relative = UNIT * (3 * steep.sum(-1) + 4 * law.n) + drift * (phase.tan().abs() + drift)
    return 1.01 * relative


def closed_form_mean(score: AdditiveScore, law: Law, loss: Loss) -> Float[Tensor, "*runs"]:
    """Return E[loss(yŷ)] for a readout that is a sum of cosines.

    One hidden bit with half its weight: ŷ = 1 is right at x = 0, and ŷ = 0 loses 1 at x = 1.
    """
    correlation = (1 - 2 * law.noise) * exact_correlation(score, law)
    if loss.name == "log-correlation":
        return -correlation
    if loss.name in _SQUARES:
        # E(1 − yŷ)² = 1 − 2E[yŷ] + E[ŷ²] and cos²(πS) = (1 + cos 2πS)/2
        waves = _waves(score)
        value = 1 + sum(wave.size**2 for wave in waves) / 2 - 2 * correlation
        for wave in waves:
            value = value + wave.size**2 / 2 * _mean_cosine(score, law, 2 * wave.frequency, signed=False)
        for one, other in itertools.combinations(waves, 2):
            # 2·cos a·cos b = cos(a − b) + cos(a + b)
            for beat in (one.frequency - other.frequency, one.frequency + other.frequency):
                value = value + one.size * other.size * _mean_cosine(score, law, beat, signed=False)
        return value
    return 1 - correlation


def exact_correlation(score: AdditiveScore, law: Law) -> Float[Tensor, "*runs"]:
    """Return C = E[yŷ] for noiseless labels and a readout that is a sum of cosines."""
    first, *others = (wave.size * _mean_cosine(score, law, wave.frequency, signed=True) for wave in _waves(score))
    return sum(others, start=first)


def _waves(score: AdditiveScore) -> tuple[Wave, ...]:
    waves = score.readout.cosine_series()
    assert waves is not None
    return waves


def _mean_cosine(score: AdditiveScore, law: Law, frequency: float, *, signed: bool) -> Tensor:
    """Return E[s·cos(frequency·πS)], s the label when `signed` and 1 otherwise."""
    angle = frequency * math.pi * score.weights
    mask = law.mask.to(angle.device) & signed
    if law.bias == 0.5:
        # E[e^{iax}] = e^{ia/2} cos(a/2) and E[(−1)^x e^{iax}] = −i e^{ia/2} sin(a/2)
        size = torch.where(mask, (angle / 2).sin(), (angle / 2).cos()).prod(-1)
        phase = angle.sum(-1) / 2 - math.pi / 2 * mask.sum(-1).to(angle.dtype)
        return size * (phase + frequency * math.pi * score.offset).cos()
    sign = 1 - 2 * mask.to(angle.dtype)
    # E[(±1)^x e^{iax}] = (1 − p) ± p·e^{ia}
    factors = (1 - law.bias) + law.bias * sign * torch.polar(torch.ones_like(angle), angle)
    shift = frequency * math.pi * score.offset
    return (factors.prod(-1) * torch.polar(torch.ones_like(shift), shift)).real


def certified_perfect(score: AdditiveScore, law: Law) -> Tensor:
    """Say for each run whether Σ_j |c_j − 1_B(j)| + |offset| < ½, so that every single input is classified right.

    Then |S − Σ_{j∈B} x_j| < ½ for every x, and cos(πS) has the sign of the label. A sum that is ½ up to rounding is no
    certificate: some prediction may be 0.
    """
    distance = (score.weights - law.mask.to(score.weights)).abs().sum(-1)
    return distance + score.offset.abs() < 0.5 - SCORE_TIE
