"""W, Lemmas 8 to 11: attention and neurons at the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from parityscope.core.statistics import wilson_share
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_most, below
from parityscope.papers.w import regime
from parityscope.papers.w.cot_block import random_embeddings
from parityscope.papers.w.criteria import equation, rare
from parityscope.papers.w.instance import attention_output, instance
from parityscope.problems import seeded_generator
from parityscope.theory import w as theory

_MOVED = "largest entry of A's gradient in the first step"


def _lemma_8(context: Context) -> Measurement:
    seeds = context.at(smoke=2, reference=8)
    found = [instance(n=8, k=3, d=128, m=16, batch=256, seed=seed).block.A.grad for seed in range(seeds)]
    largest = max(float(gradient.abs().max()) for gradient in found if gradient is not None)
    return Measurement(
        {_MOVED: largest},
        f"A's gradient at the start: {largest:g}",
        f"{seeds} starts, 256 inputs each",
        {"largest_entry": largest, "n": 8, "k": 3, "d": 128},
        "Autograd on drawn batches: attention's half of W is 0, so that no gradient reaches A, and A⁽¹⁾ = A⁽⁰⁾ = 0.",
    )


_PRINTED_MEAN, _MEAN = "largest distance from (1/i) Σ e_{i,b[i]}", "largest distance from (1/i) Σ e_{j,b[j]}"


def _lemma_9(context: Context) -> Measurement:
    sizes = {"n": 8, "k": 3, "d": 128, "m": 16, "seed": 0}
    made = instance(**sizes, batch=context.at(smoke=32, reference=512))
    embedded = made.block.embeddings[torch.arange(11), made.tokens[:, :11]]  # (batch, T, d)
    seen = torch.einsum("sij,sjd->sid", made.block.attention(made.tokens).detach(), embedded)
    apart = (seen - embedded[:, made.task.n :]).norm(dim=-1)  # a mean of i equal vectors is that vector
    means = embedded.cumsum(1)[:, made.task.n :] / made.place[:, None]
    printed, meant = float(apart.max()), float((seen - means).norm(dim=-1).max())
    worst, link = (int(one) for one in torch.unravel_index(apart.argmax(), apart.shape))
    return Measurement(
        {_PRINTED_MEAN: printed, _MEAN: meant},
        f"off by {printed:.2f} as printed, by {meant:.0e} with e_{{j,b[j]}}",
        f"{apart.numel()} positions",
        sizes,
        "The attention output was compared with the printed sum, whose terms all carry i where j is meant, and with "
        "the mean of all embeddings so far.",
        {_PRINTED_MEAN: {**sizes, "tokens": made.tokens[worst].tolist(), "i": made.task.n + 1 + link}},
    )


def _mean_again(point: Mapping[str, Any]) -> Again:
    made, i = instance(**{name: point[name] for name in ("n", "k", "d", "m", "seed")}, batch=1), point["i"] - 1
    seen = attention_output(made, point["tokens"], i)
    return Again(float((seen - made.block.embeddings[i, point["tokens"][i]]).norm()), "a plain sum")


_B = 1000  # the batch that the lemmas' probabilities mention


def _deviations(k: int, d: int, m: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return ⟨W_r, e_{i,b}⟩/ε at the start for every neuron and place that predicts, and its sign ν/ε."""
    e = random_embeddings(k, d, seeded_generator(seed, "positions")).flatten(0, 1)
    nu = torch.randint(2, (2 * m, 2 * k), generator=seeded_generator(seed, "start")).double() * 2 - 1
    return nu @ (e @ e.T), nu


_BOUND_10, _SIGN_10 = "largest deviation over √(4k log(100Bm/δ)/d) ε", "neurons with another sign than ν"
_RARE_10 = "log of P(off by ε/100) over δ/50Bm, at n = e^(10⁵⁹)"
_DELTA_10, _DELTA_11 = 0.1, 0.9


def _lemma_10(context: Context) -> Measurement:
    k, d, m, seeds = 3, 2048, 64, context.at(smoke=10, demo=50, reference=500)
    bound = theory.lemma_10_bound(k, d, m, _B, _DELTA_10)
    largest, wrong = 0.0, 0
    for seed in range(seeds):
        found, nu = _deviations(k, d, m, seed)
        largest = max(largest, float((found - nu).abs().max()))
        wrong += int(((found > 0) != (nu > 0)).sum())
    far = max(regime.log_rarity_of_lemma_10(regime.assumption_2(regime.FAR, power=power)) for power in regime.ENDS)
    first = _holds_from(regime.log_rarity_of_lemma_10)
    return Measurement(
        {_BOUND_10: largest / bound, _SIGN_10: wrong, _RARE_10: far},
        f"within {largest:.2f} ε at d = {d}, {largest / bound:.2f} of the proof's bound; below ε/100 from log n ≈ "
        f"{first:.0e} on",
        f"{seeds * 4 * m * k:,} neurons and places",
        {"largest_deviation_over_epsilon": largest, "bound_over_epsilon": bound, "holds_from_log_n": first},
        "⟨W_r, e_{i,b}⟩ − ν was computed for drawn starts and compared with the proof's bound. Whether that bound is "
        "below ε/100 was decided in log space from the tail of a sum of signs: d = k·log^1.1(n/δ) makes it wait for "
        f"log n ≈ {first:.0e}.",
    )


def _holds_from(log_rarity: Callable[[regime.AssumptionTwo], float]) -> float:
    """Return the first power of ten of log n at which a lemma holds, at both ends of k's range."""
    grid = (10.0**power for power in range(1, 60))
    return next(
        (x for x in grid if all(log_rarity(regime.assumption_2(x, power=power)) < 0 for power in regime.ENDS)),
        float("inf"),
    )


