"""Rows are found by what they are, stay as they are, and are told when they are damaged."""

import sqlite3
from contextlib import closing

import pytest
import torch

from parityscope import InvalidInput
from parityscope.records import Config, Numbers, Outcome, Result, Store
from parityscope.records.repair import repair


class Size(Config):
    """A config of two numbers."""

    ROWS = "demo"
    n: int
    seed: int = 0


class Counts(Numbers):
    """What a typed config found."""

    risk: float
    found: tuple[int, ...]


class TypedSize(Size):
    """The same with typed numbers."""

    ROWS = "typed"
    NUMBERS = Counts


class Rates(Config):
    """A config of some depth."""

    ROWS = "rates"
    recipe: dict[str, float]
    size: Size


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def put(store, config, numbers=None, arrays=None, seconds=0.0):
    store.add(config, Result(numbers or {}, arrays or {}), seconds=seconds)


def test_a_row_comes_back_with_its_config_arrays_and_origin(store):
    curve, config = torch.linspace(0, 1, 5), TypedSize(n=3)
    store.add(config, Result(Counts(risk=0.25, found=(1, 2)), {"curve": curve}), seconds=1.5)
    row = Store(store.path).row(config)
    assert row.numbers == Counts(risk=0.25, found=(1, 2))
    assert row.config is config
    assert torch.equal(row.arrays["curve"], curve)
    assert row.seconds == 1.5
    assert row.versions["torch"] == torch.__version__
    assert row.code == config.code() != ""
    (plain,) = store.rows("typed")
    assert (plain.config, plain.numbers) == ({"n": 3, "seed": 0}, {"risk": 0.25, "found": [1, 2]})
    assert (plain.key, plain.version, plain.code) == (config.key, 1, config.code())


def test_numbers_that_do_not_fit_their_type_are_named(store):
    put(store, TypedSize(n=3), {"risk": "none", "found": []})
    with pytest.raises(InvalidInput, match=r"row \w+ of typed does not have the numbers of Counts"):
        store.row(TypedSize(n=3))
    assert store.rows("typed")[0].numbers["risk"] == "none"  # as it lies there


def test_configs_are_addressed_by_content(store):
    put(store, Size(n=3))
    assert Size(n=3, seed=0) in store
    assert Size(n=3, seed=1) not in store
    assert TypedSize(n=3) not in store


def test_the_first_row_of_a_config_stays(store):
    put(store, Size(n=3), {"value": 1})
    put(store, Size(n=3), {"value": 2})
    assert [row.numbers for row in store.rows("demo")] == [{"value": 1}]


def test_a_row_of_other_code_or_another_version_is_stale_but_kept(store, monkeypatch):
    put(store, Size(n=3), {"value": 1})
    monkeypatch.setattr(Size, "code", lambda self: "another")
    assert Size(n=3) not in store
    assert store.rows_of(Size) == []
    put(store, Size(n=3), {"value": 2})
    assert [row.numbers.value for row in store.rows_of(Size)] == [2]
    monkeypatch.setattr(Size, "VERSION", 2)
    assert store.row(Size(n=3)) is None
    assert [row.numbers["value"] for row in store.rows("demo")] == [1, 2]


def test_the_rows_of_a_class_are_typed(store):
    for n in (3, 4):
        put(store, TypedSize(n=n), {"risk": 1 / n, "found": [n]})
    put(store, Size(n=5), {"risk": 0.0})
    assert [(row.config.n, row.numbers.found) for row in store.rows_of(TypedSize)] == [(3, (3,)), (4, (4,))]


def test_a_damaged_store_is_a_sentence_and_stays_as_it_is(store):
    store.database.write_bytes(b"this is not a database, " * 100)
    before = store.database.read_bytes()
    with pytest.raises(InvalidInput, match="is damaged"):
        Store(store.path)
    assert store.database.read_bytes() == before


def edit(store, statement, *values):
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("column", ["arrays", "numbers", "config", "traceback", "seconds", "code", "version"])
def test_a_changed_row_is_found_named_and_can_be_run_again(store, column):
    put(store, Size(n=3), {"value": 1}, {"x": torch.ones(3)})
    put(store, Size(n=4), {"value": 2})
    damage = {"arrays": b"torn", "seconds": 7.0, "config": '{"n": 3, "seed": 8}', "version": 2}
    statement = f"UPDATE rows SET {column} = ? WHERE key = ?"
    edit(store, statement, damage.get(column, '{"value": 9}'), Size(n=3).key)
    with pytest.raises(InvalidInput, match=r"row \w+ of demo in .* is damaged .*--repair"):
        store.rows("demo", failed=column == "traceback")
    assert list(store.damaged()) == [Size(n=3).key]
    assert repair(store.path)[0] == 1
    assert store.damaged() == {}
    assert [row.numbers for row in store.rows("demo")] == [{"value": 2}]


