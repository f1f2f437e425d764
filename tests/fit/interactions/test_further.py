"""A column that acts through several questions: they are all found, they are one interaction, and noise stays out."""

import warnings

import numpy as np
import pandas as pd
import pytest

from parityscope.fit import SparseParityClassifier
from parityscope.fit.answer import Question, ask

CITIES = np.array(["Rome", "Paris", "Berlin", "Oslo", "Wien", "Bern", "Prag", "Riga"])
LABELS = {
    "two cities and sex": (lambda X: X.city.isin(CITIES[:2]) ^ (X.sex == "m"), {0, 1}),
    "three cities and sex": (lambda X: X.city.isin(CITIES[:3]) ^ (X.sex == "m"), {0, 1}),
    "three cities": (lambda X: X.city.isin(CITIES[:3]), {0}),
    "an interval": (lambda X: X.b.abs() < 0.6, {3}),
    "an interval and sex": (lambda X: (X.b.abs() < 0.6) ^ (X.sex == "m"), {1, 3}),
    "both ends": (lambda X: X.b.abs() > 1.2, {3}),
}


def people(seed, rows=1500):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "city": CITIES[random.integers(0, 8, rows)],
            "sex": random.choice(["m", "f"], rows),
            "a": random.integers(0, 2, rows),
            "b": random.normal(size=rows),
            "d": random.normal(size=rows),
        }
    )
    return frame, random.random(rows) < 0.1


@pytest.mark.parametrize("label", LABELS)
def test_several_questions_about_a_column_are_one_interaction_and_noise_stays_out(label):
    rule, columns = LABELS[label]
    for seed in (700, 701):
        X, flipped = people(seed)
        model = SparseParityClassifier(random_state=0).fit(X, (rule(X) ^ flipped).astype(int))
        assert [set(one.support) for one in model.interactions_] == [columns]
        assert model.support_.tolist() == sorted(columns)
        assert model.k_ == len(columns)
        if len(columns) == 1:  # whatever a column does on its own is one effect, told by its best question
            assert model.interactions_[0].kind == "main effect"
        else:
            assert len(model.bits_) > len(columns)
        assert model.held_out_accuracy_ > 0.85  # 0.9 is there


def test_a_curved_effect_of_a_number_is_its_own():
    for seed in (710, 711):
        X, _ = people(seed)
        risk = 1 / (1 + np.exp(-2 * (X.b**2 - 1)))
        ill = (np.random.default_rng(seed).random(len(X)) < risk).astype(int)
        model = SparseParityClassifier(random_state=0).fit(X, ill)
        assert [one.support for one in model.interactions_] == [(3,)]


def test_a_genotype_that_adds_up_is_one_main_effect():
    for seed in range(2):
        random = np.random.RandomState(seed)
        X = random.binomial(2, 0.4, size=(2000, 12))
        up = random.rand(2000) < 0.15 + 0.35 * X[:, 5]
        found = ask(Question(max_k=4), X, np.where(up, 1, -1).astype(np.int8), random).interactions
        assert [(one.support, one.kind) for one in found] == [((5,), "main effect")]


def test_what_a_strong_main_effect_leaves_is_looked_for():
    """Three quarters of the variance are those of one column: the rest is nobody's but for a conjunction's."""
    random = np.random.RandomState(0)
    X = random.randint(2, size=(2000, 30))
    label = X[:, 5] ^ (X[:, 9] & X[:, 20] & X[:, 13])
    answer = ask(Question(), X, (2 * label - 1).astype(np.int8), random)
    assert {column for one in answer.interactions for column in one.support} == {5, 9, 13, 20}
    assert answer.held_out_accuracy == 1


def test_one_value_of_a_text_against_another_column_is_not_taken_for_that_column():
    X, _ = people(3, rows=600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseParityClassifier(random_state=0).fit(X, ((X.city == "Rome") ^ (X.sex == "m")).astype(int))
    assert model.support_.tolist() == [0, 1]
    assert model.held_out_accuracy_ == 1


def test_nothing_is_said_to_add_nothing_that_was_not_searched():
    random = np.random.RandomState(0)
    X = random.randint(2, size=(1000, 120))
    label = X[:, 5] ^ (random.rand(1000) < 0.1)
    answer = ask(Question(budget=3), X, (2 * label - 1).astype(np.int8), random)
    assert answer.support == (5,)
    assert "not searched: " in answer.skipped
    assert "nothing else that was searched adds to it" in answer.explanation


def test_a_threshold_that_sets_one_row_apart_is_no_column():
    """The least value alone was once a third column: every row gained a thousandth of what the pair explains."""
    random = np.random.default_rng(310)
    city, sex = CITIES[random.integers(0, 8, 1500)], random.choice(["m", "f"], 1500)
    label = (city == "Rome") ^ (sex == "m") ^ (random.random(1500) < 0.1)
    noise = {"a": random.integers(0, 2, 1500), "b": random.normal(size=1500), "d": random.normal(size=1500)}
    X = pd.DataFrame({"city": city, "sex": sex, **noise})
    model = SparseParityClassifier(random_state=0).fit(X, label.astype(int))
    assert [one.support for one in model.interactions_] == [(0, 1)]
