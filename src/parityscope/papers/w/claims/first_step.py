"""W, Lemmas 12 to 17: the gradients of the first two steps and what they change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import wilson_share
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_most, below
from parityscope.papers.w import formulas, regime
from parityscope.papers.w.criteria import (
    AS_CORRECTED,
    MEAN_LOSS,
    NOISE,
    WITHOUT_NOISE,
    at_sizes_that_run,
    equation,
    relative_distance,
)
from parityscope.papers.w.instance import Instance, instance, second_instance, slope_of_loss
from parityscope.papers.w.noise_free import noise_free_instance, orthogonal_instance
from parityscope.theory import w as theory

_SIZES = {"n": 8, "k": 3, "d": 256, "m": 8, "batch": 512}
_ORTHOGONAL = {name: size for name, size in _SIZES.items() if name != "d"}
_SMALL = {"n": 5, "k": 2, "m": 2, "batch": 12, "seed": 0}  # of counterexamples, which plain code replays
_SMALL_RATE = 0.1
_DELTA = 0.9  # of the probabilities; thirty draws without an exception are surely below 0.13 δ


def _starts(context: Context) -> int:
    return context.at(smoke=30, demo=30, reference=200)


def _instances(count: int) -> list[Instance]:
    return [instance(**_SIZES, seed=seed) for seed in range(count)]


def _projections(gradient: Float[Tensor, "neurons d"], embeddings: Float[Tensor, "places 2 d"]) -> float:
    return float(torch.einsum("rd,ibd->rib", gradient, embeddings).abs().max())


_OWN, _COUNTED, _PRINTED = (
    f"relative distance of the gradient from {what}" for what in ("Lemma 12's sum", "the sum of α", "the printed sum")
)


def _in_event_1(count: int) -> list[Instance]:
    """Return starts in which all of E₁ holds: their embeddings are orthogonal."""
    return [orthogonal_instance(**_ORTHOGONAL, seed=seed) for seed in range(count)]


def _lemma_12(context: Context) -> Measurement:
    count = context.at(smoke=3, reference=12)
    made = [*_instances(count), *_in_event_1(count)]
    worst = max(relative_distance(formulas.own_gradient(one), one.gradient_own) for one in made)
    return Measurement(
        {_OWN: worst},
        f"gradient of W_{{r,1:d}}, relative: {worst:.0e}",
        f"{len(made)} starts and batches",
        {"largest_relative_distance": worst, **_SIZES},
        "Autograd's gradient was compared with the printed sum on drawn batches, for drawn embeddings and for "
        "orthogonal ones.",
    )


_FAR_13 = "the proof's bound over the printed one at n = e^(10⁵⁹)"
_SHARE_13 = "share of starts with a projection of W_{r,1:d}'s gradient beyond the bound"


def _lemma_13(context: Context) -> Measurement:
    made, n = _instances(_starts(context)), _SIZES["n"]
    bound = theory.lemma_13_bound(n, _SIZES["m"], _SIZES["batch"], _DELTA)
    ratios = [_projections(one.gradient_own, one.block.embeddings[n:]) / bound for one in made]
    far = max(regime.lemma_13_over_bound(regime.assumption_2(regime.FAR, power=power)) for power in regime.ENDS)
    return Measurement(
        {_FAR_13: far, _SHARE_13: wilson_share(sum(ratio > 1 for ratio in ratios), len(ratios))},
        f"at most {max(ratios):.2f} of the bound",
        f"{len(made)} starts and batches, every projection",
        {"largest_over_bound": max(ratios), "far_out": far, "delta": _DELTA, **_SIZES},
        "Every projection of autograd's gradient on the embeddings of the predicting places was computed. The proof "
        "gives ½(1 + √(2k log(200m/δ)/d)) of the printed bound, which was evaluated in log space.",
    )


def _lemma_14(context: Context) -> Measurement:
    made = _in_event_1(context.at(smoke=3, reference=12))
    printed = max(relative_distance(formulas.attended_gradient_as_printed(one), one.gradient_attended) for one in made)
    counted = max(relative_distance(formulas.attended_gradient(one), one.gradient_attended) for one in made)
    return Measurement(
        {_PRINTED: printed, _COUNTED: counted},
        f"off by {printed:.1%} as printed, {counted:.0e} with α for ᾱ",
        f"{len(made)} starts and batches, with orthogonal embeddings",
        _ORTHOGONAL,
        "The equation is exact with the counted α_{i,S[i]}; the printed ᾱ is their expectation, so as an equality it "
        "holds only up to the sampling error of the batch. Embeddings are orthogonal, so that E₁ holds exactly.",
        {_PRINTED: _where_printed_is_off(orthogonal_instance(**_SMALL))},
    )


def _where_printed_is_off(made: Instance, **more: float) -> dict[str, Any]:
    """Return where the printed gradient is off most, of a small block: a neuron and an entry, with both numbers."""
    off = (formulas.attended_gradient_as_printed(made) - made.gradient_attended).abs()
    r, entry = (int(one) for one in torch.unravel_index(off.argmax(), off.shape))
    printed = float(formulas.attended_gradient_as_printed(made)[r, entry])
    return {
        **_SMALL,
        **more,
        "neuron": r,
        "entry": entry,
        "printed": printed,
        "value": float(made.gradient_attended[r, entry]),
    }


def _slope_again(made: Instance, point: Mapping[str, Any]) -> Again:
    """Take the slope again from differences of the loss, computed sequence by sequence."""
    direction = torch.zeros(2 * made.block.d, dtype=torch.float64)
    direction[made.block.d + point["entry"]] = 1
    again = slope_of_loss(made, point["neuron"], direction)
    off = abs(again - point["printed"]) / abs(point["value"])
    return Again(again, "differences of the loss", off, "slope of the loss")


def _first_slope_again(point: Mapping[str, Any]) -> Again:
    return _slope_again(orthogonal_instance(**{name: point[name] for name in _SMALL}), point)


_LIMIT_15, _DRAWN_15 = (
    "largest projection over 3/2mn without noise",
    "share of starts with a projection of W_{r,d+1:2d}'s gradient beyond the bound",
)


def _lemma_15(context: Context) -> Measurement:
    limit = noise_free_instance(10, 2)
    without_noise = _projections(limit.gradient_attended, limit.block.embeddings) / theory.lemma_15_bound(10, limit.m)
    made = _instances(_starts(context))
    bound = theory.lemma_15_bound(_SIZES["n"], _SIZES["m"])
    ratios = [_projections(one.gradient_attended, one.block.embeddings) / bound for one in made]
    return Measurement(
        {_LIMIT_15: without_noise, _DRAWN_15: wilson_share(sum(ratio > 1 for ratio in ratios), len(ratios))},
        f"{without_noise:.2f} of the bound without noise, at most {max(ratios):.2f} drawn",
        f"{len(made)} starts and batches, every projection, and the limit without noise",
        {"largest_over_bound": max(ratios), "without_noise": without_noise, "delta": _DELTA, **_SIZES},
        "Every projection of autograd's gradient on every embedding was computed, on drawn starts and where overlaps "
        "and sampling errors are exactly 0.",
    )


_LIMIT_16 = "largest change of a neuron's input over 3ε/80, without noise"
_CHANGE_16, _SIGNS_16 = (
    "share of starts with a neuron's input changed by 3ε/80 or more",
    "share with another sign than ν",
)


def _lemma_16(context: Context) -> Measurement:
    made = _instances(_starts(context))
    rate = theory.lemma_5_rate(_SIZES["n"], _SIZES["m"], _SIZES["batch"], made[0].epsilon, _DELTA)
    changes = [rate * _largest_change(one, one.gradient_own, one.gradient_attended) for one in made]
    wrong = [_signs_differ(one, one.block.W.detach()[:, : one.block.d] - rate * one.gradient_own) for one in made]
    limit = noise_free_instance(10, 2)
    largest_rate = theory.lemma_5_rate(10, limit.m, limit.statistics.count, limit.epsilon, _DELTA)
    without_noise = largest_rate * _largest_change(limit, limit.gradient_own, limit.gradient_attended)
    return Measurement(
        {
            _LIMIT_16: without_noise / theory.lemma_16_bound(),
            _CHANGE_16: wilson_share(sum(change >= theory.lemma_16_bound() for change in changes), len(made)),
            _SIGNS_16: wilson_share(sum(wrong), len(made)),
        },
        f"change at most {max(changes):.4f} ε < 0.0375 ε",
        f"{len(made)} starts, all 2^{_SIZES['n']} inputs each, and the limit without noise",
        {"largest_change_over_epsilon": max(changes), "rate": rate, "delta": _DELTA, **_SIZES},
        "With the largest η₀ that Lemma 5.4 allows, every neuron's change was computed on every input from autograd's "
        "gradient, on drawn starts and where overlaps and sampling errors are exactly 0. "
        "(The proof's two parts add up to 4ε/80; the computed change is smaller.)",
    )


def _largest_change(of: Instance, own: Tensor, attended: Tensor) -> float:
    """Return the largest change of any neuron's input over ε, on any input, by a unit step along both gradients."""
    n, T = of.task.n, of.task.n + of.task.k
    tokens = of.task.tokens(_every_input(n))[:, :T]
    here = torch.einsum("rd,ibd->rib", own, of.block.embeddings[n:])
    there = torch.einsum("rd,jbd->rjb", attended, of.block.embeddings)
    seen = there[:, torch.arange(T), tokens].cumsum(-1)[..., n:] / of.place  # (neurons, inputs, links)
    return float((here[:, torch.arange(of.task.k), tokens[:, n:]] + seen).abs().max()) / of.epsilon


