"""The file itself: upgraded in place, torn tails, many writers."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from parityscope.records import SCHEMA_VERSION, Config, Outcome, Store, config_key
from parityscope.records.database import on_network

VERSION_1 = """
CREATE TABLE rows (
    key TEXT PRIMARY KEY, experiment TEXT NOT NULL, config TEXT NOT NULL, numbers TEXT NOT NULL,
    arrays INTEGER NOT NULL, versions TEXT NOT NULL, finished REAL NOT NULL, seconds REAL NOT NULL
) STRICT
"""


class Size(Config):
    n: int


def write_version_1(folder, sizes):
    """Write a store as the first release did: arrays in files, no checksums."""
    (folder / "arrays").mkdir(parents=True)
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(VERSION_1)
        connection.execute("PRAGMA user_version = 1")
        for n in sizes:
            key, has_arrays = config_key("demo", Size(n=n)), n % 2
            if has_arrays:
                (folder / "arrays" / f"{key}.safetensors").write_bytes(save({"x": torch.full((3,), float(n))}))
            values = (key, "demo", Size(n=n).model_dump_json(), json.dumps({"n": n}), has_arrays, "{}", n + 0.5, 2.0)
            connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def test_a_store_of_version_1_is_upgraded_in_place_and_loses_nothing(tmp_path):
    write_version_1(tmp_path, range(1, 9))
    rows = Store(tmp_path).rows("demo")
    assert [row.config["n"] for row in rows] == [row.numbers["n"] for row in rows] == list(range(1, 9))
    assert [row.finished for row in rows] == [n + 0.5 for n in range(1, 9)]
    assert {row.seconds for row in rows} == {2.0}
    assert [float(row.arrays["x"][0]) for row in rows if row.arrays] == [1, 3, 5, 7]
    assert not (tmp_path / "arrays").exists()
    assert Store(tmp_path).damaged() == {}
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION


def test_an_upgrade_keeps_the_numbers_of_a_row_whose_arrays_are_gone_and_says_so(tmp_path):
    write_version_1(tmp_path, (1, 2, 3))
    (tmp_path / "arrays" / f"{config_key('demo', Size(n=1))}.safetensors").unlink()
    (tmp_path / "arrays" / f"{config_key('demo', Size(n=3))}.safetensors").write_bytes(b"torn")
    store = Store(tmp_path)
    assert [row.numbers["n"] for row in store.rows("demo")] == [2]
    failed = store.rows("demo", failed=True)
    assert [row.numbers["n"] for row in failed] == [1, 3]
    assert all("missing or damaged when the store was upgraded" in row.traceback for row in failed)
    assert len(list((tmp_path / "arrays").iterdir())) == 1  # what could not be read is not deleted


def test_an_upgrade_that_is_interrupted_leaves_version_1(tmp_path, monkeypatch):
    write_version_1(tmp_path, range(1, 5))
    monkeypatch.setattr("parityscope.records.database.load", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Store(tmp_path)
    monkeypatch.undo()
    assert len(Store(tmp_path).rows("demo")) == 4


def test_a_torn_tail_loses_no_earlier_row(tmp_path):
    """Cut and garble the write-ahead log at many places: what was committed before the cut is there, all of it."""
    store = Store(tmp_path / "store")
    with closing(sqlite3.connect(store.database)) as holding:  # while it is open the log stays a file of its own
        holding.execute("SELECT * FROM rows").fetchall()
        lengths = []
        log = Path(f"{store.database}-wal")
        for n in range(12):
            store.add("demo", Size(n=n), {"n": n}, {"x": torch.ones(50)}, seconds=0)
            lengths.append(log.stat().st_size)
        for cut in range(lengths[0], lengths[-1] + 1, 1777):
            for garbled in (False, True):
                copy = tmp_path / f"cut-{cut}-{garbled}"
                copy.mkdir()
                shutil.copy(store.database, copy)
                tail = b"\xa5" * 3000 if garbled else b""
                (copy / log.name).write_bytes(log.read_bytes()[:cut] + tail)
                found = [row.numbers["n"] for row in Store(copy).rows("demo")]
                assert found == list(range(sum(length <= cut for length in lengths)))
                Store(copy).add("demo", Size(n=99), {"n": 99}, {}, seconds=0)  # and it can be written to again
                assert [row.numbers["n"] for row in Store(copy).rows("demo")] == [*found, 99]


WRITER = """
import sys
from pathlib import Path
from parityscope.records import Config
from parityscope.records import Store
class Size(Config):
    n: int
first, count = int(sys.argv[2]), int(sys.argv[3])
store = Store(Path(sys.argv[1]))
for n in range(first, first + count):
    store.add("demo", Size(n=n), {"n": n}, {}, seconds=0)
"""


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
    assert sorted(row.numbers["n"] for row in Store(folder).rows("demo")) == list(range(35))


def test_a_network_folder_is_recognised():
    mounts = (
        "disk / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\ndisk /data/local\\040disk xfs rw 0 0\nm /b fuse.sshfs rw 0 0"
    )
    assert on_network(Path("/data/out"), mounts)
    assert on_network(Path("/b"), mounts)
    assert not on_network(Path("/data/local disk/out"), mounts)
    assert not on_network(Path("/database"), mounts)


def test_on_a_network_folder_the_log_is_not_shared_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("parityscope.records.database.on_network", lambda _: True)
    store = Store(tmp_path)
    store.add_all("demo", [(Size(n=1), Outcome({"n": 1}))])
    with closing(sqlite3.connect(store.database)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    assert len(store.rows("demo")) == 1
