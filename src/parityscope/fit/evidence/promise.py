"""What a search would have found: from what was scanned and sampled to a sentence about further parities.

A further parity of k columns has partial correlation ρ with the target: the correlation of its sign, after the terms of
the model and the parts of the parity are taken out, with the target, in units of the target's own spread. Its score
statistic is then near ρ√N with standard deviation at most one. It is significant where that exceeds the normal quantile
c of its level, and it falls `DEVIATIONS` standard deviations short with probability 0.3 %: ρ = (c + 2.75)/√N, and
a little for the degrees of freedom that the parts take and for a skewed target.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache

from parityscope.fit.clock import time_text
from parityscope.fit.evidence.score import normal_quantile

MISSED = 0.003  # how often a sampled search may miss a parity that it is said to have met
_SURELY = 0.99
DEVIATIONS = 2.75  # a normal variable falls so far below its mean with probability 0.003
_FEWEST = 0.05  # the share of rows that a parity must concern beyond its parts for the sentence to hold
_A_DAY = 86_400.0
_NEARLY = 1.5


@lru_cache(maxsize=4096)
def threshold(log_price: float, *, grouped: bool = False) -> float:
    """Return the standardised score above which an effect is significant at level exp(−log_price), two-sided.

    Sums of groups are tested by Hoeffding's bound, 2·exp(−t²/2), which asks for more than the normal tail.

    >>> round(threshold(-math.log(0.05)), 2), round(threshold(-math.log(0.05), grouped=True), 2)
    (1.96, 2.72)
    """
    return math.sqrt(2 * (log_price + math.log(2))) if grouped else normal_quantile(-log_price - math.log(2))


def promised(
    rows: int, share: float, log_price: float, *, met: float = 0.0, features: int = 0, grouped: bool = False
) -> float | None:
    """Return the partial correlation from which a further parity would be found, in steps of 0.01; None if none would.

    `share` is that of the second class (one half for a measured target), `met` the correlation from which on sampled
    sets are met, `features` how many columns the regression has; with `grouped` the rows are groups.

    >>> promised(4000, 0.5, -math.log(1e-6)), promised(4000, 0.05, -math.log(1e-6)), promised(30, 0.5, 30.0) is None
    (0.13, 0.14, True)
    """
    free = rows - features - 1
    if free < 10 or met > 1:
        return None
    cut = threshold(log_price, grouped=grouped)
    # Cornish and Fisher: a skewed sum needs a larger quantile, most where few rows carry the parity.
    skewness = abs(1 - 2 * share) / math.sqrt(_FEWEST * rows * share * (1 - share))
    cut += skewness * (cut**2 - 1) / 6
    rho = max((cut + DEVIATIONS) / math.sqrt(free), met + DEVIATIONS / math.sqrt(free) if met else 0.0)
    rounded = math.ceil(100 * rho - 1e-9) / 100
    return rounded if rounded < 1 else 1.0 if met == 1 and cut < math.sqrt(free) else None


def sentence(
    found: Mapping[int, float | None],
    *,
    spread: float | None,
    terms: bool,
    grouped: bool,
    uneven: Collection[int] = (),
    ended: str = "",
) -> str:
    """Return the promise in words, from the partial correlation that is promised for every size.

    `spread` is the standard deviation of the labels, which turns a correlation into points of the share (None for a
    measured target), `terms` whether something was found, `uneven` the sizes for which it holds of even parities only,
    `ended` why the search ended although more could be found.

    >>> print(sentence({1: 0.12, 2: 0.12, 3: None}, spread=0.5, terms=True, grouped=False))
    given the terms above, any further parity of at most k = 2 columns that moves the share by ≥ 6 points beyond its \
