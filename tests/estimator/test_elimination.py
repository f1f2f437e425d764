"""Solutions over GF(2) against the equations themselves."""

import numpy as np
import pytest

from parityscope.estimator.bits import encode
from parityscope.estimator.elimination import find, solve
from parityscope.problems import Parity, seeded_generator


@pytest.mark.parametrize("unknowns", [1, 5, 63, 64, 65, 130])
def test_full_rank_systems_are_solved(unknowns):
    random = np.random.RandomState(unknowns)
    rows = random.randint(2, size=(unknowns + 30, unknowns)).astype(np.uint8)
    hidden = random.randint(2, size=unknowns).astype(np.uint8)
    assert (solve(rows, (rows @ hidden % 2).astype(np.uint8)) == hidden).all()


def test_underdetermined_systems_get_some_solution():
    random = np.random.RandomState(0)
    rows = random.randint(2, size=(20, 40)).astype(np.uint8)
    right = (rows @ random.randint(2, size=40) % 2).astype(np.uint8)
    assert (rows @ solve(rows, right) % 2 == right).all()


def example(n, support, count, noise, seed=0):
    x, y = Parity(n, support, noise=noise).sample(count, seeded_generator(seed, "data"))
    return encode(x.numpy(), np.arange(count)), y.numpy()


def test_ten_of_two_hundred_from_few_rows_and_negated_labels():
    support = (3, 20, 41, 60, 77, 99, 120, 150, 170, 199)
    table, y = example(200, support, 260, 0.0)
    for labels in (y, -y):
        found = find(table, labels, 10, np.random.RandomState(0))
        assert found is not None
        assert found.bits == support
        assert abs(found.strength) == pytest.approx(1.0)


def test_a_little_noise_is_survived_by_sampling():
    table, y = example(40, (1, 5, 30), 1000, 0.03)
    found = find(table, y, 10, np.random.RandomState(0))
    assert found is not None
    assert found.bits == (1, 5, 30)
    assert found.strength == pytest.approx(0.94, abs=0.03)


def test_splits_of_a_category_are_put_together():
    random = np.random.RandomState(0)
    X = random.randint(3, size=(300, 6))
    y = np.where(np.isin(X[:, 2], (1, 2)) ^ (X[:, 4] == 1), -1, 1).astype(np.int8)
    table = encode(X, np.arange(300))
    found = find(table, y, 4, np.random.RandomState(0))
    assert found is not None
    assert [table.bits[i].levels for i in found.bits] == [(1.0, 2.0), (1.0,)]


def test_dense_solutions_are_not_sparse_parities():
    table, _ = example(30, (1, 2), 31, 0.0)
    y = np.where(np.random.RandomState(3).rand(31) < 0.5, -1, 1).astype(np.int8)
    assert find(table, y, 2, np.random.RandomState(0), samples=3) is None
