"""What can be learned: positions as corners of a polytope, whether B is a face of it, and a training that shows it."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from parityscope.apps.explorer.learn import MOST_HIDDEN, rounded
from parityscope.core.errors import InvalidInput
from parityscope.models import Face, ParityTransformer, is_face
from parityscope.models.positions import harmonics, lifted_code
from parityscope.problems import Parity
from parityscope.training.learning import LearnedRuns, learn
from parityscope.training.steps.log_attention import log_attention, log_value

MOST_BITS = 60
_MOST_STEPS = 200
_BETWEEN = 12  # points of the curve per position
_TINY = 1e-9  # directions in which codes differ by less are none
_LARGEST_MISS = 1e-6  # of Σ y_j (p_j, 1) relative to Σ |y_j|: with more, training has not arrived at its maximum


class PolytopeSettings(BaseModel):
    """Hidden positions on the circle and the harmonics of it that one head reads: two numbers each, and a scale."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n: int = Field(12, ge=3, le=MOST_BITS)
    support: tuple[int, ...] = (2, 5)
    harmonics: int = Field(1, ge=1, le=4)

    def problem(self) -> Parity:
        """Return the problem, refusing what the page does not draw."""
        problem = Parity(self.n, self.support)
        if problem.k > MOST_HIDDEN:
            raise InvalidInput(f"the explorer hides up to {MOST_HIDDEN} positions, got {problem.k}")
        if problem.k == problem.n:
            raise InvalidInput(f"hide at most {problem.n - 1} of {problem.n} positions: all of them are a face always")
        return problem

    def snippet(self) -> str:
        """Return the Python lines that decide and train."""
        return (
            "import parityscope as ps\n"
            "from parityscope.models.positions import harmonics\n\n"
            f"problem = ps.Parity(n={self.n}, support={self.problem().support})\n"
            f"face = ps.is_face(harmonics({self.n}, {self.harmonics}), problem.support)\n"
            "weights = []  # of every position, before the first step and after each\n"
            f'run = ps.learn(problem, "concave", positions="harmonics", numbers_per_head={2 * self.harmonics},'
            f" steps={_MOST_STEPS}, record_every=1,\n"
            "    on_record=lambda step, model: weights.append(model.score_weights()[0].tolist()))\n"
            "print(face.sentence(), face.q)\n"
            "print(run.found, run.steps, run.certificate.sentences(), weights)\n"
        )


def polytope(settings: PolytopeSettings) -> dict[str, Any]:
    """Return the polytope seen in a plane, what proves that B is a face of it or not, and a training of one head."""
    problem = settings.problem()
    code, between = harmonics(problem.n, settings.harmonics), harmonics(_BETWEEN * problem.n, settings.harmonics)
    face = is_face(code, problem.support)
    run, moments = _trained(settings, problem)
    weights = torch.stack([weight for _, weight in moments])
    axes = _axes(code, problem, face)
    assert run.certificate is not None
    return {
        "n": problem.n,
        "support": list(problem.support),
        "harmonics": settings.harmonics,
        "parameters": run.model.trained_parameters(),
        "face": bool(face),
        "margin": face.margin,
        "sentence": face.sentence(),
        "reachable": 1.0 if face else math.exp(-float(run.certificate.at_least[0])),
        "up_to": _finite(float(run.certificate.up_to[0])),
        "points": rounded(code @ axes.T),
        "curve": rounded(between @ axes.T),
        "line": _line(code, axes, problem, face),
        "mixture": None if face else _mixture(code, axes, problem, weights[-1]),
        "scores": _scores(code, between, problem, face, run.model),
        "steps": [step for step, _ in moments],
        "weights": rounded(weights),
        "correlation": log_value(weights, problem.mask()).exp().tolist(),
        "learned": bool(run.learned[0]),
        "snippet": settings.snippet(),
    }


