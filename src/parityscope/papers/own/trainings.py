"""What claims that read trainings share: their rows, and the share of seeds that learned."""

from __future__ import annotations

from collections.abc import Sequence

from parityscope.core.statistics import Share, wilson_share
from parityscope.papers.claim import Context
from parityscope.records import Row
from parityscope.runs.training import Training, TrainingNumbers

NEARLY_ALL = "nearly every seed: four of five or more, with 95 % confidence"


def rows_of(context: Context, trainings: Sequence[Training]) -> list[Row[Training, TrainingNumbers]]:
    """Return the rows of some trainings.

    >>> from parityscope.runs.training import training
    >>> [row.numbers.recovered for row in rows_of(Context("smoke"), [training("bounded", 8, 2)])]
    [(True,)]
    """
    return [context.row(one) for one in trainings]


def share_of(flags: Sequence[bool]) -> Share:
    """Return the share of flags that are set, with its interval.

    >>> str(share_of([True, True, False, True]))
    '3/4 (30%–95%)'
    """
    return wilson_share(sum(flags), len(flags))
