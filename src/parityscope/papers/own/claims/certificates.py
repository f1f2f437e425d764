"""The project's own: what trainings certify of themselves is never violated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer
from parityscope.models.faces import is_face
from parityscope.models.positions import harmonics, orthogonal, random_signs
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most
from parityscope.papers.exact_faces import is_exact_face
from parityscope.papers.own.again import best_log_c
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import (
    CONCAVE,
    CONCAVE_PROOFS,
    climb,
    drawn_codes,
    drawn_supports,
    exponential_head,
)
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_value
from parityscope.training.steps.mirror import AttentionGradient

_SIZES = ((7, 2, 2), (8, 2, 3))  # n, k, r
_PLANAR = ((0.0, 0.0), (1.0, 0.0), (0.5, -1e-13), (0.3, -1.0), (0.7, -1.0))  # a third code just below two others
_LOWER = "largest certified −log C that no parameters go below, over what was reached"
_FACES = "faces that are certified to be none"
_UPPER = "largest −log C of a run, or of its best step, over its certificate"
_EXACT = "smallest such bound over what was reached, where B is no face"
_CLAUSES = (
    Clause("no run gets below its lower bound", _LOWER, at_most(1 + 1e-9), "rounding"),
    Clause(
        "no face gets one", _FACES, at_most(0), "faces in fractions, and thin ones with parameters that represent them"
    ),
    Clause("no run exceeds its upper bound", _UPPER, at_most(1), "what is certified"),
    Clause(
        "what is no face gets one, in the end exactly", _EXACT, at_least(0.999), "steps end somewhere", at_most(0.9)
    ),
)


class _Bounded(NamedTuple):
    """A code and support with the −log C that no parameters go below, and one that some parameters reach."""

    code: Float[Tensor, "n r"]
    support: tuple[int, ...]
    face: bool
    bound: float
    reached: float
    thin: bool = False

    @property
    def ratio(self) -> float:
        """The bound over what was reached."""
        return self.bound / self.reached

    def point(self) -> dict[str, Any]:
        """Return what a replay needs."""
        return {"code": self.code.tolist(), "support": list(self.support), "thin": self.thin, "value": self.bound}


def _below(context: Context) -> list[_Bounded]:
    """Compare lower bounds, given at any step, with the largest log C that trainings reach."""
    generator = torch.Generator().manual_seed(SEED)
    found = []
    for n, k, r in _SIZES[: context.at(smoke=1, reference=2)]:
        count = context.at(smoke=5, demo=8, reference=60)
        codes, supports = drawn_codes(count, n, r, generator), drawn_supports(count, n, k, generator)
        # What is certified on the way, or at the end.
        early, end = (climb(*exponential_head(codes, supports), steps=steps) for steps in (3, 60))
        bounds, reached = torch.maximum(early.certificate.at_least, end.certificate.at_least), -end.value
        for code, support, bound, loss in zip(codes, supports, bounds.tolist(), reached.tolist(), strict=True):
            found.append(_Bounded(code, support, is_exact_face(code.int().tolist(), support), bound, loss))
    return found


def _thin_faces() -> Iterator[_Bounded]:
    """Certify two faces of margin 1e-13, which only parameters as long as 1e13 represent: an inexact relation shows."""
    for code, support in ((torch.tensor(_PLANAR).double(), (0, 1)), (harmonics(700, 3), (0, 2, 4))):
        bound = float(climb(*exponential_head(code, [support]), steps=60).certificate.at_least)
        yield _Bounded(code, support, face=True, bound=bound, reached=_held(code, support), thin=True)


def _held(code: Float[Tensor, "n r"], support: Sequence[int]) -> float:
    """Return −log C of double-precision parameters (q, β) that represent a face: its q at the best of some lengths."""
    q, hidden = is_face(code, support).q, torch.zeros(len(code), dtype=torch.bool)
    hidden[list(support)] = True
    margin = (code @ q)[hidden].min() - (code @ q)[~hidden].max()
    losses = []
    for length in (2, 3, 4, 5, 6, 8):
        scores = code @ (length / margin * q)
        losses.append(-float(log_value((scores - scores[hidden].mean()).exp(), hidden)))
    return max(min(losses), torch.finfo(torch.float64).eps)


def _above(context: Context) -> tuple[float, int]:
    """Return the largest ratio of −log C to its upper bound at any step of the attention gradient, and the runs."""
    generator = torch.Generator().manual_seed(SEED)
    runs, worst = context.at(smoke=4, demo=8, reference=40), 0.0
    few = random_signs(12, 3000, generator)  # a code of small coherence
    cases = (((10, 3), orthogonal(10), 1, 1.0), ((10, 3), orthogonal(10), 3, 1.0), ((12, 1), few, 1, 0.0))
    for (n, k), code, heads, radius in cases:
        supports = drawn_supports(runs, n, k, generator)
        start = radius * torch.randn(runs, heads, code.shape[-1], generator=generator, dtype=torch.float64)
        model = ParityTransformer(n, k, heads, 1.0, positions=code, directions=start, readout=Cosine())
        law = law_of([Parity(n, support) for support in supports])
        rule, best = AttentionGradient(model, law), torch.full((runs,), torch.inf, dtype=torch.float64)
        for _ in range(context.at(smoke=15, demo=40, reference=200)):
            rule.step()
            loss = -log_value(model.score_weights().detach(), law.mask)
            best = torch.minimum(best, loss)
            certificate = rule.certificate()
            held = loss if rule.free else best  # few numbers: the theorem is about the best step
            worst = max(worst, float((held / certificate.at_most).nan_to_num(posinf=0.0).max()))
    return worst, runs * len(cases)


def _certificates(context: Context) -> Measurement:
    """Train many heads and compare what was certified on the way with where they end."""
    codes = _below(context)
    bounded = [*codes, *_thin_faces()]
    lowest = max(bounded, key=lambda one: one.ratio)
    faces = [one for one in bounded if one.face and one.bound > 0]
    above, runs = _above(context)
    measured = {
        _LOWER: max(0.0, lowest.ratio),
        _FACES: len(faces),
        _UPPER: above,
        _EXACT: min((one.ratio for one in codes if not one.face), default=math.nan),
    }
    return Measurement(
        measured,
        f"lower bounds reach {measured[_LOWER]:.6f} of −log C, never more; −log C reaches {above:.3f} of its upper"
        " bound",
        f"{len(codes)} codes of whole numbers, certified twice; 2 thin faces; {runs} runs of the attention gradient, at"
        " every step",
        {"seed": SEED, "measured": measured},
        "Lower bounds come from concavity, on the way and at the end of Newton's steps. They are compared with the"
        " largest log C that training reaches, with faces in fractions, and with parameters that represent two faces of"
        " margin 1e-13. Upper bounds are those of tested steps,"
        " with one parameter per position and with a code of small coherence.",
        {_LOWER: lowest.point(), _FACES: faces[0].point() if faces else None},
    )


def _bound_again(judged: Callable[[float, float], float], point: Mapping[str, Any]) -> Again:
    """Certify once more, and train again with a program of its own; `judged` is asked about the bound and its loss."""
    code, support = torch.tensor(point["code"]).double(), tuple(point["support"])
    again = float(climb(*exponential_head(code[None], [support]), steps=60).certificate.at_least)
    reached = _held(code, support) if point["thin"] else -best_log_c(point["code"], support)
    route = "certified again, against Newton's method in numpy"
    return Again(again, route, judged(again, reached), "−log C that no parameters go below")


CLAIMS = (
    Claim(
        "P-certificate",
        "What trainings certify holds: no values of the parameters go below the −log C that a concave training says is"
        " out of reach, no face gets such a bound, other sets get one that is exact in the end, and no run of the"
        " attention gradient exceeds its upper bound.",
        _CLAUSES,
        _certificates,
        f"{CONCAVE}, a certificate at run time",
        seconds=2,
        proof=CONCAVE_PROOFS,
        replay={
            _LOWER: partial(_bound_again, lambda bound, reached: bound / reached),
            # Of this one set: is something certified that its parameters go below?
            _FACES: partial(_bound_again, lambda bound, reached: float(bound > reached + 1e-9)),
        },
    ),
)
