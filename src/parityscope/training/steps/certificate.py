"""What is proved of a training, run by run: bounds on −log C.

log C of one exponential head is concave in its parameters z = (q, β): log C = Σ_j φ_j(⟨p̃_j, z⟩) with p̃ = (p, 1). For
every y with Σ_j y_j p̃_j = 0 and every z it is Σ_j (φ_j(u_j) − y_j u_j) ≤ Σ_j sup_u (φ_j(u) − y_j u). The slopes a_j =
φ_j′ after Newton's step d, to first order, are such a y: a_j − w_j⟨p̃_j, d⟩ is orthogonal to the code. Where the
gradient is small, the bound is close; where it is below 0, no values of the parameters reach C = 1, and B is no face of
the code.

Rounding leaves a remainder ρ = Σ_j y_j p̃_j, and ⟨ρ, z⟩ is nothing only for short z, while faces of a small margin need
long ones. So the bound is given for an exact relation that must exist near y, or, where none is sure to (codes may lie
in a plane), for |z| up to a stated length.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models import ParityTransformer, is_face
from parityscope.models.positions import lifted_code
from parityscope.risk import Law
from parityscope.training.steps.log_attention import log_attention

_BISECTIONS = 60
_CLOSE = 0.01  # a run whose −log C is below needs no proof that it cannot be
_SHARES = (0.0, 1e-9, 1e-6, 1e-4, 1e-2)  # of the largest weight: positions below may be on their way to 0
_ROUNDING = 4 * torch.finfo(torch.float64).eps  # of one term, and of a code that is known to rounding
_GIVEN_UP = 1e-4  # of a bound, for a remainder at the largest |z| that it is stated for
_LONG = 1e6  # a bound for shorter z only says nothing
_ALL = torch.tensor(math.inf)


class Certificate(NamedTuple):
    """Bounds on −log C that are proved, one per run."""

    at_most: Float[Tensor, " runs"]  # for the run, or for its best step; infinite where nothing is proved
    at_least: Float[Tensor, " runs"]  # for all values of the trained parameters; 0 where nothing is proved
    theorem: str  # that proves it
    # The length of the trained parameters (q, β) up to which `at_least` is proved; infinite where it is for all.
    up_to: Float[Tensor, "*runs"] = _ALL
    # How much log C can still rise, at most: −log C itself at a face, −log C − `at_least` elsewhere.
    gap: Float[Tensor, "*runs"] = _ALL
    remarks: tuple[str, ...] = ()  # what geometry says of runs that are not learned and of which nothing is proved

    def sentences(self) -> tuple[str, ...]:
        """Say what is proved of every run; nothing where nothing is."""
        runs = (self.at_most.tolist(), self.at_least.tolist(), self.up_to.expand_as(self.at_least).tolist())
        return tuple(map(self._sentence, *runs, self.remarks or ("",) * len(self.at_least)))

    def _sentence(self, at_most: float, at_least: float, up_to: float, remark: str) -> str:
        if at_least > 0 and math.isfinite(up_to):
            return f"no face of the code, to rounding: C ≤ {math.exp(-at_least):.3g} for parameters up to {up_to:.0e}"
        if at_least > 0:
            return f"no face of the code: C ≤ {math.exp(-at_least):.3g} whatever the parameters"
        return f"−log C ≤ {at_most:.3g} by {self.theorem}" if math.isfinite(at_most) else remark


@runtime_checkable
class Certifying(Protocol):
    """An optimiser whose steps prove something.

    >>> from parityscope.training.steps.first_order import Adam
    >>> isinstance(Adam([torch.zeros(1)], 0.1), Certifying)
    False
    """

    def certificate(self) -> Certificate:
        """Return what is proved of every run."""
        ...


@torch.no_grad()
def concave_certificate(model: ParityTransformer, law: Law) -> Certificate:
    """Return what concavity proves of one exponential head: the −log C that no values of its parameters go below.

    On a circle of six positions two opposite ones are no face: their midpoint is that of two other pairs,
    which get as much attention whatever the parameters are.

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
    loss = -log_attention(c, hidden).value
    at_least, up_to, remarks = torch.zeros_like(loss), torch.full_like(loss, torch.inf), [""] * len(loss)
    for run in (loss > _CLOSE).nonzero()[:, 0].tolist():
        code = model.positions[run] if model.positions.dim() == 3 else model.positions
        at_least[run], up_to[run], remarks[run] = _of_one(code, c[run], hidden[run])
    return Certificate(torch.full_like(loss, torch.inf), at_least, "concavity", up_to, loss - at_least, tuple(remarks))


class _Bound(NamedTuple):
    """What −log C does not go below for |z| up to a length, and a remark where nothing is proved."""

    at_least: float
    up_to: float = math.inf
    remark: str = ""


