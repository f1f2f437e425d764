"""SparseParityClassifier as a user meets it: what it finds, what it refuses, and that it does not invent."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import parityscope as ps
from parityscope.fit import NothingFound, SparseParityClassifier, SparseParityRegressor, TiedColumns
from parityscope.papers.own.fit_benchmark.planted import TableKind
from parityscope.problems import draw_problems, seeded_generator


def example(n, k, count, noise=0.0, seed=0):
    problem = draw_problems(n, k, [seed], noise=noise)[0]
    x, y = problem.sample(count, seeded_generator(seed, "data"))
    return list(problem.support), x.numpy(), y.numpy()


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SparseParityClassifier(budget=0.1), SparseParityRegressor(budget=0.1)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SparseParityClassifier(), SparseParityRegressor()])
def test_scikit_learn_accepts_it_with_its_own_budget(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["auto", "exhaustive", "collision", "elimination", "attention"])
def test_every_solver_finds_a_clean_pair(solver):
    support, X, y = example(30, 2, 2000)
    model = SparseParityClassifier(solver=solver, random_state=0).fit(X, y)
    assert model.support_.tolist() == support
    assert (model.k_, model.noise_rate_, model.held_out_accuracy_) == (2, 0.0, 1.0)
    assert model.solver_ == ("elimination" if solver == "auto" else solver)
    assert (model.predict(X) == y).all()
    assert (model.attention_ is not None) == (solver == "attention")


def test_auto_falls_back_and_says_why():
    support, X, y = example(60, 3, 1500, noise=0.2)
    model = SparseParityClassifier(random_state=0).fit(X, y)
    assert model.support_.tolist() == support
    assert model.solver_ == "exhaustive"
    assert model.attempts_[0].solver == "elimination"
    assert "after paying for the search" in model.reason_
    assert model.noise_rate_ == pytest.approx(0.2, abs=0.04)
    assert model.predict_proba(X)[:, 1].max() == pytest.approx(0.8, abs=0.04)


@pytest.mark.slow
def test_attention_alone_names_the_columns_too():
    support, X, y = example(40, 3, 30_000, noise=0.2)
    model = SparseParityClassifier(solver="attention", budget="10m", random_state=0).fit(X, y)
    assert model.support_.tolist() == support
    assert model.solver_ == "attention"
    assert set(model.attention_.argmax(-1)) == set(support)


def test_the_smallest_sufficient_k_is_chosen():
    _, X, _ = example(15, 2, 600)
    flipped = np.random.RandomState(0).rand(600) < 0.1
    for support in ([4], [1, 9], [0, 5, 7, 12]):
        y = X[:, support].sum(axis=1) % 2 ^ flipped
        assert SparseParityClassifier(random_state=0).fit(X, y).support_.tolist() == support


def test_columns_that_depend_on_each_other_give_the_smaller_parity():
    _, X, _ = example(12, 2, 400)
    X = np.column_stack([X, X[:, 0] ^ X[:, 1] ^ X[:, 2]])
    for seed in range(5):
        assert SparseParityClassifier(random_state=seed).fit(X, X[:, 12]).support_.tolist() == [12]


@pytest.mark.slow
def test_random_labels_find_nothing_in_at_least_95_of_100_trials():
    random, found = np.random.RandomState(0), 0
    for trial in range(100):
        X = random.randint(2 if trial % 2 else 3, size=(150, 12 if trial % 2 else 6))
        y = (random.rand(150) < (0.5 if trial % 3 else 0.2)).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFound)
            model = SparseParityClassifier(random_state=trial, max_k=4).fit(X, y)
        found += model.k_ > 0
        if model.k_ == 0:
            assert (model.predict(X) == (y.mean() > 0.5)).all()
            assert model.support_.size == 0
    assert found <= 5


def test_p_values_of_random_labels_are_not_too_small():
    """Valid: P(p ≤ 0.2) ≤ 0.2 for the best of every pair, although all pairs were searched."""
    random, small, trials = np.random.RandomState(5), 0, 40
    X = random.randint(2, size=(60, 8))
    for trial in range(trials):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFound)
            model = SparseParityClassifier(2, random_state=trial).fit(X, random.randint(2, size=60))
        small += model.p_value_ <= 0.2
    assert small <= 0.2 * trials + 3 * (trials * 0.2 * 0.8) ** 0.5


def test_continuous_columns_learn_their_thresholds():
    random = np.random.RandomState(0)
    X = random.randn(1500, 8)
    y = np.where((X[:, 2] > 0.7) ^ (X[:, 5] > -0.4), "fault", "fine")
    model = SparseParityClassifier(random_state=0).fit(X, y)
    assert model.support_.tolist() == [2, 5]
    assert model.held_out_accuracy_ > 0.98
    fresh = random.randn(2000, 8)
    assert (model.predict(fresh) == np.where((fresh[:, 2] > 0.7) ^ (fresh[:, 5] > -0.4), "fault", "fine")).mean() > 0.98


def test_genotypes_of_pure_epistasis():
    planted = TableKind(kind="genotypes", rows=1600).draw(seed=0)
    X, y = planted.X, planted.y
    for column in X[:, planted.columns].T:  # no main effects
        shares = [y[column == level].mean() for level in range(3)]
        assert max(shares) - min(shares) < 0.12
    model = SparseParityClassifier(random_state=0).fit(X, y)
    assert tuple(model.support_) == planted.columns
    assert model.p_value_ < 1e-20


def test_a_table_predicts_what_parity_cannot():
    """One of four cells differs, with noise: more than a sum of main effects on the scale of log-odds."""
    random = np.random.RandomState(0)
    X = random.randint(2, size=(2000, 6))
    y = (X[:, 1] & X[:, 4]) ^ (random.rand(2000) < 0.1)
    model = SparseParityClassifier(random_state=0).fit(X, y)
    assert model.support_.tolist() == [1, 4]
    assert (model.rule_, model.interactions_[0].kind) == ("table", "pair table")
    assert set(model.interactions_[0].parts) == {("column 1",), ("column 4",)}
    assert [round(cell.share, 1) for cell in model.truth_table_] == [0.1, 0.1, 0.1, 0.9]


def test_a_conjunction_without_noise_is_a_sum_of_log_odds():
    """Two main effects separate the classes, so nothing is left that the columns do only together."""
    X = np.random.RandomState(0).randint(2, size=(600, 6))
    model = SparseParityClassifier(random_state=0).fit(X, X[:, 1] & X[:, 4])
    assert {one.support for one in model.interactions_} == {(1,), (4,)}
    assert model.held_out_accuracy_ == 1.0
    assert model.explanation_.startswith("main effects of column")


def test_copies_are_reported_as_ties():
    _, X, _ = example(10, 2, 300)
    frame = pd.DataFrame(X, columns=list("abcdefghij")).assign(copy=lambda f: 1 - f["c"])
    with pytest.warns(TiedColumns, match="copy and c agree"):
        model = SparseParityClassifier(random_state=0).fit(frame, frame["c"] ^ frame["h"])
    assert {column: list(others) for column, others in model.ties_.items()} == {2: [10]}


def test_pandas_pipelines_grids_and_clones():
    support, X, y = example(12, 3, 500)
    frame = pd.DataFrame(X, columns=[f"bit {i}" for i in range(12)])
    labels = pd.Series(np.where(y > 0, "yes", "no"), dtype="category")
    model = make_pipeline(FunctionTransformer(), SparseParityClassifier(random_state=0))
    assert cross_val_score(model, frame, labels, cv=3).tolist() == [1.0] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        grid = GridSearchCV(SparseParityClassifier(random_state=0), {"k": [2, 3]}, cv=3).fit(frame, labels)
    assert grid.best_params_ == {"k": 3}
    assert list(grid.best_estimator_.feature_names_in_[support]) == [f"bit {i}" for i in support]
    assert not hasattr(clone(grid.best_estimator_), "support_")


def test_it_selects_columns_in_a_pipeline_and_lists_interactions():
    support, X, y = example(12, 3, 600, noise=0.1)
    frame = pd.DataFrame(X, columns=[f"bit {i}" for i in range(12)])
    selector = SparseParityClassifier(random_state=0).set_output(transform="pandas")
    model = make_pipeline(selector, DecisionTreeClassifier(random_state=0)).fit(frame, y)
    assert selector.get_support(indices=True).tolist() == support
    assert list(selector.transform(frame).columns) == [f"bit {i}" for i in support]
    assert model.score(frame, y) > 0.85
    listed = selector.to_frame()
    assert listed["support"].tolist() == [tuple(support)]
    assert listed["kind"].tolist() == ["parity"]
    assert selector.ebm_interactions() == [tuple(support)]
    assert selector.interactions_[0].p_value == selector.p_value_
    assert "would have been found with probability ≥ 0.99" in selector.guarantee_


def test_columns_that_others_made_keep_their_names():
    random = np.random.RandomState(0)
    frame = pd.DataFrame(
        {"shift": random.choice(["day", "night"], 500), "heat": random.randn(500), "hall": random.rand(500)}
    )
    y = (frame["shift"] == "night") ^ (frame["heat"] > 0)
    made = ColumnTransformer(
        [
            ("words", OneHotEncoder(drop="first", sparse_output=False), ["shift"]),
            ("rest", "passthrough", ["heat", "hall"]),
        ]
    ).set_output(transform="pandas")
    for model, target in ((SparseParityClassifier, y), (SparseParityRegressor, y + 0.1 * random.randn(500))):
        grid = GridSearchCV(make_pipeline(made, model(random_state=0)), {f"{model.__name__.lower()}__max_k": [2]}, cv=2)
        fitted = grid.fit(frame, target).best_estimator_[-1]
        assert fitted.interactions_[0].columns == ("words__shift_night", "rest__heat")
        assert grid.score(frame, target) > 0.9


class LikePolars:
    """As much of a polars DataFrame as is asked for."""

    def __init__(self, frame):
        self.to_pandas = frame.copy


@pytest.mark.parametrize("kind", [LikePolars, pyarrow.Table.from_pandas])
def test_other_frames_are_read(kind):
    random = np.random.RandomState(0)
    frame = pd.DataFrame({"shift": random.choice(["day", "night"], 300), "hot": random.randint(2, size=300), "c": 0.5})
    y = (frame["shift"] == "night") ^ (frame["hot"] > 0)
    model = SparseParityClassifier(random_state=0).fit(kind(frame), y)
    assert (model.interactions_[0].columns, model.interactions_[0].support) == (("shift", "hot"), (0, 1))
    assert (model.predict(kind(frame)) == y).all()


@pytest.mark.parametrize(
    ("X", "y", "options", "sentence"),
    [
        (np.eye(6), np.zeros(6), {}, "y has one class only"),
        (np.eye(6), np.arange(6) % 2, {"threshold": 2}, "threshold must lie strictly between 0 and 1 or be 'share'"),
        (np.eye(6), np.arange(6) % 2, {"covariates": ["age"]}, "there is no covariate 'age' among the columns"),
        (np.eye(6), np.arange(6) % 2, {"missing": "mean"}, "unknown choice 'mean' for missing values"),
        (np.full((6, 2), np.nan), np.arange(6) % 2, {}, "contains NaN"),
        (np.eye(6), np.arange(6) % 2, {"k": 7}, "k must lie between 1 and the number of columns 6, got 7"),
        (np.eye(6), np.arange(6) % 2, {"max_k": 0}, "max_k must be at least 1, got 0"),
        (np.eye(6), np.arange(6) % 2, {"alpha": 2}, "alpha must lie strictly between 0 and 1, got 2"),
        (np.eye(6), np.arange(6) % 2, {"budget": "soon"}, "budget must be a time such as .30s., .2m. or a number"),
        (np.eye(6), np.arange(6) % 2, {"solver": "magic"}, "unknown solver 'magic': choose one of auto"),
    ],
)
def test_bad_input_is_one_sentence(X, y, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseParityClassifier(**options).fit(X, y)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones((40, 3)), "every column is constant"),
        (np.random.RandomState(0).randint(2, size=(9, 50)), "9 rows are too few: even a noiseless parity of 1 of"),
        (
            np.random.RandomState(0).randint(2, size=(99, 5)),
            r"no parity of 1 to 5 of 5 columns stands out in 99",
        ),
    ],
)
def test_nothing_found_says_why(X, sentence):
    y = np.random.RandomState(1).randint(2, size=len(X))
    with pytest.warns(NothingFound, match=sentence):
        model = SparseParityClassifier(random_state=0).fit(X, y)
    assert (model.k_, model.rule_, model.solver_) == (0, "majority", None)


def test_the_package_does_not_import_scikit_learn_until_asked():
    code = "import sys, parityscope as ps; assert 'sklearn' not in sys.modules; ps.SparseParityRegressor"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert (ps.SparseParityClassifier, ps.SparseParityRegressor) == (SparseParityClassifier, SparseParityRegressor)


def test_without_scikit_learn_one_sentence_names_the_extra():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import parityscope as ps\n"
        "try: ps.SparseParityClassifier\n"
        "except ps.InvalidInput as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert "pip install 'parityscope[sklearn]'" in done.stdout


def data_file(name):
    folder = os.environ.get("PARITYSCOPE_DATA")
    if not folder or not (path := Path(folder) / name).is_file():
        pytest.skip(f"{name} is not there: set PARITYSCOPE_DATA to the folder that holds it")
    return pd.read_csv(path, sep="\t")


def test_parity5_plus_5_of_pmlb():
    frame = data_file("parity5+5.tsv.gz")
    model = SparseParityClassifier(random_state=0).fit(frame.drop(columns="class"), frame["class"])
    names = list(model.feature_names_in_[model.support_])
    assert names == ["Bit 2", "Bit 3", "Bit 4", "Bit 6", "Bit 8"]
    # The second route: these five bits decide the class, in every row.
    assert ((frame[names].sum(axis=1) % 2) == frame["class"]).all()
    assert model.held_out_accuracy_ == 1.0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_gametes_of_pmlb(seed):
    frame = data_file("gametes-2way-20.tsv.gz")
    model = SparseParityClassifier(random_state=seed).fit(frame.drop(columns="class"), frame["class"])
    assert list(model.feature_names_in_[model.support_]) == ["P1", "P2"]
    assert model.held_out_accuracy_ > 0.74


@pytest.mark.long
@pytest.mark.parametrize(("n", "k", "count", "noise"), [(1000, 2, 2000, 0.2), (100, 3, 5000, 0.1), (200, 10, 400, 0.0)])
def test_what_was_promised(n, k, count, noise):
    found = 0
    for seed in range(20):
        support, X, y = example(n, k, count, noise, seed)
        found += SparseParityClassifier(random_state=seed).fit(X, y).support_.tolist() == support
    assert found >= 19


@pytest.mark.long
def test_a_large_table_stays_below_a_gigabyte():
    code = """
import resource, numpy as np, parityscope as ps
random = np.random.RandomState(0)
X = np.unpackbits(random.randint(0, 256, size=(100_000, 125), dtype=np.uint8), axis=1)
y = X[:, 3] ^ X[:, 500] ^ (random.rand(100_000) < 0.2)
assert ps.SparseParityClassifier(2, random_state=0).fit(X, y).support_.tolist() == [3, 500]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert float(done.stdout) < 1.0
