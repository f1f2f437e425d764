"""Thousands of columns of digits are read as bytes, with the same answer as any other reader's."""

import io

import numpy as np
import pandas as pd
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables import wide
from parityscope.fit.tables.delimited import read_delimited
from parityscope.fit.tables.table import MISSING


@pytest.fixture
def genotypes():
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.randint(3, size=(12, wide.MANY_COLUMNS + 10)))
    frame.columns = [f"rs{column}" for column in frame.columns]
    return frame


def written(tmp_path, frame):
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def test_digits_are_bytes_without_a_parser(tmp_path, genotypes, monkeypatch):
    monkeypatch.setattr(pd, "read_csv", None)
    table = read_delimited(written(tmp_path, genotypes), ".csv")
    assert table.numbers.dtype == np.int8
    assert (table.numbers == genotypes.to_numpy()).all()
    assert table.names == tuple(genotypes.columns)


@pytest.mark.parametrize("place", [0, 7, wide.MANY_COLUMNS + 10])
def test_names_and_measurements_among_the_digits(tmp_path, genotypes, place):
    genotypes.insert(place, "person", [f"p{row}" for row in range(12)])
    genotypes.insert(place, "heat", np.arange(12) / 4)
    genotypes.insert(place, "age", np.arange(5, 17))  # one digit in the first rows, two later
    table = read_delimited(written(tmp_path, genotypes), ".csv")
    assert table.texts[genotypes.columns.get_loc("person")].tolist() == list(genotypes["person"])
    for name in ("age", "heat", "rs0", "rs77"):
        assert table.column(table.names.index(name)).tolist() == genotypes[name].tolist()
    others = genotypes.drop(columns="person")
    assert (table.numbers == others.to_numpy()).all()
    assert [table.names[column] for column in table.places] == list(others.columns)


def test_empty_fields_are_missing(tmp_path, genotypes):
    genotypes = genotypes.astype(object)
    genotypes.iloc[3, 5] = None
    table = read_delimited(written(tmp_path, genotypes), ".csv")
    assert table.missing() == {5: 1}
    assert table.numbers[3, 5] == MISSING


def test_what_is_no_digit_goes_to_the_other_reader(tmp_path, genotypes):
    path = written(tmp_path, genotypes / 4)
    assert (read_delimited(path, ".csv").numbers == genotypes.to_numpy() / 4).all()
    assert wide.read_digits(io.BytesIO(b'a,b\n"1",2\n'), ("a", "b"), ",", ()) is None
    assert wide.read_digits(io.BytesIO(b"a,b\n1,2,3\n"), ("a", "b"), ",", ()) is None
    assert wide.read_digits(io.BytesIO(b"a,b\n"), ("a", "b"), ",", ()) is None


@pytest.mark.parametrize("word", ["", "NA", "?", "NaN", "null", "<NA>"])
def test_every_word_for_missing_is_refused_before_the_numbers_are_read(tmp_path, genotypes, word, monkeypatch):
    genotypes = genotypes.astype(object)
    genotypes.iloc[[3, 4], 5] = word
    genotypes.iloc[3, -1] = word
    genotypes.insert(0, "person", [f"Nina {row}" for row in range(12)])  # has the letters of such words
    path = written(tmp_path, genotypes)
    by_pandas = pd.read_csv(path, na_values=["?"]).isna().sum()
    assert read_delimited(path, ".csv").missing() == {place: n for place, n in enumerate(by_pandas) if n}
    monkeypatch.setattr(wide, "read_digits", None)
    last = genotypes.columns[-1]
    with pytest.raises(InvalidInput, match=rf"2 columns, rs5 \(2\) and {last} \(1\): .*keeps 10 of 12 rows"):
        read_delimited(path, ".csv", refuse_missing=True)


def test_a_complete_table_is_not_refused(tmp_path, genotypes):
    genotypes.insert(0, "person", [f"Nina {row}" for row in range(12)])
    table = read_delimited(written(tmp_path, genotypes), ".csv", refuse_missing=True)
    assert table.missing() == {}
