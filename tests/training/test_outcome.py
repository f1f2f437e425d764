"""The outcome of a training tells every run's own recipe, as JSON and as a table."""

import json
import sys

import pytest

from parityscope import RECIPES, InvalidInput, LearnedRuns, draw_problems, learn
from parityscope.core.errors import MissingExtra


@pytest.fixture(scope="module")
def mixed():
    recipes = [RECIPES["bounded"].overridden(learning_rate=r, temperature=t) for r, t in ((0.05, 1.0), (0.1, 0.5))]
    return learn(draw_problems(9, 2, range(2)), recipes, range(2), steps=5)


def test_runs_say_their_own_settings_where_they_differ(mixed):
    told = json.loads(json.dumps(mixed.to_json()))
    assert [run["settings"] for run in told["runs"]] == [
        {"temperature": 1.0, "learning_rate": 0.05},
        {"temperature": 0.5, "learning_rate": 0.1},
    ]
    assert not {"temperature", "learning_rate"} & set(told["settings"])
    assert told["settings"]["readout"] == "cosine"


def test_the_one_recipe_is_that_of_all_runs_or_refused(mixed):
    assert [recipe.learning_rate for recipe in mixed.recipes] == [0.05, 0.1]
    with pytest.raises(InvalidInput, match="recipes of their own, which differ in temperature: see `recipes`"):
        _ = mixed.recipe
    alike = learn(draw_problems(9, 2, range(3)), seeds=range(3), steps=2)
    assert alike.recipes == (alike.recipe,) * 3


def test_the_model_says_its_own_temperatures(mixed):
    assert mixed.model.temperature.tolist() == [1.0, 0.5]


def test_a_table_has_one_row_per_seed(mixed):
    frame = mixed.frame()
    assert frame["seed"].tolist() == [0, 1]
    assert frame["temperature"].tolist() == [1.0, 0.5]
    assert frame["support"].tolist() == [problem.support for problem in mixed.problems]
    assert frame["learned"].tolist() == mixed.learned.tolist()


def test_a_table_without_pandas_names_the_extra(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'parityscope\[sklearn\]'"):
        mixed.frame()


@pytest.mark.parametrize(
    ("options", "said"),
    [({}, "learned from the population"), ({"samples": 50}, "from 50 examples"), ({"batch": 20}, "batches of 20")],
)
def test_it_is_shown_in_a_line(options, said):
    run = learn(draw_problems(9, 2, range(40)), seeds=range(40), steps=1, **options)
    assert isinstance(run, LearnedRuns)
    assert said in repr(run)
    assert len(repr(run)) < 160
