"""The estimator takes the text that the command takes, and finds the same."""

import numpy as np
import pandas as pd
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit import NotSearched, SparseParityClassifier
from parityscope.fit.files import fit_file


@pytest.fixture
def frame():
    random = np.random.RandomState(0)
    drawn = pd.DataFrame({"hot": random.randint(2, size=600), "heat": random.rand(600)})
    drawn.insert(0, "town", random.choice(["Ulm", "Bonn", "Kiel", "Jena", "Hof", "Suhl"], size=600))
    drawn["shift"] = random.choice(["day", "night"], size=600)
    return drawn


def test_text_takes_part_and_reads_as_text(frame):
    y = (frame["town"] == "Kiel") ^ (frame["shift"] == "night")
    model = SparseParityClassifier(random_state=0, max_k=2).fit(frame, y)
    assert model.support_.tolist() == [0, 3]
    assert model.bits_ == ["town = Kiel", "shift = night"]
    assert {cell.values for cell in model.truth_table_} == {
        (town, shift) for town in ("≠ Kiel", "= Kiel") for shift in ("day", "night")
    }
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.score(frame, y) == 1.0
    assert list(model.predict(frame.assign(town="Rom")[:4])) == list((frame["shift"] == "night")[:4])


def test_the_command_finds_the_same(frame, tmp_path):
    frame["fault"] = np.where((frame["town"] == "Kiel") ^ (frame["heat"] > 0.4), "yes", "no")
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = fit_file(tmp_path / "data.csv", "fault", max_k=2)
    model = SparseParityClassifier(random_state=0, max_k=2).fit(frame.drop(columns="fault"), frame["fault"])
    assert set(command.bits) == set(model.bits_)
    assert set(command.to_json()["support"]) == set(model.support_.tolist())


def test_what_takes_no_part_is_a_warning(frame):
    frame["serial"] = [f"no {row}" for row in range(600)]
    with pytest.warns(NotSearched, match=r"not searched: serial \(text of 600 different values"):
        model = SparseParityClassifier(random_state=0, max_k=1).fit(frame, frame["hot"])
    assert model.support_.tolist() == [1]
    assert model.n_features_in_ == 5


def test_bad_frames_are_one_sentence(frame):
    y = frame["hot"]
    model = SparseParityClassifier(random_state=0, max_k=1).fit(frame, y)
    with pytest.raises(InvalidInput, match="hot has text, and had numbers when the model was fitted"):
        model.predict(frame.assign(hot="yes"))
    with pytest.raises(ValueError, match=r"3 features, but SparseParityClassifier is expecting 4|feature names"):
        model.predict(frame.drop(columns="hot"))
    with pytest.raises(InvalidInput, match="X has infinite values in heat: leave them empty or replace them"):
        SparseParityClassifier(missing="category").fit(frame.assign(heat=[np.inf, *range(len(frame) - 1)]), y)
    frame.loc[3, "town"] = None
    with pytest.raises(InvalidInput, match="town has missing values"):
        SparseParityClassifier().fit(frame, y)
    frame["heat"] = np.nan
    with pytest.raises(InvalidInput, match="town and heat have missing values"):
        SparseParityClassifier().fit(frame, y)