parts (correlation ≥ 0.12) would have been found with probability ≥ 0.99, if rows are independent
    >>> print(sentence({3: None}, spread=0.5, terms=False, grouped=False))
    nothing can be promised: a parity of 3 columns, however strong, might have been missed
    """
    sizes = sorted(k for k, rho in found.items() if rho is not None)
    if not sizes:
        if ended:
            return f"nothing can be promised: {ended}"
        which = sizes_text(found) if found else "any number of"
        return (
            f"nothing can be promised: a parity of {counted(which, 'column')}, however strong, might have been missed"
        )
    clauses: list[str] = []
    # Sizes from 1 on with nearly the same promise are one clause, with the weakest of theirs.
    while sizes:
        near = [k for k in sizes if (found[k] or 0.0) <= _NEARLY * (found[sizes[0]] or 0.0)]
        run = [k for index, k in enumerate(near) if k == sizes[0] + index]
        rho = max(found[k] or 0.0 for k in run)
        sizes = [k for k in sizes if k not in run]
        which = f"at most k = {run[-1]}" if run[0] == 1 else f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}"
        which = which if clauses else f"{which} column{'' if run == [1] else 's'}"
        clauses.append(f"of {which} {_strength(rho, spread)}")
    start = "given the terms above, any further parity " if terms else "any parity "
    limit = sorted(set(uneven) & {k for k, rho in found.items() if rho is not None})
    even = (
        f" ({counted(sizes_text(limit), 'column')}: if it splits the rows no less evenly than 40 : 60)" if limit else ""
    )
    independent = "groups" if grouped else "rows"
    joined = ", ".join(clauses) + ("," if len(clauses) > 1 else "")
    surely = f"would have been found with probability ≥ {_SURELY:g}, if {independent} are independent{even}"
    return f"{start}{joined} {surely}{f'; {ended}' if ended else ''}"


def _strength(rho: float, spread: float | None) -> str:
    if rho == 1:
        return "without noise"
    if spread is None:
        return f"with partial correlation ≥ {rho:g}"
    return f"that moves the share by ≥ {100 * rho * spread:.2g} points beyond its parts (correlation ≥ {rho:g})"


def sizes_text(sizes: Collection[int]) -> str:
    """Return sizes as ranges.

    >>> sizes_text({1, 2, 3, 10}), sizes_text({4})
    ('1 to 3 and 10', '4')
    """
    runs: list[list[int]] = []
    for size in sorted(sizes):
        if runs and size == runs[-1][-1] + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def counted(many: int | str, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "column"), counted("1 to 3", "column")
    ('1 column', '1 to 3 columns')
    """
    return f"{many} {what}{'' if many in (1, '1') else 's'}"


def skipped_sentence(
    unfinished: Mapping[int, tuple[float, float]], *, stopped: str = "", since: str = "", pairs: float = 0.0
) -> str:
    """Return what was not searched and what it would cost, from the correlation that was reached and the seconds.

    `stopped` says why the search was cut short, if it was, and `since` why it ended by itself before its budget was
    used. `pairs` is the budget that would have paid for a scan of all pairs, where this one did not.

    >>> skipped_sentence({4: (0.5, 7300.0), 5: (1.0, 9e9), 6: (2.0, 1e15), 7: (2.0, 1e18)})
    'not searched: 4 columns weaker than 0.5 (2 hours), 5 columns with noise (285 years), 6 to 7 columns (longer)'
    """
    texts, longest, longer = [], 0.0, []
    for k, (met, seconds) in sorted(unfinished.items()):
        if longest > _A_DAY and seconds > longest:
            longer.append(k)
            continue
        which = "" if met > 1 else " with noise" if met == 1 else f" weaker than {met:.2g}"
        enough = max(pairs + 0.05, 1.05 * pairs)  # which text that rounds to tenths, or two digits, does not undo
        whole = f"; a budget of {time_text(enough)} pays for all pairs" if k == 2 and pairs else ""
        texts.append(f"{counted(k, 'column')}{which} ({time_text(seconds)}{whole})")
        longest = max(longest, seconds)
    if longer:
        some = " with noise" if all(unfinished[k][0] == 1 for k in longer) else ""
        texts.append(f"{sizes_text(longer)} columns{some} (longer)")
    if since and texts:
        texts[-1] += f", since {since}"
    if stopped:
        texts.append(f"what else this budget pays for ({stopped})")
    return f"not searched: {', '.join(texts)}" if texts else ""
