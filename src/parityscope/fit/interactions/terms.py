"""The terms of an additive model in the words of the table: what a search tells of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from parityscope.fit.bits.bits import Bit
from parityscope.fit.evidence.score import Target
from parityscope.fit.interactions.interaction import Candidate, Solver, Values
from parityscope.fit.tables.column import SearchedColumn

_LARGEST_TABLE = 4  # columns: beyond, a term is told by its parity, and a tangle of terms one by one
_MOST_CELLS = 81
_Z = 1.96


class Combination(NamedTuple):
    """One line of a truth table: the values, how many rows have them, the mean of their target, and its 95 % interval.

    >>> Combination(("0", "1"), rows=40, share=0.9, low=0.77, high=0.96).second_class
    36
    """

    values: tuple[str, ...]
    rows: int
    share: float | None  # of the second class, or the mean of a measured target; None without rows
    low: float | None
    high: float | None

    @property
    def second_class(self) -> int:
        """How many of the rows are of the second class."""
        return round(self.rows * (self.share or 0.0))


@dataclass(frozen=True)
class Term:
    """One interaction or main effect: which columns, of which kind, how large, how sure, and what it adds.

    `p_value` is corrected for the whole search, given the terms accepted before, and for what its parts explain.
    `estimate` with its 95 % `interval` is the coefficient of the parity on the scale of log-odds (or of a measured
    target), `share` its part of the explained deviance. `adds` is the gain in log-likelihood on held-out rows over the
    terms before it, in bits per row, and `accuracy` the held-out accuracy with it. `block` names, by column, others
    that these rows cannot tell from it.
    """

    support: tuple[int, ...]  # places of its columns in the table as it was given, ascending
    columns: tuple[str, ...]
    kind: str  # "main effect", "parity", "interaction", "pair table" or "table of … columns"
    bits: tuple[str, ...]  # the questions
    asked: tuple[str, ...]  # the column of every question
    estimate: float
    interval: tuple[float, float]
    strength: float  # correlation with the target in all rows
    log_p: float
    share: float
    adds: float
    accuracy: float
    block: dict[str, list[str]]
    solver: Solver
    headings: tuple[str, ...]  # of the truth table
    truth_table: list[Combination]
    parts: tuple[tuple[str, ...], ...] = ()  # smaller sets of its columns that have an effect of their own
    label: str = ""  # of several classes the one that is told from all others

    @property
    def k(self) -> int:
        """The number of columns."""
        return len(self.support)

    @property
    def p_value(self) -> float:
        """The corrected p-value, 0.0 when it is too small for a float."""
        return math.exp(self.log_p)

    def estimated(self, scale: str = "") -> str:
        """Return the estimate and its interval, with as many digits as the interval's width deserves."""
        low, high = self.interval
        digits = 3 if not 0 < high - low < math.inf else min(max(0, 1 - math.floor(math.log10(high - low))), 12)
        return f"{self.estimate:+.{digits}f}{scale} ({low:.{digits}f} to {high:.{digits}f})"

    def cells(self) -> list[dict[str, Any]]:
        """Return the truth table as `fit --json` lists it."""
        return [
            {
                "values": dict(zip(self.headings, cell.values, strict=True)),
                "rows": cell.rows,
                "share": cell.share,
                "low": cell.low,
                "high": cell.high,
            }
            for cell in self.truth_table
        ]

    def to_json(self) -> dict[str, Any]:
        """Return what `fit --json` lists."""
        return {
            "support": list(self.support),
            "columns": list(self.columns),
            "kind": self.kind,
            "bits": list(self.bits),
            "p_value": self.p_value,
            "estimate": self.estimate,
            "interval": list(self.interval),
            "strength": self.strength,
            "share": self.share,
            "adds": self.adds,
            "accuracy": None if math.isnan(self.accuracy) else self.accuracy,
            "parts": [list(part) for part in self.parts],
            "block": self.block,
            "solver": self.solver,
            "truth_table": self.cells(),
        }


