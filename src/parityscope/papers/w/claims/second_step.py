"""W, Lemmas 18 to 22: what the first step tells attention, and attention after the second."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most
from parityscope.papers.w import formulas, regime
from parityscope.papers.w.cot_block import CotBlock
from parityscope.papers.w.criteria import (
    AS_CORRECTED,
    NOISE,
    WITHOUT_NOISE,
    at_sizes_that_run,
    equation,
    relative_distance,
    span_of_seeds,
)
from parityscope.papers.w.instance import DELTA, Instance, expected_alpha, instance
from parityscope.papers.w.noise_free import noise_free_instance, noise_free_run, noise_free_scores
from parityscope.papers.w.three_step_rows import fresh_trainings, settings_at, trained
from parityscope.theory import w as theory

_HARMLESS = "It does no harm: in Lemma 21 it meets only sampling errors or 1/n."
_KAPPA_PRINTED, _KAPPA = "relative distance of κ from the printed sum", "from the sum with the term of i′ = n + 1"


def _lemma_18(context: Context) -> Measurement:
    # Every input once: α is its own mean, as Lemma 17 prints it. Overlaps and γ are there in the first instance only.
    drawn, limit = instance(n=context.at(smoke=6, reference=10), k=2), noise_free_instance(6, 2)
    off, complete = [], 0.0
    for made in (drawn, limit):
        found, left_out = formulas.kappa(made), formulas.kappa(made) - formulas.kappa_as_printed(made)
        length = found.norm(dim=-1)
        off.append(left_out.norm(dim=-1) / length)  # (links, 2), each of its own κ
        complete = max(complete, float(((left_out - formulas.kappa_left_out(made)).norm(dim=-1) / length).max()))
    occurs = torch.cat([one.flatten()[torch.tensor([0, 2, 3])] for one in off])  # not the token 1 at n + 1
    first = limit.task.secret[0]
    secret = [bit + 1 for bit in limit.task.secret]
    where = {"n": 6, "k": 2, "secret": secret, "i": 6 + 2, "b": 0, "j": secret[0], "b1": 0}
    return Measurement(
        {_KAPPA_PRINTED: float(occurs.max()), _KAPPA: complete},
        f"as printed, off by {float(occurs.min()):.0%} to {float(occurs.max()):.0%} of each κ of a token that occurs; "
        f"by {complete:.0e} with the term from i′ = n + 1",
        "every κ of one drawn start and of one without noise",
        {"batch": "every input once", "seed": 0, "off_by_link_and_token": [one.tolist() for one in off]},
        "κ was computed from autograd's gradient and from the printed sum. The proof cancels Σ_{b2} ᾱ_{i′,S[i′],b1,b2},"
        " which is not 0 at i′ = n + 1, where the token is always 0: (η₀/8Bm(n+1)) Σ ᾱ e_{S[n+1],b1} is left out. "
        f"{_HARMLESS}",
        {_KAPPA_PRINTED: {**where, "printed": 0.0, "value": float(_pull(limit)[1, 0, first, 0])}},
    )


def _pull(of: Instance) -> Tensor:
    """Return Δ_{1,i,b2,j,b1} = ⟨κ, e_{j,b1}⟩ for η₀ = 1, as (links, b2, T, b1)."""
    return torch.einsum("ibd,jad->ibja", formulas.kappa(of), of.block.embeddings)


def _pull_by_counting(n: int, secret: list[int], link: int, b: int, j: int, b1: int) -> Fraction:
    """Return one Δ for η₀ = 1 exactly, by writing out every input, every pattern of signs and every link."""
    k = len(secret)
    patterns = list(itertools.product((0, 1), repeat=2 * k))
    total = Fraction(0)
    for bits in itertools.product((0, 1), repeat=n):
        chain = [0]
        for bit in secret:
            chain.append(chain[-1] ^ bits[bit])
        token = [*bits, *chain][j]
        for other in range(max(0, j - n), k):
            active = sum(pattern[2 * link + b] * pattern[2 * other + chain[other]] for pattern in patterns)
            total += Fraction((-1) ** chain[other + 1] * active * (token == b1), n + 1 + other)
    m = len(patterns)  # each pattern stands twice, for both signs of h: h_r² = 1/4m²
    return total * 2 / (4 * m**2) / 2**n


def _pull_again(point: Mapping[str, Any]) -> Again:
    n, secret, link = point["n"], [place - 1 for place in point["secret"]], point["i"] - point["n"] - 1
    again = float(_pull_by_counting(n, secret, link, point["b"], point["j"] - 1, point["b1"]))
    return Again(again, "exact fractions", abs(again - point["printed"]), "⟨κ, e_{S[n+1],0}⟩")


_NEAR, _EPSILON = 150.0, 0.1  # Lemma 19's proof needs d < n and B < nk, which is so from log n = 150 on
_OVER_BOUND = "log₁₀ of the error over the bound at n = e^(10⁵⁹)"
_LEFT_OVER = "error without noise once the term of i′ = n + 1 is counted, over the printed one"
_NOISE = "log₁₀ of the proof's γ, ζ and overlaps, and of α − ᾱ, over the bound there"


def _lemma_19(context: Context) -> Measurement:
    made = noise_free_instance(8, 3)
    error, left_over = _errors(made)
    far = [regime.assumption_2(regime.FAR, DELTA, _EPSILON, power) for power in regime.ENDS]
    near = [regime.assumption_2(_NEAR, DELTA, _EPSILON, power) for power in regime.ENDS]
    printed, illustration = (min(_log10_of_what_remains(error, one) for one in at) for at in (far, near))
    allowed = max(_log10_over_bound(regime.log_noise_of_lemma_19(one), one) for one in (*far, *near))
    grows = regime.power_of_log_n(_negative_log_bound)
    small = {"n": 10, "k": 3, "d": 2048, "m": 32}
    broken_from = _broken_from(**small, error=error)
    return Measurement(
        {_OVER_BOUND: printed, _LEFT_OVER: left_over / error, _NOISE: allowed},
        f"error η₀/{1 / error:.1f}mn at S[n+1]; over the bound it grows like log^{grows:.2f} n "
        f"({10**illustration:.0e} at n = e^{_NEAR:.0f})",
        "every Δ of a start without noise, both ends of k's range",
        {"error_times_mn_over_rate": error, "power_of_log_n": grows, "broken_from_B": broken_from, "at": small},
        "Δ was computed from autograd's gradient over every input where overlaps, γ and ζ are exactly 0. At j = S[n+1] "
        "the term that Lemma 18 leaves out remains, η₀/16m(n+1); it does not shrink with the batch, the bound does. "
        f"{_HARMLESS} The error over the bound grows like log^{grows:.2f} n; it was evaluated in log space at n = "
        f"e^(10⁵⁹), where Lemma 10 holds too. n = e^{_NEAR:.0f}, below that “sufficiently large n”, only illustrates, "
        f"and so does n = 10, d = 2048, where the bound is broken for batches above {broken_from:.0e}.",
        {_OVER_BOUND: {"log_n": regime.FAR, "delta": DELTA, "epsilon": _EPSILON, "error": error}},
    )


def _errors(of: Instance) -> tuple[float, float]:
    """Return the largest |Δ − its main term| in units of η₀/m(n+1), as printed and with the term left out added."""
    main = torch.zeros(of.task.k, 2, of.task.n + of.task.k, 2, dtype=torch.float64)
    for link, bit in enumerate(of.task.secret):
        main[link, :, bit] = (expected_alpha(of.task)[link] / (8 * of.m * of.place[link])).T
    left_out = torch.einsum("d,jad->ja", formulas.kappa_left_out(of), of.block.embeddings)
    unit = 1 / (of.m * (of.task.n + 1))
    pull = _pull(of)
    return float((pull - main).abs().max()) / unit, float((pull - main - left_out).abs().max()) / unit


def _negative_log_bound(at: regime.AssumptionTwo) -> float:
    return -regime.log_bound_of_lemma_19(at)


def _log10_over_bound(log_error: float, at: regime.AssumptionTwo) -> float:
    """Return log₁₀ of an error, given by its logarithm in units of η₀/mn, over Lemma 19's bound."""
    return (log_error - regime.log_bound_of_lemma_19(at)) / math.log(10)


