"""The project's own: the attention gradient with few parameters, for nearly orthogonal codes, and clipped with any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer
from parityscope.models.faces import is_face
from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most
from parityscope.papers.exact_faces import is_exact_face
from parityscope.papers.own.domain import SEED, ascend, attention_or_ideal, draws, in_domain
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOFS, drawn_codes, drawn_supports
from parityscope.papers.own.flow import follow
from parityscope.problems import Parity
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_attention
from parityscope.training.steps.mirror import AttentionGradient

_SIZES = (Parity(20, (3, 11)), Parity(30, (0, 8, 21)), Parity(40, (1, 9, 17, 25, 33)))
_SHARE = 0.44
_SPREAD = "largest ratio of two weights on B, over 1/(1 − θ)"
_OTHERS = "largest weight off B, over max(θ, k/n)"
_APART = "smallest growth of log(least weight on B / largest off B) in a step"
_RATE = "smallest share of the rate of free logits, less 1 − θ"
_FALL = "smallest fall of KL in a step, over η⟨1_B − c, g⟩/k"
_STEPS = "largest number of steps to accuracy 1, over 85·log(n/k) + 160k"
_HELD = "sets of k that are no face although μ < 1/(2k − 1)"
_SHARP = "codes with μ = 1/(2k − 1) whose B is a face"
_COHERENCE_CLAUSES = (
    Clause("weights on B stay alike", _SPREAD, at_most(1 + 1e-9), "Theorem 3's constant; rounding"),
    Clause("weights off B stay small", _OTHERS, at_most(1 + 1e-9), "Theorem 3's constant; rounding"),
    Clause("the two move apart at every step", _APART, at_least(-1e-9), "rounding"),
    Clause("KL falls at 1 − θ of the rate of free logits", _RATE, at_least(-1e-9), "Theorem 3's constant; rounding"),
    Clause("a step lowers KL by 0.44·η⟨1_B − c, g⟩/k", _FALL, at_least(_SHARE), "Theorem 3d's constant"),
    Clause("accuracy 1 comes within 85·log(n/k) + 160k steps", _STEPS, at_most(1), "Theorem 3d's constant"),
    Clause("every B is a face where μ < 1/(2k − 1)", _HELD, at_most(0), "all sets of k"),
    Clause("and that is sharp", _SHARP, at_most(0), "the simplex code, half of it reflected"),
)


def code_with(gram: Float[Tensor, "*codes n n"]) -> Float[Tensor, "*codes n n"]:
    """Return codes with given scalar products."""
    return torch.linalg.cholesky(gram)


def _allowed_coherence(k: int) -> float:
    """Return the 1/(14k) of the theorem.

    >>> _allowed_coherence(2) == 1 / 28
    True
    """
    return 1 / (14 * k)


def _theta(k: int) -> float:
    return 2 * (1 + 4 / math.pi) * k / (14 * k)


def _grams(problem: Parity, count: int, generator: torch.Generator) -> Float[Tensor, "codes n n"]:
    """Return scalar products that are all ±μ: B against itself and others in the worst ways, and random signs."""
    n, hidden = problem.n, problem.mask().double()
    within, across = hidden[:, None] * hidden, (hidden[:, None] - hidden).abs()
    rest = 1 - within - across
    signs = torch.randint(0, 2, (count, n, n), generator=generator).double() * 2 - 1
    patterns = torch.cat([torch.stack([across + rest - within, across - rest - within, within - across]), signs])
    upper = patterns.triu(1)
    return torch.eye(n, dtype=torch.float64) + _allowed_coherence(problem.k) * (upper + upper.transpose(-1, -2))


def _trained(problem: Parity, context: Context) -> dict[str, float]:
    """Take the theorem's steps with such codes and compare every one with what is proved."""
    k, n, hidden, ideal = problem.k, problem.n, problem.mask(), problem.mask().double()
    grams = _grams(problem, context.at(smoke=2, demo=4, reference=20), torch.Generator().manual_seed(SEED))
    start = torch.zeros(len(grams), 1, n, dtype=torch.float64)
    model = ParityTransformer(n, k, 1, 1.0, positions=code_with(grams), directions=start, readout=Cosine())
    rule, theta = AttentionGradient(model, law_of([problem] * len(grams))), _theta(k)
    most = 85 * math.log(n / k) + 160 * k
    found = {_SPREAD: 0.0, _OTHERS: 0.0, _APART: math.inf, _RATE: math.inf, _FALL: math.inf, _STEPS: math.inf}
    before: tuple[Tensor, Tensor, Tensor] | None = None
    for taken in range(math.floor(most) + 1):
        c = model.score_weights().detach()
        on, off = c[:, hidden], c[:, ~hidden]
        g = log_attention(c, hidden).gradient
        x = ideal - c
        falls, size = (x * g).sum(-1), (x * g).abs().sum(-1)
        along = (x * (grams @ g[..., None])[..., 0]).sum(-1)
        divergence, apart = -on.log().mean(-1), (on.amin(-1) / off.amax(-1)).log()
        found[_SPREAD] = max(found[_SPREAD], float((on.amax(-1) / on.amin(-1)).max()) * (1 - theta))
        found[_OTHERS] = max(found[_OTHERS], float(off.max()) / max(theta, k / n))
        found[_RATE] = min(found[_RATE], float((along / size).min()) - (1 - theta))
        if before is not None:
            found[_APART] = min(found[_APART], float((apart - before[0]).min()))
            found[_FALL] = min(found[_FALL], float(((before[1] - divergence) / before[2]).min()))
        eta = 1 / (4 * (c * (g.square() + math.pi**2 / 4)).amax(-1))
        before = apart, divergence, eta * falls.abs() / k
        if float(x.abs().sum(-1).max()) < 1:
            found[_STEPS] = taken / most
            break
        rule.step()
        if rule.stuck is not None and bool(rule.stuck.all()):
            break
    return found


