"""A table ready to be asked: read, its missing values settled, its classes and columns as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Int8
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.coding import Coded, code
from parityscope.fit.tables.missing import missing_choice, refuse_infinite, without_missing
from parityscope.fit.tables.plink import PHENOTYPE
from parityscope.fit.tables.reading import read_table
from parityscope.fit.tables.table import Table, listed
from parityscope.fit.tables.target import classes_and_labels


@dataclass(frozen=True)
class Prepared:
    """Everything about a file that a search needs.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("shift,fault\\nday,0\\nnight,1\\n")
    >>> known = prepare(path, "fault")
    >>> known.coded.X.tolist(), known.labels.tolist(), known.name(0)
    ([[0], [1]], [-1, 1], 'shift')
    """

    path: Path
    target: str
    classes: tuple[str, str]
    labels: Int8[ndarray, " rows"]
    coded: Coded
    notes: tuple[str, ...]
    features: int

    def name(self, index: int) -> str:
        """Return the name of a column that is searched."""
        return self.coded.columns[index].name


def prepare(path: Path, target: str | None, *, missing: str = "refuse", positive: str | None = None) -> Prepared:
    """Read a table and settle what can be settled before anything is searched.

    >>> prepare(Path("nowhere.csv"), "fault")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: there is no file nowhere.csv
    """
    choice = missing_choice(missing)  # before a large file is read
    return prepare_table(
        read_table(path, refuse_missing=choice == "refuse"), path, target, missing=missing, positive=positive
    )


def prepare_table(
    table: Table, path: Path, target: str | None, *, missing: str = "refuse", positive: str | None = None
) -> Prepared:
    """Return a table that was read, ready to be asked; `path` is what sentences call it.

    >>> import pandas as pd
    >>> from parityscope.fit.tables.table import table_of
    >>> table = table_of(pd.DataFrame({"hot": [0, 1], "fault": ["no", "yes"]}))
    >>> prepare_table(table, Path("faults.csv"), "fault").classes
    ('no', 'yes')
    """
    choice = missing_choice(missing)
    place = table.place_of(_target(target, table, path), path)
    table = without_missing(table, place, choice, path)
    refuse_infinite(table, path)
    classes, labels = classes_and_labels(table, place, positive, path)
    coded = code(table, place, choice)
    left_out = [f"{name} ({why})" for name, why in coded.left_out.items()]
    if not coded.columns:
        why = f"; it has {listed(left_out)}" if left_out else ""
        raise InvalidInput(f"{path} has no column to search besides {table.names[place]!r}{why}")
    notes = (*table.notes, *([f"not searched: {listed(left_out)}"] if left_out else []), *coded.notes)
    return Prepared(path, table.names[place], classes, labels, coded, notes, len(table.names) - 1)


def _target(target: str | None, table: Table, path: Path) -> str:
    if target is not None:
        return target
    if path.suffix == ".bed":
        return PHENOTYPE
    raise InvalidInput(f"say which column has the two classes: --target with one of {listed(table.names, most=12)}")
