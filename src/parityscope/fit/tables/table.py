"""A table as it was read: numbers in one matrix, text apart, and what was unusual about the file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray

from parityscope.core.errors import InvalidInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MISSING = -128  # in a matrix of int8; in one of floats it is NaN
DATES = "dates: make numbers of them first, such as the month or the days since the first"
_NAMED = 30  # columns in a sentence


@dataclass(frozen=True)
class DataTable:
    """The columns of a file. Hundreds of thousands of genotypes fit, since numbers of one byte stay bytes.

    >>> import pandas as pd
    >>> table = table_of(pd.DataFrame({"dose": [0, 2, 1], "shift": ["day", None, "night"]}))
    >>> table.numbers.dtype.name, table.texts[1].tolist(), table.rows
    ('int8', ['day', None, 'night'], 3)
    """

    names: tuple[str, ...]
    numbers: ndarray  # (rows, columns of numbers): int8 or float64
    places: Int[ndarray, " numbers"]  # where in the file each of them stands
    texts: dict[int, ndarray]  # text, None where it is missing, by place in the file
    words: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # what the numbers 0, 1, … of a column mean
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns that cannot be used, and why

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.numbers)

    def place_of(self, name: str, source: object) -> int:
        """Return where a column stands; one that is not there is answered with the nearest names."""
        if name not in self.names:
            raise InvalidInput(f"{source} has no column {name!r}: {_nearest(name, self.names)}")
        return self.names.index(name)

    def column(self, place: int) -> ndarray:
        """Return a column's values: floats with NaN, or text with None."""
        if place in self.texts:
            return self.texts[place]
        values = self.numbers[:, int(np.searchsorted(self.places, place))]
        return np.where(values == MISSING, np.nan, values) if values.dtype == np.int8 else values

    def missing(self) -> dict[int, int]:
        """Return how many values are missing, by the place of the columns that lack any."""
        counts = np.zeros(len(self.names), dtype=int)
        for part, of_numbers in self._blocks():
            counts[self.places[part]] = of_numbers.sum(axis=0)
        for place, values in self.texts.items():
            counts[place] = is_missing(values).sum()
        return {int(place): int(counts[place]) for place in np.flatnonzero(counts)}

    def complete_rows(self) -> Bool[ndarray, " rows"]:
        """Say of every row whether nothing is missing in it."""
        complete = np.ones(self.rows, dtype=bool)
        for _, of_numbers in self._blocks():
            complete &= ~of_numbers.any(axis=1)
        for values in self.texts.values():
            complete &= ~is_missing(values)
        return complete

    def taken(self, rows: Bool[ndarray, " rows"], note: str) -> DataTable:
        """Return the table of some rows only, and the note that says so."""
        texts = {place: values[rows] for place, values in self.texts.items()}
        return replace(self, numbers=self.numbers[rows], texts=texts, notes=(*self.notes, note))

    def _blocks(self, width: int = 4096) -> Iterable[tuple[slice, ndarray]]:
        """Yield where numbers are missing, some columns at a time: a mask of them all would double the memory."""
        for start in range(0, self.numbers.shape[1], width):
            part = slice(start, start + width)
            block = self.numbers[:, part]
            yield part, (block == MISSING if block.dtype == np.int8 else np.isnan(block))


def table_of(frame: DataFrame, notes: Iterable[str] = ()) -> DataTable:
    """Return the table in a DataFrame: numbers, booleans, text and categories; dates are left out.

    >>> import pandas as pd
    >>> table_of(pd.DataFrame({"on": [True, False], "heat": [1.5, None]})).numbers.tolist()
    [[1.0, 1.5], [0.0, nan]]
    """
    names = tuple(map(str, frame.columns))
    refuse_repeated(names, "the table")
    numbers: dict[int, ndarray] = {}
    texts: dict[int, ndarray] = {}
    words: dict[int, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    for place, name in enumerate(names):
        values = frame.iloc[:, place]
        kind = getattr(values.dtype, "kind", "O")
        if kind in "biuf":
            numbers[place] = _numbers(values)
            if kind == "b":
                words[place] = ("False", "True")
        elif kind in "Mm":
            left_out[name] = DATES
        else:
            texts[place] = _texts(values)
    matrix = _matrix(list(numbers.values()), len(frame))
    return DataTable(names, matrix, np.array(list(numbers), dtype=int), texts, words, tuple(notes), left_out)


def is_missing(values: ndarray) -> Bool[ndarray, " rows"]:
    """Say where a column of floats or of text has no value.

    >>> is_missing(np.array(["day", None], dtype=object)).tolist(), is_missing(np.array([np.nan, 1])).tolist()
    ([False, True], [True, False])
    """
    return np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values], dtype=bool)


def refuse_repeated(names: Iterable[str], source: object) -> None:
    """Refuse two columns of one name: nobody could say which of them is meant.

    >>> refuse_repeated(["a", "b", "a"], "faults.csv")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: faults.csv has several columns called 'a': give each a name of its own
    """
    seen: set[str] = set()
    repeated = dict.fromkeys(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    if repeated:
        numeric = all(name.replace(".", "", 1).lstrip("-").isdigit() for name in repeated)
        advice = "its first line should hold the names of the columns" if numeric else "give each a name of its own"
        raise InvalidInput(f"{source} has several columns called {listed(map(repr, repeated))}: {advice}")


def listed(words: Iterable[str], most: int = _NAMED) -> str:
    """Return words as a list in a sentence, and how many were left out of a long one.

    >>> listed(["a", "b", "c"]), listed(map(str, range(9)), most=2)
    ('a, b and c', '0, 1 and 7 others')
    """
    everything = list(words)
    shown = everything if len(everything) <= most + 1 else [*everything[:most], f"{len(everything) - most} others"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _nearest(name: str, names: tuple[str, ...]) -> str:
    """Say which names are near, in spelling or in capitals; where none is, the first few."""
    by_small_letters = {one.strip().lower(): one for one in reversed(names)}
    near = difflib.get_close_matches(name.strip().lower(), by_small_letters, n=3, cutoff=0.5)
    if near:
        found = [by_small_letters[one] for one in near]
        return f"did you mean {found[0]!r}" + (f" (or {listed(map(repr, found[1:]))})" if found[1:] else "") + "?"
    return f"it has {listed(names, most=12)}"


def _numbers(values: Series) -> ndarray:
    """Return a column of pandas' or numpy's numbers with NaN where one is missing."""
    if bool(values.isna().any()):
        return np.asarray(values.to_numpy(dtype=float, na_value=np.nan))
    return np.asarray(values.to_numpy(dtype=values.dtype.type))


def _texts(values: Series) -> ndarray:
    missing = values.isna().to_numpy()
    texts = np.array([str(value) for value in values], dtype=object)
    texts[missing] = None
    return texts


def _matrix(columns: list[ndarray], rows: int) -> ndarray:
    """Return the columns side by side: as int8 where that holds them all."""
    small = all(_fits_a_byte(values) for values in columns)
    matrix = np.empty((rows, len(columns)), dtype=np.int8 if small else float, order="F")
    for index, values in enumerate(columns):
        matrix[:, index] = np.where(np.isnan(values), MISSING, values) if small and values.dtype.kind == "f" else values
    return matrix


def _fits_a_byte(values: ndarray) -> bool:
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    if not len(values) or values.dtype.kind == "b":
        return True
    return bool(values.min() > MISSING and values.max() <= 127 and (values == np.floor(values)).all())
