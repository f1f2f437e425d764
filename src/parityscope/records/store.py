"""The rows of a folder, in one SQLite file: added all or nothing, found, counted, read also where nobody may write."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.torch import load

from parityscope.core.errors import InvalidInput
from parityscope.records.config import Config, Result
from parityscope.records.row import ConfigT, Outcome, Row, StoredRow, array_bytes

if TYPE_CHECKING:
    import pandas

_SCHEMA_VERSION = 3
_READABLE = 2  # the oldest version that can be read; its rows do not say which code made them
COLUMNS = (
    "key",
    "experiment",
    "version",
    "config",
    "code",
    "numbers",
    "arrays",
    "versions",
    "finished",
    "seconds",
    "traceback",
    "checksum",
)
_INSERT = f"INSERT INTO rows ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT (key) DO "
# What is done stays; what had failed gives way.
UPSERT = f"{_INSERT} UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS)} WHERE rows.traceback != ''"
_SCHEMA = """
CREATE TABLE rows (
    key        TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,
    version    INTEGER NOT NULL, -- of the experiment
    config     TEXT NOT NULL,
    code       TEXT NOT NULL,    -- a hash of the source that computed it
    numbers    TEXT NOT NULL,
    arrays     BLOB,             -- safetensors, or none
    versions   TEXT NOT NULL,
    finished   REAL NOT NULL,
    seconds    REAL NOT NULL,
    traceback  TEXT NOT NULL,    -- of a failed run, empty when it is done
    checksum   TEXT NOT NULL
) STRICT;
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT -- hints: which sweep has begun what
"""
# Rows are counted and found by these alone, without reading them. A store that was made before them gets them.
_INDICES = (
    "CREATE INDEX IF NOT EXISTS done_rows ON rows (experiment, key, traceback) WHERE traceback = ''",
    "CREATE INDEX IF NOT EXISTS failed_rows ON rows (experiment, key) WHERE traceback != ''",
)
_PATIENCE_SECONDS = 60.0
_NO_STORE_HAS = 1000  # a version of that size is no version but damage
# How errors begin that SQLite does not call damage although they are: a list of tables that lost one.
_DAMAGE = ("no such table", "no such column", "malformed", "unsupported file format")
# WAL needs memory shared by all users of the file, which machines that mount the same folder do not have.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "fuse", "9p", "afs", "ceph", "gluster")
_AMONG = "key IN (SELECT value FROM json_each(?))"  # addresses as one value, however many


class Store:
    """A folder of rows. Open it anywhere, any number of times; writers wait for each other.

    Where the folder cannot be written, rows can be read and only adding one is an error.

    Parameters
    ----------
    path : Path
        The folder; it is made if need be.

    >>> import tempfile
    >>> from parityscope.papers.h1.figures.figure_1 import WorkedExample
    >>> store, config = Store(Path(tempfile.mkdtemp())), WorkedExample(temperature=0.5)
    >>> store.add(config, config.run(), seconds=0.1)
    >>> config in store, store.row(config).numbers.label
    (True, 1)
    >>> [row.config["temperature"] for row in store.rows(where={"temperature": (0.5, 0.6)})]
    [0.5]
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

    def add(self, config: Config, result: Result, *, seconds: float, processor: float | None = None) -> None:
        """Store the row of a config; a config that is already done keeps its first row."""
        self.add_all([(config, Outcome.of(result, seconds, processor))])

    def add_all(self, outcomes: Iterable[tuple[Config, Outcome]]) -> None:
        """Store several rows, all or none. What is done stays; what had failed is replaced; their hints end."""
        values = [_values(config, outcome) for config, outcome in outcomes]
        with self._database.writing() as connection:
            connection.executemany(UPSERT, values)
            connection.executemany("DELETE FROM leases WHERE key = ?", [(row[0],) for row in values])

    def add_rows(self, rows: Iterable[StoredRow]) -> None:
        """Store rows as they are, all or none, with the code, the time and the versions of when they were computed."""
        values = [_plain_values(row, array_bytes(row.arrays)) for row in rows]
        with self._database.writing() as connection:
            connection.executemany(f"{_INSERT} NOTHING", values)

    def row(self, config: ConfigT) -> Row[ConfigT, Any] | None:
        """Return the row of a config, or None when it has not been run with this code (or failed)."""
        return self.row_of_each([config])[0]

    def row_of_each(self, configs: Sequence[ConfigT]) -> list[Row[ConfigT, Any] | None]:
        """Return the row of every config, None where there is none."""
        keys = [config.key for config in configs]
        with self._database.reading() as connection:
            query = f"SELECT * FROM rows WHERE traceback = '' AND {_AMONG}"
            found = {values["key"]: values for values in connection.execute(query, (json.dumps(keys),))}
        rows = (self._row(found[key]) if key in found else None for key in keys)
        return [None if row is None else row.typed(config) for config, row in zip(configs, rows, strict=True)]

    def rows_of(self, kind: type[ConfigT]) -> list[Row[ConfigT, Any]]:
        """Return every row that this code made of configs of one class, in the order they were finished."""
        rows = []
        for row in self.rows(kind.ROWS) if kind.ROWS in self.counts() else ():  # no rows is no misspelt name
            try:
                config = kind.model_validate(row.config)
            except ValueError:
                continue  # stored when the class had other fields
            if row.key == config.key:
                rows.append(row.typed(config))
        return rows

    def failures(self, configs: Iterable[Config]) -> list[str]:
        """Return the tracebacks of those of the configs that failed, in the order they were finished."""
        keys = {config.key for config in configs}
        return [row.traceback for row in self.rows(failed=True) if row.key in keys]

    def check_writable(self) -> None:
        """Refuse a store that is damaged, read-only or of an earlier version, before anything is computed for it."""
        self._database.check_writable()
        self._database.check_whole()

    def __contains__(self, config: Config) -> bool:
        with self._database.reading() as connection:
            query = "SELECT 1 FROM rows WHERE key = ? AND traceback = ''"
            return connection.execute(query, (config.key,)).fetchone() is not None

    def keys(
        self, experiment: str | None = None, *, among: Iterable[str] | None = None, failed: bool = False
    ) -> set[str]:
        """Return the addresses of what is done, or of what failed: all, of one experiment, or those among some."""
        query, given = f"SELECT key FROM rows WHERE {_done_or(failed)}", []
        if experiment is not None:
            query, given = f"{query} AND experiment = ?", [experiment]
        if among is not None:
            query, given = f"{query} AND {_AMONG}", [*given, json.dumps(list(among))]
        with self._database.reading() as connection:
            return {key for (key,) in connection.execute(query, given)}

    def counts(self, *, failed: bool = False) -> dict[str, int]:
        """Return how many rows every experiment has; none of them is read."""
        query = f"SELECT experiment, count(*) FROM rows WHERE {_done_or(failed)} GROUP BY experiment"
        with self._database.reading() as connection:
            return dict(connection.execute(query).fetchall())

    def rows(
        self,
        experiment: str | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        failed: bool = False,
        most: int | None = None,
    ) -> list[StoredRow]:
        """Return rows in the order they were finished: all, of one experiment, with some config values; `most` so many.

        `where` gives config fields a value, or several of which any will do: `where={"n": 12, "k": (2, 3)}`; a field
        within a field is `recipe.learning_rate`, the value of a list a list: `where={"seeds": [[0], [1]]}`. Rows that
        `failed` carry a traceback and come only when asked for.
        """
        where = where or {}
        clauses, values = [_done_or(failed)], []
        if experiment is not None:
            clauses, values = [*clauses, "experiment = ?"], [_json_value(experiment)]
        for name, wanted in where.items():
            options = list(wanted) if isinstance(wanted, Collection) and not isinstance(wanted, str) else [wanted]
            clauses.append(f"({' OR '.join(['json_extract(config, ?) IS ?'] * len(options)) or '0'})")
            values += [part for option in options for part in (_json_path(name), _json_value(option))]
        query = f"SELECT * FROM rows WHERE {' AND '.join(clauses)} ORDER BY finished, rowid LIMIT ?"
        with self._database.reading() as connection:
            found = [self._row(one) for one in connection.execute(query, [*values, -1 if most is None else most])]
            if not found:
                self._check_names(connection, experiment, where)
        return found

    def frame(
        self, experiment: str | None = None, where: Mapping[str, Any] | None = None, *, failed: bool = False
    ) -> pandas.DataFrame:
        """Return rows as a table of pandas: a column for every config field, number and version."""
        from parityscope.records.export import frame_of

        return frame_of(self.rows(experiment, where, failed=failed))

    def hint(self, keys: Sequence[str], owner: str) -> bool:
        """Note that `owner` is about to run some configs; say whether nobody else had noted any of them.

        Sweeps on one folder begin with different configs by it. Nobody waits because of it, and what a killed sweep
        noted may stay for ever: others run it after everything else.
        """
        with self._database.writing() as connection:
            query = f"SELECT count(*) FROM leases WHERE owner != ? AND {_AMONG}"
            (others,) = connection.execute(query, (owner, json.dumps(keys))).fetchone()
            connection.executemany("INSERT OR IGNORE INTO leases VALUES (?, ?)", [(key, owner) for key in keys])
        return not others

    def end_hints(self, owner: str | None = None) -> None:
        """Withdraw what `owner` had noted and not finished; without a name what anybody had, such as killed sweeps."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM leases WHERE owner = coalesce(?, owner)", (owner,))

    def damaged(self) -> dict[str, str]:
        """Return what is wrong with rows that cannot be trusted, by address; empty when all is well."""
        self._database.check_whole()
        reasons: dict[str, str] = {}
        with self._database.reading() as connection:
            for values in connection.execute("SELECT * FROM rows"):
                try:
                    self._row(values)
                except InvalidInput as error:
                    reasons[values["key"]] = str(error)
        return reasons

    def _row(self, values: sqlite3.Row) -> StoredRow:
        stored = tuple(values)
        try:
            if row_checksum(stored[:-1]) != stored[-1]:
                raise ValueError("its checksum does not fit")
            arrays = {} if values["arrays"] is None else load(values["arrays"])
            texts = {name: json.loads(values[name]) for name in ("config", "numbers", "versions")}
        except (SafetensorError, ValueError) as error:
            raise InvalidInput(
                f"row {values['key']} of {values['experiment']} in {self.database} is damaged ({error}): parityscope "
                f"rows {self.path} --repair copies every other row into a new file, and this one is then computed again"
            ) from None
        # An earlier version of the file has neither.
        origin = {name: values[name] for name in ("version", "code") if name in values.keys()}  # noqa: SIM118
        return StoredRow(
            experiment=values["experiment"],
            arrays=arrays,
            finished=values["finished"],
            seconds=values["seconds"],
            traceback=values["traceback"],
            **texts,
            **origin,
        )

    def _check_names(self, connection: sqlite3.Connection, experiment: str | None, where: Mapping[str, Any]) -> None:
        """A misspelt name is an error, not an empty answer."""
        experiments = sorted({*self.counts(), *self.counts(failed=True)})
        if experiments and experiment is not None and experiment not in experiments:
            raise InvalidInput(f"no rows of {experiment!r} are stored here: choose from {', '.join(experiments)}")
        if not where:
            return
        query = "SELECT DISTINCT fullkey FROM rows, json_tree(rows.config) WHERE ? IS NULL OR experiment = ?"
        paths = {path for (path,) in connection.execute(query, (experiment, experiment))}
        for name in where:
            if paths and not {_json_path(name), _json_path(name).replace('"', "")} & paths:
                known = sorted({path[2:].replace('"', "") for path in paths if "[" not in path and path != "$"})
                raise InvalidInput(f"no config has a field {name!r}: choose from {', '.join(known)}")


class DamagedStore(InvalidInput):
    """A file whose pages do not fit together."""

    def __init__(self, file: Path, problem: object) -> None:
        super().__init__(
            f"{file} is damaged ({problem}): parityscope rows {file.parent} --repair copies every sound row into a new"
            " file, and what is missing is then computed again"
        )


class Database:
    """`store.sqlite` in a folder, at this version of the schema; opened for each use, so that nothing is held."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "store.sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        self.read_only = self.file.exists() and not all(os.access(place, os.W_OK) for place in (self.file, folder))
        with self.reading() as connection:
            self.version = self._stored_version(connection)
            if self.version == _SCHEMA_VERSION and not self.read_only:
                for index in _INDICES:
                    connection.execute(index)
            if self.version != 0 or self.read_only:
                return
            _set_journal(connection, "DELETE" if _on_network(folder) else "WAL")
        with self._transaction() as connection:
            if self._stored_version(connection) == 0:  # another process may just have made it
                for statement in (*_SCHEMA.split(";"), *_INDICES):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        self.version = _SCHEMA_VERSION

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open and close; a damaged file is a sentence, and stays as it is."""
        try:
            with closing(self._connection()) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.DatabaseError as error:
            torn = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHORT_READ
            if torn or not isinstance(error, sqlite3.OperationalError) or str(error).startswith(_DAMAGE):
                raise DamagedStore(self.file, error) from None
            advice = "copy its folder to where it can be written" if self.read_only else "is the disk full?"
            raise OSError(f"cannot {'read' if self.read_only else 'write'} {self.file} ({error}): {advice}") from None

    def _connection(self) -> sqlite3.Connection:
        if not self.read_only:
            return sqlite3.connect(self.file, timeout=_PATIENCE_SECONDS, isolation_level=None)
        # A file with a write-ahead log is read through a second file that SQLite keeps beside it. Where that is not
        # there and cannot be made, the log is empty and everything stands in the file itself.
        with self.file.open("rb") as opened:
            with_log = opened.read(19)[18:] == b"\x02"
        log = Path(f"{self.file}-wal")
        mode = "mode=ro" if not with_log or (log.exists() and log.stat().st_size) else "immutable=1"
        address = f"{self.file.resolve().as_uri()}?{mode}"
        return sqlite3.connect(address, timeout=_PATIENCE_SECONDS, isolation_level=None, uri=True)

    def check_writable(self) -> None:
        """Refuse a file that cannot be written, or of an earlier version."""
        if self.read_only:
            raise OSError(
                f"{self.file} can be read but not added to, since it or its folder is read-only: choose another --out"
            )
        if self.version != _SCHEMA_VERSION:
            raise InvalidInput(
                f"{self.file} is of an earlier parityscope (store version {self.version}, now {_SCHEMA_VERSION}): its"
                " rows do not say which code made them, so it can be read but not added to; choose another --out"
            )

    def check_whole(self) -> None:
        """Refuse a file whose pages do not fit together; rows are not read for it."""
        with self.reading() as connection:
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise DamagedStore(self.file, problem.splitlines()[-1])

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open, wait for other writers, commit everything or nothing, close; earlier versions are refused."""
        self.check_writable()
        with self._transaction() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    def _stored_version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the file, 0 for a new one."""
        # Tables first: they and the version come in one transaction, and another process may commit it in between.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if not 0 <= version < _NO_STORE_HAS or (version == 0 and tables):
            raise DamagedStore(self.file, f"it says that it is of store version {version}")
        if version > _SCHEMA_VERSION:
            raise InvalidInput(
                f"{self.file} was written by a newer parityscope (store version {version}, this one reads up to"
                f" {_SCHEMA_VERSION}): upgrade parityscope or choose another folder"
            )
        if 0 < version < _READABLE:
            raise InvalidInput(
                f"{self.file} was written before the first release (store version {version}): choose another folder"
            )
        return version


def _done_or(failed: bool) -> str:
    return "traceback != ''" if failed else "traceback = ''"


def _json_path(name: str) -> str:
    if '"' in name or not _is_text(name):
        raise InvalidInput(f"no config has a field {name!r}: names of fields have no quotes")
    return "$" + "".join(f'."{part}"' for part in name.split("."))


def _json_value(value: Any) -> Any:
    """Return a value as `json_extract` gives it: lists and objects as text without spaces."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, str) and not _is_text(value):
        raise InvalidInput(f"no config has the value {value!r}: it is no text")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        try:
            return float(value)  # which is what SQLite makes of such a number
        except OverflowError:
            raise InvalidInput(f"no config has a number of {len(str(value))} digits") from None
    return value


