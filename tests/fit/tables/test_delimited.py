"""Text files as they come: separators, decimal commas, encodings, and lines that do not fit."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables import delimited
from parityscope.fit.tables.delimited import read_delimited, sniff


def read(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_delimited(path, ".csv")


@pytest.mark.parametrize(
    ("separator", "note"),
    [(",", ()), (";", ("semicolons",)), ("\t", ("tabs",)), ("|", ("bars",))],
)
def test_every_separator_gives_the_same_table_and_unusual_ones_are_said(tmp_path, separator, note):
    lines = [["heat", "shift", "fault"], ["1.5", "day", "0"], ["2.5", "night", "1"]]
    table = read(tmp_path, "\n".join(separator.join(line) for line in lines))
    assert table.names == ("heat", "shift", "fault")
    assert table.numbers.tolist() == [[1.5, 0.0], [2.5, 1.0]]
    assert table.texts[1].tolist() == ["day", "night"]
    assert table.notes == tuple(f"read with {word} between fields" for word in note)


def test_decimal_commas_are_taken_only_where_no_point_contradicts(tmp_path):
    assert read(tmp_path, "a;b\n1,5;2\n-0,25;3\n").numbers.tolist() == [[1.5, 2.0], [-0.25, 3.0]]
    both = read(tmp_path, "a;b\n1,5;2.5\n2,5;3.5\n")
    assert both.texts[0].tolist() == ["1,5", "2,5"]
    assert both.numbers.tolist() == [[2.5], [3.5]]


def test_quotes_hide_separators_and_line_breaks(tmp_path):
    table = read(tmp_path, '"heat, outside","a;b"\n1,2\n"3",4\n')
    assert table.names == ("heat, outside", "a;b")
    assert table.numbers.tolist() == [[1, 2], [3, 4]]
    assert read(tmp_path, '"two\nlines",b\n1,2\n').names == ("two\nlines", "b")


def test_other_encodings(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfheat,b\n1,2\n").names == ("heat", "b")
    latin = read(tmp_path, "Gerät;b\n1;ä\n".encode("latin-1"))
    assert (latin.names, latin.texts[1].tolist()) == (("Gerät", "b"), ["ä"])
    assert "Windows-1252" in latin.notes[0]
    with pytest.raises(InvalidInput, match=r"zero bytes \(UTF-16\? save it as UTF-8\)"):
        read(tmp_path, "a,b\n1,2\n".encode("utf-16"))


def test_windows_letters(tmp_path):
    assert read(tmp_path, "a;b\n1;“€”\n".encode("cp1252")).texts[1].tolist() == ["“€”"]
    undefined = read(tmp_path, b"a;b\n1;\xe9\x81\n")  # 0x81 is no letter of Windows
    assert (undefined.texts[1].tolist(), "Latin-1" in undefined.notes[0]) == (["é\x81"], True)


def test_a_line_that_says_what_separates_fields(tmp_path):
    table = read(tmp_path, "sep=;\r\nheat;b\r\n1,5;2\r\n")
    assert (table.names, table.numbers.tolist()) == (("heat", "b"), [[1.5, 2.0]])


def test_lines_that_end_in_a_carriage_return_alone(tmp_path):
    table = read(tmp_path, "heat;b\r1,5;2\r2,5;3\r")
    assert (table.names, table.numbers.tolist()) == (("heat", "b"), [[1.5, 2.0], [2.5, 3.0]])


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch, name):
    monkeypatch.setattr(delimited, "_LONGEST_LINE", 1 << 22)
    content = b"a,b\n1," + b"2" * (1 << 26)
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    with pytest.raises(InvalidInput, match="a line of more than 4194304 bytes"):
        read_delimited(tmp_path / name, ".csv")


def test_a_million_columns_of_words_are_refused(tmp_path):
    names = ",".join(f"c{index}" for index in range(1_000_000))
    with pytest.raises(InvalidInput, match="has 1000000 columns, and they are not single digits: at most 100000"):
        read(tmp_path, f"{names}\n" + "ab," * 999_999 + "ab\n")


def test_compressed(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_delimited(path, ".csv").numbers.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("\na,b\n1,2\n", "begins with an empty line"),
        ("a,b\n", "has no rows"),
        ("a,b,a\n1,2,3\n", "several columns called 'a': give each a name of its own"),
        ("0,1,1\n0,1,0\n", "several columns called '1': its first line should hold the names"),
        ("a,b\n1,2,3\n4,5,6\n", "lines with more fields than its header names"),
        ("a,b\n1,2\n4,5,6\n", "cannot be read as csv"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, content, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        read(tmp_path, content)


def test_marks_of_missing_values(tmp_path):
    table = read(tmp_path, "a,b\n1,x\n,?\nNA,\n")
    assert table.missing() == {0: 2, 1: 2}
    assert table.numbers.dtype == np.int8


@given(
    st.lists(st.lists(st.integers(-500, 500), min_size=3, max_size=3), min_size=1, max_size=5), st.sampled_from(",;\t|")
)
def test_whole_numbers_survive(tmp_path_factory, rows, separator):
    lines = ["a b c".replace(" ", separator), *(separator.join(map(str, row)) for row in rows)]
    path = tmp_path_factory.mktemp("drawn") / "data.csv"
    path.write_text("\n".join(lines))
    assert sniff(path, ".csv").separator == separator
    assert read_delimited(path, ".csv").numbers.tolist() == rows


def test_a_very_long_header_is_no_problem_and_a_very_long_name_is_a_sentence(tmp_path):
    names = [f"a column with a long name, number {index}" for index in range(5000)]
    lines = [",".join(f'"{name}"' for name in names), ",".join(["12"] * 5000)]
    assert read(tmp_path, "\n".join(lines)).names == tuple(names)
    with pytest.raises(InvalidInput, match="its first line: field larger than field limit"):
        read(tmp_path, "a" * 200_000 + "\n1\n")