def _log10_of_what_remains(error: float, at: regime.AssumptionTwo) -> float:
    """Return the same where, at worst, what the proof allows γ, ζ and overlaps cancels some of the error."""
    return _log10_over_bound(math.log(max(error - math.exp(regime.log_noise_of_lemma_19(at)), 1e-300)), at)


def _broken_from(n: int, k: int, d: int, m: int, error: float) -> float:
    """Return the first power of ten of B at which the bound is below the error."""
    sizes = (10.0**power for power in range(1, 40))
    return next(B for B in sizes if theory.lemma_19_bound(n, k, d, m, B, m * n, DELTA) < error)


def _error_again(point: Mapping[str, Any]) -> Again:
    """Count the error in exact fractions at n = 6, and put Assumption 2 into the bound by hand.

    With L = log(n/δ) and B = CnL²⁰, √(nk/Bd) is 1/√(C L^21.1), and 300mnB/δ is 600C/δ · n³ L^(20−power).
    """
    counted = abs(_pull_by_counting(6, [1, 3], link=1, b=0, j=1, b1=0)) * 16 * 7  # m = 4², n + 1 = 7
    L, C = point["log_n"] - math.log(point["delta"]), 1.28e7 / point["epsilon"] ** 2
    logs = (
        math.log(600 * C / point["delta"]) + 3 * point["log_n"] + (20 - power) * math.log(L) for power in regime.ENDS
    )
    over = [math.log10(float(counted) * math.sqrt(C) / (10 * log)) + 10.55 * math.log10(L) for log in logs]
    return Again(min(over), "the error in exact fractions, the bound by hand")


