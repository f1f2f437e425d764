"""Rows as text and back: every bit, and nothing that is not what its address says."""

import json

import pytest
import torch

from parityscope import InvalidInput
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.records import Outcome, Result, Store, read_text, rows_in, write_text

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