def _of_one(code: Tensor, c: Float[Tensor, " n"], hidden: Bool[Tensor, " n"]) -> _Bound:
    """Return the best bound of one run: for all parameters if there is one; else what geometry lets stand."""
    at, lifted = log_attention(c, hidden), lifted_code(code)
    relations = [
        _relation(lifted[some], (c * at.gradient)[some], at.curvature[some], hidden[some])
        for share in _SHARES
        for some in ((hidden | (c > share * c.max())) & (at.curvature > 0),)
    ]
    for_all = max(relation.for_all() for relation in relations)
    if for_all > 0:
        return _Bound(for_all)
    face = is_face(code, hidden.nonzero()[:, 0].tolist())
    if face:
        # log C has the supremum 0: the gap is what training reads off.
        return _Bound(0.0, remark=f"{face.sentence()}, which these steps do not reach: gap −log C = {-at.value:.3g}")
    return max(*(relation.up_to_a_length() for relation in relations), _Bound(0.0, remark=face.sentence()))


class _Relation(NamedTuple):
    """Some y with Σ_j y_j p̃_j = 0 but for a remainder; positions that it leaves out have y = 0 and sup φ = 0."""

    y: Float[Tensor, " some"]
    remainder: float  # |Σ_j y_j p̃_j|, at most, also for codes that differ by rounding
    moved: Float[Tensor, " some"]  # how far, at most, y_j is from that of an exact relation; infinite if none is sure
    hidden: Bool[Tensor, " some"]

    def for_all(self) -> float:
        """Return what −log C does not go below for any parameters: sup_u (φ(u) − yu) is convex in y."""
        return self._least(self.y - self.moved, self.y + self.moved)

    def up_to_a_length(self) -> _Bound:
        """Return what −log C does not go below as long as |z| is at most a power of ten."""
        least = self._least(self.y, self.y)
        if least <= 0:
            return _Bound(0.0)
        length = 10.0 ** math.floor(math.log10(_GIVEN_UP * least / self.remainder))
        return _Bound(least - length * self.remainder, length) if length >= _LONG else _Bound(0.0)

    def _least(self, low: Float[Tensor, " some"], high: Float[Tensor, " some"]) -> float:
        if not bool((high < self.hidden.to(high.dtype)).all()):  # a conjugate would be infinite
            return 0.0
        conjugate = torch.maximum(_conjugate(low, self.hidden), _conjugate(high, self.hidden))
        return float(-conjugate.sum() - len(conjugate) * _ROUNDING * conjugate.abs().sum())


def _relation(
    lifted: Float[Tensor, "some lifted"],
    slope: Float[Tensor, " some"],
    curvature: Float[Tensor, " some"],
    hidden: Bool[Tensor, " some"],
) -> _Relation:
    """Return the slopes after Newton's step, and how far they are from an exact relation.

    With A = √w∘P̃ of full rank, y − √w∘A(AᵀA)⁻¹ρ is an exact one, and no entry differs by more than √w_j|ρ|/σ(A).
    """
    root = curvature.sqrt()
    weighted, target = root[:, None] * lifted, (slope / root)[:, None]
    step = torch.linalg.lstsq(weighted, target, rcond=1e-13, driver="gelsd").solution[:, 0]
    # To first order the slopes after Newton's step d: a_j − w_j⟨p̃_j, d⟩.
    y = slope - curvature * (lifted @ step)
    rounding = len(y) * _ROUNDING
    remainder = float((y @ lifted).norm() + rounding * (y.abs() @ lifted.norm(dim=1)))
    sizes = torch.linalg.svdvals(weighted)
    # Rounding the code moves a singular value by at most so much (Weyl).
    least = float(sizes[-1] - rounding * sizes[0]) if len(y) >= lifted.shape[1] else 0.0
    moved = root * (remainder / least) if least > 0 else torch.full_like(y, torch.inf)
    return _Relation(y, remainder, moved, hidden)


def _conjugate(y: Float[Tensor, " some"], hidden: Bool[Tensor, " some"]) -> Float[Tensor, " some"]:
    """Return sup_u (φ(u) − yu): where φ′ = y, that is v·cot v = y on B and −v·tan v = y elsewhere."""
    low, high = torch.zeros_like(y), math.pi / 2 * (1 + hidden.to(y.dtype))
    for _ in range(_BISECTIONS):
        v = (low + high) / 2
        above = torch.where(hidden, v / v.tan(), -v * v.tan()) > y  # φ′ falls
        low, high = torch.where(above, v, low), torch.where(above, high, v)
    v = (low + high) / 2
    return torch.where(hidden, v.sin(), v.cos()).log() - y * (2 / math.pi * v).log()
