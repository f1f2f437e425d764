"""Exports are read back by other libraries; rows as text come back with every bit, and only as their address says."""

import csv
import json
import sys

import numpy as np
import pytest
import torch

from parityscope import InvalidInput
from parityscope.papers.cells import ShownTraining
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.records import Config, Outcome, Result, Row, Store, StoredRow, read_text, rows_in, write_text
from parityscope.records.export import export_rows, frame_of, write_numbers
from parityscope.runs import training

ROWS = [
    StoredRow("demo", {"n": 3, "label": "a,b"}, {"risk": 0.1, "found": [1, 2]}, {"curve": torch.linspace(0, 1, 4)}),
    StoredRow("demo", {"n": 4, "label": 'q"'}, {"risk": 1, "learned": True}, code="5d41"),
]
NESTED = [
    StoredRow("rates", {"recipe": {"learning_rate": rate, "more": {}}, "seeds": [0, 1]}, {"best": {"step": 3}})
    for rate in (0.1, 0.2)
]


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_holds_every_column(tmp_path):
    export_rows(ROWS, tmp_path / "rows.csv")
    lines = read(tmp_path / "rows.csv")
    assert [line["config.label"] for line in lines] == ["a,b", 'q"']
    assert [float(line["numbers.risk"]) for line in lines] == [0.1, 1.0]
    assert json.loads(lines[0]["numbers.found"]) == [1, 2]
    assert (lines[0]["numbers.learned"], lines[1]["numbers.learned"]) == ("", "True")
    assert [line["code"] for line in lines] == ["", "5d41"]


def test_what_is_within_an_object_is_a_column_of_its_own(tmp_path):
    export_rows(NESTED, tmp_path / "rows.csv")
    lines = read(tmp_path / "rows.csv")
    assert [line["config.recipe.learning_rate"] for line in lines] == ["0.1", "0.2"]
    assert [line["numbers.best.step"] for line in lines] == ["3", "3"]
    assert lines[0]["config.recipe.more"] == "{}"
    assert json.loads(lines[0]["config.seeds"]) == [0, 1]


def test_a_swept_setting_is_a_column_of_the_store_s_frame(tmp_path):
    pytest.importorskip("pandas")
    store = Store(tmp_path)
    for rate in (0.1, 0.2):
        config = training("bounded", 6, 2, learning_rate=rate, steps=2)
        store.add(config, config.run(), seconds=0.5)
    frame = store.frame("training")
    assert frame["config.recipe.learning_rate"].tolist() == [0.1, 0.2]
    assert frame["numbers.parameters"].dtype.kind == "i"
    assert frame.equals(frame_of(store.rows("training")))
    assert len(store.frame(where={"recipe.learning_rate": 0.2})) == 1
    assert len(store.frame(failed=True)) == 0


def test_parquet_has_typed_columns(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'parityscope[export]'")
    export_rows([*ROWS, *NESTED], tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pydict()
    assert table["config.n"] == [3, 4, None, None]
    assert table["numbers.risk"] == [0.1, 1.0, None, None]
    assert table["numbers.learned"] == [None, True, None, None]
    assert table["config.recipe.learning_rate"] == [None, None, 0.1, 0.2]


def test_tensorboard_reads_the_events(tmp_path):
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs tensorboard: pip install 'parityscope[export]'",
    )
    export_rows(ROWS, tmp_path / "events")
    first, second = sorted((tmp_path / "events" / "demo").iterdir())
    events = loader.EventAccumulator(str(first))
    events.Reload()
    assert [event.value for event in events.Scalars("numbers/risk")] == [pytest.approx(0.1)]
    assert [event.step for event in events.Scalars("arrays/curve")] == [0, 1, 2, 3]
    assert second.is_dir()


class Point(Config):
    """A config with one number."""

    ROWS = "points"
    x: int


def test_a_figure_s_numbers_are_written_beside_it(tmp_path):
    shown = ShownTraining(label="ours", training=training("bounded", 6, 2, seeds=range(2), steps=2, watch=("risk",)))
    rows = [Row.of(shown.training, shown.training.run())]
    write_numbers([Row(shown, row.numbers, row.arrays) for row in rows], tmp_path, "figure")
    (line,) = read(tmp_path / "figure.csv")
    assert (line["config.label"], line["config.training.recipe.name"]) == ("ours", "bounded")
    assert json.loads(line["numbers.risk"]) == list(rows[0].numbers.risk)
    with np.load(tmp_path / "figure.npz") as arrays:
        assert sorted(arrays) == ["0.risk", "0.steps"]
        assert arrays["0.risk"].shape == tuple(rows[0].arrays["risk"].shape)


def test_without_arrays_there_is_no_file_of_them(tmp_path):
    rows = [Row.of(Point(x=x), Result({"square": x**2, "half": {"of": x / 2}})) for x in (1, 2)]
    write_numbers(rows, tmp_path, "points")
    assert [path.name for path in tmp_path.iterdir()] == ["points.csv"]
    assert [line["numbers.half.of"] for line in read(tmp_path / "points.csv")] == ["0.5", "1.0"]


def test_arrays_of_an_earlier_time_do_not_stay(tmp_path):
    write_numbers([Row.of(Point(x=1), Result({}, {"a": torch.ones(2, requires_grad=True)}))], tmp_path, "points")
    assert (tmp_path / "points.npz").exists()
    write_numbers([Row.of(Point(x=1), Result({}))], tmp_path, "points")
    assert not (tmp_path / "points.npz").exists()


def test_what_cannot_be_exported_is_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="there are no rows"):
        export_rows([], tmp_path / "rows.csv")
    with pytest.raises(InvalidInput, match=r"ends in \.csv or \.parquet, or is a folder"):
        export_rows(ROWS, tmp_path / "rows.xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"pip install 'parityscope\[export\]'"):
        export_rows(ROWS, tmp_path / "rows.parquet")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match=r"pip install 'parityscope\["):
        frame_of(ROWS)
    assert list(tmp_path.iterdir()) == []


