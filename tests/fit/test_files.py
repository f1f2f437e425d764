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
    return command(monkeypatch, capsys, "fit", *arguments)


def command(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["parityscope", *map(str, arguments)])
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
    assert found["ignored"] == {"serial": "text of 400 different values, none of them in 5 rows", "plant": "constant"}


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
    printed = " ".join(printed.split())
    for text in (
        "shift = night",
        "fault = yes",
        "held-out accuracy 1.000",
        "constant: plant",
        "not searched: serial (text of 400 different values",
        "█",
    ):
        assert text in printed
    assert (out / "interaction.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "fit.json").read_text())["k"] == 2


def test_a_column_with_two_questions_is_one_column_with_two_lines(tmp_path, monkeypatch, capsys):
    random = np.random.RandomState(0)
    frame = pd.DataFrame({"city": random.choice(list("ABCDEFGH"), 900), "sex": random.choice(["m", "f"], 900)})
    frame["noise"] = random.rand(900)
    frame["ill"] = (frame["city"].isin(["B", "F"]) ^ (frame["sex"] == "m")).astype(int)
    frame.to_csv(tmp_path / "people.csv", index=False)
    code, printed, _ = fit(
        monkeypatch, capsys, tmp_path / "people.csv", "--target", "ill", "--save", tmp_path / "model"
    )
    assert code == 0
    assert {"city 0 city = B", "city 0 city = F", "sex 1 sex = m"} <= {" ".join(x.split()) for x in printed.split("\n")}
    assert "= B = F" not in " ".join(printed.split())  # no row has both
    code, out, _ = fit(monkeypatch, capsys, tmp_path / "people.csv", "--target", "ill", "--json")
    found = json.loads(out)
    assert (found["columns"], found["support"], found["k"]) == (["city", "sex"], [0, 1], 2)
    assert sorted(found["bits"]) == ["city = B", "city = F", "sex = m"]
    code, _, said = command(monkeypatch, capsys, "predict", tmp_path / "model", tmp_path / "people.csv")
    assert code == 0
    assert "accuracy 1.000" in said


def test_two_rows_are_too_few_to_hold_any_out(tmp_path, monkeypatch, capsys):
    (tmp_path / "two.csv").write_text("a,y\n1,1\n0,0\n")
    code, printed, _ = fit(monkeypatch, capsys, tmp_path / "two.csv", "--target", "y")
    assert code == 0
    assert "too few rows to hold any out" in printed
    assert "a parity of 1 column, however strong" in printed
    _, out, _ = fit(monkeypatch, capsys, tmp_path / "two.csv", "--target", "y", "--json")
    assert json.loads(out, parse_constant=pytest.fail)["accuracy"] is None


def test_a_target_of_many_numbers_is_explained_as_it_is_and_predicted(tmp_path, monkeypatch, capsys):
    random = np.random.RandomState(0)
    frame = pd.DataFrame(random.randint(2, size=(400, 6)), columns=list("abcdef"))
    frame["weight"] = 2.0 * (frame["b"] ^ frame["e"]) + 0.5 * random.randn(400)
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = (tmp_path / "t.csv", "--target", "weight")
    code, out, _ = fit(monkeypatch, capsys, *arguments, "--json", "--save", tmp_path / "model.json")
    found = json.loads(out)
    assert (code, found["columns"], found["classes"]) == (0, ["b", "e"], None)
    assert found["quality"]["r_squared"] == found["accuracy"] > 0.7
    assert [round(cell["share"]) for cell in found["truth_table"]] == [0, 2, 2, 0]
    _, printed, _ = fit(monkeypatch, capsys, *arguments)
    assert "held-out R²" in printed
    code, out, said = command(monkeypatch, capsys, "predict", tmp_path / "model.json", tmp_path / "t.csv")
    assert (code, out.splitlines()[0]) == (0, "prediction")
    assert np.corrcoef([float(line) for line in out.splitlines()[1:]], frame["weight"])[0, 1] > 0.85
    assert "R² 0." in said


def test_nothing_found_is_an_answer(table, tmp_path, monkeypatch, capsys):
    table["fault"] = np.random.RandomState(3).randint(2, size=400)
    table.to_csv(tmp_path / "faults.csv", index=False)
    code, printed, _ = fit(monkeypatch, capsys, tmp_path / "faults.csv", "--target", "fault", "--max-k", 3)
    assert code == 0
    assert "nothing found: no parity of 1 to 3 of 7 columns stands out in 400 rows" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("", (), "is empty"),
        ("a,y\n", (), "has no rows"),
        ("a,b\n1,2\n", (), "has no column 'y': it has a and b"),
        ("y\n1\n0\n", (), "has no column to search besides 'y'"),
        (
            "a,b,y\n1,,0\n1,,1\n",
            (),
            "has missing values in column b (2): add --missing drop (keeps 0 of 2 rows), --missing median",
        ),
        ("a,b,y\n1,inf,0\n1,2,1\n", (), "has infinite values in b: leave them empty or replace them"),
        ("a,y\n" + "1,0\n0,0\n" * 5, (), "y has one class only"),
        (
            "a,y\n" + "1,0\n0,1\n1,2\n" * 5,
            (),
            "y has 3 classes, 0, 1 and 2: choose one against all others with --positive CLASS",
        ),
        ("a,y,y\n1,0,1\n0,1,0\n", (), "has several columns called 'y': give each a name of its own"),
        ("a,y\n1,0\n0,1\n", ("--missing", "mean"), "unknown choice 'mean' for missing values: use one of refuse, drop"),
        ("x1,x2,y\n" + "p,q,0\nr,s,1\n" * 2, ("--positive", "2"), "y has no class '2': it has 0 and 1"),
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


@pytest.mark.parametrize("missing", ["drop", "median", "category"])
def test_missing_values_by_every_choice(table, tmp_path, monkeypatch, capsys, missing):
    table = table.astype(object)
    table.loc[:9, "a"] = None
    table.loc[20:29, "shift"] = None
    table.loc[40:44, "fault"] = None
    table.to_csv(tmp_path / "faults.csv", index=False)
    arguments = (tmp_path / "faults.csv", "--target", "fault")
    code, _, err = fit(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "missing values in 3 columns, a (10), shift (10) and fault (5)" in err
    code, out, _ = fit(monkeypatch, capsys, *arguments, "--missing", missing, "--json")
    found = json.loads(out)
    assert (code, found["columns"]) == (0, ["b", "shift"])
    assert found["rows"] == (375 if missing == "drop" else 395)
    assert found["notes"][0] == "5 of 400 rows have no fault and are left out"
    assert ("missing" in {cell["values"]["shift"] for cell in found["truth_table"]}) == (missing == "category")


def test_text_of_many_values_takes_part(table, tmp_path, monkeypatch, capsys):
    towns = np.array([f"town {index}" for index in range(10)])
    table["town"] = towns[np.random.RandomState(1).randint(3, size=400) * np.random.RandomState(2).randint(4, size=400)]
    table["fault"] = np.where((table["c"] == 1) ^ (table["town"] == "town 0"), "yes", "no")
    table.to_csv(tmp_path / "faults.csv", index=False)
    _, out, _ = fit(monkeypatch, capsys, tmp_path / "faults.csv", "--target", "fault", "--json")
    found = json.loads(out)
    assert sorted(found["bits"]) == ["c = 1", "town = town 0"]
    assert {cell["values"]["town"] for cell in found["truth_table"]} == {"= town 0", "≠ town 0"}
    assert found["accuracy"] == 1.0


def test_one_class_against_the_others(table, tmp_path, monkeypatch, capsys):
    table["kind"] = np.where(table["fault"] == "yes", "broken", np.where(table["d"] == 1, "good", "fair"))
    table.drop(columns="fault").to_csv(tmp_path / "faults.csv", index=False)
    arguments = (tmp_path / "faults.csv", "--target", "kind", "--positive", "broken", "--json")
    found = json.loads(fit(monkeypatch, capsys, *arguments)[1])
    assert (found["columns"], found["classes"]) == (["b", "shift"], ["not broken", "broken"])


def test_a_plink_study_is_searched_for_its_phenotype(tmp_path, monkeypatch, capsys):
    bed_reader = pytest.importorskip("bed_reader", reason="bed-reader is not installed")
    random = np.random.RandomState(0)
    genotypes = random.randint(3, size=(500, 30))
    cases = (genotypes[:, 4] > 0) ^ (genotypes[:, 11] == 2) ^ (random.rand(500) < 0.1)
    properties = {"allele_1": ["A"] * 30, "allele_2": ["C"] * 30, "pheno": np.where(cases, "2", "1")}
    bed_reader.to_bed(tmp_path / "study.bed", genotypes, {**properties, "sid": [f"rs{i}" for i in range(30)]})
    code, out, _ = fit(monkeypatch, capsys, tmp_path / "study.bed", "--json")
    found = json.loads(out)
    assert (code, found["target"]) == (0, "phenotype")
    assert found["bits"] == ["rs4 ∈ {A/C, A/A} (A dominant)", "rs11 = A/A (A recessive)"]


def test_two_pairs_are_two_interactions_for_people_and_programs(table, tmp_path, monkeypatch, capsys):
    random = np.random.RandomState(5)
    table = pd.DataFrame(random.randint(2, size=(1500, 6)), columns=list("abcdef"))
    table["fault"] = np.where(random.rand(1500) < 0.5, table["a"] ^ table["c"], table["d"] ^ table["f"])
    table.to_csv(tmp_path / "faults.csv", index=False)
    arguments = (tmp_path / "faults.csv", "--target", "fault", "--max-k", 3, "--budget", "20s")
    found = json.loads(fit(monkeypatch, capsys, *arguments, "--json")[1])
    pairs = [one["columns"] for one in found["interactions"]]
    assert sorted(pairs) == [["a", "c"], ["d", "f"]]
    assert pairs[0] == found["columns"]
    assert all(
        one["p_value"] < 1e-9 and one["adds"] > 0.1 and len(one["truth_table"]) == 4 for one in found["interactions"]
    )
    assert found["guarantee"].startswith("given the terms above, any further parity of at most k = ")
    _, printed, _ = fit(monkeypatch, capsys, *arguments, "--out", tmp_path)
    printed = " ".join(printed.split())
    for text in (
        "1. parity of ",
        "2. parity of ",
        "bits per row",
        "log-odds",
        "2 terms share the label",
        "guarantee: given the terms above, any",
    ):
        assert text in printed


def test_a_budget_that_is_no_time_is_one_sentence(table, tmp_path, monkeypatch, capsys):
    table.to_csv(tmp_path / "faults.csv", index=False)
    code, _, err = fit(monkeypatch, capsys, tmp_path / "faults.csv", "--target", "fault", "--budget", "soon")
    assert code == 2
    assert "budget must be a time such as" in err


def test_save_and_predict(table, tmp_path, monkeypatch, capsys):
    table.to_csv(tmp_path / "faults.csv", index=False)
    saved = tmp_path / "new" / "model.json"
    code, printed, _ = fit(monkeypatch, capsys, tmp_path / "faults.csv", "--target", "fault", "--save", saved)
    assert (code, f"model: {saved}" in printed.replace("\n", "")) == (0, True)
    code, out, err = command(monkeypatch, capsys, "predict", saved, tmp_path / "faults.csv")
    assert code == 0
    assert out.splitlines()[0] == "prediction,P(fault = yes)"
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == list(table["fault"])
    assert "400 rows: " in err
    assert "accuracy 1.000" in err
    arguments = ("predict", saved, tmp_path / "faults.csv", "--out", tmp_path / "said.csv", "--json")
    said = json.loads(command(monkeypatch, capsys, *arguments)[1])
    assert (said["prediction"], said["classes"], said["accuracy"]) == (list(table["fault"]), ["no", "yes"], 1.0)
    assert (tmp_path / "said.csv").read_text() == out
    code, _, err = command(monkeypatch, capsys, "predict", saved, tmp_path / "no.csv")
    assert (code, "there is no file" in err) == (2, True)
    table[["a", "fault"]].to_csv(tmp_path / "few.csv", index=False)
    code, out, err = command(monkeypatch, capsys, "predict", saved, tmp_path / "few.csv")
    assert (code, out) == (2, "")
    assert "few.csv lacks b and shift, which the model needs" in err


@pytest.mark.filterwarnings("ignore::parityscope.fit.NothingFound")
@pytest.mark.parametrize("support", [("a",), ("a", "b"), ("a", "b", "c", "d", "e", "f"), ()])
def test_every_outcome_can_be_drawn(table, tmp_path, support):
    from parityscope.fit.files import fit_file
    from parityscope.fit.report import interaction_figure

    table["fault"] = table[list(support)].sum(axis=1) % 2 if support else np.random.RandomState(0).randint(2, size=400)
    table.to_csv(tmp_path / "faults.csv", index=False)
    fitted = fit_file(tmp_path / "faults.csv", "fault")
    assert fitted.columns == list(support)
    axes = themed(interaction_figure, fitted, theme="dark").axes[0]
    if support:
        assert axes.get_title().startswith(" × ".join(support))
        drawn = len(axes.patches) or len(axes.texts)  # bars, or the fields of a map
        assert drawn == (2 ** len(support) if len(support) <= 4 else 2)  # beyond four columns: even and odd
    else:
        assert [text.get_text() for text in axes.texts] == ["nothing found"]
