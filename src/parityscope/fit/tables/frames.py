"""DataFrames for the estimator: text is coded as `parityscope fit` codes it, a column for a column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from parityscope.core.errors import InvalidInput
from parityscope.fit.answer import Answer
from parityscope.fit.interactions.interactions import FoundInteraction
from parityscope.fit.interactions.rules import Cell, Interaction
from parityscope.fit.tables.coding import code
from parityscope.fit.tables.column import Column
from parityscope.fit.tables.table import Table, listed, table_of

if TYPE_CHECKING:
    from pandas import DataFrame


def has_text(X: Any) -> bool:
    """Say whether this is a DataFrame with any column that is not of numbers.

    >>> import pandas as pd
    >>> has_text(pd.DataFrame({"shift": ["day"]})), has_text(pd.DataFrame({"hot": [1]})), has_text([["day"]])
    (True, False, False)
    """
    kinds = getattr(X, "dtypes", None)
    return hasattr(X, "iloc") and kinds is not None and any(getattr(kind, "kind", "O") not in "biuf" for kind in kinds)


@dataclass(frozen=True)
class FrameCoder:
    """How the columns of a DataFrame became numbers.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"shift": ["day", "night"], "serial": ["x1", "x2"], "hot": [0.5, 1.5]})
    >>> coder = FrameCoder.of(frame)
    >>> coder.numbers(pd.DataFrame({"shift": ["night", "noon"], "serial": ["x3", "x4"], "hot": [1, 2]})).values.tolist()
    [[1.0, -1.0, 1.0], [-1.0, -1.0, 2.0]]
    """

    columns: tuple[Column | None, ...]  # None for those that take no part
    unordered: frozenset[int]
    notes: tuple[str, ...]  # what takes no part, or in part only

    @classmethod
    def of(cls, frame: DataFrame) -> FrameCoder:
        """Return the coder of the columns of a DataFrame, refusing missing text."""
        table = _complete(frame)
        coded = code(table, None, "refuse")
        by_place = {column.place: column for column in coded.columns}
        unordered = frozenset(coded.columns[index].place for index in coded.unordered)
        left_out = [f"{name} ({why})" for name, why in coded.left_out.items()]
        notes = (*([f"not searched: {listed(left_out)}"] if left_out else []), *coded.notes)
        return cls(tuple(by_place.get(place) for place in range(len(table.names))), unordered, notes)

    def numbers(self, frame: DataFrame) -> DataFrame:
        """Return a DataFrame of numbers under the same names; text that was never seen is −1."""
        if len(frame.columns) != len(self.columns):
            return frame  # what scikit-learn then says names both counts
        table = _complete(frame)
        numbers = frame.copy()
        for place, column in enumerate(self.columns):
            if column is None:
                numbers.isetitem(place, np.zeros(len(frame)))
            elif column.kind == "text":
                texts = np.array([str(value) for value in frame.iloc[:, place]], dtype=object)
                numbers.isetitem(place, column.numbers(texts))
            elif place in table.texts:
                raise InvalidInput(f"{column.name} has text, and had numbers when the model was fitted")
        return numbers

    def in_words(self, answer: Answer) -> Answer:
        """Return an answer whose questions and truth tables have the values of the DataFrame."""
        found = tuple(self._in_words(one) for one in answer.interactions)
        if not found:
            return answer
        return replace(answer, interactions=found, bits=found[0].bits, truth_table=found[0].truth_table)

    def _in_words(self, found: FoundInteraction) -> FoundInteraction:
        if found.interaction is None:
            return found
        used = [self.columns[bit.column] for bit in found.interaction.bits]
        columns = [column for column in used if column is not None]
        bits = tuple(column.describe(bit) for column, bit in zip(columns, found.interaction.bits, strict=True))
        cells = found.truth_table
        if len(cells) == int(np.prod(found.interaction.shape)):
            cases = product(*_cases(found.interaction, columns))
            cells = [Cell(case, cell.rows, cell.second_class) for case, cell in zip(cases, cells, strict=True)]
        return replace(found, bits=bits, truth_table=cells)


def _cases(interaction: Interaction, columns: list[Column]) -> list[tuple[str, ...]]:
    return [
        (column.describe(bit, yes=False), column.describe(bit))
        if levels is None
        else tuple(map(column.spelled, levels))
        for bit, levels, column in zip(interaction.bits, interaction.levels, columns, strict=True)
    ]


def _complete(frame: DataFrame) -> Table:
    table = table_of(frame)
    missing = [table.names[place] for place in table.missing() if place in table.texts]
    if missing:
        raise InvalidInput(f"{listed(missing)} has missing text: fill it in first, or drop these rows")
    return table
