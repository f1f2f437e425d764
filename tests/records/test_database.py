"""The file itself: other versions, torn tails, many writers."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save

from parityscope import InvalidInput
from parityscope.records import Config, Result, Store, StoredRow, write_text
from parityscope.records.store import _SCHEMA_VERSION, Database, _on_network, row_checksum

VERSION_2 = """
CREATE TABLE rows (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, config TEXT NOT NULL, numbers TEXT NOT NULL, arrays BLOB,
    versions TEXT NOT NULL, finished REAL NOT NULL, seconds REAL NOT NULL, traceback TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT
"""


class Size(Config):
    """A config with a number."""

    ROWS = "demo"
    n: int

    def run(self):
        """Return it."""
        return Result({"n": self.n}, {"x": torch.ones(50)})


def add(store, n):
    store.add(Size(n=n), Size(n=n).run(), seconds=0.0)


def numbers(store):
    return [row.numbers["n"] for row in store.rows("demo")] if store.rows() else []


def write_version_2(folder, sizes):
    """Write a store as the first release did: rows do not say which code made them."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        for statement in VERSION_2.split(";"):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 2")
        for n in sizes:
            arrays = save({"x": torch.full((3,), float(n))}) if n % 2 else None
            traceback = "Boom" if n == 8 else ""
            values = (f"key {n}", "demo", json.dumps({"n": n}), json.dumps({"n": n}), arrays, "{}", n + 0.5, 2.0)
            values = (*values, traceback)
            connection.execute(f"INSERT INTO rows VALUES ({', '.join('?' * 10)})", (*values, row_checksum(values)))


def test_a_store_of_the_first_release_can_be_read(tmp_path):
    write_version_2(tmp_path / "store", range(1, 9))
    before = (tmp_path / "store" / "store.sqlite").read_bytes()
    store = Store(tmp_path / "store")
    rows = store.rows("demo")
    assert [row.config["n"] for row in rows] == [row.numbers["n"] for row in rows] == list(range(1, 8))
    assert [float(row.arrays["x"][0]) for row in rows if row.arrays] == [1, 3, 5, 7]
    assert {row.code for row in rows} == {""}
    assert [row.config["n"] for row in store.rows(where={"n": (2, 3)})] == [2, 3]
    assert [row.traceback for row in store.rows(failed=True)] == ["Boom"]
    assert len(store.keys()) == 7
    assert store.damaged() == {}
    assert write_text(store, tmp_path / "text") == 7
    assert (tmp_path / "store" / "store.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    "write",
    [
        lambda store: add(store, 1),
        lambda store: store.add_rows([StoredRow("demo", {"n": 1}, {})]),
        lambda store: store.hint(["key 1"], "ann"),
        lambda store: store.end_hints("ann"),
    ],
)
def test_it_cannot_be_added_to_and_its_rows_answer_no_config(tmp_path, write):
    write_version_2(tmp_path / "store", (1, 2))
    store = Store(tmp_path / "store")
    assert store.row(Size(n=1)) is None
    assert Size(n=1) not in store
    assert store.rows_of(Size) == []
    with pytest.raises(
        InvalidInput, match="do not say which code made them, so it can be read but not added to"
    ) as one:
        write(store)
    assert "\n" not in str(one.value)
    assert numbers(store) == [1, 2]


@pytest.mark.parametrize(
    ("version", "sentence"),
    [(1, "was written before the first release"), (_SCHEMA_VERSION + 1, "was written by a newer parityscope")],
)
def test_other_versions_are_refused_and_stay_as_they_are(tmp_path, version, sentence):
    add(Store(tmp_path), 1)
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection, connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = (tmp_path / "store.sqlite").read_bytes()
    with pytest.raises(InvalidInput, match=sentence):
        Store(tmp_path)
    assert (tmp_path / "store.sqlite").read_bytes() == before


def test_a_new_store_has_this_version(tmp_path):
    Store(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == _SCHEMA_VERSION == 3


def test_a_store_that_another_process_makes_meanwhile_is_not_called_damaged(tmp_path, monkeypatch):
    statements = []

    class Interrupted(sqlite3.Connection):
        """Another process makes the store between the two questions that tell its version."""

        def execute(self, statement, *values):
            rows = super().execute(statement, *values).fetchall()
            statements.append(statement)
            if len(statements) == 2:  # the first is about synchronous writes
                monkeypatch.undo()
                Store(tmp_path)
            return SimpleNamespace(fetchone=lambda: rows[0])

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, factory=Interrupted, **more))
    assert Database(tmp_path).version == _SCHEMA_VERSION
    assert len(statements) > 2, "the store was not made meanwhile"


def test_a_store_that_was_made_before_rows_were_indexed_gets_its_indices(tmp_path):
    add(Store(tmp_path), 1)
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection, connection:
        for name in ("done_rows", "failed_rows"):
            connection.execute(f"DROP INDEX {name}")
        connection.execute("CREATE INDEX rows_of_experiment ON rows (experiment)")
        connection.execute("INSERT INTO leases VALUES ('a key', 'a sweep of then')")
    add(Store(tmp_path), 2)
    assert numbers(Store(tmp_path)) == [1, 2]
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    assert {"done_rows", "failed_rows"} <= names


