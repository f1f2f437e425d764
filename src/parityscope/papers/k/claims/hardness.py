"""K: what no gradient method learns without the steps (Theorem 2, Proposition 3, Lemma 8), and the separation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import wilson_share
from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most, below
from parityscope.problems import Parity

_ROUNDING = 1e-9
_SEED = 0
_PARITIES = "Section 3.1 and Appendix A use |P| = C(d, k) = e^{Θ(d)}, which k = Θ(d) does not give where k is near d"


def _parities(x: Float[Tensor, "N d"], k: int) -> Float[Tensor, "N parities"]:
    """Return all C(d, k) parities of k signs."""
    return torch.stack([x[:, list(one)].prod(-1) for one in itertools.combinations(range(x.shape[-1]), k)], -1)


def _signs(N: int, d: int, seed: int) -> Float[Tensor, "N d"]:
    return 1 - 2 * torch.randint(0, 2, (N, d), generator=torch.Generator().manual_seed(seed)).double()


def loss_without_queries(d: int) -> float:
    """Return the L₂ loss of f = Π_j x_j at k = d, over all inputs: P has one element, so no query is needed."""
    signs = 1 - 2 * torch.cat([x for x, _ in Parity(d, tuple(range(d))).enumerate()]).double()
    return float((_parities(signs, d)[:, 0] - signs.prod(-1)).square().mean())


def theorem_2_exponent(nu_1: Fraction, nu_2: Fraction, nu_3: Fraction, nu_4: Fraction) -> Fraction:
    """Return ν, the power of d of the examples: T·Var/ε² = d^{ν₃ + 2ν₂}·√(d/n)·d^{2ν₁} must be d^{−ν₄} (K, Eq. (5))."""
    return 2 * (2 * nu_1 + 2 * nu_2 + nu_3 + nu_4) + 1


def _spread(features: Float[Tensor, "batch N"], parities: Float[Tensor, "N P"]) -> Float[Tensor, " batch"]:
    """Return the variance over targets of (1/N)Σ_i p(x_i)·∂f(x_i), for models with one parameter."""
    return (features @ parities / len(parities)).var(-1, correction=0)


def _attacked_variance(context: Context, d: int, k: int, N: int, scale: float, *, bounded: bool) -> Attack:
    """Maximise the variance of the gradient over targets, in units of `scale`, over gradients of mean square or size 1.

    The inputs are all 2^d where N = 0, so that parities are orthogonal, and N drawn ones otherwise.
    """
    every = torch.cat([x for x, _ in Parity(d, (0,)).enumerate()])
    parities = _parities(1 - 2 * every.double() if N == 0 else _signs(N, d, _SEED), k)
    draws = context.at(smoke=40, reference=400)
    noise = torch.randn(draws, len(parities), generator=torch.Generator().manual_seed(_SEED), dtype=torch.float64)
    starts = torch.cat([noise, parities.T[:draws], (parities[:, :1] - parities[:, 1:2]).T])

    def ratio(points: Tensor, index: Tensor) -> Tensor:
        features = points.tanh() if bounded else points / points.square().mean(-1, keepdim=True).sqrt()
        return _spread(features, parities) / scale

    return maximise(ratio, starts, steps=context.at(smoke=20, reference=60))


_WHOLE = "L₂ loss without a query at k = d"
_GRAM = "share of samples with two parities correlated by more than √(4d/n)"
_VARIANCE = "largest variance of the gradient over its bound"
_POWER = "largest difference of the exponent of the loss bound from −ν₄"
_D, _K, _N = 8, 4, 64
_THEOREM_2 = (
    Clause(
        "for k = Θ(d) the loss is at least 1 − O(d^{−ν₄})",
        _WHOLE,
        at_least(0.5),
        "1 − o(1); below ½ at every d refutes it",
        below(0.5),
    ),
    Clause(
        "all parities are nearly orthogonal on the sample",
        _GRAM,
        at_most((2 / math.e) ** (2 * _D)),
        "the proof's probability, (2/e)^{2d}; a 95 % interval",
        corrected=True,
    ),
    Clause(
        "the gradient hardly depends on the target",
        _VARIANCE,
        at_most(1),
        "the proof's bound 2(1/|P| ∨ √(4d/n))·sup‖∇f‖²",
        corrected=True,
    ),
    Clause("ν = 4ν₁ + 4ν₂ + 2ν₃ + 2ν₄ + 1 is what (5) needs", _POWER, at_most(0), "exact fractions", corrected=True),
)


def _hardness(context: Context) -> Measurement:
    """Look at k = d, and test the steps of the proof at a size where all parities can be listed."""
    d = context.at(smoke=10, reference=16)
    whole = loss_without_queries(d)
    draws = context.at(smoke=600, reference=4000)
    off = [_correlated(_signs(_N, _D, seed)) > math.sqrt(4 * _D / _N) for seed in range(draws)]
    scale = 2 * max(1 / math.comb(_D, _K), math.sqrt(4 * _D / _N))
    attack = _attacked_variance(context, _D, _K, _N, scale, bounded=True)
    powers = [Fraction(one, 2) for one in range(5)]
    missed = max(
        abs(nu[2] + 2 * nu[1] + 2 * nu[0] + (1 - theorem_2_exponent(*nu)) / 2 + nu[3])
        for nu in itertools.product(powers, repeat=4)
    )
    return Measurement(
        {_WHOLE: whole, _GRAM: wilson_share(sum(off), draws), _VARIANCE: attack.value, _POWER: float(missed)},
        f"at k = d the loss without a query is {whole:.0f}; with C({_D}, {_K}) parities the variance is at most "
        f"{attack.value:.2g} of its bound",
        f"{draws} samples of {_N}; {tried_by([attack])} on the gradient",
        {"d": _D, "k": _K, "n": _N, "d_of_the_whole_parity": d, "samples_beyond": sum(off)},
        "k = d is k = Θ(d), and then P has one element, which needs no query. Where C(d, k) is large the proof's steps "
        "were tested: the Gram matrix of all parities on drawn samples, and the variance of the gradient over targets, "
        "maximised over models. The theorem itself is asymptotic and about every algorithm.",
        {_WHOLE: {"d": d}},
    )


def _correlated(x: Tensor) -> float:
    parities = _parities(x, _K)
    gram = parities.T @ parities / len(x)
    return float(gram.fill_diagonal_(0).abs().max())


def _whole_again(point: Mapping[str, Any]) -> Again:
    """Multiply the signs of all inputs one by one, in whole numbers."""
    inputs = itertools.product((1, -1), repeat=point["d"])
    missed = [(math.prod(x) - (-1) ** x.count(-1)) ** 2 for x in inputs]
    return Again(sum(missed) / len(missed), "f = Π x_j against the parity of the count of −1, over all inputs")


_PRINTED, _HALVED = "largest Var·|H|/F², loss E(h − f)²", "largest Var·|H|/F², loss ½E(h − f)² and |h| ≤ 1"
_PROPOSITION_3 = (
    Clause("the variance is at most F²/|H|", _PRINTED, at_most(1 + _ROUNDING), "the statement; rounding"),
    Clause("the same with ½", _HALVED, at_most(1 + _ROUNDING), "the statement; rounding", corrected=True),
)


def _proposition_3(context: Context) -> Measurement:
    """Maximise the variance over models of one parameter, where H is all parities of three of six bits."""
    d, k = 6, 3
    attack = _attacked_variance(context, d, k, 0, 1 / math.comb(d, k), bounded=False)
    return Measurement(
        {_PRINTED: 4 * attack.value, _HALVED: attack.value},
        f"{4 * attack.value:.3f} as printed, {attack.value:.3f} with the factor ½",
        tried_by([attack]),
        {"d": d, "k": k, "functions": math.comb(d, k)},
        "The gradient of E(h − f)² is twice that of ½E(h − f)², its variance four times; the model whose gradient is "
        "the difference of two functions of H reaches it. With ½ it is Bessel's inequality. The statement is quoted "
        "from Shalev-Shwartz et al. (2017), whose square loss has the ½ and whose functions have mean square ≤ 1.",
        {_PRINTED: {"d": d, "k": k}},
    )


def _twice_again(point: Mapping[str, Any]) -> Again:
    """Take f = θ(h₁ − h₂)/√2 at θ = 0, in fractions: E[∂f²] = 1 and ∂F_h = −2E[h·∂f]."""
    supports = list(itertools.combinations(range(point["d"]), point["k"]))
    inputs = list(itertools.product((1, -1), repeat=point["d"]))
    values = [[math.prod(x[j] for j in one) for x in inputs] for one in supports]
    difference = [a - b for a, b in zip(values[0], values[1], strict=True)]
    slopes = [Fraction(sum(h * f for h, f in zip(one, difference, strict=True)), len(inputs)) for one in values]
    mean = sum(slopes) / len(slopes)
    variance = sum((one - mean) ** 2 for one in slopes) / len(slopes)
    return Again(float(4 * variance / 2 * len(supports)), "f = θ(h₁ − h₂)/√2 at θ = 0, by fractions")


def mean_parity(d: int, k: int, minus: int) -> Fraction:
    """Return E_p[p(x)] over all parities of k bits, for x with so many −1: a Krawtchouk polynomial over C(d, k)."""
    total = sum((-1) ** j * math.comb(minus, j) * math.comb(d - minus, k - j) for j in range(min(k, minus) + 1))
    return Fraction(total, math.comb(d, k))


_ALL = "|E_p p(x)| at k = d"
_TYPICAL, _FRACTION = "largest |E_p p(x)| over the proof's bound, k ≤ 3d/4", "largest (d/k)^{k/4} over C(d/4, k/4)"
_LEMMA_8 = (
    Clause("for k = Θ(d) the mean parity is at most e^{−Ω(d)}", _ALL, at_most(0.5), "at every d; 1 refutes it"),
    Clause(
        "the mean parity is below (d/2)·C(⌊d/4⌋, ⌊k/4⌋)^{−1} on typical inputs",
        _TYPICAL,
        at_most(1),
        "the proof's bound, doubled because |E p| = 2||P₊|/|P| − ½|",
        corrected=True,
    ),
    Clause("C(d/4, k/4)^{−1} ≤ (d/k)^{−k/4}", _FRACTION, at_most(1 + _ROUNDING), "rounding", corrected=True),
)


def _lemma_8(context: Context) -> Measurement:
    """Compute the mean parity in fractions, at k = d and where k and d − k are both a share of d."""
    sizes = (16, 32) if context.scale == "smoke" else (16, 32, 64, 128, 256)
    d = sizes[-1]
    whole = float(abs(mean_parity(d, d, d // 2)))
    typical, fraction = 0.0, 0.0
    for n, share in itertools.product(sizes, (4, 2)):
        k = n // share
        bound = Fraction(n, 2 * math.comb(n // 4, k // 4))
        reach = n * min(0.25, k / (2 * n)) / 2
        around = [minus for minus in range(n + 1) if abs(minus - n / 2) <= reach]
        # The complement of a parity has the same mean up to sign, so k = 3d/4 is k = d/4.
        typical = max(
            typical, *(float(abs(mean_parity(n, one, minus)) / bound) for minus in around for one in (k, n - k))
        )
        fraction = max(fraction, float(Fraction(n, k) ** (k // 4) / math.comb(n // 4, k // 4)))
    return Measurement(
        {_ALL: whole, _TYPICAL: typical, _FRACTION: fraction},
        f"|E p| = {whole:.0f} at k = d; at most {typical:.2g} of the proof's bound for k = d/4, d/2, 3d/4",
        f"every typical count of −1 at d = {', '.join(map(str, sizes))}, in fractions",
        {"sizes": list(sizes), "mean_parity_at_k_d_minus_1": float(abs(mean_parity(d, d - 1, d // 2 - 1)))},
        "Krawtchouk polynomials in whole numbers. P has one element at k = d, and at k = d − 1 the mean is that of d "
        "signs.",
        {_ALL: {"d": d, "minus": d // 2}},
    )


def _mean_again(point: Mapping[str, Any]) -> Again:
    return Again(abs(float(math.prod([-1] * point["minus"] + [1] * (point["d"] - point["minus"])))), "one product")


_LEFT = "largest |ν₃ + ν₄ − ε/4| at n = d^{11+ε}, ε from 1/8 to 8"
_SEPARATION = (Clause("more than Ω̃(d^{ε/4}) queries are needed", _LEFT, at_most(0), "exact fractions"),)


def _separation(context: Context) -> Measurement:
    """Insert Lemma 4's gradients and Theorem 5's oracle into Theorem 2(2), in fractions."""
    missed = Fraction(0)
    for eighths in range(1, 65):
        epsilon = Fraction(eighths, 8)
        needed = theorem_2_exponent(Fraction(1, 2), 2 + epsilon / 8, Fraction(0), Fraction(0))
        missed = max(missed, abs((11 + epsilon - needed) / 2 - epsilon / 4))
    end_to_end = theorem_2_exponent(Fraction(3, 2), Fraction(2), Fraction(0), Fraction(0))
    return Measurement(
        {_LEFT: float(missed)},
        "ν₃ + ν₄ = ε/4 at n = d^{11+ε}",
        "64 values of ε, in fractions",
        {"power_of_d_with_lemma_6_at_its_least_g": float(end_to_end), "examples_at_d_64": 64.0**11},
        "With ν₁ = ½ and ν₂ = 2 + ε/8 Theorem 2(2) leaves ν₃ + ν₄ = ε/4 at n = d^{11+ε}. With Lemma 6's gradients "
        "(g ≥ 3/2) the same number of queries needs n = d^{15+ε}. The claim rests on Theorem 2, so on |P| = e^{Θ(d)}.",
    )


CLAIMS = (
    Claim(
        "K-theorem-2",
        "Without the steps in the loss, gradients of any model say so little about the target that polynomially many "
        "approximate ones leave a loss near 1.",
        _THEOREM_2,
        _hardness,
        "Section 3.1, Theorem 2(2); proof in Appendix A",
        seconds=4,
        corrected="The same with k and d − k both Θ(d), so that |P| = e^{Θ(d)}: the steps of its proof, where all "
        "parities can be listed.",
        misprint=_PARITIES,
        replay={_WHOLE: _whole_again},
        printed="(2) … there exists an O(d^{−ν₂})-approximate gradient oracle such that … the output of any iterative "
        "… algorithm which makes at most O(d^{ν₃}) queries … has L₂-loss lower bounded … as E[(p(x) − f_θ(x))²] ≥ 1 − "
        "O(d^{−ν₄})",
        hypotheses="k = Θ(d); n = Ω(d^ν), ‖∇f‖ = O(d^{ν₁}), ν = 4ν₁ + 4ν₂ + 2ν₃ + 2ν₄ + 1; with probability "
        "1 − e^{−Ω(d)} over random sampling",
        ours="k = d as an instance of k = Θ(d), which refutes part (1), with n = e^{Ω(d)} examples, alike; the sizes "
        "(8, 4) at which the proof's steps are tested",
        qualifier="as meant, the steps of its proof hold where tested",
    ),
    Claim(
        "K-proposition-3",
        "Over targets that are orthogonal the gradient's variance is at most F²/|H|.",
        _PROPOSITION_3,
        _proposition_3,
        "Section 3.1, Proposition 3 (from Shalev-Shwartz et al. 2017, Theorem 1)",
        corrected="With the loss ½E(h − f)² and E[h²] ≤ 1.",
        misprint="Theorem 2, which builds on it, has the loss with ½ and functions of size 1, and so has the cited "
        "theorem",
        replay={_PRINTED: _twice_again},
        printed="for the loss F_h(θ) := E[(h(x) − f_θ(x))²] … the gradient variance is bounded as Var(θ; H) ≤ "
        "F(θ)²/|H|",
        hypotheses="H bounded real-valued functions with E[h(x)h′(x)] = 0; E[‖∇f_θ‖²] ≤ F(θ)²",
    ),
    Claim(
        "K-lemma-8",
        "On nearly all inputs the mean of all parities is exponentially small.",
        _LEMMA_8,
        _lemma_8,
        "Appendix A, Lemma 8",
        corrected="The same where k and d − k are both Θ(d).",
        misprint=_PARITIES,
        replay={_ALL: _mean_again},
        printed="it holds with probability at least 1 − e^{−Ω(d)} over random sampling that |E_{p∈P}[p(x)]| ≤ "
        "e^{−Ω(d)}",
        hypotheses="k = Θ(d)",
        ours="k = d as an instance of k = Θ(d)",
    ),
    Claim(
        "K-separation",
        "With the examples and the oracle of Theorem 5, without the steps more than d^{ε/4} queries are needed.",
        _SEPARATION,
        _separation,
        "Section 3.2, after Theorem 5",
        printed="when n = Ω(d^{11+ϵ}), any iterative algorithm querying an O(d^{−2−ϵ/8})-approximate oracle, with "
        "gradients bounded as in Lemma 4, requires more than Ω̃(d^{ϵ/4}) queries to attain a nontrivial (< ½) loss",
        hypotheses="those of Theorem 2(2)",
        ours="the arithmetic of its exponents is tested, not Theorem 2",
        qualifier="its exponents",
    ),
)