def _attacked(problem: Parity, context: Context) -> Attack:
    """Attack the rate for all products of size μ at once, where weights on B are below 3/2 and others below 1/2."""
    k, hidden, ideal = problem.k, problem.mask(), problem.mask().double()

    def violation(points: Tensor) -> Tensor:
        c = in_domain(points, problem)
        good = (c < torch.where(hidden, 1.5, 0.5)).all(-1)
        x, g = ideal - c, log_attention(c, hidden).gradient
        size = (x * g).abs().sum(-1)
        least = (x * g).sum(-1) - _allowed_coherence(k) * x.abs().sum(-1) * g.abs().sum(-1)
        return torch.where(good & (size > 1e-6), (1 - _theta(k)) - least / size, torch.nan)

    return ascend(violation, draws(context, problem.n + 1), context)


def _held(context: Context) -> tuple[int, int, int]:
    """Count sets that are no face just below 1/(2k − 1), and faces at it; return also how many were tried."""
    generator = torch.Generator().manual_seed(SEED)
    missing, sharp, tried = 0, 0, 0
    for n, k in ((6, 2), (8, 2), (7, 3)):
        for _ in range(context.at(smoke=2, demo=4, reference=30)):
            code = torch.nn.functional.normalize(torch.randn(n, n - 2, generator=generator, dtype=torch.float64))
            apart = code @ code.T - torch.eye(n, dtype=torch.float64)
            # A mean of this and of orthogonal codes: scalar products again.
            gram = torch.eye(n, dtype=torch.float64) + apart * min(1.0, 0.999 / (2 * k - 1) / float(apart.abs().max()))
            # Codes that span less than n dimensions have no Cholesky factor.
            values, vectors = torch.linalg.eigh(gram)
            root = vectors * values.clamp(min=0).sqrt()
            missing += sum(not is_face(root, support) for support in combinations(range(n), k))
            tried += math.comb(n, k)
    for k in (1, 2, 3):
        corners = torch.eye(2 * k, dtype=torch.float64) - 1 / (2 * k)  # a regular simplex around 0
        sharp += bool(is_face(torch.cat([corners[:k], -corners[k:]]), range(k)))
    return missing, sharp, tried


