"""The rows of a folder: added, found, leased, checked."""

from __future__ import annotations

import hashlib
import json
import platform
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

import parityscope
from parityscope.errors import InvalidInput
from parityscope.experiments.contract import Row
from parityscope.store.database import INSERT, Database, row_checksum


def config_key(experiment: str, config: BaseModel) -> str:
    """Return the address of a config: a hash of the experiment's name and every resolved field.

    >>> from parityscope.training.recipes import RECIPES
    >>> recipe = RECIPES["bounded"]
    >>> keys = [config_key("demo", recipe), config_key("demo", recipe.model_copy()), config_key("other", recipe)]
    >>> keys[0] == keys[1], keys[0] == keys[2]
    (True, False)
    """
    return key_of(experiment, config.model_dump(mode="json"))


def key_of(experiment: str, fields: Mapping[str, Any]) -> str:
    """Return the address of a config whose fields are plain values.

    >>> from parityscope.training.recipes import RECIPES
    >>> recipe = RECIPES["bounded"]
    >>> key_of("demo", recipe.model_dump(mode="json")) == config_key("demo", recipe)
    True
    """
    text = json.dumps([experiment, dict(fields)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def current_versions() -> dict[str, str]:
    """Return the versions a row is stored with.

    >>> sorted(current_versions())
    ['machine', 'parityscope', 'python', 'torch']
    """
    return {
        "parityscope": parityscope.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def array_bytes(arrays: Mapping[str, Tensor]) -> bytes | None:
    """Return arrays as safetensors bytes, or none when there are none.

    >>> load(array_bytes({"curve": torch.arange(3)}))["curve"].tolist()
    [0, 1, 2]
    """
    return save({name: tensor.detach().contiguous() for name, tensor in arrays.items()}) if arrays else None


@dataclass(frozen=True)
class Outcome:
    """What one run left behind, as it is stored: plain text and bytes, so that any executor can carry it.

    >>> done, failed = Outcome({"risk": 0.5}, seconds=1.5), Outcome(traceback="ValueError: no answer")
    >>> done.numbers, bool(done.traceback), bool(failed.traceback)
    ({'risk': 0.5}, False, True)
    """

    numbers: Mapping[str, Any] = field(default_factory=dict)
    arrays: bytes | None = None
    seconds: float = 0.0
    traceback: str = ""
    versions: Mapping[str, str] = field(default_factory=current_versions)


class Store:
    """A folder of rows. Open it anywhere, any number of times; writers wait for each other.

    >>> import tempfile
    >>> from parityscope.training.recipes import RECIPES
    >>> store = Store(Path(tempfile.mkdtemp()))
    >>> store.add("demo", RECIPES["bounded"], {"risk": 0.5}, {}, seconds=0.1)
    >>> store.row("demo", RECIPES["bounded"]).numbers
    {'risk': 0.5}
    >>> [row.config["learning_rate"] for row in store.rows("demo", where={"optimiser": ("adam", "gradient-descent")})]
    [0.05]
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file, not a folder")
        self.path = path
        self._database = Database(path)

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self._database.file

    def add(
        self,
        experiment: str,
        config: BaseModel,
        numbers: Mapping[str, Any],
        arrays: Mapping[str, Tensor],
        *,
        seconds: float,
    ) -> None:
        """Store the row of a config; a config that is already done keeps its first row."""
        self.add_all(experiment, [(config, Outcome(numbers, array_bytes(arrays), seconds))])

    def add_all(self, experiment: str, outcomes: Iterable[tuple[BaseModel, Outcome]]) -> None:
        """Store several rows, all or none. What is done stays; what had failed is replaced; their leases end."""
        values = [_values(experiment, config, outcome) for config, outcome in outcomes]
        with self._database.writing() as connection:
            connection.executemany(
                f"{INSERT} ON CONFLICT (key) DO UPDATE SET "
                "config = excluded.config, numbers = excluded.numbers, arrays = excluded.arrays, versions = "
                "excluded.versions, finished = excluded.finished, seconds = excluded.seconds, traceback = "
                "excluded.traceback, checksum = excluded.checksum WHERE rows.traceback != ''",
                values,
            )
            connection.executemany("DELETE FROM leases WHERE key = ?", [(row[0],) for row in values])

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Store rows as they are, all or none, with the time and the versions of when they were computed."""
        values = [_values_of(row) for row in rows]
        with self._database.writing() as connection:
            connection.executemany(f"{INSERT} ON CONFLICT (key) DO NOTHING", values)

    def row(self, experiment: str, config: BaseModel) -> Row | None:
        """Return the row of a config, or None when it has not been run (or failed)."""
        query = "SELECT * FROM rows WHERE key = ? AND traceback = ''"
        with self._database.reading() as connection:
            found = connection.execute(query, (config_key(experiment, config),)).fetchone()
        return None if found is None else self._row(found)

    def __contains__(self, address: tuple[str, BaseModel]) -> bool:
        with self._database.reading() as connection:
            query = "SELECT 1 FROM rows WHERE key = ? AND traceback = ''"
            return connection.execute(query, (config_key(*address),)).fetchone() is not None

    def keys(
        self, experiment: str | None = None, *, among: Sequence[str] | None = None, failed: bool = False
    ) -> set[str]:
        """Return the addresses of what is done, or of what failed: all, of one experiment, or those among some."""
        query = f"SELECT key FROM rows WHERE traceback {'!=' if failed else '='} '' AND (?1 IS NULL OR experiment = ?1)"
        if among is not None:
            query += f" AND key IN ({', '.join('?' * len(among))})"
        with self._database.reading() as connection:
            return {key for (key,) in connection.execute(query, (experiment, *(among or ())))}

    def rows(
        self, experiment: str | None = None, where: Mapping[str, Any] | None = None, *, failed: bool = False
    ) -> list[Row]:
        """Return rows in the order they were finished: all, of one experiment, with some config values.

        `where` gives config fields a value, or several of which any will do: `where={"n": 12, "k": (2, 3)}`. Rows that
        `failed` carry a traceback and come only when asked for.
        """
        where = where or {}
        clauses, values = [f"traceback {'!=' if failed else '='} ''", "(?1 IS NULL OR experiment = ?1)"], [experiment]
        for name, wanted in where.items():
            options = list(wanted) if isinstance(wanted, Collection) and not isinstance(wanted, str) else [wanted]
            clauses.append(f"({' OR '.join(['json_extract(config, ?) IS ?'] * len(options)) or '0'})")
            values += [part for option in options for part in (f'$."{name}"', option)]
        query = f"SELECT * FROM rows WHERE {' AND '.join(clauses)} ORDER BY finished, rowid"
        with self._database.reading() as connection:
            found = connection.execute(query, values).fetchall()
            if not found and where:
                self._check_fields(connection, experiment, where)
        return [self._row(values) for values in found]

    def lease(self, keys: Sequence[str], owner: str, present: Callable[[str], bool]) -> bool:
        """Take some configs for `owner`, all or none: none when another owner who is `present` has one of them."""
        with self._database.writing() as connection:
            marks = ", ".join("?" * len(keys))
            owners = connection.execute(f"SELECT DISTINCT owner FROM leases WHERE key IN ({marks})", keys).fetchall()
            if any(other != owner and present(other) for (other,) in owners):
                return False
            connection.executemany("INSERT OR REPLACE INTO leases VALUES (?, ?)", [(key, owner) for key in keys])
        return True

    def end_leases(self, owner: str) -> None:
        """Give back whatever `owner` had taken and not finished."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM leases WHERE owner = ?", (owner,))

    def damaged(self) -> dict[str, str]:
        """Return what is wrong with rows that cannot be trusted, by address; empty when all is well."""
        with self._database.reading() as connection:
            problems = [line for (line,) in connection.execute("PRAGMA quick_check") if line != "ok"]
            if problems:
                raise InvalidInput(f"{self.database} is damaged ({problems[0]}): move it away and run again")
            found = connection.execute("SELECT * FROM rows").fetchall()
        reasons: dict[str, str] = {}
        for values in found:
            try:
                self._row(values)
            except InvalidInput as error:
                reasons[values["key"]] = str(error)
        return reasons

    def forget(self, keys: Iterable[str]) -> None:
        """Delete rows by address, so that their configs are run again."""
        with self._database.writing() as connection:
            connection.executemany("DELETE FROM rows WHERE key = ?", [(key,) for key in keys])

    def _row(self, values: sqlite3.Row) -> Row:
        stored = tuple(values)
        try:
            if row_checksum(stored[:-1]) != stored[-1]:
                raise ValueError("its checksum does not fit")
            arrays = {} if values["arrays"] is None else load(values["arrays"])
            texts = {name: json.loads(values[name]) for name in ("config", "numbers", "versions")}
        except (SafetensorError, ValueError) as error:
            raise InvalidInput(
                f"row {values['key']} of {values['experiment']} in {self.database} is damaged ({error}): parityscope "
                f"rows {self.path} --repair deletes such rows, and the same command runs them again"
            ) from None
        return Row(
            experiment=values["experiment"],
            arrays=arrays,
            finished=values["finished"],
            seconds=values["seconds"],
            traceback=values["traceback"],
            **texts,
        )

    def _check_fields(self, connection: sqlite3.Connection, experiment: str | None, where: Mapping[str, Any]) -> None:
        """A misspelt field is an error, not an empty answer."""
        query = (
            "SELECT DISTINCT fields.key FROM rows, json_each(rows.config) fields WHERE ?1 IS NULL OR experiment = ?1"
        )
        known = {name for (name,) in connection.execute(query, (experiment,))}
        unknown = [name for name in where if known and name not in known]
        if unknown:
            raise InvalidInput(f"no config has a field {unknown[0]!r}: choose from {', '.join(sorted(known))}")


def _values_of(row: Row) -> tuple[Any, ...]:
    texts = (json.dumps(row.config), json.dumps(row.numbers))
    versions = json.dumps(row.versions)
    moment = (float(row.finished), float(row.seconds), row.traceback)
    values = (key_of(row.experiment, row.config), row.experiment, *texts, array_bytes(row.arrays), versions, *moment)
    return (*values, row_checksum(values))


def _values(experiment: str, config: BaseModel, outcome: Outcome) -> tuple[Any, ...]:
    values = (
        config_key(experiment, config),
        experiment,
        config.model_dump_json(),
        json.dumps(dict(outcome.numbers)),
        outcome.arrays,
        json.dumps(dict(outcome.versions)),
        time.time(),
        float(outcome.seconds),
        outcome.traceback,
    )
    return (*values, row_checksum(values))
