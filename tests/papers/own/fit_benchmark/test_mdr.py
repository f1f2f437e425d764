"""MDR by products of matrices gives what a plain loop over sets gives, and what scikit-MDR gives where it is there."""

from itertools import combinations

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark.mdr import best_sets


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