def _every_input(n: int) -> Tensor:
    return torch.cartesian_prod(*[torch.arange(2)] * n)


def _signs_differ(of: Instance, own: Float[Tensor, "neurons d"]) -> bool:
    """Return whether some ⟨W_{r,1:d}, e_{i,b}⟩ has another sign than ν_{r,i,b}."""
    signs = torch.einsum("rd,ibd->rib", own, of.block.embeddings[of.task.n :]) > 0
    return bool((signs.double() != of.active).any())


_CHANGE_17, _SIGNS_17 = (
    "share of starts with a change of 3ε/40 or more after two steps",
    "share with another sign by then",
)


def _lemma_17(context: Context) -> Measurement:
    starts = _instances(_starts(context))
    rate = theory.lemma_5_rate(_SIZES["n"], _SIZES["m"], _SIZES["batch"], starts[0].epsilon, _DELTA)
    second = [second_instance(one, rate, seed) for seed, one in enumerate(starts)]
    own = max(relative_distance(formulas.own_gradient(one), one.gradient_own) for one in second)
    printed = max(
        relative_distance(formulas.attended_gradient_as_printed(one), one.gradient_attended) for one in second
    )
    counted = max(relative_distance(formulas.attended_gradient(one), one.gradient_attended) for one in second)
    bound = theory.lemma_15_bound(_SIZES["n"], _SIZES["m"])
    ratios = [_projections(one.gradient_attended, one.block.embeddings) / bound for one in second]
    changes = [
        rate * _largest_change(two, one.gradient_own + two.gradient_own, one.gradient_attended + two.gradient_attended)
        for one, two in zip(starts, second, strict=True)
    ]
    wrong = [_signs_differ(two, two.block.W.detach()[:, : two.block.d] - rate * two.gradient_own) for two in second]
    count = len(second)
    return Measurement(
        {
            _OWN: own,
            _PRINTED: printed,
            _COUNTED: counted,
            _DRAWN_15: wilson_share(sum(ratio > 1 for ratio in ratios), count),
            _CHANGE_17: wilson_share(sum(change >= 2 * theory.lemma_16_bound() for change in changes), count),
            _SIGNS_17: wilson_share(sum(wrong), count),
        },
        f"second step: off by {printed:.1%} as printed, {counted:.0e} with α for ᾱ; change {max(changes):.4f} ε",
        f"{count} starts with two batches each, all 2^{_SIZES['n']} inputs for the changes",
        {"largest_change_over_epsilon": max(changes), "rate": rate, **_SIZES},
        "A first step was taken at the largest rate of Lemma 5.4, and the second batch's gradient compared with both "
        "sums: as in Lemma 14, the printed ᾱ should be the counted α.",
        {_PRINTED: _where_printed_is_off(_second(**_SMALL), rate=_SMALL_RATE)},
    )


