"""Solutions over GF(2) against the equations themselves, and the books against what happens."""

import math

import numpy as np
import pytest

from parityscope.fit.bits.encoding import encode
from parityscope.fit.bits.packed import TwoClasses
from parityscope.fit.clock import Budget
from parityscope.fit.solvers.elimination import EliminationBooks, Eliminator, best_columns, solve


@pytest.mark.parametrize("unknowns", [1, 5, 63, 64, 65, 130])
def test_full_rank_systems_are_solved(unknowns):
    random = np.random.RandomState(unknowns)
    rows = random.randint(2, size=(3, unknowns + 30, unknowns)).astype(np.uint8)
    hidden = random.randint(2, size=(3, unknowns)).astype(np.uint8)
    right = (np.einsum("sru,su->sr", rows.astype(int), hidden) % 2).astype(np.uint8)
    solution, full_rank, _ = solve(rows, right)
    assert full_rank.all()
    assert (solution == hidden).all()


def test_underdetermined_systems_get_some_solution_and_are_not_of_full_rank():
    random = np.random.RandomState(0)
    rows = random.randint(2, size=(2, 20, 40)).astype(np.uint8)
    right = (np.einsum("sru,su->sr", rows.astype(int), random.randint(2, size=(2, 40))) % 2).astype(np.uint8)
    solution, full_rank, _ = solve(rows, right)
    assert not full_rank.any()
    assert (np.einsum("sru,su->sr", rows.astype(int), solution) % 2 == right).all()


def eliminator(X, odd, max_k, seed=0):
    order = np.argsort(odd, kind="stable")
    table = encode(X, order, (int((odd == 0).sum()), int(odd.sum())))
    return Eliminator(table, table.two_classes(0), max_k, np.random.RandomState(seed))


def test_ten_of_two_hundred_from_few_rows_and_negated_labels():
    support = (3, 20, 41, 60, 77, 99, 120, 150, 170, 199)
    X = np.random.RandomState(1).randint(2, size=(260, 200))
    for negated in (0, 1):
        solver = eliminator(X, X[:, support].sum(axis=1) % 2 ^ negated, 10)
        solver.run(200, samples=2, budget=Budget(60.0))
        assert solver.best.bits == support
        assert abs(solver.best.strength) == pytest.approx(1.0)


def test_a_little_noise_is_survived_by_sampling_subsets():
    random = np.random.RandomState(2)
    X = random.randint(2, size=(1000, 100))
    solver = eliminator(X, X[:, [1, 5, 30]].sum(axis=1) % 2 ^ (random.rand(1000) < 0.03), 10)
    solver.run(50, samples=200, budget=Budget(60.0))
    assert solver.best.bits == (1, 5, 30)
    assert abs(solver.best.strength) == pytest.approx(0.94, abs=0.03)


def test_splits_of_a_category_are_put_together():
    X = np.random.RandomState(0).randint(3, size=(300, 6))
    solver = eliminator(X, (np.isin(X[:, 2], (1, 2)) ^ (X[:, 4] == 1)).astype(int), 4)
    solver.run(6, samples=5, budget=Budget(60.0))
    assert [solver.table.bits[i].levels for i in solver.best.bits] == [(1.0, 2.0), (1.0,)]


def test_rows_and_classes_of_its_own_are_those_that_are_solved():
    """After a term was found the rows are some of the table's, and their class is the sign of a residual."""
    random = np.random.RandomState(5)
    X = random.randint(2, size=(300, 30))
    table, some = encode(X, np.arange(300)), random.permutation(300)[:150]
    rows = TwoClasses.from_signs(table.signs[:, some], table.signs[[4, 9, 17]].prod(axis=0, dtype=np.int8)[some])
    solver = Eliminator(table, rows, 5, random)
    solver.run(30, samples=2, budget=Budget(60.0))
    assert solver.best.bits == (4, 9, 17)


def test_samples_without_full_rank_are_not_drawn_for_ever():
    X = (np.random.RandomState(6).rand(2000, 60) < 0.01).astype(int)
    solver = eliminator(X, np.arange(2000) % 2, 5)
    for _ in range(20):
        columns, _, seconds = best_columns(solver.books, 3, 1.0, 0.003)
        if math.isinf(seconds):
            break
        solver.run(columns, samples=1, budget=Budget(60.0))
    assert math.isinf(seconds)
    assert solver.books.reached(3, 0.003) == 2.0


def test_dense_solutions_are_not_sparse_parities():
    random = np.random.RandomState(3)
    solver = eliminator(random.randint(2, size=(31, 30)), random.randint(2, size=31), 2)
    solver.run(30, samples=3, budget=Budget(60.0))
    assert solver.best is None


def test_the_books_promise_no_more_than_samples_find():
    """Of many searches with the chance that the books state, about that share finds the parity."""
    random, found, searches, samples = np.random.RandomState(4), 0, 60, 40
    for seed in range(searches):
        X = random.randint(2, size=(300, 30))
        flips = np.zeros(300, dtype=int)
        flips[random.permutation(300)[:15]] = 1  # correlation 0.9 exactly
        solver = eliminator(X, X[:, [2, 11, 25]].sum(axis=1) % 2 ^ flips, 3, seed)
        solver.run(20, samples=samples, budget=Budget(60.0))
        found += solver.best is not None and solver.best.bits == (2, 11, 25)
    books = EliminationBooks(30, 300, (3,))
    books.enter(20, samples)
    chance = 1 - np.exp(books.log_missed[3][85])  # GRID[85] is 0.9
    assert found / searches >= chance - 3 * (chance * (1 - chance) / searches) ** 0.5
