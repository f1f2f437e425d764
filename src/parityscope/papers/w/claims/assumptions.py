"""W, Lemma 5: what Assumption 2 implies as n → ∞."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial

from parityscope.papers.claim import Claim, Context, Measurement
from parityscope.papers.criterion import Clause, at_least, at_most, below
from parityscope.papers.w import regime

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


_CLAUSES = tuple(
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
    sharp = next(
        (x for x in grid if regime.lemma_10_overlap(regime.assumption_2(x)) < math.log(0.01)),
        math.inf,
    )
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
        f"log(…)/d) falls only like log^-0.05: Lemma 10 uses it below 0.01, which needs log n ≈ {sharp:.0e}.",
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


CLAIMS = (
    Claim(
        "W-lemma-5",
        "Assumption 2 implies eight limits and inequalities as n → ∞.",
        _CLAUSES,
        _lemma_5,
        "Appendix B.4, Lemma 5",
        seconds=0.7,
    ),
)