_LOSS_SLOPE, _SOFTMAX_SLOPE = "relative distance of A's gradient", "of the derivative of softmax"


def _lemma_20(context: Context) -> Measurement:
    made = instance(n=6, k=2, d=64, m=8, batch=context.at(smoke=8, reference=64))
    W = made.block.W.detach() - 20 * torch.cat((made.gradient_own, made.gradient_attended), 1)
    block = CotBlock(6, made.block.embeddings, made.block.A.detach().clone(), W, made.block.h)
    generator = torch.Generator().manual_seed(0)
    losses, slopes = 0.0, 0.0
    for tokens, link in itertools.product(made.tokens, range(2)):
        i = 6 + link
        X = torch.stack([block.embeddings[j, tokens[j]] for j in range(i + 1)])
        block.zero_grad()
        sign = 1 - 2 * int(tokens[i + 1])
        (sign * block(tokens[None])[0, link]).backward()
        assert block.A.grad is not None
        active = (block.W @ torch.cat((X[i], X.mean(0))) > 0).double()
        kappa = -(active * block.h) @ block.W.detach()[:, block.d :]
        uniform = torch.full((i + 1,), 1 / (i + 1), dtype=torch.float64)
        losses = max(losses, relative_distance(formulas.slope_of_attention(X, uniform, kappa, sign), block.A.grad))
        A = torch.randn(64, 64, generator=generator, dtype=torch.float64, requires_grad=True)
        attention = torch.softmax(X @ A @ X[i], 0)
        (found,) = torch.autograd.grad(attention[0], A)
        slopes = max(slopes, relative_distance(formulas.softmax_slope(X, attention.detach(), 0, i), found))
    return Measurement(
        {_LOSS_SLOPE: losses, _SOFTMAX_SLOPE: slopes},
        f"gradient of A, relative: {losses:.0e}",
        f"{2 * len(made.tokens)} sequences and positions",
        {"largest_relative_distance": losses, "of_softmax_at_random_A": slopes},
        "Autograd's gradients were compared with both printed formulas: the loss after a first step, at uniform "
        "attention, and softmax at random A.",
    )


