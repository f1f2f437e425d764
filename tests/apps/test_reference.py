"""The shipped evidence: complete, current, small, and loaded by the store's own code."""

import json
from dataclasses import replace

import pytest

from parityscope.apps import reference
from parityscope.apps.reference import (
    PROBLEMS,
    RECHECKED,
    _shipped,
    first_difference,
    measure_models,
    pack_reference,
    recheck,
    recheck_reference,
    reference_picture,
    unpack_reference,
)
from parityscope.core.errors import InvalidInput
from parityscope.language_models.packaged import PACKAGED
from parityscope.language_models.study import EntropyStudy, StudyNumbers
from parityscope.papers.figure import own_size_of
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.papers.own.figures.estimator_benchmark import BenchmarkNumbers
from parityscope.papers.registry import CLAIM_IDS, FIGURE_IDS, all_claims, load_figure
from parityscope.papers.results import needs_of, stored_claims, stored_rows, work_of
from parityscope.records import Outcome, Result, Store, StoredRow, rows_in
from parityscope.runs.spec import spec_module
from tiny_language_models import save_tiny

ROWS = _shipped("reference", "rows")


@pytest.fixture(scope="module")
def shipped():
    """Return the shipped rows, read once."""
    return tuple(rows_in(ROWS))


def test_every_config_of_the_reference_run_has_its_row(shipped):
    keys = {row.key for row in shipped}
    works = {name: work_of(load_figure(name), "reference") for name in FIGURE_IDS}
    stale = {name: sum(one.key not in keys for one in work.configs) for name, work in works.items()}
    assert not any(stale.values()), f"run `make reference`, which computes only what is missing: {stale}"


def test_no_row_is_left_over(shipped):
    works = [work_of(load_figure(name), "reference") for name in FIGURE_IDS]
    works.append(needs_of(all_claims(), "reference"))
    wanted = {config.key for work in works for config in work.configs}
    wanted |= {config.row_config().key for name in FIGURE_IDS for config in own_size_of(load_figure(name))}
    elsewhere = [getattr(load_figure(name), "MEASURED_ELSEWHERE", ()) for name in FIGURE_IDS]
    wanted |= {config.key for configs in elsewhere for config in configs}
    given = {"claims", *(load_figure(name).STORED.ROWS for name in ("W-figure-6", "W-figure-7"))}
    left_over = [row for row in shipped if row.experiment not in given and row.key not in wanted]
    assert [(row.experiment, row.config) for row in left_over] == []


def test_the_shipped_rows_are_small():
    assert sum(path.stat().st_size for path in ROWS.iterdir()) < 12e6


def test_the_store_has_every_row_and_every_verdict(tmp_path):
    count = unpack_reference(tmp_path)
    store = Store(tmp_path / "store")
    assert len(store.rows()) == count
    assert store.damaged() == {}
    assert [claim.id for claim in stored_claims("reference", store)] == list(CLAIM_IDS)
    for name in FIGURE_IDS:
        figure = load_figure(name)
        assert len(stored_rows(figure, "reference", store)) >= len(
            figure.CONFIGS["reference"]
        )  # more: measured elsewhere


def test_a_demo_shows_the_reference_figure_only_where_its_own_shows_less():
    same = [name for name in FIGURE_IDS if reference_picture(load_figure(name), "demo") is None]
    assert "H1-figure-1" in same
    assert "H1-success" not in same
    assert all(reference_picture(load_figure(name), "reference") is None for name in FIGURE_IDS)


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


def test_a_new_field_with_a_default_keeps_its_older_rows(store):
    edited = halves(("x: int", "x: int\n    scale: float = 1.0"))
    (found,) = recheck(store, edited)
    assert (found.rows, found.difference) == (6, None)
    assert [row.config.scale for row in store.row_of_each(edited)] == [1.0] * 6
    store.add_rows([StoredRow("halves", {"x": 1, "gone": 2}, {"half": 0.5})])  # of a field that is no more
    assert next(recheck(store, halves(("x / 2", "0.5 * x"))[1:])).difference is None


def test_only_what_is_wanted_is_rechecked(store):
    (found,) = recheck(store, halves(("x / 2", "0.5 * x"))[:2])
    assert found.rows == 2


