"""What is proved of a training, run by run: bounds on −log C.

log C of one exponential head is concave in its numbers z = (q, β): log C = Σ_j φ_j(⟨p̃_j, z⟩) with p̃ = (p, 1). For every
y with Σ_j y_j p̃_j = 0 and every z it is Σ_j (φ_j(u_j) − y_j u_j) ≤ Σ_j sup_u (φ_j(u) − y_j u). The slopes a_j = φ_j′
after Newton's step d, to first order, are such a y: a_j − w_j⟨p̃_j, d⟩ is orthogonal to the code. Where the gradient is
small, the bound is close; where it is below 0, no values of the numbers reach C = 1, and B is no face of the code.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models import ParityTransformer
from parityscope.models.positions import lifted_code
from parityscope.risk import Law
from parityscope.training.log_attention import log_attention

_BISECTIONS = 60
_CLOSE = 0.01  # a run whose −log C is below needs no proof that it cannot be
_SHARES = (0.0, 1e-9, 1e-6, 1e-4, 1e-2)  # of the largest weight: positions below may be on their way to 0
_RELATION = 1e-10  # what Σ_j y_j p̃_j may miss of 0, relative to Σ_j |y_j|: the rounding of the least squares


class Certificate(NamedTuple):
    """Bounds on −log C that are proved, one per run.

    Parameters
    ----------
    at_most : Tensor (runs,)
        What −log C of the run, or of its best step, does not exceed; infinite where nothing is proved.
    at_least : Tensor (runs,)
        What no values of the trained numbers go below; 0 where nothing is proved.
    theorem : str
        What proves it.

    >>> Certificate(torch.tensor([0.1, torch.inf]), torch.tensor([0.0, 0.7]), "Theorem 5").sentences()
    ('−log C ≤ 0.1 by Theorem 5', 'no face of the code: C ≤ 0.497 whatever the numbers')
    """

    at_most: Float[Tensor, " runs"]
    at_least: Float[Tensor, " runs"]
    theorem: str

    def sentences(self) -> tuple[str, ...]:
        """Say what is proved of every run; nothing where nothing is."""
        return tuple(map(self._sentence, self.at_most.tolist(), self.at_least.tolist()))

    def _sentence(self, at_most: float, at_least: float) -> str:
        if at_least > 0:
            return f"no face of the code: C ≤ {math.exp(-at_least):.3g} whatever the numbers"
        return f"−log C ≤ {at_most:.3g} by {self.theorem}" if math.isfinite(at_most) else ""


@runtime_checkable
class Certifying(Protocol):
    """An optimiser whose steps prove something.

    >>> from parityscope.training.optimisers import Adam
    >>> isinstance(Adam([torch.zeros(1)], 0.1), Certifying)
    False
    """

    def certificate(self) -> Certificate:
        """Return what is proved of every run."""
        ...


@torch.no_grad()
def concave_certificate(model: ParityTransformer, law: Law) -> Certificate:
    """Return what concavity proves of one exponential head: the −log C that no values of its numbers go below.

    On a circle of six positions two opposite ones are no face: their midpoint is that of two other pairs,
    which get as much attention whatever the numbers are.

    >>> from parityscope.models import Cosine
    >>> from parityscope.models.positions import circle
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk import law_of
    >>> start, third = torch.zeros(1, 1, 2, dtype=torch.float64), torch.tensor([1 / 3], dtype=torch.float64)
    >>> uniform = {"directions": start, "log_scale": third.log()}
    >>> model = ParityTransformer(6, 2, 1, 1.0, positions=circle(6), readout=Cosine(), **uniform)
    >>> certificate = concave_certificate(model, law_of([Parity(6, (0, 3))]))
    >>> round(float(certificate.at_least), 3)
    1.91
    """
    c = model.score_weights()
    hidden = law.mask.expand(len(c), -1)
    at = log_attention(c, hidden)
    slope = c * at.gradient
    at_least = torch.zeros_like(at.value)
    for run in (-at.value > _CLOSE).nonzero()[:, 0].tolist():
        lifted = lifted_code(model.positions[run] if model.positions.dim() == 3 else model.positions)
        bounds = [
            _out_of_reach(lifted[some], slope[run, some], at.curvature[run, some], hidden[run, some])
            for share in _SHARES
            for some in ((hidden[run] | (c[run] > share * c[run].max())) & (at.curvature[run] > 0),)
        ]
        at_least[run] = max(0.0, *bounds)
    return Certificate(torch.full_like(at_least, torch.inf), at_least, "concavity")


def _out_of_reach(
    lifted: Float[Tensor, "some lifted"],
    slope: Float[Tensor, " some"],
    curvature: Float[Tensor, " some"],
    hidden: Bool[Tensor, " some"],
) -> float:
    """Return a lower bound on −log C for all values of the numbers; positions left out have y = 0 and sup φ = 0."""
    root = curvature.sqrt()
    target = (slope / root)[:, None]
    step = torch.linalg.lstsq(root[:, None] * lifted, target, rcond=1e-13, driver="gelsd").solution[:, 0]
    y = slope - curvature * (lifted @ step)
    related = (y @ lifted).abs().max() <= _RELATION * y.abs().sum()
    if not bool(related) or bool((y >= hidden.to(y.dtype)).any()):  # a conjugate would be infinite
        return 0.0
    return -float(_conjugate(y, hidden).sum())


def _conjugate(y: Float[Tensor, " some"], hidden: Bool[Tensor, " some"]) -> Float[Tensor, " some"]:
    """Return sup_u (φ(u) − yu): where φ′ = y, that is v·cot v = y on B and −v·tan v = y elsewhere."""
    low, high = torch.zeros_like(y), math.pi / 2 * (1 + hidden.to(y.dtype))
    for _ in range(_BISECTIONS):
        v = (low + high) / 2
        above = torch.where(hidden, v / v.tan(), -v * v.tan()) > y  # φ′ falls
        low, high = torch.where(above, v, low), torch.where(above, high, v)
    v = (low + high) / 2
    return torch.where(hidden, v.sin(), v.cos()).log() - y * (2 / math.pi * v).log()