def test_failed_rows_keep_their_traceback_and_give_way_to_done_ones(store):
    store.add_all([(Size(n=3), Outcome(traceback="Boom")), (Size(n=4), Outcome({"value": 1}))])
    assert store.row(Size(n=3)) is None
    assert Size(n=3) not in store
    (failed,) = store.rows("demo", failed=True)
    assert (failed.traceback, failed.failed) == ("Boom", True)
    assert store.keys("demo", failed=True) == {Size(n=3).key}
    put(store, Size(n=3), {"value": 5})
    store.add_all([(Size(n=3), Outcome(traceback="Boom again"))])
    assert store.row(Size(n=3)).numbers.value == 5
    assert store.keys("demo") == {Size(n=n).key for n in (3, 4)}
    assert store.keys("demo", among=[Size(n=4).key, Size(n=5).key]) == {Size(n=4).key}


def test_rows_of_one_call_are_stored_together_or_not_at_all(store):
    def outcomes():
        yield Size(n=3), Outcome({"value": 1})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.add_all(outcomes())
    with pytest.raises(TypeError):
        store.add_all([(Size(n=3), Outcome({"value": 1})), (Size(n=4), Outcome({"value": 1j}))])
    assert store.rows() == []


def test_rows_are_counted_without_being_read(store, monkeypatch):
    for n in (3, 4, 5):
        put(store, Size(n=n))
    put(store, TypedSize(n=3))
    store.add_all([(Size(n=6), Outcome(traceback="Boom"))])
    monkeypatch.delattr(Store, "_row")
    assert (store.counts(), store.counts(failed=True)) == ({"demo": 3, "typed": 1}, {"demo": 1})
    with closing(sqlite3.connect(store.database)) as connection:
        query = "EXPLAIN QUERY PLAN SELECT experiment, count(*) FROM rows WHERE traceback = '' GROUP BY experiment"
        assert "USING COVERING INDEX done_rows" in connection.execute(query).fetchone()[-1]


def test_so_many_rows_at_most(store):
    for n in range(5):
        put(store, Size(n=n))
    assert [row.config["n"] for row in store.rows("demo", most=2)] == [0, 1]


def test_rows_are_found_by_the_values_of_their_configs(store):
    for n in (3, 4, 5):
        for seed in (0, 1):
            put(store, Size(n=n, seed=seed), {"value": 10 * n + seed})
    put(store, TypedSize(n=3), {"value": -1})

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
    with pytest.raises(InvalidInput, match="no rows of 'demi' are stored here: choose from demo, typed"):
        store.rows("demi")


def test_a_field_within_a_field_is_dotted(store):
    for rate in (0.1, 0.2):
        put(store, Rates(recipe={"learning_rate": rate, "weight decay": 0.0}, size=Size(n=4)), {"value": rate})

    def found(**where):
        return [row.numbers["value"] for row in store.rows("rates", {name: where[name] for name in where})]

    assert found(**{"recipe.learning_rate": 0.2, "size.n": 4}) == [0.2]
    assert found(**{"recipe.weight decay": 0.0}) == [0.1, 0.2]
    with pytest.raises(
        InvalidInput, match=r"no config has a field 'recipe\.rate': choose from recipe, recipe\.learning"
    ):
        found(**{"recipe.rate": 1})


def test_a_hint_says_whether_anybody_else_has_begun(store):
    assert store.hint(["a", "b"], "ann")
    assert store.hint(["a"], "ann")
    assert not store.hint(["b", "c"], "bob")
    store.end_hints("ann")
    assert store.hint(["a", "b", "c"], "bob")
    assert not store.hint(["a"], "eve")


def test_a_stored_row_ends_its_hint(store):
    key = Size(n=3).key
    store.hint([key], "ann")
    put(store, Size(n=3))
    assert store.hint([key], "bob")


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
        put(store, Size(n=3))


def test_nothing_on_disk_is_a_pickle(store):
    put(store, Size(n=3), {"a": 1}, {"x": torch.ones(3)})
    names = {path.suffix for path in store.path.rglob("*") if path.is_file()}
    assert names <= {".sqlite", ".sqlite-wal", ".sqlite-shm"}
