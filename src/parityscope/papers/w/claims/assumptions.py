"""W, Lemmas 5 to 7: what Assumption 2 implies as n → ∞, and what a batch of chains says about its positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from parityscope.core.statistics import wilson_share
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most, below
from parityscope.papers.w import formulas, regime
from parityscope.papers.w.criteria import rare
from parityscope.papers.w.instance import drawn_bits, statistics
from parityscope.problems import bits_of, seeded_generator
from parityscope.problems.sequences import ParitySequences, draw_secret
from parityscope.theory import w as theory

_DELTAS, _EPSILONS = (1e-6, 0.1, 0.9), (1e-3, 0.1, 1.0)
_LIMITS = {
    "1": "d/n → 0 and B/nk → 0",
    "2": "√(2k/d · log(Bmn/δ)) → 0",
    "3": "three more expressions → 0",
    "5": "log²(300mnB/δ) · n√(nk)/(d√(Bd)) → 0",
    "7": "η₂/η₀ → 0",
}
_INEQUALITIES = {
    "4": "η₀ = η₁ ≤ min{3mε√B/80√log(300nB/δ), mnε/120}",
    "6": "η₀η₁/256mn² > 40 log n",
    "8": "η₀ + η₁ < 5nη₂",
}


def _quantity(number: str) -> str:
    if number in _LIMITS:
        return f"item {number}: its power of log n far out"
    return f"item {number}: log of left over right far out"


_LEMMA_5_CLAUSES = tuple(
    Clause(
        f"{number}. {says}",
        _quantity(number),
        at_most(-0.01) if number in _LIMITS else below(0),
        "a limit is 0 if the power is negative; Assumption 2 makes the powers multiples of 0.05"
        if number in _LIMITS
        else "the lemma's own inequality",
        at_least(0),
    )
    for number, says in sorted({**_LIMITS, **_INEQUALITIES}.items())
)


def _lemma_5(context: Context) -> Measurement:
    names = list(regime.lemma_5_items(regime.assumption_2(1.0)))
    powers = {name: regime.power_of_log_n(partial(_item, name)) for name in names}
    far = [
        regime.lemma_5_items(regime.assumption_2(regime.FAR, delta, epsilon, power))
        for delta, epsilon, power in itertools.product(_DELTAS, _EPSILONS, regime.ENDS)
    ]
    measured = {_quantity(number): max(powers[name] for name in names if name.startswith(number)) for number in _LIMITS}
    for number in _INEQUALITIES:
        measured[_quantity(number)] = max(items[name] for items in far for name in names if name.startswith(number))
    grid = [10.0**x for x in range(1, context.at(smoke=50, reference=60))]
    from_log_n = _below_one_from(grid)
    sharp = next((x for x in grid if regime.lemma_10_overlap(regime.assumption_2(x)) < math.log(0.01)), math.inf)
    return Measurement(
        measured,
        f"all below 1 from log n ≈ {max(from_log_n.values()):.0e} on",
        f"{len(names)} expressions at {2 * len(grid)} sizes, {len(far)} choices of δ, ε and k far out",
        {
            "powers_of_log_n": {name: max(power, -1e9) for name, power in powers.items()},
            "below_one_from_log_n": from_log_n,
            "log_n_where_lemma_10s_overlap_falls_below_0.01": sharp,
        },
        "Every item was evaluated in log space with 100 digits, for both ends of k's range, up to n = e^(10⁵⁹). √(k "
        f"log(…)/d) falls only like log^-0.05: Lemma 10 uses it below 0.01, as it is at log n = {sharp:.0e}, the "
        "first power of ten.",
    )


def _item(name: str, at: regime.AssumptionTwo) -> float:
    return regime.lemma_5_items(at)[name]


def _below_one_from(grid: Sequence[float]) -> dict[str, float]:
    """Return the first log n of the grid where each item is below 1 at both ends of k's range."""
    found: dict[str, float] = {}
    for x in grid:
        at_ends = [regime.lemma_5_items(regime.assumption_2(x, power=power)) for power in regime.ENDS]
        for name in at_ends[0]:
            if found.get(name, math.inf) == math.inf:
                found[name] = x if all(items[name] < 0 for items in at_ends) else math.inf
    return found


