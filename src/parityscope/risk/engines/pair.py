"""Population hinge risk of H2's two-neuron readout ŷ = |2 − 2S| − 1 on pairs, in O(n) for any n.

With signs s = 1 − 2·bit and v = Σ_l c_l s_l (Σ_l c_l = 2) the readout is |v| − 1, the label s_i s_j, and the hinge
never clips since |v| ≤ 2: risk = 1 − E[s_i s_j|v|]. Three regimes, chosen for each run:

- equal weights: Fourier coefficients of the majority function, exact;
- spread-out attention: |v| is a triangle wave of half-period P wherever |v| ≤ P, and that is a cosine series,

      E[s_i s_j|v|] = (4P/π²) Σ_{h odd} h⁻² · Π_{B} sin(hπc_l/P) · Π_{∉B} cos(hπc_l/P):

  exact for P = 2, where it is a sum of bounded readouts; P = 9.5‖c‖ needs 14 terms and errs by 8e^{−45} (Hoeffding);
- the pair outweighs the rest (R = Σ_{∉B} c ≤ c_i + c_j): v keeps the pair's sign when s_i = s_j, so that half of the
  inputs loses exactly R on average, and the other half E|c_i − c_j + Σ_{∉B} c_l s_l|, which lies between √½ and 1 times
  q = √((c_i − c_j)² + Σ_{∉B} c_l²) (Khintchine's inequality with Szarek's constant, and Jensen's).
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.core.ties import SCORE_TIE
from parityscope.models.additive import AdditiveScore
from parityscope.models.readouts import PiecewiseLinear
from parityscope.risk.cards import CARDS
from parityscope.risk.engine import NEEDS_A_SCORE, Engine, Job, Refusal
from parityscope.risk.law import Law
from parityscope.risk.means import Mean
from parityscope.risk.pieces.rounding import UNIT
from parityscope.theory.h2 import majority_gradient

LOSSES = ("hinge", "log-correlation")
_WIDTH = 9.5  # half-period in standard deviations of v
_SHORT, _LONG = 27, 801  # last harmonic when P = 9.5‖c‖, and when P = 2
_EQUAL = 1e-13
TWO_NEURONS = PiecewiseLinear(knots=(0.0, 1.0), values=(1.0, -1.0), left=0.0, right=2.0)  # |2 − 2S| − 1 for S ≥ 0


# Seconds, fitted by benchmarks/engine_costs.py: a harmonic of a run, and of a position.
_TERM, _POSITION = 1e-4, 2e-8


class Pair(Engine):
    """H2's readout on a pair of fair bits: non-negative weights that add up to 2."""

    card = CARDS["pair"]
    foresees = False  # what it reaches depends on the weights
    takes_any_bound_of = "risk"  # its series is far closer than what is proved of it

    def refuses(self, job: Job) -> Refusal | None:
        """Refuse all but the triangle with k = 2, on two hidden bits; any n."""
        score, law = job.score, job.law
        if score is None:
            return NEEDS_A_SCORE
        if job.loss is None or job.loss.own or job.loss.name not in LOSSES:
            return Refusal(f"covers {' and '.join(LOSSES)}")
        if (
            score.readout.piecewise_linear() != TWO_NEURONS
            or law.bias != 0.5
            or not bool((law.mask.sum(-1) == 2).all())
        ):
            return Refusal("covers the triangle readout with k = 2, on two hidden bits among fair ones")
        weights = score.weights.detach()
        whole = bool((weights >= 0).all()) and bool(((weights.sum(-1) - 2).abs() < 1e-9).all())
        if whole and not bool(score.offset.any()):
            return None
        return Refusal("needs non-negative weights that add up to 2")

    def cost(self, job: Job) -> float:
        """Fourteen harmonics per run, or 401 where a few weights are heavy."""
        assert job.score is not None
        diffuse = _WIDTH * float(job.score.weights.detach().norm(dim=-1).max()) < 2
        return job.count * ((_SHORT if diffuse else _LONG) // 2 + 1) * (_TERM + _POSITION * job.n)

    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run, differentiable as it is."""
        assert job.score is not None
        assert job.loss is not None
        mean = pair_mean(job.score, job.law)
        return mean if job.loss.name == "hinge" else mean._replace(value=mean.value - 1)


def pair_mean(score: AdditiveScore, law: Law) -> Mean:
    """Return the mean hinge loss of every run, 1 − E[yŷ], differentiable in the weights, and a proved bound.

    Weights (0.9, 0.9, 0.2) lose 0.2 on every input; the bound of a pair that outweighs the rest is met exactly.

    At uniform attention over three bits the mean of yŷ is 2/3·(½ + ½ − ½), by the majority function's coefficients:
    """
    weights = score.weights.reshape(-1, law.n)
    masks = law.mask.expand(*score.weights.shape).reshape(-1, law.n)
    rows = [_correlation(c, mask) for c, mask in zip(weights, masks, strict=True)]
    kept = 1 - 2 * law.noise
    shape = score.weights.shape[:-1]
    value = torch.stack([1 - kept * row[0] for row in rows]).reshape(shape)
    bound = torch.tensor([kept * row[1] for row in rows], dtype=value.dtype).reshape(shape)
    return Mean(value, None, None, bound + _rounding(law.n))


def _rounding(n: int) -> float:
    """Bound the rounding: Σ_h h⁻² of products of n factors, of angles that add up to at most 2hπ, times 4P/π² ≤ 1."""
    return UNIT * (8 * n + 6 * math.pi * 8 + 16)


def _correlation(c: Float[Tensor, " n"], mask: Bool[Tensor, " n"]) -> tuple[Tensor, float]:
    """Return E[s_i s_j|v|] of one run and a bound on its error."""
    weights = c.detach()
    if float(weights.max() - weights.min()) <= _EQUAL / len(c):
        gradient = majority_gradient(len(c))
        # |v| is homogeneous of degree 1, so Euler's Σ_l c_l ∂/∂c_l is the value itself.
        return (c * torch.where(mask, gradient.hidden, gradient.other)).sum(), 0.0
    outside = weights[~mask]
    # On the border both regimes hold; the series is the one that also holds a rounding beyond it.
    if float(outside.sum()) <= float(weights[mask].sum()) - SCORE_TIE:
        return _outweighing(c, mask)
    return _spread_out(c, mask)


def _outweighing(c: Tensor, mask: Tensor) -> tuple[Tensor, float]:
    rest, (first, second) = c[~mask], c[mask]
    root = ((first - second).square() + rest.square().sum()).clamp(min=torch.finfo(c.dtype).tiny).sqrt()
    # Khintchine with Szarek's constant below, Jensen above: the middle of the two, and half of what they leave (both
    # halved again, as it is half of the inputs).
    low, high = math.sqrt(0.5) * root, root
    return 1 - (rest.sum() + (low + high) / 2) / 2, float((high - low).detach()) / 4


def _spread_out(c: Tensor, mask: Tensor) -> tuple[Tensor, float]:
    norm = float(c.detach().norm())
    half_period = min(2.0, _WIDTH * norm)
    last = _SHORT if half_period < 2 else _LONG
    value, slope = c.new_zeros(()), torch.zeros_like(c)
    for h in range(1, last + 1, 2):
        # Each term's gradient is taken at once, so that memory holds one term of one run.
        with torch.enable_grad():
            weights = c.detach().requires_grad_()
            angle = h * math.pi / half_period * weights
            term = torch.where(mask, angle.sin(), angle.cos()).prod() / h**2
        if c.requires_grad:
            slope += torch.autograd.grad(term, weights)[0]
        value = value + term.detach()
    # A linear term that is zero in value carries the gradient.
    total = value + ((c - c.detach()) * slope).sum()
    scale = 4 * half_period / math.pi**2
    # Hoeffding: P(|v| ≥ 9.5‖c‖) ≤ 2·exp(−9.5²/2), and there |v| and its triangle wave differ by at most 4.
    beyond = 0.0 if half_period == 2 else 8 * math.exp(-(_WIDTH**2) / 2)
    # Σ_{odd h > last} h⁻² < 1/(2·last); no use is made of the cosines that make it far smaller.
    return scale * total, scale / (2 * last) + beyond
