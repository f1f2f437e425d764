"""Hidden sets by collision instead of enumeration: halves of a parity agree with each other on rows without noise.

Split the k columns of a parity into two halves. On a row whose label is not flipped, the XOR of one half equals the
XOR of the other half and the label. So on b such rows the halves have equal keys of b bits, and a join of keys meets
the pair of halves among all, as bit-sampling hashing does for the light bulb problem (Valiant, FOCS 2012; Karppa,
Kaski, Kohonen, arXiv 1510.03895). One round: deal the columns at random to two sides, draw b + 1 rows, key every
half-set of either side (one more row is the reference, against which bits are taken, so that both signs of the label
are met), join, look at each collision on 64 to 256 filter rows, and count the survivors on all rows.

*What is missed.* Let a parity have correlation φ with the labels of the N training rows, split by it in a share of u
to 1 − u. Of the rows of either class n₀, n₁ a share a₀, a₁ then agrees with it, where with J = φ·√(u(1 − u)N²/(n₀n₁))
a₁ = u + J·n₀/N and a₀ = 1 − u + J·n₁/N. Half of the rows of a key are drawn from either class without replacement:
they are all clean with probability c = Π (a₀n₀ − i)/(n₀ − i) · Π (a₁n₁ − i)/(n₁ − i), at least its smallest value over
the allowed u. Columns fall on the two sides as they must with probability s = C(m₁, h₁)·C(m₂, h₂)/C(n, k) of columns
dealt. A round meets the parity with probability s·c.

Rounds of one *epoch* use disjoint rows of one permutation. Flips at places of a random permutation are negatively
associated, and so are increasing functions of disjoint places: all keys of an epoch fail with probability at most
F = Π(1 − s·c). Its filter rows are drawn independently of the permutation, and stop the parity with probability at
most 2ε: the epoch misses it with at most 1 − (1 − 2ε)(1 − F). Epochs draw anew, and their probabilities multiply. The
filter lets a parity pass when at most t of f rows disagree; by Hoeffding's bound for draws without replacement,
exp(−f·KL(t/f ‖ d)) ≤ ε where d = (1 − J)/2 is the share of disagreement in filter rows drawn half from either class.
`Books.missed` is the product of all this for every φ on a grid.

*Skewed and correlated columns.* Keys draw from both classes alike, so two columns that always agree do not collide
(their XOR is constant, the label is not), nor do columns that are nearly always 0. Where buckets overfill all the
same, keys get more rows until the join is affordable; the books count the rows that were used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from parityscope.fit.bits.packed import count_seconds

SIZES = (2, 3, 4, 5, 6)
GRID = np.round(np.arange(0.05, 1.005, 0.01), 2)  # correlations that the books are kept for
_MOST_HALVES = 3_000_000
MOST_COLLISIONS = 6_000_000
# Nominal, each per piece of work that is counted; fitted to rounds on tables of many shapes. Their proportions are of
# one processor, and their size is that of another, on which collisions were the only work that took longer.
_COLLISION_SECONDS, _HALF_SECONDS, _SORT_SECONDS, _BIT_SECONDS, _ROUND_SECONDS = 15e-9, 9.8e-9, 48e-9, 1.6e-9, 4.5e-4
_QUICK_SECONDS = 2.4e-9
PASSED_SECONDS = 30e-9  # nominal, to find the columns of a collision that passed the quick filter
CALL_SECONDS = 3e-5  # nominal, to begin counting the survivors of a round on all rows


@dataclass(frozen=True)
class Plan:
    """How rounds are made: columns and sizes of the two sides, rows per key, words of filter rows.

    >>> plan = plan_for(1000, 4, 1400, 0.6)
    >>> plan.halves, 12 <= plan.key_bits <= 18, plan.filter_words
    ((2, 2), True, 4)
    """

    k: int
    halves: tuple[int, int]  # columns of a parity on either side
    sides: tuple[int, int]  # columns dealt to either side
    key_bits: int
    filter_words: int
    quick_words: int  # of the filter, which every collision is looked at first
    rho: float  # the correlation that it is made for
    seconds: float  # of one round, roughly

    @property
    def split(self) -> float:
        """The probability that the columns of a parity fall on the sides as they must, times C(n, k)."""
        return math.comb(self.sides[0], self.halves[0]) * math.comb(self.sides[1], self.halves[1])


def plan_for(
    columns: int,
    k: int,
    rows: int,
    rho: float,
    *,
    bits_per_column: float = 1.0,
    counted: int | None = None,
    uneven: float = 0.2,
) -> Plan:
    """Return the plan with the least expected time for a parity of correlation rho.

    Keys and filters draw from `rows` of equal classes; survivors are counted on `counted` rows, the same unless told.

    >>> plan_for(230_000, 2, 1645, 0.6).sides
    (115000, 115000)
    """
    large, small = (k + 1) // 2, k // 2
    share = large / k
    sides = [min(round(columns * part), columns - 1) for part in (share, 1 - share)]
    sides[1] = columns - sides[0]
    # Half-sets have to fit into memory: fewer columns are dealt then, and more rounds made, of which each has a part.
    for side, half in enumerate((large, small)):
        while math.comb(sides[side], half) * bits_per_column**half > _MOST_HALVES and sides[side] > half:
            sides[side] = max(half, int(sides[side] * 0.95))
    halves = [math.comb(m, h) * bits_per_column**h for m, h in zip(sides, (large, small), strict=True)]
    words, quick = _filter_words(rho, rows)
    # What chance collisions cost after the quick filter: of weak parities it stops few, and counting them on all rows
    # is then most of the work.
    passing = [_chance_passes(filter_limit(rho, rows, rows, 64 * some, uneven), 64 * some) for some in (quick, words)]
    after = passing[0] * (PASSED_SECONDS + (words > quick) * count_seconds(1, k, words))
    after += min(passing) * count_seconds(1, k, (rows if counted is None else counted) / 64)
    best: Plan | None = None
    # One more bit halves the chance collisions, and costs a factor (1 + ρ)/2 of the probability that the key is clean:
    # the plan has the least seconds per clean key.
    for key_bits in range(4, 21):
        if key_bits + 1 > rows / 4:
            break
        collisions = halves[0] * halves[1] / 2.0**key_bits
        if collisions > MOST_COLLISIONS and key_bits < 20:
            continue
        cost = round_seconds(halves, collisions, key_bits, quick, columns * bits_per_column) + collisions * after
        plan = Plan(k, (large, small), (sides[0], sides[1]), key_bits, words, quick, rho, cost)
        if best is None or cost / _agree(rho) ** key_bits < best.seconds / _agree(rho) ** best.key_bits:
            best = plan
    return best or Plan(k, (large, small), (sides[0], sides[1]), 4, words, quick, rho, math.inf)


def round_seconds(halves: Sequence[float], collisions: float, key_bits: int, quick: int, bits: float) -> float:
    """Return the nominal seconds of a round, from the half-sets of either side and how many pairs of them collide."""
    return (
        _ROUND_SECONDS
        + sum(halves) * quick * _HALF_SECONDS
        + min(halves) * (2 if key_bits > 16 else 1) * _SORT_SECONDS
        + collisions * (_COLLISION_SECONDS + quick * _QUICK_SECONDS)
        + gather_seconds(key_bits + 1, bits)
    )


def gather_seconds(rows: int, bits: float) -> float:
    """Return the nominal seconds that it takes to read the bits of some rows."""
    return rows * bits * _BIT_SECONDS


def _chance_passes(limit: int, filter_rows: int) -> float:
    """Return roughly how often a parity without correlation passes a filter, by either sign."""
    return math.erfc(max(0.0, filter_rows - 2 * limit - 1) / math.sqrt(2 * filter_rows))


def _agree(rho: float) -> float:
    return (1 + rho) / 2


def _filter_words(rho: float, rows: int) -> tuple[int, int]:
    """Return how many words the filter has, and how many of them tell most chance collisions from a parity."""
    words = max(1, min(4 if rho > 0.35 else 8, rows // 256))
    for quick in range(1, words):
        if rho * math.sqrt(64 * quick) >= 4.4:
            return words, quick
    return words, words


@lru_cache(maxsize=4096)
def _clean(first: int, second: int, key_rows: int, uneven: float) -> tuple[float, ...]:
    """Return, for every correlation of GRID, the least probability that the rows of a key are clean."""
    # How evenly the parity splits the rows is not known before it is found: the worst of what is allowed counts.
    u = np.linspace(0.5 - uneven / 2, 0.5 + uneven / 2, 33)[:, None]
    rows = first + second
    J = GRID * np.sqrt(u * (1 - u) * rows * rows / (first * second))
    agree = [np.clip(1 - u + J * second / rows, 0, 1) * first, np.clip(u + J * first / rows, 0, 1) * second]
    impossible = (u + J * first / rows > 1 + 1e-12) | (1 - u + J * second / rows > 1 + 1e-12)
    clean = np.ones_like(J)
    for count, total, draws in zip(agree, (first, second), halved(key_rows), strict=True):
        steps = np.arange(draws)[:, None, None]
        clean *= np.prod(np.clip((count - steps) / (total - steps), 0, 1), axis=0)
    # The two signs of a parity are the same with the roles of the classes exchanged.
    return tuple(np.where(impossible, 1.0, clean).min(axis=0).tolist())


def halved(rows: int) -> tuple[int, int]:
    """Return how many of some rows are drawn from the first class, and how many from the second.

    >>> halved(15)
    (7, 8)
    """
    return rows // 2, rows - rows // 2


@lru_cache(maxsize=4096)
def filter_limit(rho: float, first: int, second: int, filter_rows: int, uneven: float) -> int:
    """Return the most disagreements that a parity of correlation rho has in the filter rows but for `filter_miss`.

    >>> filter_limit(0.9, 700, 700, 64, 0.2), filter_limit(0.2, 700, 700, 64, 0.2)  # half of the rows: lets all pass
    (12, 32)
    """
    u = np.array([0.5 - uneven / 2, 0.5])
    J = rho * math.sqrt((first + second) ** 2 / (first * second)) * np.sqrt(u * (1 - u))
    disagree = float((1 - np.minimum(J, 1.0)).max()) / 2
    for limit in range(math.ceil(disagree * filter_rows), filter_rows // 2):
        if filter_rows * _divergence((limit + 1) / filter_rows, disagree) >= -math.log(filter_miss(rho)):
            return limit
    return filter_rows // 2


def filter_miss(rho: float) -> float:
    """Return how often the quick filter, and once more the whole one, may stop a parity of correlation rho.

    >>> filter_miss(0.9), filter_miss(0.5)
    (0.001, 0.01)
    """
    return 0.001 if rho >= 0.8 else 0.01


def _divergence(a: float, b: float) -> float:
    """Return KL(a ‖ b) of two coins."""
    if b <= 0:
        return math.inf if a > 0 else 0.0
    first = a * math.log(a / b) if a > 0 else 0.0
    return first + ((1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0)


@dataclass
class Books:
    """The probability that a parity of each correlation of GRID was missed by all rounds so far.

    >>> books = Books(700, 700, 0.1)
    >>> books.close_epoch([(15, 0.375)] * 80, filter_rho=0.6)
    >>> missed = dict(zip(GRID.tolist(), books.missed.tolist()))
    >>> missed[0.9] < 0.021 < 0.1 < missed[0.6] < 1.0 == missed[0.5]
    True
    """

    first: int
    second: int
    uneven: float
    missed: Float[ndarray, " grid"] = field(default_factory=lambda: np.ones(len(GRID)))

    def close_epoch(self, rounds: list[tuple[int, float]], filter_rho: float) -> None:
        """Enter the rounds of an epoch, each with its key rows and the probability of its split.

        Correlations below `filter_rho` may be stopped by the filter: they gain nothing.
        """
        fail = np.zeros(len(GRID))
        for key_rows, split in rounds:
            fail += np.log1p(
                -np.minimum(split * np.array(_clean(self.first, self.second, key_rows, self.uneven)), 0.999999)
            )
        epoch = 1 - (1 - 2 * filter_miss(filter_rho)) * -np.expm1(fail)
        self.missed = self.missed * np.where(filter_rho - 1e-9 <= GRID, epoch, 1.0)

    def rounds_for(self, plan: Plan, split: float, missed: float) -> float:
        """Return how many more rounds of a plan bring the probability for its correlation down to `missed`."""
        here = int(np.argmin(np.abs(GRID - plan.rho)))
        per_round = split * _clean(self.first, self.second, plan.key_bits + 1, self.uneven)[here]
        # What an epoch wins is limited by its filter.
        each = self.rounds_per_epoch(plan)
        met = -math.expm1(each * math.log1p(-min(per_round, 0.999999)))
        gain = -math.log1p(-(1 - 2 * filter_miss(plan.rho)) * met)
        needed = math.log(max(float(self.missed[here]), 1e-300)) - math.log(missed)
        return 0.0 if needed <= 0 else math.inf if gain <= 0 else each * needed / gain

    def rounds_per_epoch(self, plan: Plan) -> int:
        """Return how many rounds have rows of their own."""
        draws = halved(plan.key_bits + 1)
        return max(1, min(have // max(1, draw) for have, draw in zip((self.first, self.second), draws, strict=True)))

    def reached(self, missed: float) -> float:
        """Return the correlation from which on parities are missed with at most this probability; 2 for none.

        >>> Books(700, 700, 0.1).reached(0.003)
        2.0
        """
        good = self.missed <= missed
        below = np.flatnonzero(~good)
        start = 0 if not len(below) else int(below[-1]) + 1
        return float(GRID[start]) if start < len(GRID) else 2.0