_STAYS, _VANISHES = "largest |E[next | past] − present|", "largest |E[present | past]|"
_COUNTED = "exact counts over all inputs"


def _lemma_6(context: Context) -> Measurement:
    n, k = context.at(smoke=6, reference=9), 3
    task = ParitySequences(n, draw_secret(n, k, 0))
    tokens = task.tokens(bits_of(torch.arange(2**n), n))
    off_zero, off_present, events, example = 0.0, 0.0, 0, {}
    for link, j in itertools.product(range(k), range(n + k)):
        i = n + link
        if j > i or task.secret[link] == j:
            continue
        mean, _, _ = _given(tokens, [j, *range(n, i + 1)], i)
        off_zero, events = max(off_zero, float(mean.abs().max())), events + len(mean)
        if link + 1 == k or task.secret[link + 1] == j:
            continue
        # The past of the next step knows b[i + 1], and with it the present value.
        mean, first, known = _given(tokens, [j, *range(n, i + 2)], i + 1)
        for b1, b2 in itertools.product((0, 1), repeat=2):
            present = (1 - 2 * first[:, i + 1]) * ((first[:, j] == b1) & (first[:, i] == b2))
            following = mean * ((first[:, j] == b1) & (first[:, i + 1] == b2))
            apart = (following - present).abs()
            if float(apart.max()) > off_present:
                worst = int(apart.argmax())
                off_present = float(apart[worst])
                past = {str(place + 1): int(first[worst, place]) for place in known}
                example = {"n": n, "secret": _from_one(task.secret), "i": i + 1, "j": j + 1, "b1": b1, "b2": b2}
                example["past"] = past
    return Measurement(
        {_STAYS: off_present, _VANISHES: off_zero},
        f"the next value is off the present one by {off_present:g}; its conditional mean is {off_zero:g}",
        f"all 2^{n} inputs, {events} events",
        {"n": n, "k": k, "events": events, "largest_conditional_mean": off_zero},
        f"Conditional means given b[j] and the chain so far were counted over all 2^{n} inputs. A martingale's next "
        "value is the present one on average; this process has mean 0 given its past: it is a martingale difference.",
        {_STAYS: example},
    )


def _given(tokens: Tensor, known: Sequence[int], i: int) -> tuple[Tensor, Tensor, Sequence[int]]:
    """Return the mean of (−1)^{b[i+1]} for each value of the known tokens, one sequence each, and the known."""
    code = (tokens[:, known] * 2 ** torch.arange(len(known))).sum(1)
    values, group = code.unique(return_inverse=True)
    sign = (1 - 2 * tokens[:, i + 1]).double()
    zeros = torch.zeros(len(values), dtype=torch.float64)
    mean = zeros.index_add(0, group, sign) / zeros.index_add(0, group, torch.ones_like(sign))
    first = torch.full((len(values),), len(tokens)).scatter_reduce(0, group, torch.arange(len(tokens)), "amin")
    return mean, tokens[first], known


def _mean_again(point: Mapping[str, Any]) -> Again:
    """Write every input and its chain out in plain Python, and average over those with the stored past."""
    n, i, j, secret = (point[name] for name in ("n", "i", "j", "secret"))
    following, present = [], 0
    for bits in itertools.product((0, 1), repeat=n):
        sequence = _counted_from_one(bits, secret)
        if any(sequence[int(place)] != value for place, value in point["past"].items()):
            continue
        wanted = sequence[j] == point["b1"]
        present = (-1) ** sequence[i + 1] * (wanted and sequence[i] == point["b2"])
        following.append((-1) ** sequence[i + 2] * (wanted and sequence[i + 1] == point["b2"]))
    return Again(abs(sum(following) / len(following) - present), "plain enumeration")


_LEMMA_7_DELTA = 0.9  # then 40 trials without a violation are surely below δ/10
_TENTH = f"δ/10 for δ = {_LEMMA_7_DELTA}"
_BROKEN = {
    name: f"share of trials beyond the bound on {letter}"
    for name, letter in zip(("delta", "alpha", "beta", "psi", "gamma", "zeta"), "δαβψγζ", strict=True)
}
_ALPHA_FOR_ALL = "share of trials beyond √(2B log(300nB/δ)) for α"
_DELTA_LATER = "share of trials beyond the bound on δ at i ≥ n + 1"


