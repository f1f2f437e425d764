"""W, Lemmas 28 to 32: singular values of random matrices, inner products of random embeddings, and softmax."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import wilson_share
from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Between, Clause, at_least, at_most
from parityscope.papers.w.cot_block import random_embeddings
from parityscope.papers.w.criteria import rare
from parityscope.papers.w.instance import DELTA
from parityscope.problems import seeded_generator
from parityscope.theory import w as theory

_SHAPES = (((60, 60), (240, 240)), ((120, 30), (480, 120)))  # rows × columns, the second four times the first
_T = 1.5  # the lemmas' t: their probability 1 − 2 exp(−t²) is then 79 %
_GROWTH = "a universal constant does not grow with the size; dependent entries make it grow like its square root"


def _entries(rows: int, columns: int, seed: int) -> Float[Tensor, "rows columns"]:
    """Return independent signs, the sub-Gaussian entries that the paper needs the lemmas for."""
    signs = torch.randint(2, (rows, columns), generator=seeded_generator(seed, "positions"))
    return signs.double() * 2 - 1


def _needed(rows: int, columns: int, draws: int, constant: Callable[[float, float, int, int], float]) -> float:
    """Return the constant that is enough with the lemmas' probability, from the extreme singular values."""
    found = []
    for seed in range(draws):
        values = torch.linalg.svdvals(_entries(rows, columns, seed))
        found.append(constant(float(values[0]), float(values[-1]), rows, columns))
    return float(torch.tensor(found).quantile(1 - 2 * math.exp(-(_T**2))))


def _growth(context: Context, constant: Callable[[float, float, int, int], float]) -> tuple[float, float, str]:
    """Return the power of the size by which the needed constant grows, the largest needed, and how many were drawn."""
    draws = context.at(smoke=5, demo=20, reference=100)
    pairs = [[_needed(*shape, draws, constant) for shape in shapes] for shapes in _SHAPES]
    power = max(math.log(large / small, 4) for small, large in pairs)
    return power, max(map(max, pairs)), f"{draws} draws of each of {2 * len(_SHAPES)} shapes"


def _norm(largest: float, smallest: float, rows: int, columns: int) -> float:
    return largest / (math.sqrt(rows) + math.sqrt(columns) + _T)


def _distance(largest: float, smallest: float, rows: int, columns: int) -> float:
    return max(largest - math.sqrt(rows), math.sqrt(rows) - smallest) / (math.sqrt(columns) + _T)


def _gram(largest: float, smallest: float, rows: int, columns: int) -> float:
    x = (math.sqrt(columns) + _T) / math.sqrt(rows)
    return max(abs(largest**2 / rows - 1), abs(smallest**2 / rows - 1)) / max(x, x**2)


_NORM_GROWTH, _DISTANCE_GROWTH, _GRAM_GROWTH = (
    f"power of the size in the constant that {what} needs" for what in ("‖A‖", "each singular value", "AᵀA/m")
)


def _lemma_28(context: Context) -> Measurement:
    power, needed, tried = _growth(context, _norm)
    return Measurement(
        {_NORM_GROWTH: power},
        f"C·K = {needed:.2f} suffices",
        tried,
        {"smallest_constant": needed, "t": _T},
        "The norms of random sign matrices were compared with √m + √n + t; the constant C is left open.",
    )


def _lemma_29(context: Context) -> Measurement:
    power, needed, tried = _growth(context, _distance)
    gram, needed_by_gram, _ = _growth(context, _gram)
    return Measurement(
        {_DISTANCE_GROWTH: power, _GRAM_GROWTH: gram},
        f"C·K² = {needed:.2f} suffices, {needed_by_gram:.2f} for AᵀA/m",
        tried,
        {"smallest_constant": needed, "smallest_constant_for_the_gram_matrix": needed_by_gram, "t": _T},
        "The extreme singular values of random sign matrices were compared with both bounds; C is left open.",
    )


def _no_growth(says: str, quantity: str) -> Clause:
    return Clause(says, quantity, at_most(0.25), _GROWTH, at_least(0.4))


_BEYOND_30 = "largest share beyond the bound, over δ"