def told_together(accepted: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the accepted candidates as they are told: several of the same columns, or of a small table, as one.

    A set of at most four columns is told together with the smaller sets within it, which are its parts. Where sets
    overlap otherwise, or one is larger, the terms form a tangle, and each is told for itself.
    """
    by_columns: dict[frozenset[int], list[Candidate]] = {}
    for one in accepted:
        by_columns.setdefault(frozenset(one.support), []).append(one)
    groups: list[list[Candidate]] = []
    for component in _components(list(by_columns)):
        whole = frozenset().union(*component)
        if whole in component and len(whole) <= _LARGEST_TABLE:
            groups.append([one for columns in sorted(component, key=len, reverse=True) for one in by_columns[columns]])
        else:
            groups += [by_columns[columns] for columns in component]
    return groups


def _components(sets: list[frozenset[int]]) -> list[list[frozenset[int]]]:
    """Return the sets that are connected by columns in common."""
    left, found = list(sets), []
    while left:
        component, grown = [left.pop(0)], True
        while grown:
            near = [one for one in left if any(one & other for other in component)]
            grown = bool(near)
            component += near
            left = [one for one in left if one not in near]
        found.append(component)
    return found


def kind_of(group: Sequence[Candidate], accepted: Sequence[Candidate]) -> str:
    """Return what a group of candidates is: a parity is a set of which no part has an effect.

    >>> from parityscope.fit.interactions.interaction import Interaction
    >>> pair, one = (Candidate(Interaction(tuple(Bit(c, 0.5) for c in some)), "auto", -9.0) for some in ((0, 1), (0,)))
    >>> kind_of([pair], [pair]), kind_of([pair, one], [pair, one]), kind_of([pair], [pair, one]), kind_of([one], [one])
    ('parity', 'pair table', 'interaction', 'main effect')
    """
    columns = {column for one in group for column in one.support}
    if len(columns) == 1:
        return "main effect"
    if len(group) > 1:
        return "pair table" if len(columns) == 2 else f"table of {len(columns)} columns"
    return "interaction" if any(set(one.support) < columns for one in accepted) else "parity"


def truth_table(
    bits: Sequence[Bit],
    columns: Sequence[SearchedColumn],
    levels: Mapping[int, Sequence[float]],
    values: Values,
    target: Target,
) -> tuple[tuple[str, ...], list[Combination]]:
    """Return headings and every combination of values with its rows; of many columns only the two parities.

    >>> heat, shift = SearchedColumn("heat", 0), SearchedColumn("shift", 1, "text", {0.0: "day", 1.0: "night"})
    >>> values = {0: np.array([50, 60, 60]), 1: np.array([0, 0, 1])}
    >>> bits = [Bit(0, threshold=53.0), Bit(1, levels=(1.0,))]
    >>> names, cells = truth_table(bits, [heat, shift], {1: (0.0, 1.0)}, values, Target(np.array([0.0, 1.0, 0.0])))
    >>> names, [(*cell.values, cell.rows, cell.share) for cell in cells]
    (('heat', 'shift'), [('≤ 53', 'day', 1, 0.0), ('≤ 53', 'night', 0, None), ('> 53', 'day', 1, 1.0), \
('> 53', 'night', 1, 0.0)])
    """
    axes = _axes(bits, columns, levels, values)
    several = len({bit.column for bit in bits}) > _LARGEST_TABLE
    if several or math.prod(len(axis.cases) for axis in axes) > _MOST_CELLS:
        odd = np.prod([bit.signs(values[bit.column]) for bit in bits], axis=0) < 0
        axes = [_Axis("parity", ("even", "odd"), odd.astype(int))]
    code = np.zeros(len(target.y), dtype=int)
    for axis in axes:
        code = code * len(axis.cases) + axis.codes
    cases = list(product(*(axis.cases for axis in axes)))
    rows = np.bincount(code, minlength=len(cases))
    sums, squares = (np.bincount(code, weights=some, minlength=len(cases)) for some in (target.y, target.y**2))
    cells = [_cell(*one, target.measured) for one in zip(cases, rows.tolist(), sums, squares, strict=True)]
    return tuple(axis.name for axis in axes), cells


class _Axis(NamedTuple):
    name: str
    cases: tuple[str, ...]
    codes: ndarray


def _axes(
    bits: Sequence[Bit], columns: Sequence[SearchedColumn], levels: Mapping[int, Sequence[float]], values: Values
) -> list[_Axis]:
    axes, done = [], set()
    for bit in sorted(bits, key=lambda one: (one.column, one.threshold or 0.0, one.levels)):
        column, own = columns[bit.column], levels.get(bit.column)
        if own is not None and column.kind != "missing":
            if bit.column not in done:
                codes = np.clip(np.searchsorted(own, values[bit.column]), 0, len(own) - 1)
                axes.append(_Axis(column.name, tuple(map(column.spelled, own)), codes))
            done.add(bit.column)
            continue
        yes = (bit.signs(values[bit.column]) < 0).astype(int)
        if column.kind == "missing":
            axes.append(_Axis(f"{column.name} missing", ("no", "yes"), yes))
        else:
            no_yes = (bit.deny("", column.spelled).strip(), bit.describe("", column.spelled).strip())
            axes.append(_Axis(column.name, no_yes, yes))
    names = [axis.name for axis in axes]
    return [
        axis if names.count(axis.name) == 1 else axis._replace(name=f"{axis.name} ({place + 1})")
        for place, axis in enumerate(axes)
    ]


def _cell(values: tuple[str, ...], rows: int, total: float, squares: float, measured: bool) -> Combination:
    if not rows:
        return Combination(values, 0, None, None, None)
    mean = float(total) / rows
    if measured:
        error = _Z * math.sqrt(max(0.0, squares / rows - mean**2) / rows)
        return Combination(values, rows, mean, mean - error, mean + error)
    # Wilson's interval: it stays between 0 and 1, also of few rows.
    centre, spread = mean + _Z**2 / (2 * rows), _Z * math.sqrt(mean * (1 - mean) / rows + _Z**2 / (4 * rows**2))
    low, high = ((centre + side * spread) / (1 + _Z**2 / rows) for side in (-1, 1))
    return Combination(values, rows, mean, max(0.0, low), min(1.0, high))