def _lemma_7(context: Context) -> Measurement:
    trials, B, n, k, m = context.at(smoke=40, demo=40, reference=200), 256, 12, 3, 16
    task = ParitySequences(n, draw_secret(n, k, 0))
    bounds = theory.statistics_bounds(n, k, m, B, _LEMMA_7_DELTA)
    other = torch.ones(k, n + k, dtype=torch.bool)
    other[torch.arange(k), list(task.secret)] = False
    broken = dict.fromkeys([*_BROKEN, "all", "later"], 0)
    largest = dict.fromkeys(_BROKEN, 0.0)
    example: dict[str, Any] | None = None
    at_n: dict[str, Any] | None = None
    for seed in range(trials):
        active = torch.randint(2, (2 * m, k, 2), generator=seeded_generator(seed, "start")).double()
        beyond = dict.fromkeys(broken, False)
        for step in range(3):
            tokens = task.tokens(drawn_bits(n, B, seed, step))
            counted = statistics(task, tokens)
            table = formulas.table_1(task, counted, active)
            parts = (table.delta, table.alpha_off_mean, table.beta, table.psi, table.gamma, table.zeta)
            for (name, bound), part in zip(bounds._asdict().items(), parts, strict=True):
                ratio = float(part.abs().max()) / bound
                largest[name] = max(largest[name], ratio)
                beyond[{"alpha": "all", "delta": "later"}.get(name, name)] |= ratio > 1
            delta = _delta_everywhere(tokens, theory.places_of_lemma_7(n, k))
            beyond["delta"] |= float(delta.abs().max()) > bounds.delta
            if beyond["delta"] and at_n is None:
                place, b = (int(one) for one in torch.unravel_index(delta.abs().argmax(), delta.shape))
                at_n = {"n": n, "B": B, "seed": seed, "step": step, "i": place + 1, "b": b, "bound": bounds.delta}
                at_n |= {"secret": _from_one(task.secret), "value": float(delta[place, b])}
            elsewhere = (table.alpha_off_mean * other[:, :, None, None]).abs()
            beyond["alpha"] |= beyond["all"] or theory.alpha_elsewhere() < float(elsewhere.max())
            if beyond["alpha"] and example is None:
                link, j, b1, b2 = (int(one) for one in torch.unravel_index(elsewhere.argmax(), elsewhere.shape))
                where = {"n": n, "B": B, "seed": seed, "step": step, "i": n + 1 + link, "j": j + 1, "b1": b1, "b2": b2}
                example = {**where, "secret": _from_one(task.secret), "value": float(counted.alpha[link, j, b1, b2])}
        for name, is_beyond in beyond.items():
            broken[name] += is_beyond
    measured = {quantity: wilson_share(broken[name], trials) for name, quantity in _BROKEN.items()}
    return Measurement(
        {
            **measured,
            _ALPHA_FOR_ALL: wilson_share(broken["all"], trials),
            _DELTA_LATER: wilson_share(broken["later"], trials),
        },
        f"of {trials} trials the printed bound on α is broken in {broken['alpha']}, for n + 1 ≤ i and j ≤ i without "
        f"its indicator in {broken['all']}; that on δ in {broken['delta']}, all at i = n, and from n + 1 on in "
        f"{broken['later']}",
        f"{3 * trials} batches",
        {"largest_over_bound": largest, "n": n, "k": k, "m": m, "B": B},
        "Three batches and a start were drawn per trial and every statistic of Table 1 counted. As printed, the bound "
        "on α carries 1(j = S[i]) and so says α = 0 for every other j; and that on δ includes i = n, where b[n+1] = 0 "
        "makes δ a count of about B/2. At j = i + 1, where α is such a count too, no bound on α − ᾱ holds.",
        {_BROKEN["alpha"]: example, _BROKEN["delta"]: at_n},
    )