def _lemma_30(context: Context) -> Measurement:
    d, pairs, draws = 64, 10, context.at(smoke=500, demo=3000, reference=20_000)
    generator = seeded_generator(0, "positions")
    shapes = {"equal": torch.ones(pairs), "one": torch.eye(pairs)[1], "falling": 0.5 ** torch.arange(pairs)}
    drawn = []
    for weights in shapes.values():
        lam = weights.double()
        e = random_embeddings(draws * pairs // 2, d, generator).flatten(0, 1).unflatten(0, (draws, pairs))
        off = (torch.einsum("sd,spd,p->s", e[:, 0], e, lam) - lam[0]).abs()
        beyond = int((off > theory.lemma_30_bound(DELTA, d, float(lam[1:].square().sum())) + 1e-9).sum())
        drawn.append(wilson_share(beyond, draws))
    worst = max(drawn, key=lambda share: share.value)
    exact, where, tried = _worst_exact_share(context)
    low, high = max(worst.low / DELTA, exact), max(worst.high / DELTA, exact)
    return Measurement(
        {_BEYOND_30: Between(low, high)},
        f"exceeded in {worst.value:.1%} of draws, {DELTA:.0%} allowed; at most {exact:.2f} δ exactly",
        f"{3 * draws:,} draws of embeddings, {tried:,} coefficients with exact probabilities",
        {"drawn_over_delta": worst.value / DELTA, "exact_over_delta": exact, "exact_at": where, "shapes": list(shapes)},
        "Embeddings were drawn for equal, single and falling coefficients λ. For small d the probability was computed "
        "exactly, the products of signs being independent signs, and random λ tried to push it up.",
    )


def _worst_exact_share(context: Context) -> tuple[float, dict[str, Any], int]:
    """Return the largest P(beyond the bound)/δ over random coefficients of three vectors, computed exactly."""
    generator, tries = seeded_generator(1, "positions"), context.at(smoke=50, demo=300, reference=2000)
    worst, where = 0.0, {}
    for d, delta in itertools.product((1, 2, 4, 8), (0.01, 0.1, 0.5)):
        counts = torch.arange(d + 1, dtype=torch.float64)
        sums = torch.cartesian_prod(*[2 * counts - d] * 3)  # of d signs each
        chance = torch.tensor([math.comb(d, j) / 2**d for j in range(d + 1)], dtype=torch.float64)
        weight = torch.cartesian_prod(*[chance] * 3).prod(1)
        lam = torch.randn(tries, 3, generator=generator, dtype=torch.float64)
        bound = torch.tensor([theory.lemma_30_bound(delta, d, float(one.square().sum())) for one in lam])
        shares = ((sums @ lam.T / d).abs() > bound + 1e-9).double().T @ weight / delta
        if float(shares.max()) > worst:
            worst, where = float(shares.max()), {"d": d, "delta": delta, "lambda": lam[int(shares.argmax())].tolist()}
    return worst, where, 12 * tries


class _Sizes(NamedTuple):
    """A size in Assumption 2's own range: k = n/log^4(n/δ) and d = k·log^1.1(n/δ), rounded down."""

    n: int
    k: int
    d: int
    delta: float

    @property
    def pairs(self) -> int:
        """Of different embeddings."""
        return (self.n + self.k) * (2 * (self.n + self.k) - 1)


def _sizes(n: int, delta: float) -> _Sizes:
    log = math.log(n / delta)
    k = math.floor(n / log**4)
    return _Sizes(n, k, math.floor(k * log**1.1), delta)


_DRAWN_31 = "share of draws with a product beyond the bound, (n + k)² ≤ 2nd"
_ITS_OWN, _ALL_PAIRS = "P(a product beyond the bound) over δ at n = 10⁶", "the same for log(4(n + k)²/δ)"
_AS_USED = "P(a product beyond 2√(log(100nd/δ)/d)) over δ/100 at n = 10⁶"


def _lemma_31(context: Context) -> Measurement:
    draws, bad, largest = context.at(smoke=20, demo=40, reference=200), 0, 0.0
    for n, k, d in ((20, 4, 256), (100, 10, 512)):
        bound = theory.lemma_31_bound(DELTA, n, d)
        for seed in range(draws):
            e = random_embeddings(n + k, d, seeded_generator(seed, "positions")).flatten(0, 1)
            off = float((e @ e.T - torch.eye(len(e))).abs().max()) / bound
            bad, largest = bad + (off > 1), max(largest, off)
    at = _sizes(10**6, DELTA)
    printed = theory.lemma_31_bound(at.delta, at.n, at.d)
    expected = at.pairs * _tail(at.d, printed)
    corrected = at.pairs * _tail(at.d, theory.lemma_31_bound_for_all_pairs(at.delta, at.n, at.k, at.d))
    used = at.pairs * _tail(at.d, theory.lemma_31_bound_in_lemma_21(at.delta, at.n, at.d))
    return Measurement(
        {
            _DRAWN_31: wilson_share(bad, 2 * draws),
            _ITS_OWN: _probability_over_delta(expected, at.delta),
            _ALL_PAIRS: _probability_over_delta(corrected, at.delta),
            _AS_USED: _probability_over_delta(used, at.delta / 100),
        },
        f"{expected:.1f} of {at.pairs:.0e} products beyond the bound on average at n = 10⁶, d = {at.d}",
        f"{2 * draws} draws, and one exact probability",
        {"largest_over_bound_drawn": largest, "sizes": at._asdict(), "expected": expected, "expected_as_used": used},
        "All products were computed for drawn embeddings. At Assumption 2's d, far below n, a union over n·d events is "
        "not one over all pairs: products of different pairs are independent two by two, so with E exceptions expected "
        "there is none with probability at most 1/E. It is one where (n + k)² ≤ 2nd, as for d ≥ 2n. Nothing downstream "
        f"breaks: Lemma 21 uses the weaker 2√(log(100nd/δ)/d), with {used:.0e} exceptions expected.",
        {_ITS_OWN: {**at._asdict(), "bound": printed, "value": expected}},
    )


def _tail(d: int, t: float) -> float:
    """Return P(|⟨e, e'⟩| > t) for two embeddings, from exact binomial coefficients."""
    least = math.floor(d * (1 + t) / 2) + 1  # agreeing signs
    return 2 * sum(math.comb(d, agree) for agree in range(least, d + 1)) / 2**d


def _probability_over_delta(expected: float, delta: float) -> Between:
    """Return between what the probability of at least one event lies: 1 − 1/E (Chebyshev) and E (union)."""
    return Between(max(0.0, 1 - 1 / max(expected, 1e-300)) / delta, min(1.0, expected) / delta)


def _walk_again(point: Mapping[str, Any]) -> Again:
    """Walk d steps of ±1 and add up the probability of ending far out, instead of summing binomial coefficients."""
    d, chance = point["d"], {0: 1.0}
    for _ in range(d):
        moved: dict[int, float] = {}
        for place, share in chance.items():
            for step in (-1, 1):
                moved[place + step] = moved.get(place + step, 0.0) + share / 2
        chance = moved
    tail = sum(share for place, share in chance.items() if abs(place) > point["bound"] * d)
    again = _Sizes(point["n"], point["k"], d, point["delta"]).pairs * tail
    return Again(again, "a random walk", _probability_over_delta(again, point["delta"]), "expected exceptions")


_ONE_HOT = "largest distance from one-hot over the bound"


def _lemma_32(context: Context) -> Measurement:
    found = [_attack_32(n, C, context) for n in (4, 20) for C in (1.5, 2.0, 4.0, 8.0)]
    worst = max(attack.value for attack in found)
    return Measurement(
        {_ONE_HOT: worst},
        f"at most {worst:.3f} of the bound",
        tried_by(found),
        {"largest_over_bound": worst, "extreme_point_included": True},
        "Scores inside the condition, its extreme point among them, and unit embeddings in three dimensions were drawn "
        "and improved by ascent, for T = 2n.",
    )


def _attack_32(n: int, C: float, context: Context) -> Attack:
    """Maximise the distance of the attention output from the secret's embedding, over the bound."""
    log, T = math.log(n), 2 * n
    generator = seeded_generator(0, "data")
    starts = torch.randn(context.at(smoke=10, demo=40, reference=200), T, 4, generator=generator, dtype=torch.float64)
    starts[0, :, 0] = 10.0  # every score at its limit
    starts[0, :, 1:] = torch.tensor([1.0, 0.0, 0.0])
    starts[0, 0] = torch.tensor([-30.0, -1.0, 0.0, 0.0])

    def ratio(points: Tensor, index: Tensor) -> Tensor:
        e = torch.nn.functional.normalize(points[..., 1:], dim=-1)
        others = C * log * torch.tanh(points[:, 1:, 0])
        target = 2 * C * log + torch.nn.functional.softplus(points[:, :1, 0])
        attention = torch.softmax(torch.cat((target, others), 1), 1)
        return (torch.einsum("bt,btd->bd", attention, e) - e[:, 0]).norm(dim=-1) / theory.lemma_32_bound(n, C)

    return maximise(ratio, starts, keep=4, steps=context.at(smoke=5, reference=30))


_WITHIN_31 = "|⟨e_{i,b}, e_{i',b'}⟩ − 1((i, b) = (i', b'))| ≤ √(2 log(8nd/δ)/d)"


CLAIMS = (
    Claim(
        "W-lemma-28",
        "‖A‖ ≤ CK(√m + √n + t) with probability 1 − 2 exp(−t²) for random sub-Gaussian A and a universal C.",
        (_no_growth("‖A‖ ≤ CK(√m + √n + t)", _NORM_GROWTH),),
        _lemma_28,
        "Appendix B.6, Lemma 28",
        printed="There exists universal constant C, let A be an m × n random matrix whose entries A_{ij} are "
        "independent, mean zero, sub-Gaussian random variables. Then, for any t > 0, we have ‖A‖ ≤ CK(√m + √n + t) "
        "with probability at least 1 − 2exp(−t²).",
        hypotheses="K is the maximum sub-Gaussian norm; a known theorem, Vershynin (2018), 4.4.5",
        ours="It agrees on sign matrices, at t = 1.5: the constant that they need does not grow with the size.",
    ),
    Claim(
        "W-lemma-29",
        "Singular values lie within CK²(√n + t) of √m, and ‖AᵀA/m − I‖ ≤ K² max(δ, δ²) for δ = C(√n + t)/√m.",
        (
            _no_growth("√m − CK²(√n + t) ≤ s_n(A) ≤ s_1(A) ≤ √m + CK²(√n + t)", _DISTANCE_GROWTH),
            _no_growth("‖AᵀA/m − I‖ ≤ K² max(δ, δ²)", _GRAM_GROWTH),
        ),
        _lemma_29,
        "Appendix B.6, Lemma 29",
        printed="√m − CK²(√n + t) ≤ s_n(A) ≤ s₁(A) ≤ √m + CK²(√n + t) with probability at least 1 − 2exp(−t²). … ‖1/m "
        "A^⊤A − I_n‖ ≤ K² max(δ, δ²)",
        hypotheses="rows are independent, mean zero, sub-Gaussian isotropic random vectors, t ≥ 0; a known theorem, "
        "Vershynin (2018), 4.6.1",
        ours="It agrees on sign matrices, at t = 1.5: the constant that they need does not grow with the size.",
    ),
    Claim(
        "W-lemma-30",
        "|⟨e, Σλe⟩ − λ| ≤ √(2 log(2/δ)/d · Σλ²) with probability 1 − δ.",
        (
            Clause(
                "the product is within its bound",
                _BEYOND_30,
                at_most(1),
                "the paper's probability δ; 95 % intervals and exact probabilities",
            ),
        ),
        _lemma_30,
        "Appendix B.6, Lemma 30",
        printed="Define v = Σ_{i=n+1}^{n+k} Σ_{b=0}^1 λ_{i,b} e_{i,b}, then with probability 1 − δ, |⟨e_{i',b'}, v⟩ − "
        "λ_{i',b'}| ≤ √(2 log(2/δ)/d Σ_{(i,b)≠(i',b')} λ_{i,b}²).",
        hypotheses="embeddings of Definition 3",
        proof="explanation/chain-of-thought#short-proofs",
        ours="λ is independent of e, as the proof needs; the shapes of λ in the computation.",
    ),
    Claim(
        "W-lemma-31",
        f"{_WITHIN_31} for all pairs of embeddings with probability 1 − δ.",
        (
            Clause(f"{_WITHIN_31} at Assumption 2's sizes", _ITS_OWN, at_most(1), "the paper's probability δ"),
            Clause(
                "the same with log(4(n + k)²/δ)", _ALL_PAIRS, at_most(1), "the paper's probability δ", corrected=True
            ),
            rare("as printed where (n + k)² ≤ 2nd", _DRAWN_31, DELTA, f"δ = {DELTA}", corrected=True),
            Clause("as Lemma 21 uses it", _AS_USED, at_most(1), "that proof's δ/100", corrected=True),
        ),
        _lemma_31,
        "Appendix B.6, Lemma 31",
        printed="∀ i, i' ∈ [n+k], b, b' ∈ {0, 1}, ‖e_{i,b}ᵀ e_{i',b'} − 1(i = i' & b = b')‖₂ ≤ √(2 log(8nd/δ)/d).",
        hypotheses="with probability 1 − δ",
        ours="δ = 0.1; the lemma names no d, and Assumption 2's at n = 10⁶ is taken.",
        reading="by the union bound that its proof names",
        corrected="“Lemma 30 and union bound”, carried out over all pairs: all inner products of embeddings are within "
        "√(2 log(4(n + k)²/δ)/d) of 0 or 1; as printed where (n + k)² ≤ 2nd (d ≥ 2n is enough). Lemma 21 only uses "
        "2√(log(100nd/δ)/d), which holds. (8n² in place of 8nd would do for k ≤ 0.41n. It is not called a misprint "
        "because Lemma 21 has nd too.)",
        replay={_ITS_OWN: _walk_again},
    ),
    Claim(
        "W-lemma-32",
        "Scores of 2C log n against C log n give an attention output within 4/n^{C−1} of one-hot.",
        (Clause("the output is one-hot within 4/n^{C−1}", _ONE_HOT, at_most(1), "the lemma's own bound"),),
        _lemma_32,
        "Appendix B.6, Lemma 32",
        printed="⟨e_{j,b'₁}, A⁽²⁾ e_{i,b'₂}⟩ ≥ 2C log n. … |⟨e_{j',b'₁}, A⁽²⁾ e_{i,b'₂}⟩| ≤ C log n. … |A[A²](E(b))[i] "
        "− e_{S[i],b[S[i]]}| < 4/n^{C−1}.",
        hypotheses="for constant C; T ≤ 2n in the proof",
        proof="explanation/chain-of-thought#short-proofs",
        ours="Scores and embeddings were also attacked by ascent.",
    ),
)