def _few_numbers(context: Context) -> Measurement:
    """Train with codes of the largest coherence that is allowed, and look for sets that are no face."""
    sizes = _SIZES[: context.at(smoke=2, demo=2, reference=3)]
    trained = [_trained(problem, context) for problem in sizes]
    attacks = [_attacked(problem, context) for problem in sizes]
    measured = {name: max(one[name] for one in trained) for name in (_SPREAD, _OTHERS, _STEPS)}
    measured |= {name: min(one[name] for one in trained) for name in (_APART, _RATE, _FALL)}
    measured[_RATE] = min(measured[_RATE], *(-attack.value for attack in attacks))
    measured[_HELD], measured[_SHARP], tried = _held(context)
    attack, problem = max(zip(attacks, sizes, strict=True), key=lambda one: one[0].value)
    weights = in_domain(attack.point[None], problem)[0].tolist()
    return Measurement(
        measured,
        f"a step lowers KL by at least {measured[_FALL]:.2f}·η⟨1_B − c, g⟩/k (proved {_SHARE}); accuracy 1 after at"
        f" most {100 * measured[_STEPS]:.1f} % of the proved steps",
        f"codes with all |⟨p_i, p_j⟩| = 1/(14k), worst and random signs; {tried_by(attacks)}; {tried:,} sets of k",
        {"seed": SEED, "sizes": [[one.n, one.k] for one in sizes], "measured": measured},
        "Codes are made from their scalar products, all of the largest size that the theorem allows, and trained with"
        " its own steps. The rate is tested for all such products at once. Just below 1/(2k − 1) every set of k is a"
        " face; at it, one of a reflected simplex is none.",
        {_RATE: {"weights": weights, "support": list(problem.support)}},
    )


def _rate_again(point: Mapping[str, Any]) -> Again:
    """Compute the rate again in plain Python with cotangents and tangents written out."""
    c, support = point["weights"], point["support"]
    k = len(support)
    x = [(j in support) - one for j, one in enumerate(c)]
    g = [math.pi / 2 * math.tan(math.pi / 2 * one) for one in x]
    fall = sum(a * b for a, b in zip(x, g, strict=True))
    worst = sum(map(abs, x)) * sum(map(abs, g)) / (14 * k)
    return Again((fall - worst) / fall - (1 - _theta(k)), "plain Python")


_CODE_SIZES = ((7, 1, 2), (8, 2, 3), (8, 3, 5))  # n, k, r
_END = 1e7
_NEAR, _FAR = 0.05, 0.1
_CLIP = "largest |(2/π)·arctan(2g/π) − (1_B − c)| on D"
_Q_RATE = "largest Q·2t over k·log(n/k)"
_RISE = "largest rise of Q along a flow or in a step, over its start"
_MISSED = "faces from which ‖c − 1_B‖₁ stays above 0.05"
_BEYOND = "sets that are no face with ‖c − 1_B‖₁ below 0.1"
_Q_STEPS = "largest Q·2Ση over Σκ·KL with η = 1/k, any number of heads"
_CERTIFICATE = "largest ‖c − 1_B‖₁ over 2k|Pᵀ(1_B − c)|/(1 − (2k−1)μ)"
_PROVED = "the theorem's constant"
_CLIPPED_CLAUSES = (
    Clause("the clip leaves 1_B − c", _CLIP, at_most(1e-9), "rounding", refuted_if=above(1e-3)),
    Clause("Q ≤ k·log(n/k)/(2t)", _Q_RATE, at_most(1), _PROVED),
    Clause("Q never rises", _RISE, at_most(1e-6), "the error of a step", refuted_if=above(1e-3)),
    Clause("a face is learned", _MISSED, at_most(0), "followed to t = 10⁷"),
    Clause("what is no face is not", _BEYOND, at_most(0), "followed to t = 10⁷"),
    Clause("steps of 1/k have the same rate", _Q_STEPS, at_most(1), _PROVED),
    Clause("a short update certifies the weights", _CERTIFICATE, at_most(1 + 1e-9), _PROVED),
)