def _delta_everywhere(tokens: Tensor, places: range) -> Tensor:
    """Return δ_{i,b} for the printed places i; 0 at those that are not asked for."""
    delta = torch.zeros(places.stop - 1, 2, dtype=torch.float64)
    for i in places:
        sign = (1 - 2 * tokens[:, i]).double()  # b[i + 1], counted from 1
        delta[i - 1] = torch.stack([sign[tokens[:, i - 1] == b].sum() for b in (0, 1)])
    return delta


def _from_one(secret: Sequence[int]) -> list[int]:
    """Return the secret's places as the paper counts them."""
    return [bit + 1 for bit in secret]


def _counted_from_one(bits: Sequence[int], secret: Sequence[int]) -> list[int]:
    """Return a sequence with its chain in plain Python, with a place before the first."""
    sequence = [-1, *bits, 0]
    for place in secret:
        sequence.append(sequence[-1] ^ sequence[place])
    return sequence


def _sequences(point: Mapping[str, Any]) -> Iterator[list[int]]:
    """Yield the sequences of a batch."""
    for bits in drawn_bits(point["n"], point["B"], point["seed"], point["step"]).tolist():
        yield _counted_from_one(bits, point["secret"])


def _delta_again(point: Mapping[str, Any]) -> Again:
    """Count δ one sequence after the other."""
    i = point["i"]
    delta = sum((-1) ** b[i + 1] * (b[i] == point["b"]) for b in _sequences(point))
    return Again(delta, "plain counting", float(abs(delta) > point["bound"]), f"δ at i = {i}")


def _alpha_again(point: Mapping[str, Any]) -> Again:
    """Count α, where the bound says 0, one sequence after the other."""
    i, j, wanted = point["i"], point["j"], (point["b1"], point["b2"])
    alpha = sum((-1) ** b[i + 1] * ((b[j], b[i]) == wanted) for b in _sequences(point))
    # Of this one trial: is the bound broken?
    return Again(alpha, "plain counting", float(alpha != 0), "α where the bound says 0")


def _within(letter: str, bound: str) -> Clause:
    name = dict(zip("δαβψγζ", _BROKEN, strict=True))[letter]
    return rare(
        f"|{letter}| ≤ {bound}" if letter != "α" else f"|α − ᾱ| ≤ {bound}",
        _BROKEN[name],
        _LEMMA_7_DELTA / 10,
        _TENTH,
    )


_IMPLIED = "power of log n in md·log n/nk"


def _assumption_2(context: Context) -> Measurement:
    power = regime.power_of_log_n(regime.log_memory)
    return Measurement(
        {_IMPLIED: power},
        f"md log n/nk falls like log^{power:.2f} n",
        "both ends of k's range, far out",
        {"power_of_log_n": power},
        "md·log n/nk was evaluated in log space with 100 digits at n = e^(10⁵⁰) and beyond.",
    )