def _second(rate: float = _SMALL_RATE, **sizes: int) -> Instance:
    return second_instance(orthogonal_instance(**sizes), rate, sizes["seed"])


def _second_slope_again(point: Mapping[str, Any]) -> Again:
    return _slope_again(_second(point["rate"], **{name: point[name] for name in _SMALL}), point)


_OWN_SUM = "dL/dW_{r,1:d} = (h_r/B) Σ 1(ν > 0) δ e"
_ATTENDED_SUM = "dL/dW_{r,d+1:2d} = (h_r/B) Σ (1/i) 1(ν > 0) ᾱ e_{S[i]} + (h_r/B) Σ ψ e"
_MEANT_SUM = "dL/dW_{r,d+1:2d} = (h_r/B) Σ (1/i) 1(ν > 0) α e_{S[i]} + (h_r/B) Σ ψ e"
_WITHIN_15 = "|⟨dL/dW_{r,d+1:2d}, e_{i,b}⟩| ≤ 3/2mn"

CLAIMS = (
    Claim(
        "W-lemma-12",
        f"In the first step {_OWN_SUM}.",
        (equation(_OWN_SUM, _OWN),),
        _lemma_12,
        "Appendix B.4.2, Lemma 12",
        printed="dL^{(0)}/dW_{r,1:d} = h_r/B Σ_{i=n+1}^{n+k} Σ_{b=0}^1 1(ν_{r,i,b} > 0) δ_{0,i,b} e_{i,b}.",
        hypotheses="When E₁ defined in Lemma 11 happens",
        ours=f"{MEAN_LOSS} Orthogonal embeddings meet all of E₁; of drawn ones (d = 256) only the signs were looked "
        "at, not that they are within ε/100.",
    ),
    Claim(
        "W-lemma-13",
        "That gradient's projections are at most √log(300nB/δ)/(m√B) with probability 1 − 0.13δ.",
        (
            Clause("the proof's bound is below it in Assumption 2's regime", _FAR_13, at_most(1), "the lemma's own"),
            at_sizes_that_run(
                "|⟨dL/dW_{r,1:d}, e_{i,b}⟩| ≤ √log(300nB/δ)/(m√B) on drawn starts", _SHARE_13, at_most(0.13 * _DELTA)
            ),
        ),
        _lemma_13,
        "Appendix B.4.2, Lemma 13",
        printed="for all i' ∈ [n+1, n+k+1], b' ∈ {0, 1}, … |⟨dL^{(0)}/dW_{r,1:d}, e_{i,b}⟩| ≤ √log(300nB/δ) / (m√B).",
        hypotheses="Assumption 2; With probability 1 − 0.13δ",
        ours=f"i and b are read as i' and b'; the last position, n + k + 1, has no loss and no gradient. Drawn starts "
        f"have n = 8, k = 3, B = 512, δ = 0.9, outside Assumption 2. {MEAN_LOSS}",
    ),
    Claim(
        "W-lemma-14",
        f"In the first step {_ATTENDED_SUM}.",
        (equation(_ATTENDED_SUM, _PRINTED), equation(_MEANT_SUM, _COUNTED, corrected=True)),
        _lemma_14,
        "Appendix B.4.2, Lemma 14",
        printed="dL^{(0)}/dW_{r,d+1:2d} = h_r/B Σ_{i=n+1}^{n+k} Σ_{b₁=0}^1 Σ_{b₂=0}^1 1/i 1(ν_{r,i,b₂} > 0) "
        "ᾱ_{i,S[i],b₁,b₂} e_{S[i],b₁} + h_r/B Σ_{j=1}^{n+k} Σ_{b₁=0}^1 ψ_{0,r,j,b₁} e_{j,b₁}.",
        hypotheses="When E₁ defined in Lemma 11 happens",
        ours=f"Orthogonal embeddings, with which E₁ holds exactly. {MEAN_LOSS}",
        misprint="The proof's line before last has the counted α₀, which “simplifies to” its mean ᾱ; Table 1 has α = ᾱ "
        "+ O(√(B log(nB/δ))). So the equality is one up to the sampling error of a batch. Lemmas 18 and 19 go on with "
        "ᾱ; the error is far inside Lemma 19's bound.",
        corrected=f"In the first step {_MEANT_SUM}.",
        replay={_PRINTED: _first_slope_again},
    ),
    Claim(
        "W-lemma-15",
        "That gradient's projections are at most 3/2mn with probability 1 − 0.16δ.",
        (
            Clause(f"{_WITHIN_15} without noise", _LIMIT_15, at_most(1), "the lemma's own bound"),
            at_sizes_that_run(f"{_WITHIN_15} on drawn starts", _DRAWN_15, at_most(0.16 * _DELTA)),
        ),
        _lemma_15,
        "Appendix B.4.2, Lemma 15",
        printed="|⟨dL^{(0)}/dW_{r,d+1:2d}, e_{i,b}⟩| ≤ 3/(2mn).",
        hypotheses="Assumption 2; With probability 1 − 0.16δ, for all i ∈ [n+k+1], b ∈ {0, 1}",
        ours=f"{NOISE} {MEAN_LOSS}",
    ),
    Claim(
        "W-lemma-16",
        "With probability 1 − 0.29δ the first step changes no neuron's input by 3ε/80, and no sign.",
        (
            Clause("every change is below 3ε/80 without noise", _LIMIT_16, below(1), WITHOUT_NOISE),
            at_sizes_that_run("every change is below 3ε/80 on drawn starts", _CHANGE_16, at_most(0.29 * _DELTA)),
            at_sizes_that_run("every sign is still that of ν", _SIGNS_16, at_most(0.29 * _DELTA)),
        ),
        _lemma_16,
        "Appendix B.4.3, Lemma 16",
        printed="sup_r |⟨W_r^1 − W_r^0, [E(b)[i], A[A¹](E(b))[i]]⟩| < 3ε/80. … 1(⟨W_{r,1:d}¹, E(b)[i]⟩ > 0) = "
        "1(ν_{r,i,b[i]} > 0).",
        hypotheses="Assumption 2; With probability 1 − 0.29δ, for any input b",
        ours="Drawn starts have n = 8, k = 3, B = 512, δ = 0.9, outside Assumption 2; the largest η₀ that Lemma 5.4 "
        f"allows. {NOISE} {MEAN_LOSS}",
    ),
    Claim(
        "W-lemma-17",
        "With probability 1 − 0.58δ the second step's gradients have the form of the first's, and two steps change no "
        "neuron's input by 3ε/40, and no sign.",
        (
            equation(_OWN_SUM, _OWN),
            equation(_ATTENDED_SUM, _PRINTED),
            equation(_MEANT_SUM, _COUNTED, corrected=True),
            at_sizes_that_run(_WITHIN_15, _DRAWN_15, at_most(0.58 * _DELTA)),
            at_sizes_that_run("every change is below 3ε/40", _CHANGE_17, at_most(0.58 * _DELTA)),
            at_sizes_that_run("every sign is still that of ν", _SIGNS_17, at_most(0.58 * _DELTA)),
        ),
        _lemma_17,
        "Appendix B.4.3, Lemma 17",
        printed="With probability 1 − 0.58δ, inequalities in Lemma 7 hold and for t ∈ {0, 1}, ∀ i ∈ [n+k], ∀ b ∈ {0, "
        "1}, dL^{(t)}/dW_{r,1:d} = h_r/B Σ_{i=n+1}^{n+k} Σ_{b=0}^1 1(ν_{r,i,b} > 0) δ_{t,i,b} e_{i,b}. "
        "dL^{(t)}/dW_{r,d+1:2d} = h_r/B Σ_{i=n+1}^{n+k} Σ_{b₁=0}^1 Σ_{b₂=0}^1 1/i 1(ν_{r,i,b₂} > 0) "
        "ᾱ_{i,S[i],b₁,b₂} e_{S[i],b₁} + h_r/B Σ_{j=1}^{n+k} Σ_{b₁=0}^1 ψ_{t,r,j,b₁} e_{j,b₁}. "
        "|⟨dL^{(t)}/dW_{r,d+1:2d}, e_{i,b}⟩| ≤ 3/(2mn). Moreover for any input b, sup_r |⟨W_r^t − W_r^0, [E(b)[i], "
        "A[A¹](E(b))[i]]⟩| < 3ε/40. Further, 1(⟨W_{r,1:d}^t, E(b^{(t,s)})[i]⟩ > 0) = 1(ν_{r,i,b^{(t,s)}[i]} > 0).",
        hypotheses="Assumption 2",
        ours=f"The second step; sizes as for Lemma 16, the counterexample with orthogonal embeddings. {MEAN_LOSS} "
        f"{AS_CORRECTED}",
        misprint="“The proof is similar to Lemmas 12, 14 and 16”, and Lemma 14's has the counted α for ᾱ: the equality "
        "is one up to the sampling error that Table 1 gives.",
        corrected=f"In the second step {_MEANT_SUM}; the rest as printed, with Lemma 7 as meant.",
        replay={_PRINTED: _second_slope_again},
    ),
)
