"""The additive model that a search ends with: predictions, and how good they are on rows that were held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from parityscope.fit.evidence.score import Target, log_likelihood, regression
from parityscope.fit.interactions.interaction import Feature, Values, feature_values

HELD_OUT = 0.3
_LN2 = math.log(2)


@dataclass(frozen=True)
class FittedModel:
    """A constant and a coefficient for every feature; log-odds for labels, the target itself where it is measured.

    >>> FittedModel((), np.array([0.0]), measured=False).expected({}, rows=2).tolist()
    [0.5, 0.5]
    """

    features: tuple[Feature, ...]
    coefficients: Float[ndarray, " one_more_than_features"]
    measured: bool

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that the model looks at, ascending."""
        return tuple(sorted({factor.column for feature in self.features for factor in feature}))

    def expected(self, values: Values, rows: int) -> Float[ndarray, " rows"]:
        """Return P(second class), or the expected target, of every row."""
        linear = np.full(rows, self.coefficients[0])
        for feature, coefficient in zip(self.features, self.coefficients[1:], strict=True):
            linear = linear + coefficient * feature_values(feature, values)
        return linear if self.measured else 1 / (1 + np.exp(-np.clip(linear, -500, 500)))


def fit_model(features: Sequence[Feature], design: ndarray, target: Target) -> FittedModel:
    """Return the model of some features, from a constant and their values.

    >>> x = np.array([1.0, -1.0] * 50)
    >>> fit_model([], np.ones((100, 1)), Target((x > 0).astype(float))).expected({}, rows=1).round(3).tolist()
    [0.5]
    """
    return FittedModel(tuple(features), regression(design, target).coefficients, target.measured)


def split(target: Target, random: np.random.RandomState) -> ndarray:
    """Return which rows are held out: three of ten, of either class alike, groups as a whole.

    >>> held = split(Target(np.array([0.0, 1.0] * 50)), np.random.RandomState(0))
    >>> int(held.sum()), int(held[::2].sum())
    (30, 15)
    """
    held = np.zeros(len(target.y), dtype=bool)
    if target.groups is not None:
        groups = int(target.groups.max()) + 1
        chosen = random.permutation(groups)[: round(HELD_OUT * groups)]
        return np.isin(target.groups, chosen)
    kinds = [np.arange(len(held))] if target.measured else [np.flatnonzero(target.y == label) for label in (0.0, 1.0)]
    for rows in kinds:
        held[random.permutation(rows)[: round(HELD_OUT * len(rows))]] = True
    return held


@dataclass(frozen=True)
class Quality:
    """How good a model is on held-out rows; the terms were chosen with all rows, the coefficients without these.

    For labels: accuracy, that of always naming the more frequent class, the area under the ROC curve, and the mean
    log-likelihood lost, in nats. For a measured target only R², the share of its variance that is explained.
    """

    accuracy: float = math.nan
    majority: float = math.nan
    auc: float = math.nan
    log_loss: float = math.nan
    r_squared: float = math.nan

    def to_json(self) -> dict[str, float]:
        """Return the numbers that there are."""
        return {name: value for name, value in vars(self).items() if not math.isnan(value)}


def quality(y: ndarray, expected: ndarray, measured: bool) -> Quality:
    """Return how well some expectations do.

    >>> said = quality(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.6, 0.4, 0.9]), measured=False)
    >>> said.accuracy, said.majority, said.auc
    (0.5, 0.5, 0.75)
    """
    if not len(y):
        return Quality()
    if measured:
        spread = float(((y - y.mean()) ** 2).sum())
        return Quality(r_squared=1 - float(((y - expected) ** 2).sum()) / spread if spread else math.nan)
    up = y > 0.5
    accuracy, majority = float(((expected > 0.5) == up).mean()), max(float(up.mean()), 1 - float(up.mean()))
    return Quality(accuracy, majority, _auc(up, expected), -float(log_likelihood(y, expected).mean()))


def _auc(up: ndarray, expected: ndarray) -> float:
    """Return the probability that a row of the second class is expected higher than one of the first, ties half."""
    if up.all() or not up.any():
        return math.nan
    values, place = np.unique(expected, return_inverse=True)
    ups, downs = (np.bincount(place[some], minlength=len(values)) for some in (up, ~up))
    below = np.cumsum(downs) - downs
    return float((ups * (below + downs / 2)).sum() / (ups.sum() * downs.sum()))


def gain(y: ndarray, before: ndarray, after: ndarray, measured: bool) -> float:
    """Return what one expectation gains over another: bits per row, or the share of the variance.

    >>> gain(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([1.0, 0.0]), measured=False)
    1.0
    """
    if not len(y):
        return math.nan
    if measured:
        return float(((y - before) ** 2 - (y - after) ** 2).mean() / max(1e-300, float(y.var())))
    return round(float((log_likelihood(y, after) - log_likelihood(y, before)).mean()) / _LN2, 9)
