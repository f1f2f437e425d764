"""DataFrames for the estimator: text and missing values are coded as `parityscope fit` codes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.coding import Coded, code
from parityscope.fit.tables.column import SearchedColumn
from parityscope.fit.tables.missing import Missing, refuse_infinite
from parityscope.fit.tables.table import DataTable, is_missing, listed, table_of

if TYPE_CHECKING:
    from pandas import DataFrame


def as_frame(X: Any) -> Any:
    """Return polars' and pyarrow's tables as pandas' DataFrame, anything else as it is.

    >>> import pyarrow as pa
    >>> as_frame(pa.table({"hot": [1, 2]})).columns.tolist(), as_frame([[1]])
    (['hot'], [[1]])
    """
    if hasattr(X, "iloc") or not hasattr(X, "to_pandas"):
        return X
    return X.to_pandas()


def needs_coding(X: Any, missing: Missing) -> bool:
    """Say whether this is a DataFrame with a column that is not of numbers, or one whose missing values are settled.

    >>> import pandas as pd
    >>> frames = pd.DataFrame({"shift": ["day"]}), pd.DataFrame({"hot": [1]})
    >>> [needs_coding(frame, "refuse") for frame in frames], needs_coding(frames[1], "median")
    ([True, False], True)
    """
    if not hasattr(X, "iloc"):
        return False
    return missing != "refuse" or any(getattr(kind, "kind", "O") not in "biuf" for kind in X.dtypes)


@dataclass(frozen=True)
class FrameCoder:
    """How the columns of a DataFrame became numbers.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"shift": ["day", "night"], "hot": [0.5, 1.5]})
    >>> coder, X = FrameCoder.of(frame, "refuse")
    >>> [column.name for column in coder.columns]
    ['hot', 'shift']
    >>> coder.numbers(pd.DataFrame({"shift": ["night", "noon"], "hot": [1, 2]})).tolist()
    [[1.0, 1.0], [2.0, -1.0]]
    """

    columns: tuple[SearchedColumn, ...]
    unordered: frozenset[int]
    notes: tuple[str, ...]  # what takes no part, or in part only

    @classmethod
    def of(cls, frame: DataFrame, missing: Missing) -> tuple[FrameCoder, ndarray]:
        """Return the coder of the columns of a DataFrame, and its numbers."""
        table = _told(frame)
        refuse_infinite(table, "X")
        lacking = [table.names[place] for place in table.missing()]
        if lacking and missing == "refuse":
            raise InvalidInput(
                f"{listed(lacking)} {'has' if len(lacking) == 1 else 'have'} missing values (contains NaN): choose "
                "missing='median' or 'category', or drop these rows"
            )
        coded: Coded = code(table, None, missing)
        left_out = [f"{name} ({why})" for name, why in coded.left_out.items()]
        notes = (*([f"not searched: {listed(left_out)}"] if left_out else []), *coded.notes)
        return cls(coded.columns, coded.unordered, notes), np.asarray(coded.X, dtype=float)

    def numbers(self, frame: DataFrame) -> ndarray:
        """Return the numbers of a DataFrame with the same columns; text that was never seen is −1."""
        table = _told(frame)
        return np.column_stack([self._of(column, table) for column in self.columns])

    def _of(self, column: SearchedColumn, table: DataTable) -> ndarray:
        values = table.column(column.place)
        if column.kind == "text" and column.place not in table.texts:
            texts = np.array([str(value) for value in values.tolist()], dtype=object)
            texts[is_missing(values)] = None
            values = texts
        if column.kind == "number" and column.place in table.texts:
            raise InvalidInput(f"{column.name} has text, and had numbers when the model was fitted")
        numbers = np.asarray(column.numbers(values), dtype=float)
        if np.isnan(numbers).any():
            raise InvalidInput(f"{column.name} has missing values, and had none when the model was fitted")
        return numbers


def _told(frame: DataFrame) -> DataTable:
    """Return a DataFrame as a table; columns of mere objects that hold numbers are numbers."""
    return table_of(frame.infer_objects())
