"""The collision search against planted parities, its joins against loops, and its books against what happens."""

import itertools

import numpy as np
import pytest

from parityscope.fit.bits.packed import TwoClasses
from parityscope.fit.clock import Budget
from parityscope.fit.solvers.collision import Collider, _Join, _joined, _members
from parityscope.fit.solvers.collision_plan import GRID, Books, plan_for


def planted(bits, support, rows, disagreeing, seed, sign=1):
    """Signs, and labels that differ from the parity in exactly so many rows."""
    random = np.random.RandomState(seed)
    signs = random.choice(np.array([-1, 1], dtype=np.int8), size=(bits, rows))
    labels = sign * np.prod(signs[list(support)], axis=0)
    labels[random.permutation(rows)[:disagreeing]] *= -1
    return TwoClasses.from_signs(signs, labels.astype(np.int8))


def collider(rows, seed=0, owner=None):
    owner = np.arange(rows.bits) if owner is None else owner
    books = Books(rows.first, rows.second, 0.2)
    return Collider(rows, owner, books, np.random.RandomState(seed), 0.35)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_half_sets_and_their_members(size):
    values = np.random.RandomState(0).randint(0, 2**20, size=9).astype(np.uint32)
    sets = list(itertools.combinations(range(9), size))
    assert _members(9, size, np.arange(len(sets))).tolist() == [list(some) for some in sets]
    assert _joined(values, size).tolist() == [int(np.bitwise_xor.reduce(values[list(some)])) for some in sets]


@pytest.mark.parametrize("sizes", [(300, 40), (40, 300)])
@pytest.mark.parametrize("key_bits", [3, 17])
def test_a_join_meets_every_pair_of_equal_keys_once(sizes, key_bits):
    random = np.random.RandomState(1)
    first, second = (random.randint(0, 2**key_bits, size=size).astype(np.uint32) % 50 for size in sizes)
    if key_bits == 17:
        first, second = (keys * np.uint32(2000) for keys in (first, second))
    join = _Join.of(first, second, key_bits)
    met = [pair for left, right in join.pairs() for pair in zip(left.tolist(), right.tolist(), strict=True)]
    assert sorted(met) == [(i, j) for i in range(sizes[0]) for j in range(sizes[1]) if first[i] == second[j]]
    assert join.collisions == len(met)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_size_and_either_sign(k, sign):
    support = (3, 11, 17, 29, 38, 41)[:k]
    search = collider(planted(48, support, 900, 90, seed=k, sign=sign))
    search.run(plan_for(48, k, 900, 0.7), missed=1e-3, budget=Budget(60.0))
    assert search.best[0].bits == support
    assert search.best[0].strength == pytest.approx(sign * 0.8, abs=0.01)


def test_bits_of_one_column_never_meet():
    random = np.random.RandomState(5)
    genotypes = random.randint(3, size=(20, 900))
    signs = np.concatenate([np.where([row == 1, row == 2, row > 0], -1, 1) for row in genotypes]).astype(np.int8)
    labels = (signs[4] * signs[31] * signs[50]).astype(np.int8)  # columns 1, 10 and 16
    labels[:60] *= -1
    search = collider(TwoClasses.from_signs(signs, labels), owner=np.repeat(np.arange(20), 3))
    search.run(plan_for(20, 3, 900, 0.7, bits_per_column=3), missed=1e-3, budget=Budget(60.0))
    assert search.best[0].bits == (4, 31, 50)
    assert all(len({bit // 3 for bit in one.bits}) == 3 for one in search.best)


def test_columns_that_are_nearly_constant_do_not_fill_the_buckets():
    random = np.random.RandomState(6)
    signs = np.where(random.rand(400, 1000) < 0.03, -1, 1).astype(np.int8)
    signs[[7, 90, 300]] = random.choice([-1, 1], size=(3, 1000))
    labels = np.prod(signs[[7, 90, 300]], axis=0)
    labels[random.permutation(1000)[:100]] *= -1
    search = collider(TwoClasses.from_signs(signs, labels.astype(np.int8)))
    search.run(plan_for(400, 3, 1000, 0.7), missed=0.01, budget=Budget(60.0))
    # Columns that are almost always 0 change a parity in a few rows only: the plain one is the strongest.
    assert search.best[0].bits == (7, 90, 300)


def test_the_books_promise_no_more_than_rounds_find():
    """Parities exactly at a correlation, and rounds that should miss three in ten: no more are missed."""
    missed, searches = 0, 100
    plan = plan_for(60, 3, 600, 0.5)
    for seed in range(searches):
        search = collider(planted(60, (5, 23, 51), 600, 150, seed), seed)
        search.run(plan, missed=0.3, budget=Budget(60.0))
        met = (5, 23, 51) in search.found
        missed += not met
        if not met:
            assert search.books.missed[int(np.argmin(np.abs(GRID - 0.5)))] <= 0.3
    assert missed <= 0.3 * searches + 3 * (0.3 * 0.7 * searches) ** 0.5


@pytest.mark.parametrize("rho", [0.4, 0.1])
def test_the_price_of_rounds_has_everything_that_rounds_do(rho):
    """Weak parities pass no filter: counting collisions on all of many rows is most of their work."""
    rows = planted(40, (3, 11, 17), 60_000, 30_000, seed=2)
    search, plan = collider(rows), plan_for(40, 3, 60_000, rho)
    rounds = len(list(search._epoch(plan, 20)))
    drawing = 2 * rows.rows * 27e-9  # once for all rounds
    assert search._work == pytest.approx(rounds * plan.seconds + drawing, rel=0.2)