# As text

ARRAYS = {
    "single": torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),
    "double": torch.randn(4, generator=torch.Generator().manual_seed(1), dtype=torch.float64),
    "edges": torch.tensor([float("inf"), -0.0, 1e-45, 3.4028235e38]),
    "counts": torch.arange(6).reshape(2, 3),
    "flags": torch.tensor([True, False]),
    "empty": torch.zeros(0, 2),
}


class Other(WorkedExample):
    """Rows of another name and version."""

    ROWS = "other"
    VERSION = 3


FILE = f"{WorkedExample.ROWS}.jsonl"


def stored(folder):
    store = Store(folder)
    for temperature in (0.1, 0.2):
        store.add(WorkedExample(temperature=temperature), Result({"risk": 0.1 + 0.2}, ARRAYS), seconds=1.25)
    store.add(Other(), Result({"found": [1, 2], "none": None}), seconds=0.5)
    store.add_all([(Other(temperature=0.3), Outcome(traceback="Boom"))])  # stays where it is
    return store


def test_every_bit_comes_back(tmp_path):
    first = stored(tmp_path / "first")
    assert write_text(first, tmp_path / "text") == 3
    second = Store(tmp_path / "second")
    assert read_text(tmp_path / "text", second) == 3
    assert second.damaged() == {}
    by_key = [{row.key: row for row in store.rows()} for store in (first, second)]
    assert by_key[0].keys() == by_key[1].keys()
    for key, row in by_key[0].items():
        again = by_key[1][key]
        assert (again.experiment, again.config, again.numbers) == (row.experiment, row.config, row.numbers)
        assert (again.version, again.code, again.versions) == (row.version, row.code, row.versions)
        assert again.seconds == row.seconds
        assert again.arrays.keys() == row.arrays.keys()
        for name, array in row.arrays.items():
            assert again.arrays[name].dtype == array.dtype
            assert torch.equal(again.arrays[name], array)
    assert torch.signbit(by_key[1][WorkedExample(temperature=0.1).key].arrays["edges"])[1]
    assert Other() in second


def test_the_text_is_the_same_for_the_same_rows_and_old_files_go(tmp_path):
    store = stored(tmp_path / "store")
    write_text(store, tmp_path / "text")
    before = {path.name: path.read_bytes() for path in (tmp_path / "text").iterdir()}
    (tmp_path / "text" / "gone.jsonl").write_text("{}\n")
    write_text(store, tmp_path / "text")
    assert {path.name: path.read_bytes() for path in (tmp_path / "text").iterdir()} == before


def test_rows_that_are_there_stay(tmp_path):
    store = stored(tmp_path / "store")
    write_text(store, tmp_path / "text")
    read_text(tmp_path / "text", store)
    assert len(store.rows()) == 3


@pytest.mark.parametrize(
    "edit", [{"config": {"temperature": 0.3}}, {"key": "0" * 32}, {"code": "5d41"}, {"version": 2}]
)
def test_a_line_whose_address_does_not_fit_is_refused(tmp_path, edit):
    write_text(stored(tmp_path / "store"), tmp_path / "text")
    path = tmp_path / "text" / FILE
    first, second = path.read_text().splitlines()
    path.write_text(json.dumps({**json.loads(first), **edit}) + "\n" + second + "\n")
    with pytest.raises(
        InvalidInput, match=r"line 1 of .*\.jsonl has an address that is not that of its config and code"
    ):
        read_text(tmp_path / "text", Store(tmp_path / "new"))
    assert Store(tmp_path / "new").rows() == []


def test_half_a_line_is_named(tmp_path):
    write_text(stored(tmp_path / "store"), tmp_path / "text")
    path = tmp_path / "text" / FILE
    path.write_text(path.read_text()[:-40])
    with pytest.raises(InvalidInput, match=r"line 2 of .*\.jsonl is not a row"):
        list(rows_in(tmp_path / "text"))
