"""How sure a measured number is: the same trials, drawn again and again with replacement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from parityscope.papers.criterion import Between

_DRAWS = 200


def bootstrap(groups: Sequence[Tensor], statistic: Callable[[list[Tensor]], float]) -> Between:
    """Return the central 95 % of a statistic over groups of trials that are drawn again with replacement.

    The first axis of every group counts its trials. Where some draw leaves the statistic undefined, nothing is known.

    >>> heights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> low, high = bootstrap([heights], lambda groups: float(groups[0].mean()))
    >>> 1 < low < 2.5 < high < 4
    True
    """
    generator = torch.Generator().manual_seed(0)
    values = []
    for _ in range(_DRAWS):
        drawn = [group[torch.randint(len(group), (len(group),), generator=generator)] for group in groups]
        values.append(statistic(drawn))
    if any(math.isnan(value) for value in values):
        return Between(-math.inf, math.inf)
    values.sort()
    outside = _DRAWS // 40
    return Between(values[outside], values[-1 - outside])
