"""From one number per problem and head to means, intervals over problems, and how many heads are lower."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import Share, wilson_share
from parityscope.core.ties import tolerance
from parityscope.language_models.measures import COMPARISONS, COT
from parityscope.language_models.word_problems import Variant
from parityscope.problems import seeded_generator

_RESAMPLES = 2000


class Interval(NamedTuple):
    """A value with its 95 % interval over problems.

    >>> compare(torch.full((20, 4), -0.25)).difference  # all problems alike: nothing to be unsure of
    Interval(value=-0.25, low=-0.25, high=-0.25)
    """

    value: float
    low: float
    high: float


class HeadComparison(NamedTuple):
    """How much lower one text is than another, in one measure: over heads, with intervals over problems."""

    difference: Interval  # mean over heads; negative where the first is lower
    heads_lower: Interval  # share of heads whose mean over problems is lower
    problems_lower: Share  # problems whose mean over heads is lower
    surely_lower: int  # heads whose own 95 % interval lies below zero
    surely_higher: int
    heads: int

    @property
    def is_lower(self) -> bool:
        """Say whether most heads and their mean are lower, beyond the sampling of problems."""
        return self.heads_lower.low > 0.5 and self.difference.high < 0

    @property
    def is_higher(self) -> bool:
        """Say whether most heads and their mean are higher, beyond the sampling of problems."""
        return self.heads_lower.high < 0.5 and self.difference.low > 0

    def to_json(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "difference": self.difference._asdict(),
            "heads_lower": self.heads_lower._asdict(),
            "problems_lower": self.problems_lower._asdict(),
            "surely_lower": self.surely_lower,
            "surely_higher": self.surely_higher,
            "heads": self.heads,
        }


def student_quantile(degrees: int) -> float:
    """Return the two-sided 95 % quantile of Student's t distribution, by the expansion in 1/degrees."""
    z = NormalDist().inv_cdf(0.975)
    # Abramowitz and Stegun, 26.7.5
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def mean_and_half_width(
    values: Float[Tensor, problems * rest],
) -> tuple[Float[Tensor, "*rest"], Float[Tensor, "*rest"]]:
    """Return the mean over problems and half its 95 % interval (infinite for a single problem)."""
    problems = len(values)
    if problems < 2:
        return values.mean(0), torch.full(values.shape[1:], float("inf"), dtype=values.dtype)
    return values.mean(0), student_quantile(problems - 1) * values.std(0) / math.sqrt(problems)


def compare(difference: Float[Tensor, problems * heads]) -> HeadComparison:
    """Return how often and by how much paired differences are negative, resampling the problems.

    Ties count as neither lower nor higher, up to rounding. Heads of one model are not independent of each other, so
    intervals come from problems drawn again with replacement, all heads together.
    """
    flat = difference.double().flatten(1)
    return _comparison(flat, _resampled_means(flat))


def compare_layers(difference: Float[Tensor, "problems layers heads"]) -> list[HeadComparison]:
    """Return the comparison of every layer."""
    difference = difference.double()
    resampled = _resampled_means(difference)
    return [_comparison(difference[:, layer], resampled[:, layer]) for layer in range(difference.shape[1])]


def _resampled_means(values: Float[Tensor, problems * rest]) -> Float[Tensor, resamples * rest]:
    problems = len(values)
    drawn = torch.randint(problems, (_RESAMPLES, problems), generator=seeded_generator(0, "data"))
    counts = torch.zeros(_RESAMPLES, problems, dtype=torch.float64)
    counts.scatter_add_(1, drawn, torch.ones_like(drawn, dtype=torch.float64))
    return (counts @ values.flatten(1) / problems).unflatten(1, values.shape[1:])


def _comparison(
    difference: Float[Tensor, "problems heads"], resampled: Float[Tensor, "resamples heads"]
) -> HeadComparison:
    mean, half = mean_and_half_width(difference)
    # A mean of differences that cancel is 0 up to roundings of their size.
    zero = tolerance(difference.dtype) * float(difference.abs().max())
    return HeadComparison(
        _interval(float(mean.mean()), resampled.mean(-1)),
        _interval(float((mean < -zero).double().mean()), (resampled < -zero).double().mean(-1)),
        wilson_share(int((difference.mean(-1) < -zero).sum()), len(difference)),
        int((mean + half < -zero).sum()),
        int((mean - half > zero).sum()),
        mean.numel(),
    )


def _interval(value: float, resampled: Float[Tensor, " resamples"]) -> Interval:
    low, high = torch.quantile(resampled, torch.tensor([0.025, 0.975], dtype=resampled.dtype)).tolist()
    return Interval(value, low, high)


class ModelSummary(NamedTuple):
    """All measures of one model: per head with half-widths, and CoT against the other texts.

    >>> summary = summarise(torch.zeros(8, 3, 10, 2, 4))
    >>> summary.mean.shape, {name: len(compared) for name, compared in summary.comparisons.items()}
    (torch.Size([3, 10, 2, 4]), {'no CoT': 10, 'shuffled CoT': 10})
    """

    mean: Float[Tensor, "variants measures layers heads"]
    half: Float[Tensor, "variants measures layers heads"]
    comparisons: dict[Variant, list[HeadComparison]]  # by what CoT is compared with, one per measure
    layers: dict[Variant, list[list[HeadComparison]]]  # the same, layer by layer


def summarise(values: Float[Tensor, "problems variants measures layers heads"]) -> ModelSummary:
    """Sum up all problems of one model."""
    mean, half = mean_and_half_width(values.double())
    differences = {name: (values[:, COT] - values[:, other]).unbind(1) for name, other in COMPARISONS.items()}
    return ModelSummary(
        mean.float(),
        half.float(),
        {name: [compare(one) for one in by_measure] for name, by_measure in differences.items()},
        {name: [compare_layers(one) for one in by_measure] for name, by_measure in differences.items()},
    )
