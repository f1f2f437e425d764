"""Columns as numbers: text of few and of many values, missing values by every choice, words for numbers."""

import numpy as np
import pandas as pd
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit.bits.bits import Bit
from parityscope.fit.tables.coding import FEWEST_ROWS, MOST_VALUES, code
from parityscope.fit.tables.column import SearchedColumn
from parityscope.fit.tables.missing import without_missing
from parityscope.fit.tables.table import table_of


def coded(columns, missing="refuse", target=None):
    return code(table_of(pd.DataFrame(columns)), target, missing)


def column_of(result, name):
    index = next(index for index, column in enumerate(result.columns) if column.name == name)
    return result.columns[index], result.X[:, index]


def test_numbers_keep_their_bytes_and_are_not_copied():
    table = table_of(pd.DataFrame({"a": [0, 1, 2], "b": [5, 6, 7], "y": [0, 1, 0]}))
    result = code(table, 2, "refuse")
    assert result.X.dtype == np.int8
    assert np.shares_memory(result.X, table.numbers)
    assert [column.place for column in result.columns] == [0, 1]
    middle = code(table, 1, "refuse")
    assert middle.X.tolist() == [[0, 0], [1, 1], [2, 0]]
    assert [(column.name, column.place) for column in middle.columns] == [("a", 0), ("y", 1)]


def test_text_of_many_values_is_asked_for_value_by_value():
    frequent = [f"plant {index}" for index in range(6) for _ in range(FEWEST_ROWS + index)]
    values = [*frequent, "rare", "rarer", "rarer"]
    result = coded({"plant": values})
    column, numbers = column_of(result, "plant")
    assert result.unordered == {0}
    assert column.words[0.0] == "plant 5"  # the most frequent first
    assert [column.spelled(number) for number in numbers[-3:].tolist()] == ["any other"] * 3
    assert [column.spelled(number) for number in numbers[:-3].tolist()] == frequent
    assert result.notes == (
        f"plant has 8 different values: the 6 that stand in {FEWEST_ROWS} rows are searched, all others count as one",
    )


def test_no_more_than_the_most_frequent_values():
    result = coded({"town": [f"town {index}" for index in range(50) for _ in range(6)]})
    assert len(result.columns[0].words) == MOST_VALUES + 1
    assert f"the {MOST_VALUES} most frequent are searched" in result.notes[0]


def test_few_frequent_values_among_many_may_be_split_in_any_way():
    result = coded({"town": ["a"] * 9 + ["b"] * 9 + list("cdefg")})
    assert not result.unordered
    assert result.columns[0].words == {0.0: "a", 1.0: "b", -1.0: "any other"}


@pytest.mark.parametrize(
    ("choice", "fill", "spelled"),
    [("median", 1.0, ["0", "1", "1", "1"]), ("category", 2.0, ["0", "1", "missing", "1"])],
)
def test_missing_numbers_of_few_values(choice, fill, spelled):
    result = coded({"hot": [0, 1, None, 1]}, choice)
    column, numbers = column_of(result, "hot")
    assert column.fill == fill
    assert [column.spelled(number) for number in numbers.tolist()] == spelled
    assert result.X.dtype == np.int8
    raw = np.array([1, np.nan, 0])
    assert column.numbers(raw).tolist() == [1, fill, 0]  # as a later file is coded


def test_missing_measurements_become_the_median_and_a_question_of_their_own():
    values = [1.5, None, 2.5, 3.5, 9.5, 4.5, None]
    filled = coded({"heat": values}, "median")
    assert filled.X[:, 0].tolist() == [1.5, 3.5, 2.5, 3.5, 9.5, 4.5, 3.5]
    assert len(filled.columns) == 1
    both = coded({"heat": values}, "category")
    assert [column.kind for column in both.columns] == ["number", "missing"]
    assert both.X[:, 1].tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert both.columns[1].describe(Bit(1, levels=(1.0,))) == "heat is missing"
    assert both.columns[1].describe(Bit(1, levels=(1.0,)), yes=False) == "heat is known"


def test_missing_text():
    values = ["day", "night", None, "night"]
    assert coded({"shift": values}, "median").X[:, 0].tolist() == [0, 1, 1, 1]
    own = coded({"shift": values}, "category")
    assert [own.columns[0].spelled(number) for number in own.X[:, 0].tolist()] == ["day", "night", "missing", "night"]
    assert own.columns[0].numbers(np.array([None, "noon"], dtype=object)).tolist() == [1.0, -1.0]


def test_columns_without_any_value_are_left_out():
    result = coded(
        {"a": [0, 1], "b": [np.nan, np.nan], "c": pd.Series([None, None], dtype=object)}, "category", target=0
    )
    assert result.left_out["b"] == "every value is missing"
    assert [column.name for column in result.columns] == ["c"]  # text that is always missing is a constant
    assert coded({"a": [0, 1], "c": pd.Series([None, None], dtype=object)}, "median").left_out == {
        "c": "every value is missing"
    }


def test_a_refusal_names_every_column_and_what_each_choice_does():
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", None, None], "c": [1, 2, 3], "y": [0, 1, 1]})
    with pytest.raises(InvalidInput) as refused:
        without_missing(table_of(frame), 3, "refuse", "data.csv")
    assert str(refused.value).startswith(
        "data.csv has missing values in 2 columns, a (1) and b (2): add --missing drop"
    )
    assert "keeps 1 of 3 rows" in str(refused.value)


def test_dropping_leaves_complete_rows_or_says_that_there_are_none():
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", "y", "z"], "y": [0, 1, 1]})
    kept = without_missing(table_of(frame), 2, "drop", "data.csv")
    assert kept.texts[1].tolist() == ["x", "z"]
    assert kept.notes == ("1 of 3 rows have missing values and are left out",)
    frame["b"] = ["x", "y", None]
    frame.loc[0, "a"] = None
    with pytest.raises(InvalidInput, match="no row without missing values: use --missing median or category"):
        without_missing(table_of(frame), 2, "drop", "data.csv")


def test_genotypes_say_how_an_allele_would_act():
    column = SearchedColumn("rs7", 0, "genotype", {0.0: "G/G", 1.0: "A/G", 2.0: "A/A"})
    described = [column.describe(Bit(0, levels=levels)) for levels in ((1.0, 2.0), (2.0,), (1.0,))]
    assert described == ["rs7 ∈ {A/G, A/A} (A dominant)", "rs7 = A/A (A recessive)", "rs7 = A/G (heterozygous)"]


def test_dates_are_left_out_and_said():
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "y": [0, 1]})
    assert code(table_of(frame), 1, "refuse").left_out["when"].startswith("dates: make numbers of them first")
    written = pd.DataFrame({"when": [f"2024-03-{day:02} 10:00" for day in range(1, 9)], "y": [0, 1] * 4})
    assert code(table_of(written), 1, "refuse").left_out["when"].startswith("dates: make numbers of them first")
