"""Rows as text, one line each: what a project ships, so that a change of one number is a change of one line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.files import write_atomically
from parityscope.records.row import StoredRow
from parityscope.records.store import Store

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
