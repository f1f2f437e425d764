"""The promise: its parts against brute force, and the whole by planting parities exactly at the promised strength."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest

from parityscope.fit.answer import Question, ask
from parityscope.fit.clock import Clock
from parityscope.fit.evidence.evidence import exact_log_tail
from parityscope.fit.evidence.promise import Evidence, least_phi, least_significant, lower_quantile, sentence
from parityscope.fit.schedule import run
from parityscope.fit.search import Search


def test_quantiles_are_those_of_draws():
    random = np.random.RandomState(0)
    drawn = 2 * random.binomial(200, 0.7, size=200_000) / 200 - 1
    for share in (0.003, 0.1):
        floor = lower_quantile(200, 0.4, share)
        assert (drawn < floor).mean() <= share + 3 * math.sqrt(share / 200_000)
        assert (drawn < floor + 0.01).mean() > share


@pytest.mark.parametrize(("rows", "ups"), [(40, 20), (60, 12)])
def test_every_sign_above_the_least_significant_correlation_is_significant(rows, ups):
    """All ways in which a sign can split rows and labels, by the exact tail itself."""
    level = math.log(1e-4)
    floor = least_significant(rows, ups, level)
    labels = np.where(np.arange(rows) < ups, 1, -1).astype(np.int8)
    seen = []
    for in_ups in range(ups + 1):
        for in_downs in range(rows - ups + 1):
            if 0 < in_ups + in_downs < rows:
                chi = -np.ones(rows, dtype=np.int8)
                chi[:in_ups] = 1
                chi[ups : ups + in_downs] = 1
                seen.append((np.corrcoef(chi, labels)[0, 1], exact_log_tail(chi, labels)))
    assert all(tail <= level + 1e-9 for phi, tail in seen if phi > floor + 1e-9)
    # The bound of the tail by its first two terms costs a row at most: it is not idle either.
    assert floor < max(phi for phi, tail in seen if tail > level) + 4 / rows


@pytest.mark.parametrize("uneven", [0.2, 0.7, 1.0])
def test_the_least_correlation_is_that_of_all_splits(uneven):
    """Every table of two signs of 40 rows: the least correlation by agreement and mean of the labels."""
    least = {}
    for both, first, second in itertools.product(range(41), repeat=3):
        rest = 40 - both - first - second
        if rest < 0:
            continue
        mean, label_mean, agreement = ((2 * n - 40) / 40 for n in (both + first, both + second, both + rest))
        if abs(mean) <= uneven and max(abs(mean), abs(label_mean)) < 1:
            phi = (agreement - mean * label_mean) / math.sqrt((1 - mean**2) * (1 - label_mean**2))
            least.setdefault((agreement, label_mean), []).append(phi)
    assert len(least) > 500
    idle = 0.0
    for (agreement, label_mean), seen in least.items():
        bound = least_phi(agreement, label_mean, uneven)
        if agreement > uneven * abs(label_mean):  # otherwise nothing is promised
            assert min(seen) >= bound - 1e-9
            idle = max(idle, bound)
    assert idle > 0.9


def test_more_rows_promise_more_and_more_columns_less():
    few, many = (Evidence(rows, rows // 2, int(0.7 * rows), int(0.35 * rows), 0.01) for rows in (400, 4000))
    assert many.rho(0.0, 10.0, 10.0) < few.rho(0.0, 10.0, 10.0) < few.rho(0.0, 30.0, 30.0)
    assert few.rho(0.9, 10.0, 10.0) > 0.9
    assert Evidence(20, 10, 14, 7, 0.01).rho(0.0, 30.0, 30.0) is None


def test_sentences_name_ranges_that_were_searched():
    promised = {1: 0.2, 2: 0.2, 3: 0.31, 4: 1.0, 5: 1.0, 6: None}
    text = sentence(promised, k_is_known=False, uneven=dict.fromkeys(promised, 0.2))
    assert text == (
        "any parity of at most k = 2 columns with correlation ≥ 0.2, of 3 with correlation ≥ 0.31, of 4 to 5 without "
        "noise, would have been found with probability ≥ 0.99 (if it splits the rows no less evenly than 40 : 60)"
    )
    some = sentence({1: 0.2, 2: 0.2, 3: 0.31}, k_is_known=False, uneven={3: 0.2})
    assert some.endswith("≥ 0.99 (of 3 columns if it splits the rows no less evenly than 40 : 60)")
    assert sentence({3: 0.4}, k_is_known=True).startswith("any parity of 3 columns with correlation ≥ 0.4 would")


def promised(X, question, k):
    labels = np.where(np.random.RandomState(99).rand(len(X)) < 0.5, 1, -1).astype(np.int8)
    sizes = [question.k] if question.k else range(1, question.max_k + 1)
    search = Search.of(X, labels, sizes, question.k is not None, 0.01, Clock(60.0), np.random.RandomState(0))
    run(search, question.solver)
    return search.promised()[k]


@pytest.mark.slow
@pytest.mark.parametrize(("question", "k"), [(Question(max_k=3), 3), (Question(k=3, solver="collision"), 3)])
def test_parities_at_the_promised_strength_are_found(question, k):
    """At most one in a hundred is missed: of 40, four would refute that at the level of 0.1 %."""
    random = np.random.RandomState(1)
    X = random.randint(2, size=(500, 30))
    rho = promised(X, question, k)
    assert rho is not None
    missed = 0
    for seed in range(40):
        support = tuple(sorted(random.choice(30, k, replace=False).tolist()))
        odd = X[:, support].sum(axis=1) % 2 ^ (random.rand(500) < (1 - rho) / 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = ask(question, X, (1 - 2 * odd).astype(np.int8), np.random.RandomState(seed))
        missed += support not in [one.support for one in answer.interactions]
    assert missed <= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rare", "rho", "least"), [(0.05, 0.42, 0), (0.1, 0.55, 8), (0.15, 0.5, 20), (0.3, 0.42, 30), (0.5, 0.42, 40)]
)
def test_promises_in_skewed_tables_are_kept(rare, rho, least):
    """Pairs planted at ρ in rare bits: those that the table's own sentence covers are found, all but one in a hundred.

    With rare = 0.05 nothing may be promised at 0.42: more than half of these pairs are not found. `least` is how many
    of 40 tables promise something, so that the promise is not kept by making none.
    """
    promised = missed = 0
    for seed in range(40):
        random = np.random.RandomState(seed)
        X = (random.rand(600, 12) < rare).astype(int)
        support = tuple(sorted(random.choice(12, 2, replace=False).tolist()))
        odd = X[:, support].sum(axis=1) % 2 ^ (random.rand(600) < (1 - rho) / 2)
        answer = ask(Question(max_k=3), X, (1 - 2 * odd).astype(np.int8), random)
        covered = re.search(r"of (?:at most k = [23]|2) (?:columns )?with correlation ≥ ([\d.]+)", answer.guarantee)
        if covered and float(covered[1]) <= rho:
            promised += 1
            missed += support not in [one.support for one in answer.interactions]
    assert promised >= least
    assert missed <= 3