CLAIMS = (
    Claim(
        "W-assumption-2",
        "With Assumption 2's d and m, md·log n = o(nk).",
        (
            Clause(
                "md·log n/nk → 0",
                _IMPLIED,
                at_most(-0.01),
                "a limit is 0 if the power is negative; Assumption 2 makes the powers multiples of 0.05",
                at_least(0),
            ),
        ),
        _assumption_2,
        "Appendix B.4, Assumption 2",
        printed="Set d = k log^{1.1}(n/δ) and m = 2k. This implies md log n = o(nk).",
        hypotheses="k ∈ [n/log⁵(n/δ), n/log⁴(n/δ)]",
        ours="The power of log n by which it falls, at the worse end of k.",
        proof="explanation/chain-of-thought#short-proofs",
    ),
    Claim(
        "W-lemma-5",
        "Assumption 2 implies eight limits and inequalities as n → ∞.",
        _LEMMA_5_CLAUSES,
        _lemma_5,
        "Appendix B.4, Lemma 5",
        printed="Under Assumption 2, the following conditions hold as n → ∞: 1. lim_{n→∞} d/n = 0 and lim_{n→∞} B/(nk) "
        "= 0. … 8. lim_{n→∞} (η₀ + η₁) < 5nη₂.",
        hypotheses="Assumption 2, for sufficiently large n",
        ours="Far out is n = e^(10⁵⁹); δ and ε were chosen by us, k at both ends of its range.",
    ),
    Claim(
        "W-lemma-6",
        "(−1)^{b[i+1]} 1(b[j] = b₁, b[i] = b₂) is a martingale for S[i] ≠ j.",
        (
            Clause("the next value is the present one on average", _STAYS, at_most(0), _COUNTED, above(0.1)),
            Clause("it is 0 on average, given its past", _VANISHES, at_most(0), _COUNTED, above(0.1), corrected=True),
        ),
        _lemma_6,
        "Appendix B.4.1, Lemma 6",
        printed="Fixing j, b₁, b₂, let F_{(i,t,s)} be the filtration generated by the random variables {b^{(t,s)}[i] | "
        "max{n+1, j} ≤ i, S[i] ≠ j, t' ≤ t, s ≤ B} ordered in lexicographic order, the process (−1)^{b^{(t,s)}[i+1]} "
        "1(b^{(t,s)}[j] = b₁, b^{(t,s)}[i] = b₂) is a martingale with respect to {F_t}_t.",
        ours="n = 9, k = 3; b[j] counts as known, as the proof has it.",
        misprint="The proof shows E[(−1)^{b[i+1]} | F] = 0, and Lemma 7 applies Azuma-Hoeffding to its sums: a "
        "martingale difference.",
        corrected="(−1)^{b[i+1]} 1(b[j] = b₁, b[i] = b₂) is a martingale difference for S[i] ≠ j.",
        replay={_STAYS: _mean_again},
    ),
    Claim(
        "W-lemma-7",
        "With probability 1 − δ/10 the statistics of Table 1 are within six bounds for all three batches.",
        (
            _within("δ", "√(B log(300nB/δ))"),
            _within("α", "√(2B log(300nB/δ)) 1(j = S[i])"),
            _within("β", "√(2Bk log(300nB/δ))/n"),
            _within("ψ", "2√(Bk log(300mnB/δ))/n"),
            _within("γ", "√(2m log(200n/δ))/n"),
            _within("ζ", "4m√(kB log(300mnB/δ))/n"),
            rare(
                "|α − ᾱ| ≤ √(2B log(300nB/δ)) for i ≥ n + 1 and every j ≤ i",
                _ALPHA_FOR_ALL,
                _LEMMA_7_DELTA / 10,
                _TENTH,
                corrected=True,
            ),
            rare("|δ| ≤ √(B log(300nB/δ)) for i ≥ n + 1", _DELTA_LATER, _LEMMA_7_DELTA / 10, _TENTH, corrected=True),
        ),
        _lemma_7,
        "Appendix B.4.1, Lemma 7",
        printed="With probability at least 1 − δ/10, the following bounds hold for all t ∈ [3], i, j ∈ [n+k], b, b₁, "
        "b₂ ∈ {0, 1}, and r ∈ [m] … |δ_{t,i,b}| ≤ √(B log(300nB/δ)) |α_{t,i,j,b₁,b₂} − ᾱ_{i,j,b₁,b₂}| ≤ √(2B "
        "log(300nB/δ)) 1(j = S[i]) …",
        hypotheses="the statistics of Table 1",
        ours="n = 12, k = 3, m = 16, B = 256, δ = 0.9. α − ᾱ is looked at for i ≥ n + 1, where Table 1 defines ᾱ, and "
        "for j ≤ i. The proof takes R = √(2B log(300nB/δ)) for δ where √(B log(300nB/δ)) is printed; that holds too "
        "once nB ≫ 12/δ.",
        misprint="Table 1 gives α the rough order ᾱ + O(√(B log(nB/δ))) without an indicator, defines ᾱ for i ≥ n + 1 "
        "only, and its sums β and ψ of α start at i = max{n+1, j}: only i ≥ n + 1 and j ≤ i are used.",
        corrected="For i ≥ n + 1 and j ≤ i, and |α − ᾱ| ≤ √(2B log(300nB/δ)) without 1(j = S[i]); the other bounds as "
        "printed.",
        replay={_BROKEN["alpha"]: _alpha_again, _BROKEN["delta"]: _delta_again},
    ),
)
