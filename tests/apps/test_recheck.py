"""Rows of older code: kept where recomputing some gives the same, otherwise left stale."""

import json
from dataclasses import replace

import pytest

from parityscope.apps.recheck import RECHECKED, first_difference, recheck
from parityscope.apps.reference import pack_reference, recheck_reference
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.records import Outcome, Store, StoredRow, rows_in
from parityscope.runs.spec import spec_module

LABORATORY = """
import torch
from parityscope.records import Config, Result

def half(x):
    return x / 2

class Half(Config):
    ROWS = "halves"
    x: int

    def run(self):
        values = torch.linspace(0, half(self.x), 3, dtype=torch.float64)
        return Result({"half": half(self.x), "steps": [self.x, 1], "even": self.x % 2 == 0}, {"values": values})
"""


def halves(edit=("", ""), count=6):
    """Return the configs of the laboratory after an edit."""
    assert edit[0] in LABORATORY
    module = spec_module(LABORATORY.replace(*edit) if edit[0] else LABORATORY, "laboratory.py")
    return [module.Half(x=x) for x in range(1, count + 1)]


@pytest.fixture
def store(tmp_path):
    """Six rows of the laboratory before any edit; the first ones took longest."""
    store = Store(tmp_path / "store")
    store.add_all((config, Outcome.of(config.run(), 10.0 - config.x)) for config in halves())
    return store


def notes(store, configs):
    rows = store.row_of_each(configs)
    return [None if row is None else row.versions.get(RECHECKED, "") for row in rows]


def test_an_edit_that_changes_no_number_keeps_the_rows(store):
    edited = halves(("x / 2", "0.5 * x"))
    old = edited[0].code(), halves()[0].code()
    assert old[0] != old[1]
    (found,) = recheck(store, edited, seconds=0)
    assert str(found) == f"halves of code {old[1]}: 2 of 6 rows recomputed and equal, all are kept"
    # The two that took least were computed anew and need no note.
    note = f"2 of 6 rows of code {old[1]} recomputed and equal"
    assert notes(store, edited) == [note] * 4 + [""] * 2
    assert [row.numbers.half for row in store.row_of_each(edited)] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert [row.seconds for row in store.row_of_each(edited)[:4]] == [9.0, 8.0, 7.0, 6.0]
    assert store.damaged() == {}
    assert list(recheck(store, edited)) == []


def test_as_many_are_recomputed_as_fit_into_the_time(store):
    (found,) = recheck(store, halves(("x / 2", "0.5 * x")), seconds=4 + 5 + 6.5)  # they took 4, 5, 6, 7, 8, 9 seconds
    assert found.recomputed == 3


def test_comments_and_layout_make_nothing_stale(store):
    assert list(recheck(store, halves(("    return x / 2", "    # a half\n    return x  /  2")))) == []


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (("x / 2", "x / 2 * (1 + 1e-6)"), "numbers.half is 3.00000"),
        (("[self.x, 1]", "[self.x, 2]"), "numbers.steps[1] is 2, was 1"),
        (("== 0", "== 1"), "numbers.even is false, was true"),
        (('"even"', '"is_even"'), "numbers is "),
        (("(0, half", "(0.1, half"), "the array values differs"),
        (('{"values"', '{"points"'), "the arrays are points, were values"),
        (("dtype=torch.float64", "dtype=torch.float32"), "the array values differs"),
        (("x / 2", "x / 0"), "fails now: ZeroDivisionError: division by zero"),
    ],
)
def test_an_edit_that_changes_a_number_leaves_the_rows_stale(store, edit, sentence):
    edited = halves(edit)
    (found,) = recheck(store, edited)
    assert sentence in str(found)
    assert f"halves of code {halves()[0].code()}: its 6 rows stay stale, since " in str(found)
    assert notes(store, edited)[:5] == [None] * 5
    assert (notes(store, edited)[5] is None) == ("fails" in sentence)  # what was computed is kept: it is of today


def test_rounding_is_no_difference(store):
    edited = halves(("x / 2", "x / 2 * (1 + 1e-12)"))
    assert next(recheck(store, edited)).difference is None
    assert first_difference([1e-14, float("nan")], [-1e-14, float("nan")]) is None
    assert first_difference(1.0, 1) == "numbers is 1, was 1.0"


def test_a_raised_version_means_that_the_code_does_not_tell(store):
    assert list(recheck(store, halves(('ROWS = "halves"', 'ROWS = "halves"; VERSION = 2')))) == []


def test_each_older_code_is_rechecked_for_itself(store):
    other = halves(("x / 2", "(x + 0.1) / 2"), count=3)  # of these, newer rows
    store.add_all((config, Outcome.of(config.run(), 1.0)) for config in other)
    found = {one.code: one for one in recheck(store, halves(("x / 2", "0.5 * x")))}
    assert (found[halves()[0].code()].rows, found[halves()[0].code()].difference) == (3, None)
    assert found[other[0].code()].rows == 3
    assert "numbers.half" in found[other[0].code()].difference


def test_notes_add_up(store):
    for edit in ("0.5 * x", "x * 0.5"):
        configs = halves(("x / 2", edit))
        assert all(one.difference is None for one in recheck(store, configs, seconds=0))
    assert notes(store, configs)[0].count("recomputed and equal") == 2


def test_only_what_is_wanted_is_rechecked(store):
    (found,) = recheck(store, halves(("x / 2", "0.5 * x"))[:2])
    assert found.rows == 2


def test_rows_of_the_reference_run_are_rechecked_and_stale_ones_not_shipped(tmp_path):
    store, config = Store(tmp_path / "store"), WorkedExample()
    store.add(config, config.run(), seconds=0.1)
    rows = [replace(row, code="5d41402abc4b2a76") for row in store.rows()]
    store.forget(store.keys())
    store.add_rows([*rows, StoredRow("my-sweep", {"x": 1}, {"y": 1})])
    assert pack_reference(tmp_path, into=tmp_path / "shipped") == 0
    (found,) = recheck_reference(tmp_path)
    assert (found.experiment, found.rows, found.difference) == ("H1-figure-1", 1, None)
    assert pack_reference(tmp_path, into=tmp_path / "shipped") == 1
    (row,) = rows_in(tmp_path / "shipped")
    assert row.code == config.code()
    assert json.loads((tmp_path / "shipped" / "H1-figure-1.jsonl").read_text())["key"] == config.key
