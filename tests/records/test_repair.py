"""A damaged store gives back every row that its pages still hold, and keeps the old file."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
import torch

from parityscope import InvalidInput
from parityscope.records import Config, Outcome, Result, Store
from parityscope.records.repair import _sound_rows, repair
from parityscope.records.row import array_bytes

ROWS = 300


class Size(Config):
    """A config with a number."""

    ROWS = "demo"
    n: int


def outcome(n):
    """Return small rows, rows of several pages, failed ones."""
    if n % 25 == 7:
        return Outcome(traceback=f"ValueError: no answer for {n}")
    arrays = array_bytes({"curve": torch.arange(n % 5 * 700.0)}) if n % 3 else None
    return Outcome({"n": n, "risk": 1 / (n + 1)}, arrays, seconds=float(n))


def contents(store):
    rows = [*store.rows(), *store.rows(failed=True)]
    return {
        row.config["n"]: (row.numbers, {k: v.tolist() for k, v in row.arrays.items()}, row.traceback) for row in rows
    }


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a store of a few hundred rows, all in one file."""
    store = Store(tmp_path_factory.mktemp("sound"))
    for start in range(0, ROWS, 20):
        store.add_all([(Size(n=n), outcome(n)) for n in range(start, start + 20)])
    return store


def flip(data, draw):
    for _ in range(draw.randint(1, 20)):
        place = draw.randrange(len(data))
        data[place] ^= 1 << draw.randrange(8)


def zero_pages(data, draw):
    for page in draw.sample(range(len(data) // 4096), draw.randint(1, 5)):
        data[page * 4096 : (page + 1) * 4096] = bytes(4096)


def truncate(data, draw):
    del data[draw.randrange(4096, len(data)) :]


def garble_the_start(data, draw):
    length = draw.choice((16, 100, 4096))
    data[:length] = draw.randbytes(length)


KINDS = (flip, zero_pages, truncate, garble_the_start)


def damaged_copies(sound, folder, copies):
    for number in range(copies):
        draw, place = random.Random(number), folder / f"copy-{number}"
        place.mkdir()
        data = bytearray(sound.database.read_bytes())
        KINDS[number % len(KINDS)](data, draw)
        (place / "store.sqlite").write_bytes(data)
        yield KINDS[number % len(KINDS)], place


@pytest.mark.parametrize("copies", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_damaged_stores_give_back_their_rows(sound, tmp_path, copies):
    whole, shares = contents(sound), {kind: [] for kind in KINDS}
    for kind, place in damaged_copies(sound, tmp_path, copies):
        count, old = repair(place)
        found = contents(Store(place))
        assert len(found) == count
        assert found.items() <= whole.items()  # what comes back is as it was
        assert (old is None) == (count == ROWS and not list(place.glob("*.damaged-*")))
        Store(place).check_writable()
        shares[kind].append(count / ROWS)
    assert min(shares[flip]) > 0.9
    assert min(shares[zero_pages]) > 0.9
    assert min(shares[garble_the_start]) == 1.0  # no row stands on the first page
    assert sum(map(bool, shares[truncate])) >= 0.9 * len(shares[truncate])


def test_rows_in_the_log_are_rescued_and_the_log_goes_with_its_file(sound, tmp_path):
    shutil.copy(sound.database, tmp_path)
    store = Store(tmp_path)
    with closing(sqlite3.connect(store.database)) as holding:
        holding.execute("SELECT * FROM rows").fetchone()
        store.add(Size(n=ROWS), Result({"n": ROWS}), seconds=1.0)
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("store.sqlite", "store.sqlite-wal"):
            shutil.copy(tmp_path / name, copy)
    assert len({row[0] for row in _sound_rows(copy / "store.sqlite")}) == ROWS + 1
    data = bytearray((copy / "store.sqlite").read_bytes())
    data[4096 * 9 : 4096 * 12] = bytes(3 * 4096)
    (copy / "store.sqlite").write_bytes(data)
    count, old = repair(copy)
    assert 0.9 * ROWS < count < ROWS
    assert store.row(Size(n=ROWS)).numbers == Store(copy).row(Size(n=ROWS)).numbers
    assert {path.name.removeprefix(old.name) for path in copy.iterdir()} <= {"store.sqlite", "", "-wal", "-shm"}


def test_a_changed_row_is_left_behind_and_computed_again(sound, tmp_path):
    shutil.copy(sound.database, tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE rows SET numbers = '{}' WHERE key = ?", (Size(n=3).key,))
    assert repair(tmp_path) == (ROWS - 1, tmp_path / "store.sqlite.damaged-1")
    assert Size(n=3) not in Store(tmp_path)
    assert repair(tmp_path) == (ROWS - 1, None)


def test_work_does_not_begin_on_a_damaged_store(sound, tmp_path):
    data = bytearray(sound.database.read_bytes())
    data[4096 * 5 : 4096 * 6] = bytes(4096)
    (tmp_path / "store.sqlite").write_bytes(data)
    with pytest.raises(
        InvalidInput, match=rf"is damaged .*: parityscope rows {tmp_path} --repair copies every sound row"
    ):
        Store(tmp_path).check_writable()
