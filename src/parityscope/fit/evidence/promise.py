"""What a search would have found: from what every solver did to "any parity … with correlation ≥ ρ, surely".

The promise is about a label that is the parity χ of k columns, flipped at random in a share (1 − ρ)/2 of the rows, or
its negation. It is found when four things happen; each may fail with its own share of δ = 0.01, and by the union bound
all happen with probability at least 0.99.

1. *The training rows show it* (0.003). Their agreement a = mean of χy is binomial, however χ splits the rows, so it is
   at least its exact lower quantile. What is searched and judged is the correlation φ; where χ or the labels are
   uneven it is smaller than a, but no smaller than `least_phi`, which the labels' known mean decides.
2. *A solver meets it and keeps it.* An exhaustive search meets everything. A collision search misses a parity of
   training correlation ρ_t with at most the probability that it keeps books of (`collision`), which has to be ≤ 0.003;
   so does elimination. A solver keeps the strongest parities of each size: a parity is the strongest as soon as the
   union bound over all parities of that size on the training rows is below 0.001 at its own correlation.
3. *All rows together give a corrected p-value of at most α* (0.0015). The agreement of all rows is at least its exact
   lower quantile, hence φ at least what follows from that, and every sign of that correlation, however unevenly it
   splits the rows, has a small enough exact tail (`least_significant`).
4. *The held-out rows agree* at the level of 5 % (0.0015): the same quantile, the same tail.

Flips need not be as frequent where χ = 1 as where χ = −1: with any share in each row, (1 − ρ)/2 on average, the lower
tail of the agreement is at most the binomial one (Hoeffding, Annals of Mathematical Statistics 27, 1956, theorem 4).

The same ρ serves for a parity whose correlation *in these rows* is ρ: the rows that are held out are then the only
chance, and a draw without replacement deviates less than a binomial one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy import ndarray

from parityscope.fit.evidence.evidence import log_choose
from parityscope.fit.evidence.sentences import counted, sizes_text

TRAINING_SHARE, SOLVER_SHARE, STRONGEST_SHARE, EVIDENCE_SHARE, HELD_OUT_SHARE = 0.003, 0.003, 0.001, 0.0015, 0.0015
SURELY = 0.99
_SPLITS = 129  # how unevenly a sign may split the rows: as many cases are tried
_STEP = 0.01


@lru_cache(maxsize=4096)
def lower_quantile(rows: int, rho: float, share: float) -> float:
    """Return the agreement that `rows` rows of a parity of correlation rho fall short of with at most `share`.

    >>> round(lower_quantile(1000, 0.5, 0.003), 3)  # about 2.75 standard deviations √(0.75/1000) below
    0.424
    """
    agree = (1 + rho) / 2
    if agree >= 1:
        return 1.0
    counts = np.arange(rows + 1, dtype=float)
    log_mass = log_choose(rows, counts) + counts * math.log(agree) + (rows - counts) * math.log(1 - agree)
    below = np.cumsum(np.exp(log_mass))
    return float(2 * np.searchsorted(below, share, side="right") / rows - 1)


def least_phi(agreement: float, label_mean: float, uneven: float = 1.0) -> float:
    """Return the least correlation of labels of this mean with a sign χ of |mean| ≤ `uneven`, from the mean of χy.

    φ(μ) = (a − μm)/√((1 − μ²)(1 − m²)) for a sign of mean μ; its derivative has the sign of μa − m, so φ is least at
    μ = m/a, where it is √((a² − m²)/(1 − m²)), or at the nearest allowed mean.

    >>> least_phi(0.5, 0.0), round(least_phi(0.5, 0.4), 3), round(least_phi(0.5, 0.4, uneven=0.2), 3)
    (0.5, 0.327, 0.468)
    """
    m = abs(label_mean)
    if agreement <= uneven * m:
        return 0.0
    mean = min(m / agreement, uneven)
    return 0.0 if mean >= 1 else min(1.0, (agreement - mean * m) / math.sqrt((1 - mean**2) * (1 - m**2)))


@lru_cache(maxsize=256)
def least_significant(rows: int, ups: int, log_level: float) -> float:
    """Return a correlation above which every sign has a one-sided exact tail of at most exp(log_level).

    `ups` of the rows have the second label. For a sign that is 1 in u rows, the count of rows with both is
    hypergeometric; its tail is at most its first term over one minus the ratio of the first two, since the ratios
    fall. The answer is the largest correlation, over all u, that is not yet significant; 1 when none is.

    >>> 0.19 < least_significant(1000, 500, math.log(1e-9)) < 0.20  # the normal tail's: 6.0/√1000
    True
    """
    if not 0 < ups < rows:
        return 1.0
    u = np.unique(np.linspace(1, rows - 1, min(rows - 1, _SPLITS)).astype(np.int64)).astype(float)
    most = np.minimum(u, ups)
    # Not significant at `low` or below, significant above `high`, if at all.
    low, high = np.floor(u * ups / rows), most + 1
    while bool((high - low > 1).any()):
        middle = np.floor((low + high) / 2)
        significant = (middle > most) | (_log_tail(rows, ups, u, np.minimum(middle, most)) <= log_level)
        high, low = np.where(significant, middle, high), np.where(significant, low, middle)
    spread = np.sqrt(u * (rows - u) * ups * (rows - ups))
    return float(min(1.0, ((low * rows - u * ups) / spread).max()))


def _log_tail(rows: int, ups: int, u: ndarray, both: ndarray) -> ndarray:
    """Return an upper bound of log P(count ≥ both); 0 where the count is not above its mode."""
    first = log_choose(u, both) + log_choose(rows - u, ups - both) - log_choose(rows, float(ups))
    ratio = (u - both) * (ups - both) / ((both + 1) * np.maximum(rows - u - ups + both + 1, 0.5))
    above = ratio < 1
    return np.where(above, np.minimum(0.0, first - np.log1p(-np.where(above, ratio, 0.0))), 0.0)


@dataclass(frozen=True)
class Evidence:
    """The rows and the price of a search: everything but the solvers that a promise depends on.

    >>> evidence = Evidence(rows=1000, ups=500, train=700, train_ups=350, alpha=0.01)
    >>> evidence.rho(met_from=0.0, log_family=math.log(1225), log_sets=math.log(1225))  # pairs of 50 columns
    0.3
    >>> evidence.rho(met_from=1.5, log_family=5.0, log_sets=5.0) is None  # met by no solver
    True
    """

    rows: int
    ups: int
    train: int
    train_ups: int
    alpha: float

    def rho(self, met_from: float, log_family: float, log_sets: float, uneven: float = 1.0) -> float | None:
        """Return the smallest ρ that can be promised, in steps of 0.01; None when there is none.

        `met_from` is the training correlation from which a solver meets a parity surely enough, log_family the price
        of the search in the corrected p-value, log_sets the logarithm of how many parities of the size there are. The
        promise is for parities of |mean| ≤ `uneven`.
        """
        train_floor = max(met_from, self.strongest(log_sets))
        all_floor = self.significant(log_family)
        held_out, held_out_ups = self.rows - self.train, self.ups - self.train_ups
        held_floor = least_significant(held_out, held_out_ups, math.log(0.05))

        def least(rows: int, ups: int, rho: float, share: float) -> float:
            return least_phi(lower_quantile(rows, rho, share), 2 * ups / rows - 1, uneven)

        def promised(rho: float) -> bool:
            return held_out > 0 and (
                least(self.train, self.train_ups, rho, TRAINING_SHARE) >= train_floor
                and least(self.rows, self.ups, rho, EVIDENCE_SHARE) > all_floor
                and least(held_out, held_out_ups, rho, HELD_OUT_SHARE) > held_floor
            )

        low, high = 0, round(1 / _STEP)
        if not promised(1.0):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if promised(middle * _STEP) else (middle, high)
        return round(high * _STEP, 2)

    def significant(self, log_family: float) -> float:
        """Return the correlation in all rows above which every sign reaches alpha after the price of the search.

        >>> evidence = Evidence(rows=1000, ups=500, train=700, train_ups=350, alpha=0.01)
        >>> evidence.significant(0.0) < evidence.significant(20.0)
        True
        """
        return least_significant(self.rows, self.ups, math.log(self.alpha / 2) - log_family)

    def strongest(self, log_sets: float) -> float:
        """Return the training correlation that no other parity of the size reaches, but for a chance of 0.001.

        >>> evidence = Evidence(rows=1000, ups=500, train=700, train_ups=350, alpha=0.01)
        >>> evidence.strongest(math.log(1225)) < evidence.strongest(math.log(1e9)) < 0.3
        True
        """
        return least_significant(self.train, self.train_ups, math.log(STRONGEST_SHARE / 2) - log_sets)


def sentence(
    promised: Mapping[int, float | None], *, k_is_known: bool, uneven: Mapping[int, float] | None = None
) -> str:
    """Return the promise in words, from the correlation that is promised for every size.

    `uneven` has, by size, the largest |mean| of a parity that it holds for, where it does not hold for all.

    >>> print(sentence({1: 0.2, 2: 0.2, 3: None}, k_is_known=False))
    any parity of at most k = 2 columns with correlation ≥ 0.2 would have been found with probability ≥ 0.99
    >>> print(sentence({3: None}, k_is_known=True))
    nothing can be promised: a parity of 3 columns, however strong, might have been missed
    """
    clauses: list[str] = []
    sizes = sorted(k for k, rho in promised.items() if rho is not None)
    limited = _limited(sizes, uneven or {})
    while sizes:
        rho = promised[sizes[0]]
        same = [k for k in sizes if promised[k] == rho]
        run = [k for index, k in enumerate(same) if k == sizes[0] + index]
        sizes = [k for k in sizes if k not in run]
        which = f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}"
        if not clauses:
            which = f"at most k = {run[-1]}" if not k_is_known and run[0] == 1 else which
            which += " column" if run[-1] == 1 else " columns"
        strong = "without noise" if rho == 1 else f"with correlation ≥ {rho:g}"
        clauses.append(f"of {which} {strong}")
    if not clauses:
        which = ", ".join(map(str, sorted(promised))) or "any number of"
        which = counted(which, "column")
        return f"nothing can be promised: a parity of {which}, however strong, might have been missed"
    joined = ", ".join(clauses) + ("," if len(clauses) > 1 else "")
    return f"any parity {joined} would have been found with probability ≥ {SURELY:g}{limited}"


def _limited(sizes: Sequence[int], uneven: Mapping[int, float]) -> str:
    """Return for which parities the promise holds, where that is not for all.

    >>> _limited([1, 2, 3], {3: 0.2})
    ' (of 3 columns if it splits the rows no less evenly than 40 : 60)'
    """
    some = [k for k in sizes if uneven.get(k, 1.0) < 1]
    if not some:
        return ""
    mean = min(uneven[k] for k in some)
    which = "" if len(some) == len(sizes) else f"of {counted(sizes_text(some), 'column')} "
    return f" ({which}if it splits the rows no less evenly than {50 - 50 * mean:.0f} : {50 + 50 * mean:.0f})"
