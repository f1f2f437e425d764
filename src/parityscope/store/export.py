"""Rows for other programs: CSV, Parquet, TensorBoard."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parityscope.atomic_files import write_atomically
from parityscope.errors import InvalidInput, naming_the_extra
from parityscope.experiments.contract import Row


def flat(row: Row) -> dict[str, Any]:
    """Return a row as one level of columns; lists and nested objects are JSON text.

    >>> flat(Row("demo", {"n": 3}, {"risk": 0.5, "found": [1, 2]}))["numbers.found"]
    '[1, 2]'
    """
    parts = {"config": row.config, "numbers": row.numbers, "versions": row.versions}
    columns: dict[str, Any] = {"experiment": row.experiment}
    for prefix, values in parts.items():
        for name, value in values.items():
            plain = value is None or isinstance(value, str | int | float | bool)
            columns[f"{prefix}.{name}"] = value if plain else json.dumps(value)
    return {**columns, "finished": row.finished, "seconds": row.seconds, "traceback": row.traceback}


def export_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows to a .csv or .parquet file, or as event files into a folder that has no such ending.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> export_rows([Row("demo", {"n": 3}, {"risk": 0.5})], path)
    >>> path.read_text().splitlines()
    ['experiment,config.n,numbers.risk,finished,seconds,traceback', 'demo,3,0.5,0.0,0.0,']
    """
    if not rows:
        raise InvalidInput("there are no rows to export")
    if path.suffix == ".csv":
        write_atomically(path, _csv(rows))
    elif path.suffix == ".parquet":
        write_atomically(path, _parquet(rows))
    elif path.suffix == "":
        _write_events(rows, path)
    else:
        raise InvalidInput(f"cannot export to {path}: the name ends in .csv or .parquet, or is a folder of events")


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return every column that any row has, empty where a row has none."""
    table = [flat(row) for row in rows]
    names = list(dict.fromkeys(name for line in table for name in line))
    return {name: [line.get(name) for line in table] for name in names}


def _csv(rows: Sequence[Row]) -> bytes:
    columns = _columns(rows)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _parquet(rows: Sequence[Row]) -> bytes:
    with naming_the_extra():
        import pyarrow
        import pyarrow.parquet
    sink = pyarrow.BufferOutputStream()
    columns = {name: _one_type(values) for name, values in _columns(rows).items()}
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue().to_pybytes()


def _one_type(values: list[Any]) -> list[Any]:
    """Return a column whose values have one type: numbers widen to float, anything else mixed becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    convert: type = float if kinds <= {int, float} else str
    return [None if value is None else convert(value) for value in values]


def _write_events(rows: Sequence[Row], folder: Path) -> None:
    """Write one TensorBoard run per row: its numbers as scalars, its one-dimensional arrays as curves."""
    with naming_the_extra():
        from torch.utils.tensorboard import SummaryWriter
    for index, row in enumerate(rows):
        with SummaryWriter(str(folder / row.experiment / f"{index:05d}")) as writer:
            writer.add_text("config", json.dumps(row.config, indent=1))
            for name, value in row.numbers.items():
                if isinstance(value, bool | int | float):
                    writer.add_scalar(f"numbers/{name}", float(value))
            for name, array in row.arrays.items():
                if array.dim() == 1 and array.dtype.is_floating_point:
                    for step, value in enumerate(array.tolist()):
                        writer.add_scalar(f"arrays/{name}", value, step)
