"""The project's own: what trainings certify of themselves is never violated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer
from parityscope.models.faces import is_face
from parityscope.models.positions import harmonics, orthogonal, random_signs
from parityscope.papers.claim import Claim, Context, Measurement, Replay
from parityscope.papers.criterion import Clause, at_least, at_most
from parityscope.papers.exact_faces import is_exact_face
from parityscope.papers.own.again import best_log_c
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import PAGE, PROOFS, climb, drawn_codes, drawn_supports, exponential_head
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_value
from parityscope.training.steps.mirror import AttentionGradient

_SIZES = ((7, 2, 2), (8, 2, 3))  # n, k, r
_PLANAR = ((0.0, 0.0), (1.0, 0.0), (0.5, -1e-13), (0.3, -1.0), (0.7, -1.0))  # a third code just below two others
_LOWER = "largest certified −log C that no numbers go below, over what was reached"
_FACES = "faces that are certified to be none"
_UPPER = "largest −log C of a run, or of its best step, over its certificate"
_EXACT = "smallest such bound over what was reached, where B is no face"
_CLAUSES = (
    Clause("no run gets below its lower bound", _LOWER, at_most(1 + 1e-9), "rounding"),
    Clause("no face gets one", _FACES, at_most(0), "faces in fractions, and thin ones with numbers that hold them"),
    Clause("no run exceeds its upper bound", _UPPER, at_most(1), "what is certified"),
    Clause(
        "what is no face gets one, in the end exactly", _EXACT, at_least(0.999), "steps end somewhere", at_most(0.9)
    ),
)


def _below(context: Context) -> tuple[dict[str, float], dict[str, Any] | None, int]:
    """Compare lower bounds, given at any step, with the largest log C that trainings reach."""
    generator = torch.Generator().manual_seed(SEED)
    ratios, exact, faces, wrong, tried = [0.0], list[float](), 0, None, 0
    for n, k, r in _SIZES[: context.at(smoke=1, reference=2)]:
        count = context.at(smoke=5, demo=8, reference=60)
        codes, supports = drawn_codes(count, n, r, generator), drawn_supports(count, n, k, generator)
        # What is certified on the way, or at the end.
        early, end = (climb(*exponential_head(codes, supports), steps=steps) for steps in (3, 60))
        bounds, reached = torch.maximum(early.certificate.at_least, end.certificate.at_least), -end.value
        for code, support, bound, loss in zip(codes, supports, bounds.tolist(), reached.tolist(), strict=True):
            face = is_exact_face(code.int().tolist(), support)
            faces += face and bound > 0
            exact += [] if face else [bound / loss]
            ratios.append(bound / loss)
            if bound > loss * (1 + 1e-9) or (face and bound > 0):
                wrong = {"code": code.int().tolist(), "support": list(support), "value": bound, "seed": SEED}
        tried += count
    for thin in _thin_faces():
        faces += thin["value"] > 0
        ratios.append(thin["value"] / thin["held"])
        wrong = thin if thin["value"] > 0 else wrong
    return {_LOWER: max(ratios), _FACES: faces, _EXACT: min(exact, default=math.nan)}, wrong, tried


def _thin_faces() -> Iterator[dict[str, Any]]:
    """Certify two faces of margin 1e-13, which only numbers as long as 1e13 hold: an inexact relation shows."""
    for code, support in ((torch.tensor(_PLANAR).double(), (0, 1)), (harmonics(700, 3), (0, 2, 4))):
        value = float(climb(*exponential_head(code, [support]), steps=60).certificate.at_least)
        found = {"value": value, "held": _held(code, support), "seed": SEED}
        yield {"code": code.tolist(), "support": list(support), **found}


def _held(code: Float[Tensor, "n r"], support: Sequence[int]) -> float:
    """Return −log C of numbers (q, β) in double precision that hold a face: its own q, at the best of some lengths."""
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
    below, wrong, tried = _below(context)
    above, runs = _above(context)
    return Measurement(
        {**below, _UPPER: above},
        f"lower bounds reach {below[_LOWER]:.6f} of −log C, never more; −log C reaches {above:.3f} of its upper bound",
        f"{tried} codes of whole numbers, certified twice; 2 thin faces; {runs} runs of the attention gradient, at"
        " every step",
        {"seed": SEED, "measured": {**below, _UPPER: above}, **({"counterexample": wrong} if wrong else {})},
        "Lower bounds come from concavity, on the way and at the end of Newton's steps. They are compared with the"
        " largest log C that training reaches, with faces in fractions, and with numbers that hold two faces of margin"
        " 1e-13. Upper bounds are those of tested steps,"
        " with one number per position and with a code of small coherence.",
    )


def _replay(stored: Mapping[str, Any]) -> list[Replay]:
    """Certify once more, and train again with a program of its own."""
    code, support = stored["code"], tuple(stored["support"])
    model, law = exponential_head(torch.tensor([code]).double(), [support])
    again = float(climb(model, law, steps=60).certificate.at_least)
    reached = _held(torch.tensor(code), support) if "held" in stored else -best_log_c(code, support)
    route = "certified again, against Newton's method in numpy"
    return [Replay("−log C that no numbers go below", stored["value"], again, route, confirms=again > reached + 1e-9)]


CLAIMS = (
    Claim(
        "P-certificate",
        "What trainings certify holds: no values of the numbers go below the −log C that a concave training says is out"
        " of reach, no face gets such a bound, other sets get one that is exact in the end, and no run of the attention"
        " gradient exceeds its upper bound.",
        _CLAUSES,
        _certificates,
        f"{PAGE}, a certificate at run time",
        seconds=2,
        proof=PROOFS,
        replay=_replay,
    ),
)
