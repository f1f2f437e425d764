"""`parityscope fit`: every format, what it prints, and one sentence for what it cannot use."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from parityscope.apps.cli import main
from parityscope.core.drawing import themed


@pytest.fixture
def table():
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.randint(2, size=(400, 6)), columns=list("abcdef"))
    frame["shift"] = np.where(random.rand(400) < 0.5, "day", "night")
    frame["serial"] = [f"no {i}" for i in range(400)]
    frame["plant"] = 1
    frame["fault"] = np.where((frame["b"] == 1) ^ (frame["shift"] == "night"), "yes", "no")
    return frame


def fit(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["parityscope", "fit", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    return stopped.value.code, printed.out, printed.err


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet"])
def test_every_format_gives_the_same_answer(table, tmp_path, monkeypatch, capsys, suffix):
    path = tmp_path / f"faults.{suffix}"
    if suffix == "parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, sep="\t" if "tsv" in suffix else ",", index=False)
    code, out, _ = fit(monkeypatch, capsys, path, "--target", "fault", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["columns"], found["support"], found["k"]) == (["b", "shift"], [1, 6], 2)
    assert (found["accuracy"], found["noise_rate"], found["classes"]) == (1.0, 0.0, ["no", "yes"])
    assert found["bits"] == ["b = 1", "shift = night"]
    assert found["truth_table"][1]["values"] == {"b": "0", "shift": "night"}
    assert [cell["share"] for cell in found["truth_table"]] == [0.0, 1.0, 1.0, 0.0]
    assert found["ignored"] == {"serial": "text of 400 different values", "plant": "constant"}


def test_columns_of_pandas_own_types_are_numbers_too(table, tmp_path, monkeypatch, capsys):
    table["b"], table["c"], table["d"] = (
        table[name].astype(kind) for name, kind in (("b", "Int64"), ("c", "boolean"), ("d", "float32"))
    )
    table.to_parquet(tmp_path / "faults.parquet")
    code, out, _ = fit(monkeypatch, capsys, tmp_path / "faults.parquet", "--target", "fault", "--json")
    assert code == 0
    assert json.loads(out)["columns"] == ["b", "shift"]


def test_people_see_columns_truth_table_and_a_picture(table, tmp_path, monkeypatch, capsys):
    table.to_csv(tmp_path / "faults.csv", index=False)
    out = tmp_path / "new" / "folder"
    code, printed, _ = fit(monkeypatch, capsys, tmp_path / "faults.csv", "--target", "fault", "--out", out)
    assert code == 0
    for text in ("shift = night", "fault = yes", "held-out accuracy 1.000", "ignored: plant (constant)", "█"):
        assert text in printed
    assert (out / "interaction.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "fit.json").read_text())["k"] == 2


def test_nothing_found_is_an_answer(table, tmp_path, monkeypatch, capsys):
    table["fault"] = np.random.RandomState(3).randint(2, size=400)
    table.to_csv(tmp_path / "faults.csv", index=False)
    code, printed, _ = fit(monkeypatch, capsys, tmp_path / "faults.csv", "--target", "fault", "--max-k", 3)
    assert code == 0
    assert "nothing found: no parity of 1, 2, 3 of 7 columns stands out in 400 rows" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("", (), "is empty"),
        ("a,y\n", (), "has no rows"),
        ("a,b\n1,2\n", (), "has no column 'y': choose one of a, b"),
        ("y\n1\n0\n", (), "has no column to search besides 'y'"),
        ("a,b,y\n1,,0\n1,,1\n", (), "has 2 missing values in column 'b': drop these rows or fill them in"),
        ("a,b,y\n1,inf,0\n1,2,1\n", (), "has infinite values in column 'b': drop these rows or replace them"),
        ("a,y\n" + "1,0\n0,0\n" * 5, (), "y has one class only"),
        ("a,y\n" + "1,0\n0,1\n1,2\n" * 5, (), "y has 3 classes"),
        ("a,y\n" + "1,0\n0,1\n" * 5, ("--k", 2), "k must lie between 1 and the number of columns 1, got 2"),
        ('a,y\n"1,0\n', (), "cannot be read as csv"),
    ],
)
def test_bad_files_are_one_sentence_and_exit_code_2(content, arguments, sentence, tmp_path, monkeypatch, capsys):
    path = tmp_path / "data.csv"
    path.write_text(content)
    code, out, err = fit(monkeypatch, capsys, path, "--target", "y", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err


def test_missing_and_unknown_files(tmp_path, monkeypatch, capsys):
    assert "there is no file" in fit(monkeypatch, capsys, tmp_path / "no.csv", "--target", "y")[2]
    (tmp_path / "data.xls").touch()
    assert "unknown format: use .csv" in fit(monkeypatch, capsys, tmp_path / "data.xls", "--target", "y")[2]
    (tmp_path / "data.parquet").write_bytes(b"half a file")
    assert "cannot be read as parquet" in fit(monkeypatch, capsys, tmp_path / "data.parquet", "--target", "y")[2]
    (tmp_path / "data.csv.gz").write_bytes(b"half a file")
    assert "cannot be read as csv" in fit(monkeypatch, capsys, tmp_path / "data.csv.gz", "--target", "y")[2]


@pytest.mark.filterwarnings("ignore::parityscope.estimator.NothingFound")
@pytest.mark.parametrize("support", [("a",), ("a", "b"), ("a", "b", "c", "d", "e", "f"), ()])
def test_every_outcome_can_be_drawn(table, tmp_path, support):
    from parityscope.estimator.files import fit_file
    from parityscope.estimator.picture import interaction_figure

    table["fault"] = table[list(support)].sum(axis=1) % 2 if support else np.random.RandomState(0).randint(2, size=400)
    table.to_csv(tmp_path / "faults.csv", index=False)
    fitted = fit_file(tmp_path / "faults.csv", "fault")
    assert fitted.columns == list(support)
    axes = themed(interaction_figure, fitted, theme="dark").axes[0]
    if support:
        assert axes.get_title().startswith(" × ".join(support))
        drawn = len(axes.patches) or len(axes.texts)  # bars, or the fields of a map
        assert drawn == 2 ** len(support)
    else:
        assert [text.get_text() for text in axes.texts] == ["nothing found"]
