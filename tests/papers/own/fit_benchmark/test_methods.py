"""The methods a user would pick instead find what they can: a fair comparison needs working rivals."""

from itertools import combinations

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark.methods import METHODS, Asked, Refused, best_sets
from parityscope.papers.own.fit_benchmark.peers import PEERS
from parityscope.papers.own.fit_benchmark.planted import TableKind

ALL = {**METHODS, **PEERS}
UNSURE = {"mutual information", "neural network", "gradient boosting", "attention"}


def find(name, table, asked, setting=None):
    """Name the columns by one setting; a method that is not installed, or takes no such table, skips."""
    method = ALL[name]
    try:
        return method.find(table.X, table.y, asked, **(setting or method.settings[0]))
    except Refused as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", ALL)
def test_every_method_finds_a_single_column(name):
    table = TableKind(n=8, k=1, rows=300).draw(0)
    assert find(name, table, Asked(1)) == table.columns


@pytest.mark.parametrize("name", sorted(ALL.keys() - UNSURE))
def test_these_find_an_easy_pair(name):
    table = TableKind(n=8, rows=400, noise=0.0).draw(1)
    assert find(name, table, Asked(2)) == table.columns


@pytest.mark.parametrize("name", ["auto", "MDR", "L1 on products", "PLINK 1.9", "EBM"])
def test_these_find_both_of_two_pairs(name):
    table = TableKind(n=12, rows=800, noise=0.05, interactions=2).draw(1)
    assert find(name, table, Asked(2, sets=2)) == table.columns


@pytest.mark.parametrize("name", ["L1 on products", "gradient boosting", "random forest", "MDR", "PLINK 1.9"])
def test_every_setting_runs(name):
    table = TableKind(kind="genotypes", n=6, rows=200).draw(1)
    answers = [find(name, table, Asked(2), setting) for setting in ALL[name].settings]
    assert all(len(answer) in (0, 2) for answer in answers)
    assert table.columns in answers


def test_a_filter_sees_nothing_in_a_pair():
    tables = [TableKind(n=12, rows=400, noise=0.0).draw(seed) for seed in range(4)]
    assert any(find("mutual information", table, Asked(2)) != table.columns for table in tables)


def test_what_is_too_large_or_of_another_kind_is_refused():
    y = np.array([0, 1, 0, 1])
    with pytest.raises(Refused, match="more than 25000"):
        METHODS["L1 on products"].find(np.zeros((4, 300)), y, Asked(3), C=0.1, squares=False)
    with pytest.raises(Refused, match="multiplications for all sets of 4"):
        METHODS["MDR"].find(np.zeros((4, 3000)), y, Asked(4), folds=1)
    with pytest.raises(Refused, match="ranks pairs, not sets of 3"):
        PEERS["PLINK 1.9"].find(np.zeros((4, 9)), y, Asked(3), test="boost")


def test_a_package_that_is_missing_refuses(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(Refused, match=r"lightgbm is not installed: pip install 'parityscope\[peers\]'"):
        PEERS["LightGBM"].find(np.zeros((4, 2)), np.array([0, 1, 0, 1]), Asked(2), leaves=7, trees=5, rate=0.1)


def table(seed, rows=160, columns=6, values=3):
    random = np.random.default_rng(seed)
    return random.integers(values, size=(rows, columns)), random.integers(2, size=rows)


def plain_accuracy(train, test, some):
    """Balanced accuracy on the test rows of the high-risk combinations of the training rows, one combination a time."""
    (X, y), (Z, z) = train, test
    right = {0: 0.0, 1: 0.0}
    for row, label in zip(Z[:, some], z, strict=True):
        same = (X[:, some] == row).all(axis=1)
        high = (same & (y == 1)).sum() / (y == 1).sum() >= (same & (y == 0)).sum() / (y == 0).sum()
        right[int(label)] += high == label
    return sum(right[label] / (z == label).sum() for label in (0, 1)) / 2


@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_set_has_the_accuracy_of_a_plain_loop(k):
    X, y = table(k)
    found = {one.columns: one.accuracy for one in best_sets(X, y, k)}
    assert set(found) == set(combinations(range(6), k))
    for some, accuracy in found.items():
        assert accuracy == pytest.approx(plain_accuracy((X, y), (X, y), some), abs=1e-5)


def test_folds_are_judged_on_their_own_rows():
    X, y = table(9)
    fold = np.random.default_rng(4).permutation(len(X)) % 5
    for one in best_sets(X, y, 2, folds=5, seed=4)[:3]:
        parts = [
            plain_accuracy((X[fold != part], y[fold != part]), (X[fold == part], y[fold == part]), one.columns)
            for part in range(5)
        ]
        assert one.accuracy == pytest.approx(np.mean(parts), abs=1e-5)


def test_the_best_come_first_and_many_values_are_refused():
    X, y = table(3)
    accuracies = [one.accuracy for one in best_sets(X, y, 2)]
    assert accuracies == sorted(accuracies, reverse=True)
    with pytest.raises(InvalidInput, match="160 values"):
        best_sets(np.arange(320).reshape(160, 2), y, 2)


def test_the_package_agrees():
    mdr = pytest.importorskip("mdr", reason="scikit-MDR (extra peers) is not installed")
    X, y = table(5)
    ours = {one.columns: one.accuracy for one in best_sets(X, y, 2)}
    for some, accuracy in ours.items():
        says = mdr.MDRClassifier().fit_predict(X[:, some], y)
        theirs = np.mean([(says[y == label] == label).mean() for label in (0, 1)])
        # Equals may be called either way there, which changes nothing on balance.
        assert theirs == pytest.approx(accuracy, abs=1e-5)
