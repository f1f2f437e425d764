"""Conjunctions: found with their exact columns, and not invented where a smaller or another rule explains the label."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parityscope.fit.answer import Question, ask
from parityscope.fit.clock import Clock
from parityscope.fit.interactions import conjunctions
from parityscope.fit.search import Search


def labels_of(up):
    return np.where(up, 1, -1).astype(np.int8)


def search_of(X, up, sizes, k_is_known, random):
    return Search.of(X, labels_of(up), sizes, k_is_known, 0.01, Clock(30.0), random)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("opposite", [False, True])
def test_a_conjunction_and_a_disjunction_are_named_exactly(k, opposite):
    random = np.random.RandomState(k)
    X = random.randint(2, size=(900, 40))
    support = np.sort(random.choice(40, k, replace=False))
    holds = (X[:, support] == (np.arange(k) % 2)).all(axis=1)
    up = (holds ^ (random.rand(900) < 0.05)) ^ opposite
    for question in (Question(k), Question()):
        answer = ask(question, X, labels_of(up), np.random.RandomState(0))
        assert answer.support == tuple(support)
        assert "table" in answer.interactions[0].kind
        assert len(answer.interactions) == 1


def test_a_column_that_does_not_matter_is_not_added():
    random = np.random.RandomState(0)
    X = random.randint(2, size=(800, 20))
    both = (X[:, 3] & X[:, 8]).astype(bool) ^ (random.rand(800) < 0.1)
    assert conjunctions.propose(search_of(X, both, [3], True, random)) == []
    assert [one.support for one in conjunctions.propose(search_of(X, both, [2], True, random))] == [(3, 8)]


def test_main_effects_that_add_up_are_no_conjunction():
    random = np.random.RandomState(1)
    X = random.randint(2, size=(2000, 10))
    up = random.rand(2000) < 0.2 + 0.3 * (X[:, 2] + X[:, 5])
    assert conjunctions.propose(search_of(X, up, [2], True, random)) == []
    answer = ask(Question(), X, labels_of(up), random)
    assert {one.support for one in answer.interactions} == {(2,), (5,)}


def test_two_parities_are_no_conjunction():
    random = np.random.RandomState(2)
    X = random.randint(2, size=(2000, 12))
    up = np.where(random.rand(2000) < 0.5, X[:, 1] ^ X[:, 4], X[:, 7] ^ X[:, 9]).astype(bool)
    answer = ask(Question(), X, labels_of(up), random)
    assert {one.support for one in answer.interactions} == {(1, 4), (7, 9)}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_proposed_has_the_p_value_of_all_conjunctions(seed):
    """By hand: Fisher's exact tail of the best conjunction, times C(n, k)·2^k, over the share of alpha."""
    random = np.random.RandomState(seed)
    X = random.randint(2, size=(120, 6))
    up = (X[:, 1] & X[:, 4]).astype(bool)
    search = search_of(X, up, [2], True, random)
    (found,) = conjunctions.propose(search)
    inside, rows = int(up.sum()), len(up)
    exact = 2 / math.comb(rows, inside) * math.comb(6, 2) * 4 / 0.03
    assert found.support == (1, 4)
    assert found.log_p == pytest.approx(math.log(exact))
