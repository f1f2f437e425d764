"""Exports are read back by other libraries."""

import csv
import json
import sys

import pytest
import torch

from parityscope import InvalidInput
from parityscope.records import Row
from parityscope.records.export import export_rows

ROWS = [
    Row("demo", {"n": 3, "label": "a,b"}, {"risk": 0.1, "found": [1, 2]}, {"curve": torch.linspace(0, 1, 4)}),
    Row("demo", {"n": 4, "label": 'q"'}, {"risk": 1, "learned": True}),
]


def test_csv_holds_every_column(tmp_path):
    export_rows(ROWS, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["config.label"] for line in lines] == ["a,b", 'q"']
    assert [float(line["numbers.risk"]) for line in lines] == [0.1, 1.0]
    assert json.loads(lines[0]["numbers.found"]) == [1, 2]
    assert (lines[0]["numbers.learned"], lines[1]["numbers.learned"]) == ("", "True")


def test_parquet_has_typed_columns(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'parityscope[export]'")
    export_rows(ROWS, tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pydict()
    assert table["config.n"] == [3, 4]
    assert table["numbers.risk"] == [0.1, 1.0]
    assert table["numbers.learned"] == [None, True]


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


def test_what_cannot_be_exported_is_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="there are no rows"):
        export_rows([], tmp_path / "rows.csv")
    with pytest.raises(InvalidInput, match=r"ends in \.csv or \.parquet, or is a folder"):
        export_rows(ROWS, tmp_path / "rows.xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"pip install 'parityscope\[export\]'"):
        export_rows(ROWS, tmp_path / "rows.parquet")
    assert list(tmp_path.iterdir()) == []
