"""Rows as files: one line of text each, which a project ships; CSV, Parquet and TensorBoard for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from parityscope.core.cells import as_cell
from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.core.files import write_atomically
from parityscope.records.row import Row, StoredRow
from parityscope.records.store import Store

if TYPE_CHECKING:
    import pandas

_SUFFIX = ".jsonl"


def write_text(store: Store, folder: Path, among: Collection[str] | None = None) -> int:
    """Write the finished rows of a store, all or those among some addresses, to a file per experiment; return how many.

    >>> import tempfile
    >>> here, there = (Path(tempfile.mkdtemp()) for _ in range(2))
    >>> Store(here).add_rows([StoredRow("demo", {"n": 3}, {"risk": 0.5}, {"curve": torch.tensor([1.0, 0.1])})])
    >>> write_text(Store(here), there / "rows"), read_text(there / "rows", Store(there))
    (1, 1)
    >>> Store(there).rows("demo")[0].arrays["curve"].tolist() == [1.0, 0.10000000149011612]
    True
    """
    by_experiment: dict[str, list[StoredRow]] = {}
    for row in store.rows():
        if among is not None and row.key not in among:
            continue
        by_experiment.setdefault(row.experiment, []).append(row)
    for old in folder.glob(f"*{_SUFFIX}"):
        if old.stem not in by_experiment:
            old.unlink()
    for name, rows in by_experiment.items():
        lines = [_line(row) for row in sorted(rows, key=lambda row: row.key)]
        write_atomically(folder / f"{name}{_SUFFIX}", ("\n".join(lines) + "\n").encode())
    return sum(map(len, by_experiment.values()))


def read_text(folder: Path, store: Store) -> int:
    """Add the rows of a folder to a store, as they were when they were written; return how many there are.

    >>> import tempfile
    >>> read_text(Path("nowhere"), Store(Path(tempfile.mkdtemp())))
    0
    """
    rows = list(rows_in(folder))
    store.add_rows(rows)
    return len(rows)


def rows_in(folder: Path) -> Iterator[StoredRow]:
    """Yield the rows of a folder of text; a line whose address is not that of its config is refused.

    >>> list(rows_in(Path("nowhere")))
    []
    """
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            try:
                values = json.loads(line)
                key = values.pop("key")
                arrays = {name: _tensor(**array) for name, array in values.pop("arrays").items()}
                row = StoredRow(path.stem, arrays=arrays, **values)
            except (ValueError, TypeError, KeyError) as error:
                raise InvalidInput(f"line {number} of {path} is not a row: {error}") from None
            if key != row.key:
                raise InvalidInput(
                    f"line {number} of {path} has an address that is not that of its config and code: {key}"
                )
            yield row


def _line(row: StoredRow) -> str:
    arrays = {name: _plain(row.arrays[name]) for name in sorted(row.arrays)}
    return json.dumps(
        {
            "key": row.key,
            "version": row.version,
            "code": row.code,
            "config": row.config,
            "numbers": row.numbers,
            "versions": row.versions,
            "finished": round(row.finished, 3),
            "seconds": round(row.seconds, 3),
            "arrays": arrays,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _plain(tensor: Tensor) -> dict[str, Any]:
    """Return an array as shape, type and values; the shortest decimals that give back every bit."""
    array = tensor.detach().numpy()
    # numpy writes the shortest text of a float32, Python that of the double it would become.
    values = array.ravel().tolist() if array.dtype != np.float32 else [float(str(value)) for value in array.ravel()]
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}


def _tensor(dtype: str, shape: list[int], values: list[Any]) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=dtype).reshape(shape))


def flat(row: StoredRow) -> dict[str, Any]:
    """Return a row as one level of columns: what is within an object gets a dotted name, lists are JSON text."""
    columns: dict[str, Any] = {"experiment": row.experiment}
    for prefix, values in (("config", row.config), ("numbers", row.numbers), ("versions", row.versions)):
        for name, value in values.items():
            columns |= _leaves(f"{prefix}.{name}", value)
    return {**columns, "code": row.code, "finished": row.finished, "seconds": row.seconds, "traceback": row.traceback}


def _leaves(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping) and value:
        return {leaf: one for key, inner in value.items() for leaf, one in _leaves(f"{name}.{key}", inner).items()}
    plain = value is None or isinstance(value, str | int | float | bool)
    return {name: value if plain else json.dumps(value)}


def frame_of(rows: Sequence[StoredRow]) -> pandas.DataFrame:
    """Return rows as a table of pandas."""
    with naming_the_extra():
        import pandas
    return pandas.DataFrame(_columns(rows))


def write_numbers(rows: Sequence[Row[Any, Any]], folder: Path, name: str) -> None:
    """Write the numbers of a figure beside it: configs and numbers as NAME.csv, arrays, if any, as NAME.npz.

    The arrays of the third row are called `2.NAME`.
    """
    plain = [
        {**_leaves("config", one.config.model_dump(mode="json")), **_leaves("numbers", one.numbers.model_dump())}
        for one in rows
    ]
    write_atomically(folder / f"{name}.csv", _csv_of(_as_columns(plain)))
    arrays: dict[str, Any] = {
        f"{index}.{key}": array.detach().numpy()
        for index, row in enumerate(rows)
        for key, array in sorted(row.arrays.items())
    }
    if not arrays:
        (folder / f"{name}.npz").unlink(missing_ok=True)  # of rows that were shown before
    else:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_atomically(folder / f"{name}.npz", buffer.getvalue())


def export_rows(rows: Sequence[StoredRow], path: Path, more: Mapping[str, Sequence[Any]] | None = None) -> None:
    """Write rows to a .csv or .parquet file, or as event files into a folder that has no such ending.

    Files may have more columns, one value for each row.
    """
    if not rows:
        raise InvalidInput("there are no rows to export")
    if path.suffix == ".csv":
        write_atomically(path, _csv_of({**_columns(rows), **(more or {})}))
    elif path.suffix == ".parquet":
        write_atomically(path, _parquet({**_columns(rows), **(more or {})}))
    elif path.suffix == "":
        try:
            str(path).encode()
        except UnicodeEncodeError:  # TensorBoard writes names as UTF-8
            raise InvalidInput(f"cannot export to {path}: the name of the folder is no text") from None
        _write_events(rows, path)
    else:
        raise InvalidInput(f"cannot export to {path}: the name ends in .csv or .parquet, or is a folder of events")


def _columns(rows: Sequence[StoredRow]) -> dict[str, list[Any]]:
    """Return every column that any row has, empty where a row has none."""
    return _as_columns([flat(row) for row in rows])


def _as_columns(table: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(name for line in table for name in line))
    return {name: [line.get(name) for line in table] for name in names}


def _csv_of(columns: Mapping[str, Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(as_cell, columns))
    writer.writerows(map(as_cell, row) for row in zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    with naming_the_extra():
        import pyarrow
        import pyarrow.parquet
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({name: _one_type(values) for name, values in columns.items()})
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _one_type(values: Sequence[Any]) -> Sequence[Any]:
    """Return a column whose values have one type: numbers widen to float, anything else mixed becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    convert: type = float if kinds <= {int, float} else str
    return [None if value is None else convert(value) for value in values]


def _write_events(rows: Sequence[StoredRow], folder: Path) -> None:
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
