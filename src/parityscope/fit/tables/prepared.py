"""A table ready to be asked: read, its missing values settled, its classes and columns as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.coding import Coded, code
from parityscope.fit.tables.missing import missing_choice, refuse_infinite, without_missing
from parityscope.fit.tables.plink import PHENOTYPE
from parityscope.fit.tables.reading import read_table
from parityscope.fit.tables.table import DataTable, listed
from parityscope.fit.tables.target import classes_and_labels, is_measured


@dataclass(frozen=True)
class Prepared:
    """Everything about a file that a search needs.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("shift,fault\\nday,0\\nnight,1\\n")
    >>> known = prepare(path, "fault")
    >>> known.coded.X.tolist(), known.labels.tolist(), known.coded.columns[0].name
    ([[0], [1]], [-1, 1], 'shift')
    """

    path: Path
    target: str
    classes: tuple[str, str] | None  # None for a measured target
    labels: ndarray  # −1 and 1, or what was measured
    coded: Coded
    notes: tuple[str, ...]
    features: int
    groups: ndarray | None = None
    covariates: tuple[int, ...] = ()  # columns that are adjusted for


def prepare(
    path: Path,
    target: str | None,
    *,
    missing: str = "refuse",
    positive: str | None = None,
    group: str | None = None,
    adjust: Sequence[str] = (),
) -> Prepared:
    """Read a table and settle what can be settled before anything is searched.

    >>> prepare(Path("nowhere.csv"), "fault")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: there is no file nowhere.csv
    """
    choice = missing_choice(missing)  # before a large file is read
    table = read_table(path, refuse_missing=choice == "refuse")
    return prepare_table(table, path, target, missing=missing, positive=positive, group=group, adjust=adjust)


def prepare_table(
    table: DataTable,
    path: Path,
    target: str | None,
    *,
    missing: str = "refuse",
    positive: str | None = None,
    group: str | None = None,
    adjust: Sequence[str] = (),
) -> Prepared:
    """Return a table that was read, ready to be asked; `path` is what sentences call it.

    Rows with the same value of `group` may depend on each other; columns to `adjust` for are not searched.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> table = table_of(pd.DataFrame({"hot": [0, 1], "fault": ["no", "yes"]}))
    >>> prepare_table(table, Path("faults.csv"), "fault").classes
    ('no', 'yes')
    """
    choice = missing_choice(missing)
    place = usable_place(table, _target(target, table, path), path)
    table = without_missing(table, place, choice, path)
    refuse_infinite(table, path)
    if positive is None and is_measured(table, place):
        classes, labels = None, table.column(place).astype(float)
    else:
        classes, labels = classes_and_labels(table, place, positive, path)
    belongs = None if group is None else usable_place(table, group, path)
    coded = code(table, place, choice, frozenset() if belongs is None else frozenset({belongs}))
    left_out = [f"{name} ({why})" for name, why in coded.left_out.items()]
    if not coded.columns:
        why = f"; it has {listed(left_out)}" if left_out else ""
        raise InvalidInput(f"{path} has no column to search besides {table.names[place]!r}{why}")
    given = {table.names[usable_place(table, name, path)] for name in adjust}
    covariates = tuple(index for index, column in enumerate(coded.columns) if column.name in given)
    notes = [*table.notes, *([f"not searched: {listed(left_out)}"] if left_out else []), *coded.notes]
    if adjust:
        notes.append(f"adjusted for {listed(adjust)}, whose effects are taken out, and not searched")
    groups = None if belongs is None else np.unique(table.column(belongs).astype(str), return_inverse=True)[1]
    if groups is not None:
        notes.append(f"rows with the same {group} may depend on each other: {groups.max() + 1} groups are the evidence")
    return Prepared(
        path,
        table.names[place],
        classes,
        labels,
        coded,
        tuple(notes),
        len(table.names) - 1,
        groups,
        covariates,
    )


def usable_place(table: DataTable, name: str, path: Path) -> int:
    """Return where a column stands; one that was not read, such as a column of dates, is refused.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> table = table_of(pd.DataFrame({"hot": [0], "day": pd.to_datetime(["2026-11-18"])}))
    >>> usable_place(table, "day", Path("faults.parquet"))
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: faults.parquet has no numbers and no text in 'day': dates: make numbers of \
them first, such as the month or the days since the first
    """
    place = table.place_of(name, path)
    if name in table.left_out:
        raise InvalidInput(f"{path} has no numbers and no text in {name!r}: {table.left_out[name]}")
    return place


def _target(target: str | None, table: DataTable, path: Path) -> str:
    if target is not None:
        return target
    if path.suffix == ".bed":
        return PHENOTYPE
    raise InvalidInput(f"say which column has the two classes: --target with one of {listed(table.names, most=12)}")
