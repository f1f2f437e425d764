import sqlite3

import pytest
import torch
from pydantic import ValidationError

from parityscope import InvalidInput
from parityscope.experiments.contract import Config
from parityscope.store import SCHEMA_VERSION, Store, config_key


class Size(Config):
    n: int
    seed: int = 0


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def test_a_row_comes_back_with_its_config_arrays_and_origin(store):
    curve = torch.linspace(0, 1, 5)
    store.add("demo", Size(n=3), {"risk": 0.25, "found": [1, 2]}, {"curve": curve}, seconds=1.5)
    row = Store(store.path).row("demo", Size(n=3))
    assert row.numbers == {"risk": 0.25, "found": [1, 2]}
    assert row.config == {"n": 3, "seed": 0}
    assert torch.equal(row.arrays["curve"], curve)
    assert row.seconds == 1.5
    assert row.versions["torch"] == torch.__version__


def test_configs_are_addressed_by_content(store):
    store.add("demo", Size(n=3), {}, {}, seconds=0)
    assert ("demo", Size(n=3, seed=0)) in store
    assert ("demo", Size(n=3, seed=1)) not in store
    assert ("other", Size(n=3)) not in store
    assert config_key("demo", Size(n=3)) != config_key("demo", Size(n=4))


def test_the_first_row_of_a_config_stays(store):
    store.add("demo", Size(n=3), {"value": 1}, {}, seconds=0)
    store.add("demo", Size(n=3), {"value": 2}, {}, seconds=0)
    assert [row.numbers for row in store.rows("demo")] == [{"value": 1}]


def test_configs_are_frozen_and_reject_unknown_fields():
    with pytest.raises(ValidationError):
        Size(n=3, sed=1)
    with pytest.raises(ValidationError):
        Size(n=3).n = 4


def test_a_damaged_store_is_a_sentence_and_stays_as_it_is(store):
    store.database.write_bytes(b"this is not a database, " * 100)
    before = store.database.read_bytes()
    with pytest.raises(InvalidInput, match="is damaged"):
        Store(store.path)
    assert store.database.read_bytes() == before


def test_damaged_arrays_are_named(store):
    store.add("demo", Size(n=3), {}, {"x": torch.ones(3)}, seconds=0)
    (file,) = (store.path / "arrays").iterdir()
    file.write_bytes(b"torn")
    with pytest.raises(InvalidInput, match=r"safetensors is missing or damaged"):
        store.row("demo", Size(n=3))


def test_a_newer_store_is_refused(store):
    with sqlite3.connect(store.database) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(InvalidInput, match="was written by a newer parityscope"):
        Store(store.path)


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "store").touch()
    with pytest.raises(InvalidInput, match="is a file, not a folder"):
        Store(tmp_path / "store")


def test_a_full_disk_is_one_sentence(store, monkeypatch):
    class Full:
        def __init__(self, *_, **__):
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sqlite3, "connect", Full)
    with pytest.raises(OSError, match="disk is full"):
        store.add("demo", Size(n=3), {}, {}, seconds=0)


def test_nothing_on_disk_is_a_pickle(store):
    store.add("demo", Size(n=3), {"a": 1}, {"x": torch.ones(3)}, seconds=0)
    names = {path.suffix for path in store.path.rglob("*") if path.is_file()}
    assert names <= {".sqlite", ".safetensors", ".sqlite-wal", ".sqlite-shm"}
