"""The project's own: the clipped attention gradient is mirror descent on ½|Pᵀ(1_B − c)|², and learns faces only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.papers.attack import tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most
from parityscope.papers.exact_faces import is_exact_face
from parityscope.papers.own.claims.coherence import code_with
from parityscope.papers.own.domain import SEED, ascend, attention_or_ideal, draws, in_domain
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOFS, drawn_codes, drawn_supports
from parityscope.papers.own.flow import follow
from parityscope.problems import Parity
from parityscope.training.steps.log_attention import log_attention

_SIZES = ((7, 1, 2), (8, 2, 3), (8, 3, 5))  # n, k, r
_END = 1e7
_NEAR, _FAR = 0.05, 0.1
_CLIP = "largest |(2/π)·arctan(2g/π) − (1_B − c)| on D"
_RATE = "largest Q·2t over k·log(n/k)"
_RISE = "largest rise of Q along a flow or in a step, over its start"
_MISSED = "faces from which ‖c − 1_B‖₁ stays above 0.05"
_BEYOND = "sets that are no face with ‖c − 1_B‖₁ below 0.1"
_STEPS = "largest Q·2Ση over Σκ·KL with η = 1/k, any number of heads"
_CERTIFICATE = "largest ‖c − 1_B‖₁ over 2k|Pᵀ(1_B − c)|/(1 − (2k−1)μ)"
_PROVED = "the theorem's constant"
_CLAUSES = (
    Clause("the clip leaves 1_B − c", _CLIP, at_most(1e-9), "rounding", refuted_if=above(1e-3)),
    Clause("Q ≤ k·log(n/k)/(2t)", _RATE, at_most(1), _PROVED),
    Clause("Q never rises", _RISE, at_most(1e-6), "the error of a step", refuted_if=above(1e-3)),
    Clause("a face is learned", _MISSED, at_most(0), "followed to t = 10⁷"),
    Clause("what is no face is not", _BEYOND, at_most(0), "followed to t = 10⁷"),
    Clause("steps of 1/k have the same rate", _STEPS, at_most(1), _PROVED),
    Clause("a short update certifies the weights", _CERTIFICATE, at_most(1 + 1e-9), _PROVED),
)


def towards(c: Float[Tensor, "*runs n"], hidden: Bool[Tensor, "*#runs n"]) -> Float[Tensor, "*runs n"]:
    """Return x = 1_B − c, what the clip leaves of the attention gradient.

    >>> towards(torch.tensor([0.25, 0.5]), torch.tensor([True, False])).tolist()
    [0.75, -0.5]
    """
    return hidden.to(c.dtype) - c


class ClippedFlow:
    """The flow q̇ = Pᵀ(1_B − c), c = k·softmax(Pq), every run with its own code; it raises −KL(U_B‖a).

    >>> flow = ClippedFlow(torch.eye(3, dtype=torch.float64)[None], torch.tensor([[True, False, False]]))
    >>> [round(rate, 2) for rate in flow.rate(torch.zeros(1, 3, dtype=torch.float64))[0].tolist()]
    [0.67, -0.33, -0.33]
    """

    def __init__(self, codes: Float[Tensor, "runs n r"], hidden: Bool[Tensor, "runs n"]) -> None:
        self.codes, self.hidden, self.k = codes, hidden, int(hidden[0].sum())

    def weights(self, q: Float[Tensor, "runs r"]) -> Float[Tensor, "runs n"]:
        """Return c."""
        return self.k * torch.softmax((self.codes @ q[..., None])[..., 0], -1)

    def height(self, q: Tensor) -> Float[Tensor, " runs"]:
        """Return −Q = −½|Pᵀ(1_B − c)|²."""
        return -self.rate(q).square().sum(-1) / 2

    def rate(self, q: Tensor) -> Float[Tensor, "runs r"]:
        """Return Pᵀ(1_B − c)."""
        return (towards(self.weights(q), self.hidden)[..., None, :] @ self.codes)[..., 0, :]

    def matrix(self, q: Tensor) -> Float[Tensor, "runs r r"]:
        """Return −Pᵀ(∂c/∂s)P."""
        c = self.weights(q)
        spread = torch.diag_embed(c) - c[..., None] * c[..., None, :] / self.k
        return -self.codes.transpose(-1, -2) @ spread @ self.codes


class _Flowed(NamedTuple):
    """What flows with random codes came to at one size."""

    rate: float
    rise: float
    missed: list[dict[str, Any]]
    beyond: list[dict[str, Any]]
    faces: int
    tried: int


def _masks(supports: list[tuple[int, ...]], n: int) -> Bool[Tensor, "runs n"]:
    return torch.stack([Parity(n, support).mask() for support in supports])


def _flowed(size: tuple[int, int, int], context: Context, generator: torch.Generator) -> _Flowed:
    """Follow flows with random codes and compare where they end with what fractions say of the code."""
    n, k, r = size
    count = context.at(smoke=8, demo=16, reference=100)
    codes, supports = drawn_codes(count, n, r, generator), drawn_supports(count, n, k, generator)
    flow, largest = ClippedFlow(codes, _masks(supports, n)), [0.0]
    start = torch.zeros(count, r, dtype=torch.float64)
    scale = (-flow.height(start)).clamp(min=1e-12)

    def watch(time: Tensor, q: Tensor) -> None:
        largest.append(float((-flow.height(q) * 2 * time).max()) / (k * math.log(n / k)))

    followed = follow(flow, start, _END, watch=watch)
    apart = (flow.weights(followed.z) - flow.hidden.double()).abs().sum(-1).tolist()
    missed, beyond, faces = [], [], 0
    for code, support, distance in zip(codes.int().tolist(), supports, apart, strict=True):
        face = is_exact_face(code, support)
        faces += face
        at = {"code": code, "support": list(support), "value": distance, "seed": SEED}
        missed += [at] if face and distance > _NEAR else []
        beyond += [at] if not face and distance < _FAR else []
    return _Flowed(max(largest), followed.fall / float(scale.max()), missed, beyond, faces, count)


def _stepped(context: Context, generator: torch.Generator) -> tuple[float, float]:
    """Return the largest ratio to the bound and the largest rise of Q, for steps of 1/k with several heads."""
    (n, k, r), heads, runs = (8, 2, 3), 3, context.at(smoke=6, reference=20)
    codes = drawn_codes(runs, n, r, generator)
    codes = codes / codes.norm(dim=-1).amax(-1)[:, None, None]
    hidden = _masks(drawn_supports(runs, n, k, generator), n)
    q = torch.randn(runs, heads, r, generator=generator, dtype=torch.float64)
    ratio, rise, first, before, start = 0.0, 0.0, None, None, None
    for step in range(context.at(smoke=100, reference=300)):
        attention = torch.softmax(q @ codes.transpose(-1, -2), -1)
        update = (towards(k * attention.mean(1), hidden)[:, None] @ codes)[:, 0]
        height = update.square().sum(-1) / 2
        if first is None or before is None or start is None:
            # U_B for every head, with equal masses k/heads: Σκ·KL = −Σ_B log of the heads' mean logarithm.
            start = -((k * attention).log().mean(1) * hidden).sum(-1)
            first = height
        else:
            ratio = max(ratio, float((2 * height * step / k / start).max()))
            rise = max(rise, float(((height - before) / first.clamp(min=1e-12)).max()))
        before = height
        q = q + update[:, None] / k
    return ratio, rise


def _certificate(context: Context) -> Any:
    """Attack the distance from 1_B that a short update certifies, for a code of coherence 0.9/(2k − 1)."""
    problem = Parity(8, (1, 5, 6))
    generator = torch.Generator().manual_seed(SEED)
    signs = torch.randint(0, 2, (8, 8), generator=generator).double().triu(1) * 2 - 1
    mu = 0.9 / (2 * problem.k - 1)
    gram = torch.eye(8, dtype=torch.float64) + mu * (signs.triu(1) + signs.triu(1).T)
    least = float(torch.linalg.eigvalsh(gram).min())
    mu = mu * min(1.0, 0.99 / (1 - least))  # small enough for scalar products
    code = code_with(torch.eye(8, dtype=torch.float64) + mu * (signs.triu(1) + signs.triu(1).T))

    def violation(points: Tensor) -> Tensor:
        c = attention_or_ideal(points, problem)
        apart = (c - problem.mask().double()).abs().sum(-1)
        update = (towards(c, problem.mask()) @ code).norm(dim=-1)
        bound = 2 * problem.k * update / (1 - (2 * problem.k - 1) * mu)
        return torch.where(apart > 1e-6, apart / bound, torch.nan)

    return ascend(violation, draws(context, 9), context)


def _clip_error(context: Context) -> float:
    """Return how far the arctangent of the gradient is from 1_B − c on D."""
    problem = Parity(8, (1, 5, 6))
    c = in_domain(draws(context, 9), problem)
    c = c[~c.isnan().any(-1)]
    clipped = 2 / math.pi * (2 / math.pi * log_attention(c, problem.mask()).gradient).arctan()
    return float((clipped - towards(c, problem.mask())).abs().max())


def _clipped(context: Context) -> Measurement:
    """Follow clipped flows and steps with random codes."""
    generator = torch.Generator().manual_seed(SEED)
    flows = [_flowed(size, context, generator) for size in _SIZES]
    ratio, rise = _stepped(context, generator)
    attack = _certificate(context)
    missed, beyond = ([at for one in flows for at in getattr(one, name)] for name in ("missed", "beyond"))
    faces, tried = sum(one.faces for one in flows), sum(one.tried for one in flows)
    measured = {
        _CLIP: _clip_error(context),
        _RATE: max(one.rate for one in flows),
        _RISE: max(rise, *(one.rise for one in flows)),
        _MISSED: len(missed),
        _BEYOND: len(beyond),
        _STEPS: ratio,
        _CERTIFICATE: attack.value,
    }
    return Measurement(
        measured,
        f"{faces - len(missed)} of {faces} faces are learned, and {len(beyond)} of {tried - faces} other sets; Q is at "
        f"most {max(one.rate for one in flows):.2f} of its bound",
        f"{tried} random codes of whole numbers, followed to t = 10⁷; steps of three heads; {tried_by([attack])}",
        {"seed": SEED, "measured": measured},
        "The flow q̇ = Pᵀ(1_B − c) from uniform attention by implicit steps, beside what fractions say of the code;"
        " explicit steps of 1/k with three heads from random starts; the bound on ‖c − 1_B‖₁ by draws and ascent.",
        {_MISSED: next(iter(missed), None), _BEYOND: next(iter(beyond), None)},
    )


def _end_again(point: Mapping[str, Any]) -> Again:
    """Decide in fractions, and take explicit steps in plain Python, too few to come all the way to a face."""
    code, support, k = point["code"], point["support"], len(point["support"])
    q, step = [0.0] * len(code[0]), 1.0 / (k * max(sum(p * p for p in row) for row in code))
    c = [0.0] * len(code)
    for _ in range(200_000 // len(code)):
        scores = [sum(a * b for a, b in zip(row, q, strict=True)) for row in code]
        raised = [math.exp(s - max(scores)) for s in scores]
        c = [k * one / sum(raised) for one in raised]
        x = [(j in support) - one for j, one in enumerate(c)]
        q = [one + step * sum(a * row[i] for a, row in zip(x, code, strict=True)) for i, one in enumerate(q)]
    again = sum(abs((j in support) - one) for j, one in enumerate(c))
    broken = again > 0.5 if is_exact_face(code, support) else again < _FAR
    return Again(again, "fractions, and explicit steps in plain Python", float(broken), "‖c − 1_B‖₁ at the end")


CLAIMS = (
    Claim(
        "P-clipped",
        "The clipped attention gradient q̇ = Pᵀ(1_B − c) is mirror descent on Q = ½|Pᵀ(1_B − c)|²: Q ≤ k·log(n/k)/(2t)"
        " from uniform attention, c → 1_B iff B is a face, and with |p_j| ≤ 1 steps of 1/k have the same rate with any"
        " heads.",
        _CLAUSES,
        _clipped,
        f"{CONCAVE}, the clipped rule",
        seconds=1,
        proof=CONCAVE_PROOFS,
        replay=dict.fromkeys((_MISSED, _BEYOND), _end_again),
    ),
)