_EVENT_11, _SIGN_11 = "share of starts with a neuron beyond √(4k log(100Bm/δ)/d) ε", "share of starts with a wrong sign"
_RARE_11 = "log of P(any neuron off by ε/100) over δ/50, at n = e^(10⁵⁹)"


def _lemma_11(context: Context) -> Measurement:
    k, d, m, starts = 3, 512, 16, context.at(smoke=240, demo=240, reference=1000)
    bound = theory.lemma_10_bound(k, d, m, _B, _DELTA_11)
    largest, beyond, wrong = 0.0, 0, 0
    for seed in range(starts):
        found, nu = _deviations(k, d, m, seed)
        off = float((found - nu).abs().max())
        largest, beyond, wrong = (
            max(largest, off),
            beyond + (off > bound),
            wrong + bool(((found > 0) != (nu > 0)).any()),
        )
    far = max(regime.log_rarity_of_lemma_11(regime.assumption_2(regime.FAR, power=power)) for power in regime.ENDS)
    first = _holds_from(regime.log_rarity_of_lemma_11)
    return Measurement(
        {_EVENT_11: wilson_share(beyond, starts), _SIGN_11: wilson_share(wrong, starts), _RARE_11: far},
        f"{beyond} of {starts} starts beyond the proof's bound; below ε/100 from log n ≈ {first:.0e} on",
        f"{starts} starts, every neuron and place of each",
        {"largest_deviation_over_epsilon": largest, "bound_over_epsilon": bound, "holds_from_log_n": first},
        "All neurons at all places that a batch can show were computed for each start: its inputs only choose among "
        "2k embeddings. That the bound falls below ε/100 was decided in log space.",
    )


CLAIMS = (
    Claim(
        "W-lemma-8",
        "Attention weights stay constant in the first step: A⁽¹⁾ = A⁽⁰⁾ = 0.",
        (Clause("A's gradient is 0", _MOVED, at_most(0), "a product with exact zeros", above(1e-12)),),
        _lemma_8,
        "Appendix B.4.2, Lemma 8",
        printed="attention weight stays constant in the first step, i.e., A⁽¹⁾ = A⁽⁰⁾ = 0.",
        hypotheses="for the dynamics following Equation (2)",
        ours="The sizes.",
    ),
    Claim(
        "W-lemma-9",
        "In the first two steps the attention output at i is (1/i) Σ_{j≤i} e_{i,b[i]}.",
        (
            equation("the output is (1/i) Σ_j e_{i,b[i]}", _PRINTED_MEAN),
            equation("the output is (1/i) Σ_j e_{j,b[j]}", _MEAN, corrected=True),
        ),
        _lemma_9,
        "Appendix B.4.2, Lemma 9",
        printed="∀ t ∈ {0, 1}, i ∈ [n + k + 1], A[A^{(t)}](E(b))[i] = 1/i Σ_{j=1}^i e_{i,b[i]}.",
        hypotheses="for the dynamics following Equation (2)",
        ours="The sizes; predicting positions only.",
        misprint="The proof of Lemma 14 writes the same output as (1/i) Σ_j e_{j,·}; a sum of i equal terms over i "
        "would need no sum.",
        corrected="In the first two steps the attention output at i is (1/i) Σ_{j≤i} e_{j,b[j]}.",
        replay={_PRINTED_MEAN: _mean_again},
    ),
    Claim(
        "W-lemma-10",
        "For an input, ν alone decides which neurons are active at the start, within ε/100, save for δ/50Bm.",
        (
            Clause("the sign is that of ν", _SIGN_10, at_most(0), "δ/50Bm allows no exception in these draws"),
            Clause(
                "off by at most the proof's bound", _BOUND_10, at_most(1), "δ/50Bm allows no exception in these draws"
            ),
            Clause("which is below ε/100 in Assumption 2's regime", _RARE_10, below(0), "the lemma's own probability"),
        ),
        _lemma_10,
        "Appendix B.4.2, Lemma 10",
        printed="whether a neuron r outputs nonzero value at position i is determined by ν_{r,i,b[i]}. 1(⟨W_{r,1:d}⁰, "
        "E(b)[i]⟩ > 0) = 1(ν_{r,i,b[i]} > 0). Further, |⟨W_{r,1:d}⁰, E(b)[i]⟩ − ν_{r,i,b[i]}| < ε/100.",
        hypotheses="for an input b, with probability 1 − δ/(50Bm), at initialization",
        ours="Drawn starts are compared with the proof's bound; that it falls below ε/100 is computed in log space, "
        "far out.",
    ),
    Claim(
        "W-lemma-11",
        "The same for every input and neuron of the first batch, save for δ/50.",
        (
            rare("the signs are those of ν", _SIGN_11, _DELTA_11 / 50, f"δ/50 for δ = {_DELTA_11}"),
            rare("off by at most the proof's bound", _EVENT_11, _DELTA_11 / 50, f"δ/50 for δ = {_DELTA_11}"),
            Clause("which is below ε/100 in Assumption 2's regime", _RARE_11, below(0), "the lemma's own probability"),
        ),
        _lemma_11,
        "Appendix B.4.2, Lemma 11",
        printed="With probability 1 − δ/50, the following E₁ happens: for any input b^{(0,s)} in the first batch, at "
        "initialization, for any r, whether a neuron r outputs nonzero value at position i is determined by "
        "ν_{r,i,b[i]}. 1(⟨W_{r,1:d}⁰, E(b)[i]⟩ > 0) = 1(ν_{r,i,b[i]} > 0). Further, |⟨W_{r,1:d}⁰, E(b)[i]⟩ − "
        "ν_{r,i,b[i]}| < ε/100.",
        hypotheses="Assumptions 1 and 2",
        ours="As for Lemma 10; δ = 0.9, so that the draws decide.",
    ),
)
