"""`parityscope rows` as a user meets it: what is shown, what is refused, which rows are stale, old stores."""

import csv
import importlib
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from parityscope.apps.explorer.results import Results
from parityscope.papers.claim import ClaimCheck
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.papers.registry import named_claims
from parityscope.papers.results import check_with_rows, config_class, is_stale
from parityscope.records import Outcome, Store, StoredRow
from parityscope.runs import Training, training
from parityscope.runs.spec import spec_module

NEURONS = (
    "40000000000000007B226E6575726F6E73223A7B226474797065223A22463634222C227368617065223A5B335D2C22646174615F6F6666736574"
    "73223A5B302C32345D7D7D2020201E83E7C84AFFF53F780C9E232BFDD73F0000000000000000"
)
# A store as the first release wrote it.
OLD_STORE = """
CREATE TABLE leases (key TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT;
CREATE TABLE rows (
    key        TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,
    config     TEXT NOT NULL,
    numbers    TEXT NOT NULL,
    arrays     BLOB,             -- safetensors, or none
    versions   TEXT NOT NULL,
    finished   REAL NOT NULL,
    seconds    REAL NOT NULL,
    traceback  TEXT NOT NULL,    -- of a failed run, empty when it is done
    checksum   TEXT NOT NULL
) STRICT;
INSERT INTO "rows" VALUES('cefcaf887c2f5fbba048c392688abda1','H1-figure-1',
'{"bits":[1,1,0,1,0,0,1],"support":[1,3,5],"temperature":0.14285714285714285}',
'{"score": 1.8748271797014193, "prediction": -0.0013825623886454252, "hard_prediction": 1.0, "label": 1, '
||'"attended_per_head": [0.9373274427715409, 0.8744927704379551, 0.06300696649192337]}',
X'NEURONS',
'{"parityscope": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.7", "machine": "x86_64"}',
1.794832192954185009e+09,0.01,'','da5f2e4f3d274f757324ae45c5ccd2bdbe1f5484a40b2000d1c733502841717e');
INSERT INTO "rows" VALUES('f3fe2825a2a097342d645a6eb6a87f0e','rates',
'{"n":8,"k":2,"seed":3,"recipe":"bounded","samples":null,"noise":0.0,"settings":{"learning_rate":0.1}}',
'{"support": [3, 7], "learned": true, "recovered": true, "found": [3, 7], "risk": 0.0034013184291559195, '
||'"accuracy": 1.0, "steps": 21, "diverged": false}',
NULL,'{"parityscope": "0.1.0", "torch": "2.13.0+cpu", "python": "3.11.7", "machine": "x86_64"}',
1.7948321930986354351e+09,0.5,'','b134f3ed719e8ba3d6c14ca3161bf68a4ceac204150e0170237fe8f8c1d80a30');
CREATE INDEX rows_of_experiment ON rows (experiment);
PRAGMA user_version = 2;
""".replace("NEURONS", NEURONS)


def add(store, config):
    store.add(config, config.run(), seconds=0.5)


@pytest.fixture
def shown(said):
    """Return the rows that a command shows."""

    def run(*arguments):
        code, lines, errors = said("rows", *arguments)
        assert (code, errors) == (0, "")
        return [json.loads(line) for line in lines]

    return run


@pytest.fixture
def folder(tmp_path):
    """Two rows of today, one of older code, one of a spec."""
    store = Store(tmp_path / "store")
    for rate in (0.05, 0.1):
        add(store, training("bounded", 8, 2, seeds=[3], learning_rate=rate))
    older = StoredRow("H1-figure-1", WorkedExample().model_dump(mode="json"), {"label": 1}, code="5d41402abc4b2a76")
    store.add_rows([older, StoredRow("my-sweep", {"x": 3}, {"square": 9}, code="7d793037a0760186")])
    return tmp_path


def test_rows_say_which_code_made_them_and_whether_they_are_stale(folder, shown):
    found = {row["experiment"]: (row["code"], row["stale"]) for row in shown(folder)}
    assert found == {
        "training": (training("bounded", 8, 2).code(), False),
        "H1-figure-1": ("5d41402abc4b2a76", True),
        "my-sweep": ("7d793037a0760186", None),
    }


def test_stale_rows_alone(folder, shown, said):
    assert [row["experiment"] for row in shown(folder, "--stale")] == ["H1-figure-1"]
    assert said("rows", folder, "--experiment", "training", "--stale") == (
        0,
        [],
        "parityscope: none of 2 rows is stale\n",
    )


