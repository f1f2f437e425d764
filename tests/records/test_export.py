"""Exports are read back by other libraries."""

import csv
import json
import sys

import numpy as np
import pytest
import torch

from parityscope import InvalidInput
from parityscope.papers.cells import ShownTraining
from parityscope.records import Config, Result, Row, Store, StoredRow
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
