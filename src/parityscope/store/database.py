"""The SQLite file of a store: opened safely, brought up to date, written all or nothing."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load

from parityscope.errors import InvalidInput

SCHEMA_VERSION = 2
INSERT = (
    "INSERT INTO rows (key, experiment, config, numbers, arrays, versions, finished, seconds, traceback, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SCHEMA = """
CREATE TABLE rows (
    key        TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,
    config     TEXT NOT NULL,
    numbers    TEXT NOT NULL,
    arrays     BLOB,             -- safetensors, or none
    versions   TEXT NOT NULL,
    finished   REAL NOT NULL,
    seconds    REAL NOT NULL,
    traceback  TEXT NOT NULL,    -- of a failed run, empty when it is done
    checksum   TEXT NOT NULL
) STRICT;
CREATE INDEX rows_of_experiment ON rows (experiment);
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT
"""
_PATIENCE_SECONDS = 60.0
# WAL needs memory shared by all users of the file, which machines that mount the same folder do not have.
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "fuse", "9p", "afs", "ceph", "gluster")


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
        with self.reading() as connection:
            if self._version(connection) == SCHEMA_VERSION:
                return
            _set_journal(connection, "DELETE" if on_network(folder) else "WAL")
        with self.writing() as connection:
            self._upgrade(connection)
        self._remove_files_of_version_1()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open and close; a damaged file is a sentence, and stays as it is."""
        try:
            with closing(sqlite3.connect(self.file, timeout=_PATIENCE_SECONDS, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.OperationalError as error:
            raise OSError(
                f"cannot write {self.file} ({error}): is the folder writable and the disk not full?"
            ) from None
        except sqlite3.DatabaseError as error:
            raise InvalidInput(
                f"{self.file} is damaged ({error}): move it away and run again; nothing in it was changed"
            ) from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open, wait for other writers, commit everything or nothing, close."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    def _version(self, connection: sqlite3.Connection) -> int:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise InvalidInput(
                f"{self.file} was written by a newer parityscope (store version {version}, this one reads up to"
                f" {SCHEMA_VERSION}): upgrade parityscope or choose another folder"
            )
        return version

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Bring the file to this version, in the transaction in force; another process may just have done it."""
        version = self._version(connection)
        if version == SCHEMA_VERSION:
            return
        if version == 1:
            connection.execute("ALTER TABLE rows RENAME TO rows_1")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        if version == 1:
            for old in connection.execute("SELECT * FROM rows_1 ORDER BY finished").fetchall():
                connection.execute(INSERT, self._from_version_1(old))
            connection.execute("DROP TABLE rows_1")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _from_version_1(self, old: sqlite3.Row) -> tuple[Any, ...]:
        """Version 1 kept arrays as files; a row whose file is gone keeps its numbers and counts as failed."""
        arrays, reason = None, ""
        if old["arrays"]:
            path = self._version_1_file(old["key"])
            try:
                arrays = path.read_bytes()
                load(arrays)
            except (OSError, SafetensorError) as error:
                arrays, reason = None, f"{path} was missing or damaged when the store was upgraded: {error}"
        texts = (old["key"], old["experiment"], old["config"], old["numbers"])
        values = (*texts, arrays, old["versions"], old["finished"], old["seconds"], reason)
        return (*values, row_checksum(values))

    def _version_1_file(self, key: str) -> Path:
        return self.folder / "arrays" / f"{key}.safetensors"

    def _remove_files_of_version_1(self) -> None:
        """Remove the array files that are in the database now; others stay where they are."""
        arrays = self.folder / "arrays"
        if not arrays.is_dir():
            return
        with self.reading() as connection:
            for (key,) in connection.execute("SELECT key FROM rows WHERE arrays IS NOT NULL"):
                self._version_1_file(key).unlink(missing_ok=True)
        if not any(arrays.iterdir()):
            arrays.rmdir()


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
