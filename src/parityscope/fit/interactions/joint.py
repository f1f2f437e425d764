"""One rule from several interactions: log-odds added up, or the table of all columns where that is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from parityscope.fit.evidence.evidence import clearly_better
from parityscope.fit.interactions.rules import PRIOR_ROWS, ROWS_PER_CELL, WORTH_A_TABLE, Interaction, Rule, fit_rule

_LARGEST_TABLE = 4096
_ROUNDS = 25

Values = Mapping[int, ndarray]


@dataclass(frozen=True)
class Part:
    """An interaction that takes part in a rule, and whether every combination of its values counts for itself.

    >>> from parityscope.fit.bits.bits import Bit
    >>> Part(Interaction((Bit(2, 0.5),), (None,)), table=False).interaction.shape
    (2,)
    """

    interaction: Interaction
    table: bool


@dataclass(frozen=True)
class JointRule:
    """P(second class) from all interactions together; a single one speaks for itself."""

    parts: tuple[Part, ...]
    rules: tuple[Rule, ...]
    weights: Float[ndarray, " one_more_than_parts"]
    everything: Interaction | None = None  # the columns of all parts as one table
    by_cell: Float[ndarray, " cells"] | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that the rule looks at, ascending."""
        return tuple(sorted({bit.column for part in self.parts for bit in part.interaction.bits}))

    def probability(self, values: Values) -> Float[ndarray, " rows"]:
        """Return P(second class) of every row; combinations that were never seen are added up.

        >>> from parityscope.fit.bits.bits import Bit
        >>> parts = [Part(Interaction((Bit(c, 0.5),), (None,)), table=False) for c in (0, 1)]
        >>> random = np.random.RandomState(0)
        >>> values = {0: random.randint(2, size=9000), 1: random.randint(2, size=9000)}
        >>> rule = fit_joint(parts, values, np.where(random.rand(9000) < 0.2 + 0.3 * (values[0] + values[1]), 1, -1))
        >>> rule.probability({0: np.array([0, 1, 1]), 1: np.array([0, 0, 1])}).round(1).tolist()
        [0.2, 0.5, 0.8]
        """
        added = _added(self.parts, self.rules, self.weights, values)
        if self.everything is None or self.by_cell is None:
            return added
        cells = self.everything.cells(values)
        return np.where(cells >= 0, self.by_cell[cells], added)


def fit_joint(parts: Sequence[Part], values: Values, labels: ndarray, *, table: bool = False) -> JointRule:
    """Return the rule that these rows suggest; `table` gives every combination of all columns its own frequency.

    >>> from parityscope.fit.bits.bits import Bit
    >>> parts = [Part(Interaction((Bit(c, 0.5),), ((0.0, 1.0),)), table=False) for c in (0, 1)]
    >>> a, b = np.array([0, 0, 1, 1] * 50), np.array([0, 1, 0, 1] * 50)
    >>> rule = fit_joint(parts, {0: a, 1: b}, 2 * (a ^ b) - 1, table=True)
    >>> rule.probability({0: np.array([0, 1]), 1: np.array([1, 1])}).round(1).tolist()
    [1.0, 0.0]
    """
    rules = tuple(fit_rule(part.interaction, values, labels, table=part.table) for part in parts)
    weights = _weights(_log_odds(parts, rules, values), labels > 0) if len(parts) > 1 else np.array([0.0, 1.0])
    if not table:
        return JointRule(tuple(parts), rules, weights)
    everything = table_of(parts)
    cells, size = everything.cells(values), math.prod(everything.shape)
    rows = np.bincount(cells, minlength=size)
    ups = np.bincount(cells, weights=labels > 0, minlength=size)
    # A cell is shrunk towards what the interactions say of its rows when they are added up.
    expected = np.bincount(cells, weights=_added(parts, rules, weights, values), minlength=size)
    prior = np.divide(expected, rows, out=np.full(size, 0.5), where=rows > 0)
    by_cell = np.where(rows > 0, (ups + PRIOR_ROWS * prior) / (rows + PRIOR_ROWS), np.nan)
    unseen = np.isnan(by_cell)
    by_cell[unseen] = float((labels > 0).mean())
    return JointRule(tuple(parts), rules, weights, everything, by_cell)


