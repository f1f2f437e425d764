"""The project's own: the attention gradient with few numbers, where codes are nearly orthogonal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer
from parityscope.models.faces import is_face
from parityscope.papers.attack import Attack, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most
from parityscope.papers.own.domain import SEED, ascend, draws, in_domain
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOFS
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
_CLAUSES = (
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
    """Return codes with given scalar products.

    >>> code = code_with(torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=torch.float64))
    >>> (code @ code.T).round(decimals=9).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    return torch.linalg.cholesky(gram)


def allowed_coherence(k: int) -> float:
    """Return the 1/(14k) of the theorem.

    >>> allowed_coherence(2) == 1 / 28
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
    return torch.eye(n, dtype=torch.float64) + allowed_coherence(problem.k) * (upper + upper.transpose(-1, -2))


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
        least = (x * g).sum(-1) - allowed_coherence(k) * x.abs().sum(-1) * g.abs().sum(-1)
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
        " its own steps. The rate is attacked for all such products at once. Just below 1/(2k − 1) every set of k is a"
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


CLAIMS = (
    Claim(
        "P-few-numbers",
        "With unit codes of coherence μ ≤ 1/(14k), n > 2k, steps q ← q + ηPᵀg with η = 1/(4·max c(g² + π²/4)) from"
        " uniform attention keep KL(U_B‖a) falling at 1 − θ of the rate of free logits and reach accuracy 1 within"
        " 85·log(n/k) + 160k steps; μ < 1/(2k − 1) makes every B a face, and that is sharp.",
        _CLAUSES,
        _few_numbers,
        f"{CONCAVE}, with few numbers",
        seconds=1,
        proof=CONCAVE_PROOFS,
        replay={_RATE: _rate_again},
    ),
)