def test_an_export_has_the_same_columns(folder, said, tmp_path):
    assert said("rows", folder, "--export", tmp_path / "rows.csv")[1] == [f"4 rows written to {tmp_path / 'rows.csv'}"]
    with (tmp_path / "rows.csv").open() as file:
        table = list(csv.DictReader(file))
    assert sorted((row["experiment"], row["stale"]) for row in table) == [
        ("H1-figure-1", "True"),
        ("my-sweep", ""),
        ("training", "False"),
        ("training", "False"),
    ]
    assert {row["config.recipe.learning_rate"] for row in table} == {"", "0.05", "0.1"}


def test_fields_within_fields_and_lists_are_found(folder, shown):
    (row,) = shown(folder, "--where", "recipe.learning_rate=0.1")
    assert row["config.recipe.learning_rate"] == 0.1
    assert len(shown(folder, "--where", "recipe.name=bounded", "--where", "n=8")) == 2
    assert len(shown(folder, "--where", "seeds=[3]")) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--experiment", "trainings"), "no rows of 'trainings' are stored here: choose from H1-figure-1, my-sweep"),
        (("--where", "learning_rate=0.1"), "no config has a field 'learning_rate': choose from "),
        (("--where", "recipe.rate=0.1"), "no config has a field 'recipe.rate': choose from "),
        (("--where", "n=9"), "no row has n = 9\n"),
        (("--where", "seeds=[4]"), "no row has seeds = [4]\n"),
        (("--experiment", "training", "--where", "n=8", "--where", "k=3"), "no row of training has n = 8 and k = 3\n"),
        (("--experiment", "training", "--where", "n=9", "--failed"), "no row of training has n = 9\n"),
        (("--where", "n"), "--where 'n' is not of the form FIELD=VALUE"),
    ],
)
def test_what_fits_no_row_is_a_sentence_and_not_an_empty_answer(folder, said, arguments, sentence):
    code, lines, errors = said("rows", folder, *arguments)
    assert (code, lines) == (2, [])
    assert errors.startswith("parityscope: ")
    assert sentence in errors


def test_that_nothing_failed_is_an_answer(folder, said):
    assert said("rows", folder, "--failed") == (0, [], "parityscope: no row has failed\n")
    store = Store(folder / "store")
    store.add_all([(training("bounded", 9, 2), Outcome(traceback="ValueError: no"))])
    code, lines, _ = said("rows", folder, "--failed", "--where", "n=9")
    assert (code, json.loads(lines[0])["traceback"]) == (0, "ValueError: no")
    assert said("rows", folder, "--where", "n=9")[::2] == (0, "parityscope: no row is stored\n")


# Which rows are stale


def test_every_kind_of_row_is_known(tmp_path):
    kinds = ("training", "decoder-training", "claims", "H1-figure-1")
    assert [config_class(name).ROWS for name in kinds] == list(kinds)
    assert config_class("H1-no-such-rows") is None


def test_a_row_of_other_fields_or_another_version_is_stale(tmp_path):
    store, config = Store(tmp_path), WorkedExample()
    add(store, config)
    (row,) = store.rows()
    assert is_stale(row, store) is False
    for change in ({"code": "5d41402abc4b2a76"}, {"version": 2}, {"config": {"colour": "red"}}):
        assert is_stale(replace(row, **change), store) is True


def test_of_a_training_with_parts_of_ones_own_it_is_not_known(tmp_path):
    spec = spec_module("def gentle(step):\n    return 0.5\n", "gentle.py")
    config = training("bounded", 8, 2, schedule=spec.gentle)
    store = Store(tmp_path)
    add(store, config)
    (row,) = store.rows("training")
    assert is_stale(row, store) is False
    row.config["recipe"]["schedule"]["source"] = "5d41402abc4b2a76"  # as if another spec had it
    assert is_stale(row, store) is None


PLANTED = """
from pathlib import Path
from parityscope.models import Cosine
Path(__file__).with_suffix(".was-imported").touch()
class Readout(Cosine):
    pass
"""