def table_of(parts: Sequence[Part]) -> Interaction:
    """Return the columns of all parts as one interaction, each with its values or with every question asked of it.

    >>> from parityscope.fit.bits.bits import Bit
    >>> parts = [Part(Interaction((Bit(c, 0.5), Bit(3, 0.5)), (None, (0.0, 1.0))), False) for c in (0, 1)]
    >>> table_of(parts).shape
    (2, 2, 2)
    """
    chosen = {}
    for part in parts:
        for bit, levels in zip(part.interaction.bits, part.interaction.levels, strict=True):
            chosen[bit.column if levels is not None else bit] = (bit, levels)
    ordered = sorted(chosen.values(), key=lambda one: (one[0].column, one[0].threshold or 0.0, one[0].levels))
    return Interaction(tuple(bit for bit, _ in ordered), tuple(levels for _, levels in ordered))


def prefers_whole_table(parts: Sequence[Part], values: Values, labels: ndarray, train: int) -> bool:
    """Say whether the table of all columns predicts the held-out rows clearly better than the sum of the parts.

    >>> from parityscope.fit.bits.bits import Bit
    >>> parts = [Part(Interaction((Bit(c, 0.5),), ((0.0, 1.0),)), table=False) for c in (0, 1)]
    >>> a, b = np.random.RandomState(0).randint(2, size=(2, 800))
    >>> [prefers_whole_table(parts, {0: a, 1: b}, 2 * bit - 1, train=560) for bit in (a ^ b, a)]
    [True, False]
    """
    size = math.prod(table_of(parts).shape)
    if len(parts) < 2 or size > _LARGEST_TABLE or ROWS_PER_CELL * size > train:
        return False
    by_cell, added = (held_out_log_likelihood(parts, values, labels, train, table=table) for table in (True, False))
    return clearly_better(by_cell, than=added + max(WORTH_A_TABLE, 2 * PRIOR_ROWS / train))


def held_out_probability(
    parts: Sequence[Part], values: Values, labels: ndarray, train: int, *, table: bool = False
) -> Float[ndarray, " held_out"]:
    """Return P(second class) of the held-out rows by the rule of the training rows; without parts the class share.

    >>> held_out_probability([], {}, np.array([1, 1, -1, 1, -1]), train=3).round(2).tolist()
    [0.67, 0.67]
    """
    if not parts:
        return np.full(len(labels) - train, (labels[:train] > 0).mean())
    first = {column: v[:train] for column, v in values.items()}
    rest = {column: v[train:] for column, v in values.items()}
    return fit_joint(parts, first, labels[:train], table=table).probability(rest)


def held_out_log_likelihood(
    parts: Sequence[Part], values: Values, labels: ndarray, train: int, *, table: bool = False
) -> Float[ndarray, " held_out"]:
    """Return log P(label) of the held-out rows by the rule of the training rows.

    >>> held_out_log_likelihood([], {}, np.array([1, -1, 1, -1]), train=2).round(3).tolist()
    [-0.693, -0.693]
    """
    second = held_out_probability(parts, values, labels, train, table=table)
    return np.log(np.where(labels[train:] > 0, second, 1 - second))


def _log_odds(parts: Sequence[Part], rules: Sequence[Rule], values: Values) -> Float[ndarray, "rows parts"]:
    each = [rule.probability(part.interaction, values) for part, rule in zip(parts, rules, strict=True)]
    probability = np.column_stack(each)
    return np.log(probability) - np.log1p(-probability)


def _added(parts: Sequence[Part], rules: Sequence[Rule], weights: ndarray, values: Values) -> Float[ndarray, " rows"]:
    if len(parts) == 1:
        return rules[0].probability(parts[0].interaction, values)
    return 1 / (1 + np.exp(-(weights[0] + _log_odds(parts, rules, values) @ weights[1:])))


def _weights(log_odds: Float[ndarray, "rows parts"], second: ndarray) -> Float[ndarray, " one_more"]:
    """Return the weights of a logistic regression that would rather be 1: Newton's method, a ridge of one."""
    design = np.column_stack([np.ones(len(log_odds)), log_odds])
    prior = np.concatenate([[0.0], np.ones(log_odds.shape[1])])
    weights = prior.copy()
    for _ in range(_ROUNDS):
        score = np.clip(design @ weights, -30.0, 30.0)
        share = 1 / (1 + np.exp(-score))
        gradient = design.T @ (second - share) - (weights - prior)
        curvature = (design * (share * (1 - share))[:, None]).T @ design + np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights = weights + step * min(1.0, 3.0 / (np.abs(step).max() + 1e-12))
        if np.abs(step).max() < 1e-9:
            break
    return weights
