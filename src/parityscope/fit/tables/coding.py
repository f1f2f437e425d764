"""Columns as the numbers that are searched: text by codes, missing values by what was chosen for them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy import ndarray

from parityscope.fit.bits.bits import FEW_LEVELS
from parityscope.fit.tables.column import UNSEEN, Kind, SearchedColumn
from parityscope.fit.tables.missing import Missing
from parityscope.fit.tables.plink import Genotypes
from parityscope.fit.tables.table import DATES, MISSING, DataTable
from parityscope.fit.tables.target import spelled

MOST_VALUES = 32  # values of a text column that are asked for one by one: the most frequent
FEWEST_ROWS = 5  # a rarer value can decide nothing
_MISSING_WORD = "missing"
_DATE = re.compile(r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})([ T]\d{1,2}:\d{2}.*)?|missing")


@dataclass(frozen=True)
class Coded:
    """A table as it is searched.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> frame = pd.DataFrame({"heat": [1.5, None, 2.5, 3.5, 4.5, 5.5], "shift": ["day", "night"] * 3})
    >>> coded = code(table_of(frame), None, "category")
    >>> coded.X[:2].tolist(), [column.name for column in coded.columns], coded.columns[1].kind
    ([[1.5, 0.0, 0.0], [3.5, 1.0, 1.0]], ['heat', 'heat', 'shift'], 'missing')
    """

    X: ndarray
    columns: tuple[SearchedColumn, ...]
    unordered: frozenset[int]  # columns of X whose numbers are mere names: asked for one by one
    left_out: dict[str, str]  # columns that take no part, and why
    notes: tuple[str, ...]  # what is searched in part only


def code(table: DataTable, target: int | None, missing: Missing, without: frozenset[int] = frozenset()) -> Coded:
    """Return every column but the target, and those `without`, as numbers.

    Numbers stay what they are. Text of up to four values gets codes in alphabetical order, which the search may split
    in any way; of more values the most frequent are asked for one by one. Text without a value in five rows is left
    out.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> columns = {"serial": [f"no {i}" for i in range(30)], "plant": list("abcdef") * 5, "hot": [0, 1] * 15}
    >>> coded = code(table_of(pd.DataFrame(columns)), None, "refuse")
    >>> coded.X.dtype.name, [column.name for column in coded.columns], coded.unordered, coded.left_out
    ('int8', ['hot', 'plant'], frozenset({1}), {'serial': 'text of 30 different values, none of them in 5 rows'})
    """
    work = _Work(table, target, missing, without)
    work.take_numbers()
    for place in sorted(set(table.texts) - {target} - without):
        work.take_text(place)
    return work.done()


@dataclass
class _Work:
    """The columns taken so far."""

    table: DataTable
    target: int | None
    missing: Missing
    without: frozenset[int] = frozenset()
    numbers: ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    columns: list[SearchedColumn] = field(default_factory=list)
    more: list[tuple[SearchedColumn, ndarray]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take_numbers(self) -> None:
        """Take all columns of numbers; the matrix is copied only where it must change."""
        table, lacking = self.table, self.table.missing()
        kept = (table.places != self.target) & ~np.isin(table.places, list(self.without))
        for index, place in enumerate(table.places.tolist()):
            if kept[index] and lacking.get(place) == table.rows:
                kept[index] = False
                self.left_out[table.names[place]] = "every value is missing"
        self.numbers = table.numbers if kept.all() else table.numbers[:, _slice_of(kept)]
        places = table.places[kept].tolist()
        self.columns = [self._plain(place) for place in places]
        lacks = [index for index, place in enumerate(places) if place in lacking]
        if lacks:
            self.numbers = self.numbers.copy(order="K")
        for index in lacks:
            self._fill(index)

    def take_text(self, place: int) -> None:
        """Take a column of text by the codes of its values."""
        values, name = self.table.texts[place], self.table.names[place]
        counts: Counter[str] = Counter(value for value in values if value is not None)
        lacks = counts.total() < len(values)
        if lacks and self.missing == "category":
            counts[_MISSING_WORD] += len(values) - counts.total()
        offered = _offered(counts)
        if len(counts) > FEW_LEVELS and all(map(_DATE.fullmatch, counts)):
            self.left_out[name] = DATES
            return
        if not offered:
            different = f"text of {len(counts)} different values, none of them in {FEWEST_ROWS} rows"
            self.left_out[name] = different if counts else "every value is missing"
            return
        words = {float(number): value for number, value in enumerate(offered)}
        if len(offered) < len(counts):
            words[UNSEEN] = "any other"
            self.notes.append(_in_part(name, len(offered), len(counts)))
        fill: float | None = None
        if lacks:
            instead = _MISSING_WORD if self.missing == "category" else counts.most_common(1)[0][0]
            fill = float(offered.index(instead)) if instead in offered else UNSEEN
        column = SearchedColumn(name, self._place(place), "text", words, fill)
        self.more.append((column, column.numbers(values)))

    def done(self) -> Coded:
        """Return everything side by side, as bytes if that holds it."""
        X, start = self.numbers, len(self.columns)
        if self.more:
            beside = np.column_stack([values for _, values in self.more])
            small = X.dtype == np.int8 or not X.shape[1]
            X = np.concatenate([X, beside.astype(np.int8)], axis=1, dtype=np.int8) if small else np.hstack([X, beside])
        columns = (*self.columns, *(column for column, _ in self.more))
        unordered = frozenset(
            start + index
            for index, (column, _) in enumerate(self.more)
            if column.kind == "text" and len(column.words or {}) > FEW_LEVELS
        )
        return Coded(X, columns, unordered, {**self.table.left_out, **self.left_out}, tuple(self.notes))

    def _place(self, place: int) -> int:
        return place - (self.target is not None and place > self.target)

    def _plain(self, place: int) -> SearchedColumn:
        words = self.table.words.get(place)
        known = None if words is None else {float(value): word for value, word in enumerate(words)}
        kind: Kind = "genotype" if known and isinstance(self.table.words, Genotypes) else "number"
        return SearchedColumn(self.table.names[place], self._place(place), kind, known)

    def _fill(self, index: int) -> None:
        """Put a value where one is missing: the median, or one of its own where the column has few."""
        values, column = self.numbers[:, index], self.columns[index]
        gaps = values == MISSING if values.dtype == np.int8 else np.isnan(values)
        known = values[~gaps]
        distinct = np.unique(known[: 1 << 12])
        distinct = np.unique(known) if len(distinct) < FEW_LEVELS else distinct
        own = self.missing == "category" and len(distinct) < FEW_LEVELS and known.max() < 127
        fill = float(known.max()) + 1 if own else float(np.quantile(known, 0.5, method="lower"))
        values[gaps] = fill
        if own:
            words = column.words or {float(level): spelled(level) for level in distinct}
            column = replace(column, words={**words, fill: _MISSING_WORD})
        elif self.missing == "category":
            indicator = SearchedColumn(column.name, column.place, "missing")
            self.more.append((indicator, gaps.astype(float)))
        self.columns[index] = replace(column, fill=fill)


def _slice_of(kept: ndarray) -> ndarray | slice:
    """Return a slice, which copies nothing, where the kept columns are neighbours."""
    places = np.flatnonzero(kept)
    if len(places) and places[-1] - places[0] + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return kept


def _offered(counts: Counter[str]) -> list[str]:
    """Return the values that get a code: all of a few, otherwise the frequent ones, most frequent first."""
    if len(counts) <= FEW_LEVELS:
        return sorted(counts)
    frequent = [value for value, count in counts.items() if count >= FEWEST_ROWS]
    return sorted(frequent, key=lambda value: (-counts[value], value))[:MOST_VALUES]


def _in_part(name: str, offered: int, values: int) -> str:
    which = (
        f"the {offered} most frequent" if offered == MOST_VALUES else f"the {offered} that stand in {FEWEST_ROWS} rows"
    )
    return f"{name} has {values} different values: {which} are searched, all others count as one"
