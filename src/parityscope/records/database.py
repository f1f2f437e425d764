"""The SQLite file of a store: opened safely, also where it cannot be written; written all or nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from parityscope.core.errors import InvalidInput

SCHEMA_VERSION = 3
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
INSERT = f"INSERT INTO rows ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT (key) DO "
# What is done stays; what had failed gives way.
UPSERT = f"{INSERT} UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in COLUMNS)} WHERE rows.traceback != ''"
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
# How errors begin that SQLite does not call damage although they are: a list of tables that lost one, a torn file.
_DAMAGE = ("no such table", "no such column", "malformed", "unsupported file format", "disk I/O error")
# WAL needs memory shared by all users of the file, which machines that mount the same folder do not have.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "fuse", "9p", "afs", "ceph", "gluster")


class DamagedStore(InvalidInput):
    """A file whose pages do not fit together."""

    def __init__(self, file: Path, problem: object) -> None:
        super().__init__(
            f"{file} is damaged ({problem}): parityscope rows {file.parent} --repair copies every sound row into a new"
            " file, and what is missing is then computed again"
        )


class Database:
    """`store.sqlite` in a folder, at this version of the schema; opened for each use, so that nothing is held.

    >>> import tempfile
    >>> from contextlib import suppress
    >>> database = Database(Path(tempfile.mkdtemp()))
    >>> with suppress(KeyError), database.writing() as connection:  # all or nothing
    ...     added = connection.execute("INSERT INTO leases VALUES ('key', 'ann')")
    ...     raise KeyError
    >>> with database.reading() as connection:
    ...     connection.execute("SELECT count(*) FROM leases").fetchone()[0]
    0
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "store.sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        self.read_only = self.file.exists() and not all(os.access(place, os.W_OK) for place in (self.file, folder))
        with self.reading() as connection:
            self.version = self._stored_version(connection)
            if self.version == SCHEMA_VERSION and not self.read_only:
                for index in _INDICES:
                    connection.execute(index)
            if self.version != 0 or self.read_only:
                return
            _set_journal(connection, "DELETE" if on_network(folder) else "WAL")
        with self._transaction() as connection:
            if self._stored_version(connection) == 0:  # another process may just have made it
                for statement in (*_SCHEMA.split(";"), *_INDICES):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self.version = SCHEMA_VERSION

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open and close; a damaged file is a sentence, and stays as it is."""
        try:
            with closing(self._connection()) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.OperationalError) or str(error).startswith(_DAMAGE):
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
        if self.version != SCHEMA_VERSION:
            raise InvalidInput(
                f"{self.file} is of an earlier parityscope (store version {self.version}, now {SCHEMA_VERSION}): its"
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
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not 0 <= version < _NO_STORE_HAS or (version == 0 and tables):
            raise DamagedStore(self.file, f"it says that it is of store version {version}")
        if version > SCHEMA_VERSION:
            raise InvalidInput(
                f"{self.file} was written by a newer parityscope (store version {version}, this one reads up to"
                f" {SCHEMA_VERSION}): upgrade parityscope or choose another folder"
            )
        if 0 < version < _READABLE:
            raise InvalidInput(
                f"{self.file} was written before the first release (store version {version}): choose another folder"
            )
        return version


def row_checksum(values: Sequence[Any]) -> str:
    """Return a hash of every column; types and lengths are part of it, so that no two rows read the same.

    >>> row_checksum(("a", "bc")) == row_checksum(("ab", "c"))
    False
    """
    digest = hashlib.sha256()
    for value in values:
        raw = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(f"{type(value).__name__}:{len(raw)}:".encode() + raw)
    return digest.hexdigest()


def on_network(folder: Path, mounts: str | None = None) -> bool:
    """Say whether a folder is on a file system that several machines may mount, as far as Linux tells.

    >>> on_network(Path("/home/ann/out"), "disk / ext4 rw 0 0\\nserver:/home /home nfs4 rw 0 0")
    True
    """
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