_HUGE_N = 10**6
_EVERY_TOKEN = "least score on the secret over η₀η₁/256mn², without noise, also of the token 1 at n + 1"
_SECRET, _ELSEWHERE = "least score on the secret over η₀η₁/256mn², without noise", "largest elsewhere over η₀η₁/512mn²"
_SECRET_TRAINED, _ELSEWHERE_TRAINED = "the first in trainings", "the second in trainings"


def _lemma_21(context: Context) -> Measurement:
    scores, (least, most) = noise_free_scores(_HUGE_N, 3), theory.lemma_21_bounds()
    printed = noise_free_scores(_HUGE_N, 3, theory.first_tokens_of_lemma_21()).secret
    secret, elsewhere = float(scores.secret) / least, float(scores.elsewhere) / most
    small = [float(score) for score in noise_free_scores(10, 3)]
    runs = trained(context)
    secrets = [run.smallest_secret_score / least for run in runs]
    others = [run.largest_other_score / most for run in runs]
    return Measurement(
        {
            _EVERY_TOKEN: float(printed) / least,
            _SECRET: secret,
            _ELSEWHERE: elsewhere,
            _SECRET_TRAINED: span_of_seeds(secrets),
            _ELSEWHERE_TRAINED: span_of_seeds(others),
        },
        f"{secret:.2f} and {elsewhere:.0e} of the bounds without noise for tokens that occur, {float(printed):g} for "
        f"the token 1 at n + 1; trained {min(secrets):.2f}, {max(others):.2f}",
        f"all scores at n = 10⁶ without noise, {len(runs)} fresh seeds",
        {"without_noise_at_n_10": small, "settings": settings_at(context).model_dump()},
        "Without noise the scores after two steps are means over the secret bits, computed exactly for n = 10⁶. n = 10 "
        f"is too small for item 2: the largest score elsewhere is {small[1]:.4f} η₀η₁/mn², against 1/512, so "
        "that n = 10⁶ decides. In trainings at sizes that run here the secret stands out, among larger overlaps than "
        "the constants foresee.",
        {_EVERY_TOKEN: {"n": 6, "k": 2, "i": "n + 1", "b2": 1, "value": 0.0}},
    )


def _never_again(point: Mapping[str, Any]) -> Again:
    """Take two steps by autograd without noise, and look at the score of the token 1 at n + 1 on its secret bit."""
    run = noise_free_run(point["n"], point["k"])
    unit = run.rates.early**2 / (run.rates.m * point["n"] ** 2)
    score = float(run.blocks[2].scores().detach()[run.start.task.secret[0], :, 0, 1].min()) / unit
    return Again(score, "two steps by autograd", score / theory.lemma_21_bounds()[0], "score over η₀η₁/mn²")


def one_hot_claim(
    number: int, statement: str, where: str, steps: int, power: int, hypotheses: str, further: str = ""
) -> Claim:
    """Return the claim that attention is one-hot within 1/n^power after some steps, without noise and in trainings.

    >>> one_hot_claim(22, "It is one-hot.", "Appendix B.4.3", steps=2, power=10, hypotheses="").printed
    '|A[A^2](E(b))[i] − e_{S[i],b[S[i]]}| < 1/n^{10}.'
    """
    bound = f"1/n^{power}"
    limit_of, trained_off = (
        f"distance from one-hot over {bound} after {steps} steps, without noise",
        "the same in trainings",
    )

    def measure(context: Context) -> Measurement:
        run, runs, settings = noise_free_run(), trained(context), settings_at(context)
        limit, off = run.off_one_hot(steps), [one.distances_from_one_hot[steps - 2] for one in runs]
        allowed = theory.one_hot_bound(settings.n, power)
        return Measurement(
            {
                limit_of: limit / theory.one_hot_bound(run.start.task.n, power),
                trained_off: span_of_seeds([distance / allowed for distance in off]),
            },
            f"off by {limit:.0e} without noise, by at most {max(off):.0e} in trainings",
            f"all 2^{run.start.task.n} inputs without noise, {len(runs)} fresh seeds",
            {
                "without_noise": limit,
                "n": run.start.task.n,
                "m": run.rates.m,
                "trained": off,
                "largest_change_in_the_third_step": max(one.attention_moved for one in runs),
                "settings": settings.model_dump(),
            },
            "Steps were taken without noise at rates inside Lemma 5.4 and at the edge of 5.6. Trainings at sizes that "
            "run here cannot have scores of 40 log n and stay stable.",
        )

    clauses = (
        Clause(f"one-hot within {bound}", limit_of, at_most(1), WITHOUT_NOISE),
        at_sizes_that_run("the same with noise", trained_off, at_most(1)),
    )
    return Claim(
        f"W-lemma-{number}",
        statement,
        clauses,
        measure,
        f"{where}, Lemma {number}",
        needs=fresh_trainings,
        printed=f"|A[A^{steps}](E(b))[i] − e_{{S[i],b[S[i]]}}| < 1/n^{{{power}}}.{further}",
        hypotheses=hypotheses,
        ours=f"{NOISE} {AS_CORRECTED}",
    )