def test_reading_rows_imports_nothing_that_they_name_and_running_one_does(tmp_path, monkeypatch, shown):
    """A store of somebody else must not run what lies on the path here."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted.py").write_text(PLANTED)
    imported, store = tmp_path / "planted.was-imported", Store(tmp_path / "store")
    config = training("bounded", 8, 2, readout=importlib.import_module("planted").Readout())
    add(store, config)
    imported.unlink()
    del sys.modules["planted"]
    (row,) = store.rows_of(Training)
    assert str(row.config.recipe.readout) == "planted:Readout (not loaded)"
    assert (row.config, store.row(row.config), len(store.rows("training"))) == (config, row, 1)
    assert [one["stale"] for one in shown(tmp_path)] == [None]
    explorer = Results(store.path)
    (group,) = explorer.summary()["papers"]
    assert group["experiments"] == [{"id": "training", "title": "training", "rows": 1}]
    assert explorer.experiment("training")["rows"][0]["config"]["recipe.readout.part"] == "planted:Readout"
    assert not imported.exists()
    assert row.config.run().numbers == row.numbers
    assert imported.exists()
    del sys.modules["planted"]


def test_a_training_of_other_code_is_stale_whether_or_not_its_parts_are_here(tmp_path):
    row = StoredRow("training", training("bounded", 8, 2).model_dump(mode="json"), {}, code="5d41402abc4b2a76")
    row.config["recipe"]["schedule"] = {"part": "somebodys:decay", "source": "5d41402abc4b2a76"}
    assert is_stale(row, Store(tmp_path)) is True


def test_a_verdict_is_stale_when_its_claim_changes_or_is_gone(tmp_path):
    store = Store(tmp_path)
    add(store, ClaimCheck(claim="W-lemma-6", scale="smoke"))
    (row,) = store.rows("claims")
    assert is_stale(row, store) is False
    assert is_stale(replace(row, code="5d41402abc4b2a76"), store) is True
    assert is_stale(replace(row, config={**row.config, "claim": "W-lemma-99"}), store) is True


def test_a_verdict_is_stale_when_there_are_new_rows_to_judge(tmp_path):
    store, (claim,) = Store(tmp_path), named_claims(["H2-parameters"])
    check_with_rows(claim, "smoke", store)
    (row,) = store.rows("claims")
    assert is_stale(row, store) is False
    for config in _figure_configs(claim.figure):
        add(store, config)
    assert is_stale(row, store) is True


def _figure_configs(name):
    from parityscope.papers.registry import load_figure

    return [config.row_config() for config in load_figure(name).CONFIGS["smoke"]]


# Damaged stores


def test_a_damaged_store_is_refused_by_a_sweep_and_repaired(folder, said, tmp_path):
    spec, file = tmp_path / "spec.py", folder / "store" / "store.sqlite"
    spec.write_text(SPEC)
    assert said("rows", folder, "--repair")[:2] == (0, ["all 4 rows are sound: nothing was changed"])
    data = bytearray(file.read_bytes())
    data[4096:8192] = bytes(4096)  # the page that leads to all rows, or holds them
    file.write_bytes(data)
    code, lines, errors = said("sweep", spec, "--out", folder)
    assert (code, lines) == (2, [])
    assert f"parityscope rows {folder / 'store'} --repair copies every sound row into a new" in " ".join(errors.split())
    kept = f"{file}.damaged-1"
    assert said("rows", folder, "--repair")[1][0].endswith(
        f"sound rows copied into a new {file}; the damaged file is kept as {kept}"
    )
    assert Path(kept).read_bytes() == bytes(data)
    assert said("sweep", spec, "--out", folder)[0] == 0


# Stores of the first release


@pytest.fixture
def old(tmp_path):
    place = tmp_path / "old" / "store"
    place.mkdir(parents=True)
    with closing(sqlite3.connect(place / "store.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(OLD_STORE)
    return place.parent


def test_an_old_store_is_read_and_exported(old, shown, said, tmp_path):
    figure, rates = shown(old)
    assert (figure["experiment"], figure["numbers.label"], figure["code"], figure["stale"]) == (
        "H1-figure-1",
        1,
        "",
        True,
    )
    assert (rates["experiment"], rates["numbers.risk"], rates["stale"]) == ("rates", 0.0034013184291559195, None)
    assert shown(old, "--where", "settings.learning_rate=0.1") == [rates]
    assert Store(old / "store").rows("H1-figure-1")[0].arrays["neurons"].tolist()[2] == 0.0
    assert said("rows", old, "--export", tmp_path / "rows.csv")[:2] == (
        0,
        [f"2 rows written to {tmp_path / 'rows.csv'}"],
    )


SPEC = "from parityscope.runs import training\nCONFIGS = [training('bounded', 8, 2)]\n"


@pytest.mark.parametrize(
    "command",
    [
        ("reproduce", "H1-figure-1", "--scale", "smoke"),
        ("reproduce", "H1-figure-1", "--scale", "smoke", "--workers", "2"),
        ("sweep", "SPEC"),
        ("rows", "--repair"),
    ],
    ids=" ".join,
)
def test_nothing_is_added_to_an_old_store(old, said, tmp_path, command):
    spec = tmp_path / "spec.py"
    spec.write_text(SPEC)
    (old / "report.html").write_text("the report of then")
    before = {path: path.read_bytes() for path in old.rglob("*") if path.suffix in (".sqlite", ".html")}
    given = [str(spec) if part == "SPEC" else part for part in command]
    code, lines, errors = said(*given, *(["--out"] if command[0] != "rows" else []), old)
    assert (code, lines) == (2, [])
    assert "is of an earlier parityscope (store version 2, now 3)" in errors
    assert "it can be read but not added to" in errors
    assert errors.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before