def _towards(c: Float[Tensor, "*runs n"], hidden: Bool[Tensor, "*#runs n"]) -> Float[Tensor, "*runs n"]:
    """Return x = 1_B − c, what the clip leaves of the attention gradient.

    >>> _towards(torch.tensor([0.25, 0.5]), torch.tensor([True, False])).tolist()
    [0.75, -0.5]
    """
    return hidden.to(c.dtype) - c


class _ClippedFlow:
    """The flow q̇ = Pᵀ(1_B − c), c = k·softmax(Pq), every run with its own code; it raises −KL(U_B‖a).

    >>> flow = _ClippedFlow(torch.eye(3, dtype=torch.float64)[None], torch.tensor([[True, False, False]]))
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
        return (_towards(self.weights(q), self.hidden)[..., None, :] @ self.codes)[..., 0, :]

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
    flow, largest = _ClippedFlow(codes, _masks(supports, n)), [0.0]
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
        update = (_towards(k * attention.mean(1), hidden)[:, None] @ codes)[:, 0]
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
        update = (_towards(c, problem.mask()) @ code).norm(dim=-1)
        bound = 2 * problem.k * update / (1 - (2 * problem.k - 1) * mu)
        return torch.where(apart > 1e-6, apart / bound, torch.nan)

    return ascend(violation, draws(context, 9), context)


def _clip_error(context: Context) -> float:
    """Return how far the arctangent of the gradient is from 1_B − c on D."""
    problem = Parity(8, (1, 5, 6))
    c = in_domain(draws(context, 9), problem)
    c = c[~c.isnan().any(-1)]
    clipped = 2 / math.pi * (2 / math.pi * log_attention(c, problem.mask()).gradient).arctan()
    return float((clipped - _towards(c, problem.mask())).abs().max())


def _clipped(context: Context) -> Measurement:
    """Follow clipped flows and steps with random codes."""
    generator = torch.Generator().manual_seed(SEED)
    flows = [_flowed(size, context, generator) for size in _CODE_SIZES]
    ratio, rise = _stepped(context, generator)
    attack = _certificate(context)
    missed, beyond = ([at for one in flows for at in getattr(one, name)] for name in ("missed", "beyond"))
    faces, tried = sum(one.faces for one in flows), sum(one.tried for one in flows)
    measured = {
        _CLIP: _clip_error(context),
        _Q_RATE: max(one.rate for one in flows),
        _RISE: max(rise, *(one.rise for one in flows)),
        _MISSED: len(missed),
        _BEYOND: len(beyond),
        _Q_STEPS: ratio,
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
        "P-few-numbers",
        "With unit codes of coherence μ ≤ 1/(14k), n > 2k, steps q ← q + ηPᵀg with η = 1/(4·max c(g² + π²/4)) from"
        " uniform attention keep KL(U_B‖a) falling at 1 − θ of the rate of free logits and reach accuracy 1 within"
        " 85·log(n/k) + 160k steps; μ < 1/(2k − 1) makes every B a face, and that is sharp.",
        _COHERENCE_CLAUSES,
        _few_numbers,
        f"{CONCAVE}, with few parameters",
        proof=CONCAVE_PROOFS,
        replay={_RATE: _rate_again},
    ),
    Claim(
        "P-clipped",
        "The clipped attention gradient q̇ = Pᵀ(1_B − c) is mirror descent on Q = ½|Pᵀ(1_B − c)|²: Q ≤ k·log(n/k)/(2t)"
        " from uniform attention, c → 1_B iff B is a face, and with |p_j| ≤ 1 steps of 1/k have the same rate with any"
        " heads.",
        _CLIPPED_CLAUSES,
        _clipped,
        f"{CONCAVE}, the clipped rule",
        proof=CONCAVE_PROOFS,
        replay=dict.fromkeys((_MISSED, _BEYOND), _end_again),
    ),
)
