"""A saved model says what the fitted one says of every row, whatever its columns are; damaged files are refused."""

import json

import numpy as np
import pandas as pd
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit.files import fit_file
from parityscope.fit.saved import SavedModel, predict_file


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """Two independent pairs share the label: genotypes, and a measurement with gaps beside text of many values."""
    random = np.random.RandomState(0)
    frame = pd.DataFrame({f"g{index}": random.randint(3, size=1500) for index in range(5)})
    frame["pressure"] = random.normal(50, 8, size=1500).round(1)
    frame["plant"] = random.choice(["Ulm", "Bonn", "Kiel", "Jena", "Hof", "Suhl"], size=1500)
    pairs = (frame["g3"] > 0) ^ (frame["g1"] == 1), (frame["pressure"] > 53) ^ (frame["plant"] == "Kiel")
    frame["fault"] = np.where(np.where(random.rand(1500) < 0.5, *pairs), "yes", "no")
    frame.loc[random.rand(1500) < 0.02, "pressure"] = np.nan
    path = tmp_path_factory.mktemp("plants") / "plants.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def fitted(plants):
    return fit_file(plants, "fault", missing="median", max_k=2)


@pytest.fixture
def model(fitted, tmp_path):
    fitted.model().write(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_the_file_predicts_what_the_fit_predicts(fitted, model, plants):
    assert [set(finding.columns) for finding in fitted.findings[:2]] == [{"g1", "g3"}, {"pressure", "plant"}]
    said = predict_file(SavedModel.read(model), plants)
    assert said.probability == pytest.approx(fitted.answer.expected(fitted.coded.X), abs=1e-12)
    assert said.accuracy > 0.65
    assert SavedModel.read(model) == fitted.model()


def test_people_can_read_it(model):
    text = model.read_text()
    content = json.loads(text)
    assert (content["format"], content["version"], content["target"]) == ("parityscope model", 2, "fault")
    assert {column["name"] for column in content["columns"]} == {"g1", "g3", "pressure", "plant"}
    assert any("plant = Kiel" in words for words in content["terms"])
    assert '"classes": ["no", "yes"]' in text


def test_a_new_file_needs_the_model_s_columns_only(model, tmp_path):
    new = pd.DataFrame(
        {"plant": ["Kiel", "Rom"], "pressure": [40.0, None], "g3": [2, 0], "g1": [0, 0], "x": ["a", "b"]}
    )
    new.to_csv(tmp_path / "new.csv", index=False)
    said = predict_file(SavedModel.read(model), tmp_path / "new.csv")
    assert (said.classes[0], said.accuracy) == ("yes", None)
    assert 0 < said.probability[1] < 0.5  # a town that was never seen is not Kiel, a gap is the median
    new.drop(columns=["plant", "g1"]).to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(InvalidInput, match=r"less\.csv lacks g1 and plant, which the model needs"):
        predict_file(SavedModel.read(model), tmp_path / "less.csv")
    new.assign(g3=["many", "few"]).to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(InvalidInput, match="has text in g3, such as 'many': the model knows it as numbers"):
        predict_file(SavedModel.read(model), tmp_path / "text.csv")


def test_gaps_where_there_were_none_are_refused_or_left_without_a_prediction(model, tmp_path):
    new = pd.DataFrame({"plant": ["Kiel", "Ulm"], "pressure": [40.0, 60.0], "g3": [2, None], "g1": [0, 0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InvalidInput, match="missing values in g3, and none were seen when the model was fitted"):
        predict_file(SavedModel.read(model), tmp_path / "new.csv")
    said = predict_file(SavedModel.read(model), tmp_path / "new.csv", skip_missing=True)
    assert said.classes[1] is None
    assert said.to_csv().splitlines()[2] == ","
    assert said.to_json()["probability"][1] is None


def test_nothing_found_predicts_the_majority(plants, tmp_path):
    frame = pd.read_csv(plants)
    frame["fault"] = (np.arange(len(frame)) % 3 == 0).astype(int)
    frame.to_csv(tmp_path / "dull.csv", index=False)
    dull = fit_file(tmp_path / "dull.csv", "fault", missing="median", max_k=1)
    assert not dull.findings
    dull.model().write(tmp_path / "model.json")
    said = predict_file(SavedModel.read(tmp_path / "model.json"), plants)
    assert set(said.classes) == {"0"}
    assert said.probability == pytest.approx(np.full(len(frame), 1 / 3))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: {**content, "version": 3}, "is a model of version 3: this parityscope reads version 2"),
        (lambda content: {**content, "format": "other"}, "is no model of `fit --save`: format: "),
        (lambda content: {**content, "more": 1}, "is no model of `fit --save`: more: "),
        (lambda content: [content], "is no model of `fit --save`: "),
    ],
)
def test_other_files_are_refused(model, change, sentence):
    model.write_text(json.dumps(change(json.loads(model.read_text()))))
    with pytest.raises(InvalidInput, match=sentence):
        SavedModel.read(model)
    model.write_bytes(b"half a file")
    with pytest.raises(InvalidInput, match="is no model of `fit --save`"):
        SavedModel.read(model)
