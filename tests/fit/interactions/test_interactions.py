"""Every interaction: both of two pairs, blocks instead of coin flips, and plain words for what is no parity."""

from dataclasses import replace

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit.answer import Question, ask


def signs(odd):
    return (1 - 2 * odd.astype(np.int8)).astype(np.int8)


def test_two_pairs_are_both_found_and_predict_together():
    random = np.random.RandomState(0)
    X = random.randint(2, size=(3000, 30))
    first = random.rand(3000) < 0.5
    odd = np.where(first, X[:, 3] ^ X[:, 8], X[:, 14] ^ X[:, 21])
    answer = ask(Question(), X, signs(odd), random)
    assert [set(one.support) for one in answer.interactions] in ([{3, 8}, {14, 21}], [{14, 21}, {3, 8}])
    assert all(one.p_value < 1e-20 and one.adds > 0.1 for one in answer.interactions)
    assert answer.support == answer.interactions[0].support
    # Where both pairs agree the label is certain, elsewhere it is a coin: three rows of four are right.
    assert answer.held_out_accuracy == pytest.approx(0.75, abs=0.05)
    sure = (X[:, 3] ^ X[:, 8]) == (X[:, 14] ^ X[:, 21])
    probability = answer.expected(X)
    assert np.abs(probability[sure] - 0.5).min() > 0.35
    assert np.abs(probability[~sure] - 0.5).max() < 0.15
    assert "2 terms share the label" in answer.explanation


def test_one_parity_is_one_interaction():
    random = np.random.RandomState(1)
    X = random.randint(2, size=(800, 20))
    answer = ask(Question(), X, signs(X[:, 2] ^ X[:, 5] ^ (random.rand(800) < 0.1)), random)
    assert [(one.support, one.kind, one.block) for one in answer.interactions] == [((2, 5), "parity", {})]
    assert "nothing else adds to it" in answer.explanation


def test_a_block_is_named_instead_of_a_coin_flip_within_it():
    random = np.random.RandomState(2)
    X = random.randint(2, size=(600, 12))
    for neighbour in (9, 10, 11):
        X[:, neighbour] = X[:, 4]
        X[neighbour : neighbour + 2, neighbour] ^= 1  # two rows tell nobody apart
    answer = ask(Question(), X, signs(X[:, 0] ^ X[:, 4] ^ (random.rand(600) < 0.2)), random)
    named = answer.interactions[0]
    assert len(answer.interactions) == 1
    column = next(c for c in named.support if c != 0)
    block = {column, *(int(name.split()[1]) for name in named.block[f"column {column}"])}
    assert block == {4, 9, 10, 11}
    assert "column 0" not in named.block


@pytest.mark.parametrize(
    ("label", "columns", "word"),
    [
        (lambda X: X[:, 1] & X[:, 6], {1, 6}, "column 1, column 6"),
        (lambda X: X[:, 1] | X[:, 6] | X[:, 9], {1, 6, 9}, "column 1, column 6, column 9"),
        (lambda X: (X[:, [1, 6, 9]].sum(axis=1) > 1).astype(int), {1, 6, 9}, "column 1, column 6, column 9"),
        (
            lambda X: X[np.arange(len(X)), 2 + 2 * X[:, 0] + X[:, 1]],
            {0, 1, 2, 3, 4, 5},
            "no single parity explains the label",
        ),
    ],
)
def test_tables_that_are_no_parities_are_explained_by_their_columns(label, columns, word):
    random = np.random.RandomState(3)
    X = random.randint(2, size=(2000, 14))
    answer = ask(Question(), X, signs(label(X)), random)
    assert {column for one in answer.interactions for column in one.support} == columns
    assert word in answer.explanation
    assert answer.held_out_accuracy > 0.99


def test_main_effects_are_called_main_effects():
    random = np.random.RandomState(4)
    X = random.randint(2, size=(2000, 8))
    up = random.rand(2000) < 1 / (1 + np.exp(-1.5 * (X[:, 1] + X[:, 6] - 1)))
    answer = ask(Question(), X, signs(~up), random)
    assert [(one.support, one.kind) for one in answer.interactions if one.k == 1] != []
    assert {one.support for one in answer.interactions} == {(1,), (6,)}
    assert answer.explanation.startswith("main effects of column 1, column 6, added up, explain the label")


@pytest.mark.parametrize("bad", [{"k": 2.5}, {"k": "a"}, {"max_k": "3"}, {"alpha": "a"}])
def test_what_is_no_number_is_refused_by_name(bad):
    with pytest.raises(InvalidInput, match=f"{next(iter(bad))} must"):
        Question(**bad).refuse_if_bad(columns=6)


def test_an_estimate_has_as_many_digits_as_its_interval_deserves():
    random = np.random.RandomState(0)
    X = random.randint(2, size=(4000, 3))
    (term,) = ask(Question(), X, (1 - 2 * X[:, 0]) + 0.01 * random.randn(4000), random, measured=True).interactions
    narrow, wide = (replace(term, estimate=0.2402, interval=(0.2402 - some, 0.2402 + some)) for some in (0.0019, 0.7))
    assert narrow.estimated() == "+0.2402 (0.2383 to 0.2421)"
    assert wide.estimated(" log-odds") == "+0.2 log-odds (-0.5 to 0.9)"
