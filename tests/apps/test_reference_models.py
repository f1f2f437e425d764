"""Language models of the reference run: measured once, where model and data are at hand."""

import pytest

from parityscope.apps import reference_models
from parityscope.apps.reference import _shipped
from parityscope.apps.reference_models import PROBLEMS, measure_models
from parityscope.core.errors import InvalidInput
from parityscope.language_models.packaged import PACKAGED
from parityscope.language_models.study import EntropyStudy, StudyNumbers
from parityscope.records import rows_in
from tiny_language_models import save_tiny


@pytest.fixture
def few_problems(monkeypatch):
    monkeypatch.setattr(reference_models, "PROBLEMS", 2)


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

    monkeypatch.setattr(reference_models, "prepared_model", nowhere)
    smollm2, gemma3 = measure_models(tmp_path, cache_with(tmp_path, "smollm2"))
    assert smollm2.endswith("measured now")
    assert gemma3 == "gemma-3-270m-q4_k_m: not measured, since there is no package index"


def test_without_data_nothing_is_fetched(tmp_path, monkeypatch):
    monkeypatch.delenv("PARITYSCOPE_DATA", raising=False)
    lines = list(measure_models(tmp_path, tmp_path / "cache"))
    assert all("PARITYSCOPE_DATA names no folder" in line for line in lines)
    assert not (tmp_path / "cache").exists()


def test_the_shipped_studies_are_of_this_code_and_large_enough():
    rows = [row for row in rows_in(_shipped("reference", "rows")) if row.experiment == EntropyStudy.ROWS]
    assert rows, "run `make reference` where PyPI and GSM8K are at hand"
    for row in rows:
        assert EntropyStudy.model_validate(row.config).key == row.key, "stale: run `make reference` as above"
        study = StudyNumbers.model_validate(row.numbers)
        assert study.problems >= PROBLEMS
        assert study.models[0].name in {model.name for model in PACKAGED.values()}
