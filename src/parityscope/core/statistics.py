"""Shares with their intervals, and the one median of this project."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable
from statistics import NormalDist
from typing import NamedTuple

from parityscope.core.errors import InvalidInput


def median(values: Iterable[float]) -> float:
    """Return the median; of an even number of values the mean of the middle two."""
    return float(statistics.median(values))


class Share(NamedTuple):
    """A share of successes with its confidence interval.

    >>> share = wilson_share(8, 16)
    >>> share.value, round(share.low + share.high, 9)  # symmetric about one half
    (0.5, 1.0)
    """

    successes: int
    trials: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself."""
        return self.successes / self.trials

    def __str__(self) -> str:
        return f"{self.successes}/{self.trials} ({self.low:.0%}–{self.high:.0%})"


def wilson_share(successes: int, trials: int, confidence: float = 0.95) -> Share:
    """Return the share of successes with Wilson's interval, which is honest at 0 and at 1 too."""
    if not 0 <= successes <= trials or trials < 1:
        raise InvalidInput(f"successes must lie between 0 and trials, got {successes} of {trials}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p, spread = successes / trials, 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / spread
    half = z * math.sqrt(p * (1 - p) / trials + (z / trials) ** 2 / 4) / spread
    return Share(successes, trials, max(0.0, centre - half), min(1.0, centre + half))


def share_of_true(flags: Collection[bool]) -> Share:
    """Return the share of flags that are true, with Wilson's interval.

    >>> str(share_of_true([True, True, False]))
    '2/3 (21%–94%)'
    """
    return wilson_share(sum(flags), len(flags))
