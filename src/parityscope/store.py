"""Rows on disk: content-addressed by config, crash-safe, never a pickle.

A store is a folder with `store.sqlite` (one row per config, SQLite in WAL mode) and `arrays/` (one safetensors file
per row that has arrays). Arrays are written and renamed before their row is committed, so a kill at any moment leaves
either no row or a whole one, and every committed row is durable.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

import parityscope
from parityscope.errors import InvalidInput
from parityscope.experiments.contract import Row
from parityscope.training.checkpoint import write_atomically

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    key        TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,
    config     TEXT NOT NULL,
    numbers    TEXT NOT NULL,
    arrays     INTEGER NOT NULL,
    versions   TEXT NOT NULL,
    finished   REAL NOT NULL,
    seconds    REAL NOT NULL
) STRICT
"""


def config_key(experiment: str, config: BaseModel) -> str:
    """Return the address of a config: a hash of the experiment's name and every resolved field.

    >>> from parityscope.training.recipes import RECIPES
    >>> len(config_key("demo", RECIPES["bounded"]))
    32
    """
    text = json.dumps([experiment, config.model_dump(mode="json")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def current_versions() -> dict[str, str]:
    """Return the versions a row is stored with."""
    return {
        "parityscope": parityscope.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


class Store:
    """A folder of rows. Open it anywhere, any number of times; writers wait for each other.

    >>> import tempfile
    >>> from parityscope.training.recipes import RECIPES
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.add("demo", RECIPES["bounded"], {"risk": 0.5}, {}, seconds=0.1)
    >>> store.row("demo", RECIPES["bounded"]).numbers
    {'risk': 0.5}
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file, not a folder")
        self.path = path
        (path / "arrays").mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise InvalidInput(
                    f"{self.database} was written by a newer parityscope (store version {version}, this one reads up to"
                    f" {SCHEMA_VERSION}): upgrade parityscope or choose another folder"
                )
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "store.sqlite"

    def add(
        self,
        experiment: str,
        config: BaseModel,
        numbers: Mapping[str, Any],
        arrays: Mapping[str, Tensor],
        *,
        seconds: float,
    ) -> None:
        """Store the row of a config; a config that is already there keeps its first row."""
        key = config_key(experiment, config)
        if arrays:
            contiguous = {name: tensor.detach().contiguous() for name, tensor in arrays.items()}
            write_atomically(self._array_path(key), save(contiguous))
        values = (
            key,
            experiment,
            config.model_dump_json(),
            json.dumps(dict(numbers)),
            int(bool(arrays)),
            json.dumps(current_versions()),
            time.time(),
            seconds,
        )
        with self._connection() as connection:
            connection.execute("INSERT OR IGNORE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def row(self, experiment: str, config: BaseModel) -> Row | None:
        """Return the row of a config, or None when it has not been run."""
        key = config_key(experiment, config)
        with self._connection() as connection:
            found = connection.execute("SELECT * FROM rows WHERE key = ?", (key,)).fetchone()
        return None if found is None else self._row(found)

    def __contains__(self, address: tuple[str, BaseModel]) -> bool:
        with self._connection() as connection:
            query = "SELECT 1 FROM rows WHERE key = ?"
            return connection.execute(query, (config_key(*address),)).fetchone() is not None

    def rows(self, experiment: str | None = None) -> list[Row]:
        """Return all rows, or those of one experiment, in the order they were finished."""
        query = "SELECT * FROM rows WHERE ?1 IS NULL OR experiment = ?1 ORDER BY finished"
        with self._connection() as connection:
            found = connection.execute(query, (experiment,)).fetchall()
        return [self._row(values) for values in found]

    def _row(self, values: sqlite3.Row) -> Row:
        arrays: Mapping[str, Tensor] = {}
        if values["arrays"]:
            path = self._array_path(values["key"])
            try:
                arrays = load_file(path)
            except (SafetensorError, FileNotFoundError) as error:
                raise InvalidInput(
                    f"{path} is missing or damaged ({error}): delete the row by moving {self.path} away and run again"
                ) from None
        return Row(
            values["experiment"],
            json.loads(values["config"]),
            json.loads(values["numbers"]),
            arrays,
            json.loads(values["versions"]),
            values["finished"],
            values["seconds"],
        )

    def _array_path(self, key: str) -> Path:
        return self.path / "arrays" / f"{key}.safetensors"

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open, commit on success, close; a damaged file is a sentence, and stays as it is."""
        try:
            with closing(sqlite3.connect(self.database, timeout=60.0)) as connection, connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.OperationalError as error:
            raise OSError(
                f"cannot write {self.database} ({error}): is the folder writable and the disk not full?"
            ) from None
        except sqlite3.DatabaseError as error:
            raise InvalidInput(
                f"{self.database} is damaged ({error}): move it away and run again; nothing in it was changed"
            ) from None