def _trained(settings: PolytopeSettings, problem: Parity) -> tuple[LearnedRuns, list[tuple[int, Tensor]]]:
    """Train with the library's own `learn` and keep the weights after every step."""
    moments: list[tuple[int, Tensor]] = []

    def remember(step: int, model: ParityTransformer) -> None:
        moments.append((step, model.score_weights()[0].detach().clone()))

    numbers: dict[str, Any] = {
        "positions": "harmonics",
        "numbers_per_head": 2 * settings.harmonics,
        "steps": _MOST_STEPS,
    }
    return learn(problem, "concave", on_record=remember, record_every=1, **numbers), moments


def _finite(number: float) -> float | None:
    """Return what JSON can say."""
    return number if math.isfinite(number) else None


def _axes(code: Float[Tensor, "n r"], problem: Parity, face: Face) -> Float[Tensor, "2 r"]:
    """Return the plane to look at: the circle's own; else that of the scores and of what B is widest in."""
    if code.shape[1] == 2:
        return torch.eye(2, dtype=code.dtype)
    axes = [face.q] if face else []
    hidden = code[list(problem.support)]
    for spread in (hidden - hidden.mean(0), code - code.mean(0)):
        seen = sum((torch.outer(spread @ axis, axis) for axis in axes), torch.zeros_like(spread))
        _, sizes, directions = torch.linalg.svd(spread - seen, full_matrices=False)
        axes += [direction for size, direction in zip(sizes, directions, strict=True) if size > _TINY]
        axes = axes[:2]
    return torch.stack(axes)


def _line(code: Float[Tensor, "n r"], axes: Float[Tensor, "2 r"], problem: Parity, face: Face) -> Any:
    """Return two points of the line on which B's scores are, beyond which nobody stands; none without a face."""
    if not face:
        return None
    normal = axes @ face.q
    level = (code[list(problem.support)] @ face.q).mean()
    reach = 1.2 * float((code @ axes.T).abs().max())
    along = torch.stack([-normal[1], normal[0]])
    return rounded(torch.stack([level * normal - reach * along, level * normal + reach * along]))


def _mixture(
    code: Float[Tensor, "n r"], axes: Float[Tensor, "2 r"], problem: Parity, weights: Float[Tensor, " n"]
) -> dict[str, Any] | None:
    """Return the point that is a mixture of B's corners and of the others': the slopes of log C where training ends.

    At the maximum Σ_j y_j p_j = 0 and Σ_j y_j = 0 for y = ∂log C/∂log c, which is negative off B: the same point is an
    affine mixture of B and a true one of the others, so no score can be equal on B and smaller elsewhere.
    """
    y = weights * log_attention(weights, problem.mask()).gradient
    if float((y @ lifted_code(code)).abs().max()) > _LARGEST_MISS * float(y.abs().sum()):
        return None
    others = torch.where(problem.mask(), 0.0, -y)
    shares = others / others.sum()
    inside = torch.where(problem.mask(), y, 0.0) / others.sum()
    return {"point": rounded(shares @ code @ axes.T), "others": rounded(shares), "hidden": rounded(inside)}


def _scores(
    code: Float[Tensor, "n r"], between: Float[Tensor, "m r"], problem: Parity, face: Face, model: ParityTransformer
) -> dict[str, Any]:
    """Return scores at all positions and between them: of the face's q, or, without one, log c where training ended."""
    if face:
        level = (code[list(problem.support)] @ face.q).mean()
        at, curve = code @ face.q - level, between @ face.q - level
    else:
        with torch.no_grad():
            at = model.score_weights()[0].log()
        q = model.directions[0, 0].detach()
        curve = between @ q + (at - code @ q).mean()
    places = (torch.arange(len(between), dtype=torch.float64) + 1) / _BETWEEN - 1  # `harmonics` begins after angle 0
    return {"at": rounded(at, 8), "places": rounded(places, 4), "between": rounded(curve, 8)}