CLAIMS = (
    Claim(
        "W-lemma-18",
        "κ₁ is the printed sum of a main term, γ and ζ.",
        (
            equation("κ₁ is the printed sum", _KAPPA_PRINTED),
            equation("κ₁ is that sum and (η₀/8Bm(n+1)) Σ ᾱ e_{S[n+1],b1}", _KAPPA, corrected=True),
        ),
        _lemma_18,
        "Appendix B.4.3, Lemma 18",
        printed="κ_{1,i,b} = η₀/(8Bmi) Σ_{b₁=0}^1 ᾱ_{i,S[i],b₁,b} e^{S[i],b₁} + η₀/(4Bm²) (Σ_{i'=n+1}^{n+k} Σ_{b₁=0}^1 "
        "Σ_{b₂=0}^1 γ_{i,b,i',b₂} ᾱ_{i',S[i'],b₁,b₂} e^{S[i'],b₁}) + η₀/(4Bm²) (Σ_{j=1}^{n+k} Σ_{b₁=0}^1 "
        "ζ_{0,i,b,j,b₁} e_{j,b₁}).",
        hypotheses="when the event in Lemma 17 happens",
        ours="Every input once is the batch, so that α is its mean ᾱ. The event in Lemma 17 is read as corrected, with "
        "Lemma 7 as meant. The share is that of each κ of a token that occurs; of the token 1 at n + 1 all is missing. "
        "The term is missing at every n, so in Assumption 2 too: Σ_{b₂} ᾱ_{n+1,S[n+1],b₁,b₂} = ±B/2, since the token "
        "at n + 1 is always 0. We read a transcription: e^{S[i],b₁} is e_{S[i],b₁} elsewhere.",
        corrected="κ₁ is the printed sum and (η₀/8Bm(n+1)) Σ ᾱ_{n+1,S[n+1],b1,b2} e_{S[n+1],b1}.",
        replay={_KAPPA_PRINTED: _pull_again},
    ),
    Claim(
        "W-lemma-19",
        "Δ₁ is its main term up to (10η₀/mn)√(nk/Bd) log(300mnB/δ), for all i, b₂, j, b₁.",
        (
            Clause("the error is at most the bound", _OVER_BOUND, at_most(0), "the lemma's own bound"),
            equation("nothing is left without noise once that term is counted", _LEFT_OVER, corrected=True),
            Clause("and the noise is at most the bound", _NOISE, at_most(0), "the proof's own terms", corrected=True),
        ),
        _lemma_19,
        "Appendix B.4.3, Lemma 19",
        printed="With probability 1 − 0.6δ, inequalities and equalities in Lemmas 7, 17 and 18 hold, and for all i, "
        "b₂, j, b₁, |Δ_{1,i,b₂,j,b₁} − η₀/(8Bmi) ᾱ_{i,S[i],b₁,b₂} 1(j = S[i])| ≤ 10η₀/(mn) √(nk)/√(Bd) log(300mnB/δ).",
        hypotheses="Assumption 2",
        ours="The error is that of an instance without noise, less all that the proof allows noise; n = e^(10⁵⁹), ε = "
        "0.1. α − ᾱ, which the proof leaves out, is counted as noise; it is far inside the bound. "
        f"{AS_CORRECTED}",
        corrected="Δ₁ is its main term and, at j = S[n+1], (−1)^{b₁}η₀/16m(n+1), up to the printed bound.",
        replay={_OVER_BOUND: _error_again},
    ),
    Claim(
        "W-lemma-20",
        "The gradient of A is −(−1)^{b[i+1]} Σ_j ⟨κ, e_j⟩ ∂softmax_j, with the printed derivative of softmax.",
        (
            equation("the loss's gradient is that sum", _LOSS_SLOPE),
            equation("∂softmax_j/∂A = softmax_j (e_j − Σ_p softmax_p e_p) e_iᵀ", _SOFTMAX_SLOPE),
        ),
        _lemma_20,
        "Appendix B.4.3, Lemma 20",
        printed="dℓ(T(b))[i], b[i+1]/dA = (−1)^{b[i+1]+1} Σ_{j=1}^i ⟨κ_{1,i,b[i]}, e_{j,b[j]}⟩ ∂softmax(E(b)ᵀAE(b))[j, "
        "i]/∂A, with ∂softmax(E(b)ᵀAE(b))[j, i]/∂A = softmax(Z)[j, i]·(E(b)[j] − Σ_{p=1}^i softmax(Z)[p, i] E(b)[p]) "
        "E(b)[i]ᵀ",
        hypotheses="under the setting of Lemma 19, for every b of the second batch",
        ours="The sizes; the derivative of softmax also at random A.",
    ),
    Claim(
        "W-lemma-21",
        "After two steps scores are ≥ η₀η₁/256mn² on the secret and ≤ half of that elsewhere.",
        (
            Clause("≥ η₀η₁/256mn² on the secret", _EVERY_TOKEN, at_least(1), WITHOUT_NOISE),
            Clause("≤ η₀η₁/512mn² elsewhere", _ELSEWHERE, at_most(1), WITHOUT_NOISE),
            Clause("the first for tokens that occur", _SECRET, at_least(1), WITHOUT_NOISE, corrected=True),
            at_sizes_that_run("the first with noise, for tokens that occur", _SECRET_TRAINED, at_least(1)),
            at_sizes_that_run("the second with noise", _ELSEWHERE_TRAINED, at_most(1)),
        ),
        _lemma_21,
        "Appendix B.4.3, Lemma 21",
        printed="With probability 1 − 0.7δ, for all i, b, i', b₂, 1. If j' = S[i'], then ⟨e_{j',b'₁}, A⁽²⁾ e_{i',b'₂}⟩ "
        "≥ η₀η₁/(256mn²). 2. If j' ≠ S[i'], then |⟨e_{j',b'₁}, A⁽²⁾ e_{i',b'₂}⟩| ≤ η₀η₁/(512mn²). Further, events in "
        "Lemmas 17 and 18 hold.",
        hypotheses="Assumption 2",
        ours=f"{NOISE} In trainings the token 1 at n + 1 is left out. {AS_CORRECTED}",
        misprint="Table 1 has ᾱ = 0 at (i', b'₂) = (n + 1, 1), a token that never occurs since b[n+1] = 0; the proof "
        "needs ᾱ² ≥ B²/16 there, and Lemma 22, which uses the scores, only those of tokens that occur.",
        corrected="The same for all (i', b'₂) but (n + 1, 1), a token that never occurs.",
        replay={_EVERY_TOKEN: _never_again},
        needs=fresh_trainings,
    ),
    one_hot_claim(
        22,
        "After two steps the attention output is one-hot within 1/n^10.",
        "Appendix B.4.3",
        2,
        10,
        "Assumption 2; Under the setting of Lemma 21",
    ),
)