def _is_text(value: str) -> bool:
    """Say whether a text can be written as UTF-8: half a surrogate pair cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_values(row: StoredRow, arrays: bytes | None) -> tuple[Any, ...]:
    values = (
        row.key,
        row.experiment,
        row.version,
        json.dumps(row.config),
        row.code,
        json.dumps(row.numbers),
        arrays,
        json.dumps(row.versions),
        float(row.finished),
        float(row.seconds),
        row.traceback,
    )
    return (*values, row_checksum(values))


def _values(config: Config, outcome: Outcome) -> tuple[Any, ...]:
    row = StoredRow(
        config.ROWS,
        config.model_dump(mode="json"),
        dict(outcome.numbers),
        version=config.VERSION,
        code=config.code(),
        versions=dict(outcome.versions),
        finished=time.time(),
        seconds=outcome.seconds,
        traceback=outcome.traceback,
    )
    return _plain_values(row, outcome.arrays)


def row_checksum(values: Sequence[Any]) -> str:
    """Return a hash of every column; types and lengths are part of it, so that no two rows read the same."""
    digest = hashlib.sha256()
    for value in values:
        raw = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(f"{type(value).__name__}:{len(raw)}:".encode() + raw)
    return digest.hexdigest()


def _on_network(folder: Path, mounts: str | None = None) -> bool:
    """Say whether a folder is on a file system that several machines may mount, as far as Linux tells."""
    table = Path("/proc/self/mounts")
    if mounts is None:
        mounts = table.read_text(errors="replace") if table.exists() else ""
    place, deepest = folder.resolve(), (0, "")
    for line in mounts.splitlines():
        _, mounted, kind, *_ = line.split(" ")
        mounted = mounted.replace("\\040", " ")
        if place.is_relative_to(mounted):
            deepest = max(deepest, (len(mounted), kind))
    return deepest[1].startswith(_NETWORK_FILE_SYSTEMS)


def _set_journal(connection: sqlite3.Connection, mode: str) -> None:
    """Choose the journal of a new file; while another process does the same SQLite refuses without waiting."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
