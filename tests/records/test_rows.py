import sqlite3
from contextlib import closing

import pytest
import torch
from pydantic import ValidationError

from parityscope import InvalidInput
from parityscope.records import SCHEMA_VERSION, Config, Outcome, Store, config_key


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


def edit(store, statement, *values):
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("column", ["arrays", "numbers", "config", "traceback", "seconds"])
def test_a_changed_row_is_found_named_and_can_be_run_again(store, column):
    store.add("demo", Size(n=3), {"value": 1}, {"x": torch.ones(3)}, seconds=0)
    store.add("demo", Size(n=4), {"value": 2}, {}, seconds=0)
    damage = {"arrays": b"torn", "seconds": 7.0, "config": '{"n": 3, "seed": 8}'}.get(column, '{"value": 9}')
    edit(store, f"UPDATE rows SET {column} = ? WHERE key = ?", damage, config_key("demo", Size(n=3)))
    with pytest.raises(InvalidInput, match=r"row \w+ of demo in .* is damaged .*--repair"):
        store.rows("demo", failed=column == "traceback")
    assert list(store.damaged()) == [config_key("demo", Size(n=3))]
    store.forget(store.damaged())
    assert store.damaged() == {}
    assert [row.numbers for row in store.rows("demo")] == [{"value": 2}]


def test_failed_rows_keep_their_traceback_and_give_way_to_done_ones(store):
    store.add_all("demo", [(Size(n=3), Outcome(traceback="Boom")), (Size(n=4), Outcome({"value": 1}))])
    assert store.row("demo", Size(n=3)) is None
    assert ("demo", Size(n=3)) not in store
    assert [row.traceback for row in store.rows("demo", failed=True)] == ["Boom"]
    assert store.keys("demo", failed=True) == {config_key("demo", Size(n=3))}
    store.add("demo", Size(n=3), {"value": 5}, {}, seconds=0)
    store.add_all("demo", [(Size(n=3), Outcome(traceback="Boom again"))])
    assert store.row("demo", Size(n=3)).numbers == {"value": 5}
    assert store.keys("demo") == {config_key("demo", Size(n=n)) for n in (3, 4)}


def test_rows_of_one_call_are_stored_together_or_not_at_all(store):
    def outcomes():
        yield Size(n=3), Outcome({"value": 1})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.add_all("demo", outcomes())
    unserialisable = [(Size(n=3), Outcome({"value": 1})), (Size(n=4), Outcome({"value": 1j}))]
    with pytest.raises(TypeError):
        store.add_all("demo", unserialisable)
    assert store.rows() == []


def test_rows_are_found_by_the_values_of_their_configs(store):
    for n in (3, 4, 5):
        for seed in (0, 1):
            store.add("demo", Size(n=n, seed=seed), {"value": 10 * n + seed}, {}, seconds=0)
    store.add("other", Size(n=3), {"value": -1}, {}, seconds=0)

    def found(experiment, **where):
        return [row.numbers["value"] for row in store.rows(experiment, where=where)]

    assert found("demo", n=3) == [30, 31]
    assert found("demo", n=(3, 5), seed=1) == [31, 51]
    assert found("demo", n=range(4, 6), seed=0) == [40, 50]
    assert found(None, n=3, seed=0) == [30, -1]
    assert found("demo", n=7) == []
    assert found("demo", n=()) == []
    with pytest.raises(InvalidInput, match="no config has a field 'sed': choose from n, seed"):
        store.rows("demo", where={"sed": 1})


def test_leases_are_refused_while_their_owner_is_present(store):
    assert store.lease(["a", "b"], "ann", lambda owner: True)
    assert store.lease(["a"], "ann", lambda owner: True)
    assert not store.lease(["b", "c"], "bob", lambda owner: True)
    assert store.lease(["c"], "bob", lambda owner: True)
    assert store.lease(["b"], "bob", lambda owner: owner != "ann")
    store.end_leases("bob")
    assert store.lease(["b", "c"], "eve", lambda owner: True)
    assert not store.lease(["a"], "eve", lambda owner: True)


def test_a_stored_row_ends_its_lease(store):
    key = config_key("demo", Size(n=3))
    store.lease([key], "ann", lambda owner: True)
    store.add("demo", Size(n=3), {}, {}, seconds=0)
    assert store.lease([key], "bob", lambda owner: True)


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
    assert names <= {".sqlite", ".sqlite-wal", ".sqlite-shm"}