def test_rows_of_the_reference_run_are_rechecked_and_stale_ones_not_shipped(tmp_path):
    today, config = Store(tmp_path / "today"), WorkedExample()
    today.add(config, config.run(), seconds=0.1)
    rows = [replace(row, code="5d41402abc4b2a76") for row in today.rows()]
    store = Store(tmp_path / "store")
    store.add_rows([*rows, StoredRow("my-sweep", {"x": 1}, {"y": 1})])
    assert pack_reference(tmp_path, into=tmp_path / "shipped") == 0
    (found,) = recheck_reference(tmp_path)
    assert (found.experiment, found.rows, found.difference) == ("H1-figure-1", 1, None)
    assert pack_reference(tmp_path, into=tmp_path / "shipped") == 1
    (row,) = rows_in(tmp_path / "shipped")
    assert row.code == config.code()
    assert json.loads((tmp_path / "shipped" / "H1-figure-1.jsonl").read_text())["key"] == config.key


def test_rows_of_public_files_are_shipped_on_where_the_files_are_not(tmp_path, monkeypatch):
    monkeypatch.delenv("PARITYSCOPE_DATA", raising=False)
    store = Store(tmp_path / "store")
    files = load_figure("estimator-benchmark").MEASURED_ELSEWHERE
    numbers = Result(BenchmarkNumbers(scores={}, refused={}))
    for config in files:
        store.add(config, numbers, seconds=1.0)
    assert pack_reference(tmp_path, into=tmp_path / "shipped") == len(files) == 2


@pytest.fixture
def few_problems(monkeypatch):
    monkeypatch.setattr(reference, "PROBLEMS", 2)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Put two problems where GSM8K would be."""
    import pyarrow as pa
    import pyarrow.parquet

    folder = tmp_path / "data"
    folder.mkdir()
    table = pa.table({"question": ["1 + 1?", "2 + 2?"], "answer": ["It is 2.\n#### 2", "It is 4.\n#### 4"]})
    pyarrow.parquet.write_table(table, folder / "gsm8k-test.parquet")
    monkeypatch.setenv("PARITYSCOPE_DATA", str(folder))


def cache_with(tmp_path, *names):
    for seed, name in enumerate(names):
        save_tiny(tmp_path / "cache" / PACKAGED[name].name, "llama", seed)
    return tmp_path / "cache"


def test_every_model_is_measured_once(tmp_path, data, few_problems):
    cache = cache_with(tmp_path, *PACKAGED)
    first = list(measure_models(tmp_path, cache))
    assert all(line.endswith("on 2 problems of gsm8k-test.parquet: measured now") for line in first)
    assert [line.endswith(": measured") for line in measure_models(tmp_path, cache)] == [True] * len(PACKAGED)


def test_a_model_that_cannot_be_had_leaves_the_others_alone(tmp_path, data, few_problems, monkeypatch):
    def nowhere(model, cache):
        if model.name == PACKAGED["gemma3"].name:
            raise InvalidInput("there is no package index")
        return cache / model.name

    monkeypatch.setattr(reference, "prepared_model", nowhere)
    smollm2, gemma3 = measure_models(tmp_path, cache_with(tmp_path, "smollm2"))
    assert smollm2.endswith("measured now")
    assert gemma3 == "gemma-3-270m-q4_k_m: not measured, since there is no package index"


def test_without_data_nothing_is_fetched(tmp_path, monkeypatch):
    monkeypatch.delenv("PARITYSCOPE_DATA", raising=False)
    lines = list(measure_models(tmp_path, tmp_path / "cache"))
    assert all("PARITYSCOPE_DATA names no folder" in line for line in lines)
    assert not (tmp_path / "cache").exists()


def test_the_shipped_studies_are_of_this_code_and_large_enough(shipped):
    rows = [row for row in shipped if row.experiment == EntropyStudy.ROWS]
    assert rows, "run `make reference` where PyPI and GSM8K are at hand"
    for row in rows:
        assert EntropyStudy.model_validate(row.config).key == row.key, "stale: run `make reference` as above"
        study = StudyNumbers.model_validate(row.numbers)
        assert study.problems >= PROBLEMS
        assert study.models[0].name in {model.name for model in PACKAGED.values()}
