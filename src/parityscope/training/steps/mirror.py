"""The attention-gradient rule: send g = ∇_c log C, the gradient at the attention weights, back through the code.

The scores move by s ← s + ηPPᵀg, and η = 1/(4·max_j ω_j) with ω_j = c_j(g_j² + π²/4) = −∂g_j/∂log c_j needs only c and
g. With one number per position (PPᵀ = I) this is mirror descent: attention is multiplied by e^{ηg}. What is proved:

*One number per position.* While every step satisfies, with L = −log C and the heads' attentions a,

    L(c′) ≤ L(c) − ⟨g, c′ − c⟩ + (1/η)·(k/m)·Σ_h KL(a′_h‖a_h),

which is tested, and η halved until it does, L falls and η(L(c) + L(c′)) ≤ the fall of (k/m)·Σ_h KL(U_B‖a_h), because
L ≤ ½⟨1_B − c, g⟩. So L_T ≤ (k/m)·Σ_h KL(U_B‖a_h(0)) / (2·Σ_t η_t): from uniform attention, k·log(n/k)/(2·Σ_t η_t).

*Codes of length 1 with |⟨p_i, p_j⟩| ≤ 1/(14k), n > 2k, from uniform attention.* Some iterate has
L ≤ k·log(n/k)/(0.88·Σ_t η_t).
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int8
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import ParityTransformer
from parityscope.models.positions import codes_of, floating, sent_back
from parityscope.models.readouts import COSINE
from parityscope.risk import Law
from parityscope.training.steps.certificate import Certificate
from parityscope.training.steps.first_order import Stepper
from parityscope.training.steps.log_attention import check_fair, log_attention, log_value
from parityscope.training.steps.newton import moving_runs

_HALVINGS = 60
_SHARE = 0.44  # of the fall η⟨1_B − c, g⟩/k of KL(U_B‖a) that coherent codes keep, in their theorem
_COHERENCE = 14  # μ ≤ 1/(14k), in the same theorem
_ROWS = 512


class AttentionGradient(Stepper):
    """q_h ← q_h + ηPᵀg for every head, every run with the largest step that is proved."""

    def __init__(self, model: ParityTransformer, law: Law) -> None:
        if model.log_scale is not None or model.readout.cosine_series() != COSINE:
            raise InvalidInput("attention-gradient steps need softmax heads and cos(πS): set mass=k, readout=cosine")
        check_fair(law, "attention-gradient")
        super().__init__(model.parameters())
        self.model, self.hidden = model, law.mask.expand(len(model.directions), -1)
        self.free = _free_logits(model.positions)
        with torch.no_grad():
            surprise = -(model.k * model.attention()).log().mean(-2)  # its sum over B is (k/m)·Σ_h KL(U_B‖a_h)
            inside = torch.isfinite(log_value(model.score_weights(), self.hidden))
            self._states[0] = {
                "start": (surprise * self.hidden).sum(-1).where(inside, torch.inf),  # nothing is proved from outside
                "etas": torch.zeros(len(surprise), dtype=torch.float64),
                "uniform": (model.directions == 0).all(-1).all(-1),
            }

    @torch.no_grad()
    def step(self) -> None:
        """Take one step with every run that has not stopped."""
        model, directions = self.model, self.model.directions
        moving = moving_runs(directions)
        hidden, before = self.hidden[moving], directions[moving]
        code = codes_of(model.positions, moving)
        attention = model.attention()[moving]
        c = model.k * attention.mean(-2)
        at = log_attention(c, hidden)
        temperature = model.temperature[moving, None] if isinstance(model.temperature, Tensor) else model.temperature
        change = temperature * sent_back(at.gradient, code)
        # η = 1/(4·max_j ω_j), ω_j = c_j(g_j² + π²/4) (head of this file)
        eta = 1 / (4 * (c * (at.gradient.square() + math.pi**2 / 4)).amax(-1))
        searching = torch.ones_like(eta, dtype=torch.bool)
        for _ in range(_HALVINGS):
            directions[moving] = before + (eta[:, None] * change)[:, None]
            accepted = self._accepted(moving, attention, c, at.gradient, at.value, eta)
            searching &= ~accepted
            if not bool(searching.any()):
                break
            eta[searching] /= 2
        directions[moving[searching]] = before[searching]
        self._states[0]["etas"][moving] += torch.where(searching, 0.0, eta)
        self.stuck = torch.zeros(len(directions), dtype=torch.bool)
        self.stuck[moving[searching]] = True

    def _accepted(
        self, moving: Tensor, attention: Tensor, c: Tensor, gradient: Tensor, value: Tensor, eta: Tensor
    ) -> Bool[Tensor, " moving"]:
        """Say which runs stay where C > 0 and, with one number per position, where their step is proved."""
        new = self.model.attention()[moving]
        weights = self.model.k * new.mean(-2)
        raised = log_value(weights, self.hidden[moving])
        if not self.free:
            return torch.isfinite(raised)
        divergence = (new * (new / attention).log()).nan_to_num(nan=0.0).sum(-1).mean(-1) * self.model.k
        # The inequality at the head of this file, for log C = −L.
        least = value + (gradient * (weights - c)).sum(-1) - divergence / eta
        return raised >= least - 1e-12 * (1 + least.abs())  # both sides are equal for a vanishing step

    def certificate(self) -> Certificate:
        """Return what is proved of −log C: by the sum of all steps."""
        model, state = self.model, self._states[0]
        # L_T ≤ (k/m)·Σ_h KL(U_B‖a_h(0)) / (2·Σ_t η_t)
        bound = state["start"] / (2 * state["etas"])
        unbounded = torch.zeros_like(bound)
        if self.free:
            return Certificate(bound, unbounded, "Proposition 2d")
        codes = model.positions if model.positions.dim() == 3 else model.positions[None]
        small = torch.tensor([coherence_below(code, 1 / (_COHERENCE * model.k)) for code in codes])
        applies = small & state["uniform"] & (model.n > 2 * model.k)
        return Certificate(bound.where(applies, torch.inf) / _SHARE, unbounded, "Theorem 3d at the best step")


def _free_logits(positions: Tensor) -> bool:
    """Say whether every position has a number of its own, so that scores are trained freely.

    >>> from parityscope.models.positions import circle, orthogonal
    >>> _free_logits(orthogonal(5)), _free_logits(circle(5))
    (True, False)
    """
    n, r = positions.shape[-2:]
    return n == r and bool((positions == torch.eye(n, dtype=positions.dtype)).all())


def coherence_below(code: Float[Tensor, "n r"] | Int8[Tensor, "n r"], limit: float) -> bool:
    """Say whether all positions have codes of length 1, and any two of them |⟨p_i, p_j⟩| ≤ limit."""
    code = floating(code)
    for start in range(0, len(code), _ROWS):
        products = code[start : start + _ROWS] @ code.T
        own = products.diagonal(offset=start)
        if bool(((own - 1).abs() > 1e-9).any()):
            return False
        own.zero_()
        if bool((products.abs() > limit).any()):
            return False
    return True