def test_a_torn_tail_loses_no_earlier_row(tmp_path):
    """Cut and garble the write-ahead log at many places: what was committed before the cut is there, all of it."""
    store = Store(tmp_path / "store")
    with closing(sqlite3.connect(store.database)) as holding:  # while it is open the log stays a file of its own
        holding.execute("SELECT * FROM rows").fetchall()
        lengths = []
        log = Path(f"{store.database}-wal")
        for n in range(12):
            add(store, n)
            lengths.append(log.stat().st_size)
        for cut in range(lengths[0], lengths[-1] + 1, 1777):
            for garbled in (False, True):
                copy = tmp_path / f"cut-{cut}-{garbled}"
                copy.mkdir()
                shutil.copy(store.database, copy)
                tail = b"\xa5" * 3000 if garbled else b""
                (copy / log.name).write_bytes(log.read_bytes()[:cut] + tail)
                found = numbers(Store(copy))
                assert found == list(range(sum(length <= cut for length in lengths)))
                add(Store(copy), 99)  # and it can be written to again
                assert numbers(Store(copy)) == [*found, 99]


WRITER = """
import sys
from pathlib import Path
from parityscope.records import Store, StoredRow
first, count = int(sys.argv[2]), int(sys.argv[3])
store = Store(Path(sys.argv[1]))
for n in range(first, first + count):
    store.add_rows([StoredRow("demo", {"n": n}, {"n": n})])
"""


@pytest.mark.slow
def test_many_processes_create_and_write_one_store_at_once(tmp_path):
    folder = tmp_path / "store"
    starts = (0, 10, 20, 25)  # the last two overlap
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(first), "10"], stderr=subprocess.PIPE)
        for first in starts
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    assert sorted(numbers(Store(folder))) == list(range(35))


def test_a_network_folder_is_recognised():
    mounts = (
        "disk / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\ndisk /data/local\\040disk xfs rw 0 0\nm /b fuse.sshfs rw 0 0"
    )
    assert _on_network(Path("/data/out"), mounts)
    assert _on_network(Path("/b"), mounts)
    assert not _on_network(Path("/data/local disk/out"), mounts)
    assert not _on_network(Path("/database"), mounts)


def test_on_a_network_folder_the_log_is_not_shared_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("parityscope.records.store._on_network", lambda _: True)
    store = Store(tmp_path)
    add(store, 1)
    with closing(sqlite3.connect(store.database)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    assert numbers(store) == [1]


READER = """
import os, sys
from pathlib import Path
from parityscope.records import Config, Result, Store
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
class Size(Config):
    ROWS = "demo"
    n: int
store = Store(Path(sys.argv[1]))
print(sorted(row.numbers["n"] for row in store.rows()), store.counts(), store.damaged())
for write in (store.check_writable, lambda: store.add_rows(store.rows()), lambda: store.hint(["key"], "ann")):
    try:
        write()
    except OSError as error:
        print(error)
"""


def read_by_another(folder):
    """Return what somebody sees who may not write there: as root, that is a process that has given up its rights."""
    done = subprocess.run([sys.executable, "-c", READER, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def shown():
    """Return a folder that others can read; those of pytest are for their owner only."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "store"
        folder.mkdir()
        Path(place).chmod(0o755)
        yield folder
        folder.chmod(0o755)


def lock(folder):
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


REFUSED = "can be read but not added to, since it or its folder is read-only: choose another --out"


@pytest.mark.parametrize("journal", ["WAL", pytest.param("DELETE", marks=pytest.mark.slow)])
def test_a_store_can_be_read_where_it_cannot_be_written(shown, journal, monkeypatch):
    monkeypatch.setattr("parityscope.records.store._on_network", lambda _: journal == "DELETE")
    for n in (1, 2):
        add(Store(shown), n)
    lock(shown)
    assert read_by_another(shown) == ["[1, 2] {'demo': 2} {}", *[f"{shown / 'store.sqlite'} {REFUSED}"] * 3]


def test_rows_that_are_still_in_the_log_are_read_too(shown):
    store = Store(shown)
    with closing(sqlite3.connect(store.database)) as holding:  # as while a sweep is at work, or after it was killed
        holding.execute("SELECT * FROM rows").fetchall()
        add(store, 1)
        lock(shown)
        assert read_by_another(shown)[0] == "[1] {'demo': 1} {}"


def test_a_log_that_cannot_be_read_is_a_sentence_and_no_row_is_passed_over(shown):
    store = Store(shown)
    with closing(sqlite3.connect(store.database)) as holding:
        holding.execute("SELECT * FROM rows").fetchall()
        add(store, 1)
        copy = shown / "copy"
        copy.mkdir()
        for name in ("store.sqlite", "store.sqlite-wal"):  # without the index of the log
            shutil.copy(shown / name, copy)
    lock(copy)
    done = subprocess.run([sys.executable, "-c", READER, str(copy)], capture_output=True, text=True, check=False)
    assert f"cannot read {copy / 'store.sqlite'}" in done.stderr
    assert "copy its folder to where it can be written" in done.stderr
