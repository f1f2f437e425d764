"""What is done where values are missing: refuse, drop the rows, fill in, or make "missing" a value of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.table import DataTable, is_missing, listed

Missing = Literal["refuse", "drop", "median", "category"]
CHOICES: tuple[Missing, ...] = get_args(Missing)


def missing_choice(choice: str) -> Missing:
    """Return a choice that exists.

    >>> missing_choice("mean")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: unknown choice 'mean' for missing values: use one of refuse, drop, median, \
category
    """
    for known in CHOICES:
        if choice == known:
            return known
    raise InvalidInput(f"unknown choice {choice!r} for missing values: use one of {', '.join(CHOICES)}")


def without_missing(table: DataTable, target: int, choice: Missing, source: object) -> DataTable:
    """Return the table as far as its rows can be used; refuse missing values unless something was chosen.

    A row without a class teaches nothing and goes whatever was chosen. Other missing values stay for `coding`, unless
    their rows are dropped.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> table = table_of(pd.DataFrame({"heat": [1.5, None, 2.0], "fault": ["yes", "no", None]}))
    >>> try:
    ...     without_missing(table, 1, "refuse", "faults.csv")
    ... except InvalidInput as error:
    ...     print(error)
    faults.csv has missing values in 2 columns, heat (1) and fault (1): add --missing drop (keeps 1 of 3 rows), \
--missing median (a number becomes its column's median, text the most frequent value) or --missing category (missing \
becomes a value of its own)
    >>> without_missing(table, 1, "median", "faults.csv").notes
    ('1 of 3 rows have no fault and are left out',)
    """
    counts = table.missing()
    if not counts:
        return table
    if choice == "refuse":
        named = {table.names[place]: count for place, count in counts.items()}
        raise InvalidInput(refusal(named, int(table.complete_rows().sum()), table.rows, source))
    if target in counts:
        labelled, name = ~is_missing(table.column(target)), table.names[target]
        table = table.taken(labelled, f"{counts[target]} of {table.rows} rows have no {name} and are left out")
    if choice == "drop":
        complete = table.complete_rows()
        if not complete.any():
            raise InvalidInput(f"{source} has no row without missing values: use --missing median or category")
        if not complete.all():
            dropped = int((~complete).sum())
            table = table.taken(complete, f"{dropped} of {table.rows} rows have missing values and are left out")
    if not table.rows:
        raise InvalidInput(f"{source} has no row with a {table.names[target]}")
    return table


def refuse_infinite(table: DataTable, source: object) -> None:
    """Refuse infinite numbers, naming every column that has some.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> refuse_infinite(table_of(pd.DataFrame({"heat": [1.5, float("inf")]})), "faults.csv")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: faults.csv has infinite values in heat: leave them empty or replace them
    """
    if table.numbers.dtype == np.int8:
        return
    places = table.places[np.isinf(table.numbers).any(axis=0)]
    if len(places):
        names = listed(table.names[place] for place in places)
        raise InvalidInput(f"{source} has infinite values in {names}: leave them empty or replace them")


def refusal(counts: Mapping[str, int], kept: int, rows: int, source: object) -> str:
    """Return the sentence that refuses missing values: all columns that lack some, and what can be done.

    >>> print(refusal({"heat": 2}, 8, 10, "faults.csv").partition(",")[0])
    faults.csv has missing values in column heat (2): add --missing drop (keeps 8 of 10 rows)
    """
    columns = listed(f"{name} ({count})" for name, count in counts.items())
    where = f"column {columns}" if len(counts) == 1 else f"{len(counts)} columns, {columns}"
    return (
        f"{source} has missing values in {where}: add --missing drop (keeps {kept} of {rows} rows), "
        "--missing median (a number becomes its column's median, text the most frequent value) or --missing category "
        "(missing becomes a value of its own)"
    )
