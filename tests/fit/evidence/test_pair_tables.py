"""Pair tables against shuffled labels: exact under chance, and stronger than any single split of genotypes."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from parityscope.fit.answer import Question, ask
from parityscope.fit.evidence.pair_tables import _Tables, strongest_pair
from parityscope.papers.own.fit_benchmark.planted import TableKind


def test_the_statistic_is_pearsons_beyond_that_of_the_columns():
    random = np.random.RandomState(0)
    X, up = random.randint(3, size=(300, 4)), random.rand(300) < 0.4
    tables = _Tables.of(dict(enumerate(X.T)))
    seen = tables.beyond_columns(up[None])[0]

    def chi_square(codes):
        counts = [np.bincount(codes[up == side], minlength=codes.max() + 1) for side in (False, True)]
        return chi2_contingency(np.array(counts), correction=False).statistic

    for place, (a, b) in enumerate(itertools.combinations(range(4), 2)):
        beyond = chi_square(3 * X[:, a] + X[:, b]) - chi_square(X[:, a]) - chi_square(X[:, b])
        degrees, spread = 4, 2 / 36
        expected = (np.cbrt(max(beyond, 0) / degrees) - (1 - spread)) / np.sqrt(spread)
        assert seen[place] == pytest.approx(expected)


def test_p_values_of_chance_are_spread_evenly():
    small = 0
    for seed in range(60):
        random = np.random.RandomState(seed)
        X, up = random.randint(3, size=(80, 5)), random.rand(80) < 0.5
        found = strongest_pair(dict(enumerate(X.T)), up, random, believed_below=0.2)
        small += found.p_value <= 0.2
    # 12 are expected; 25 or more would have a chance of 1 in 10 000.
    assert 2 <= small <= 24


def test_shuffles_stop_when_nothing_can_be_believed_any_more():
    random = np.random.RandomState(3)
    X, up = random.randint(3, size=(200, 6)), random.rand(200) < 0.5
    assert strongest_pair(dict(enumerate(X.T)), up, random, believed_below=0.001).shuffles < 1000


def test_weak_genotypes_are_found_by_their_table():
    """Heritability 0.1 in 400 rows: no split of each locus is significant in these tables, the nine cells are."""
    kind = TableKind(kind="genotypes", n=20, rows=400, heritability=0.1)
    found = []
    for seed in (5000, 5005, 5007, 5010):
        table = kind.draw(seed)
        answer = ask(Question(2), table.X, (2 * table.y - 1).astype(np.int8), np.random.RandomState(seed))
        assert answer.support in ((), table.columns)
        assert answer.p_value <= 0.01 or answer.candidate is not None
        found.append(answer.support == table.columns)
    assert sum(found) >= 3


def test_nothing_found_names_the_strongest_candidate_as_not_significant():
    random = np.random.RandomState(4)
    X = random.randint(3, size=(200, 6))
    answer = ask(Question(2), X, random.choice(np.array([-1, 1], dtype=np.int8), size=200), random)
    assert answer.support == ()
    assert answer.candidate is not None
    assert "strongest candidate, not significant: " in answer.reason
    assert answer.p_value > 0.01
