"""Budgets as people write them, and that they are kept."""

import time
import warnings

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.fit.answer import Question, ask
from parityscope.fit.clock import seconds_of


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30s", 30), ("2m", 120), ("1.5 h", 5400), (0.5, 0.5), ("7", 7), (np.float64(3), 3), ("1e2", 100)],
)
def test_what_people_write(written, seconds):
    assert seconds_of(written) == seconds


@pytest.mark.parametrize("bad", ["soon", "", 0, -3, "3 weeks", float("nan"), float("inf"), True, [1]])
def test_what_cannot_be_a_time_is_named(bad):
    with pytest.raises(InvalidInput, match="budget must be a time"):
        seconds_of(bad)


def noise(rows, columns):
    random = np.random.RandomState(0)
    return random.randint(2, size=(rows, columns)), np.where(random.rand(rows) < 0.5, 1, -1).astype(np.int8)


def test_a_budget_ends_a_search_that_would_take_hours_and_says_what_was_left_out():
    X, labels = noise(1000, 400)
    heard = []
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = ask(
            Question(budget="1s"), X, labels, np.random.RandomState(0), progress=lambda *said: heard.append(said)
        )
    assert time.perf_counter() - started < 60  # a busy machine may be slow, hours it is not
    assert "not searched: " in answer.reason
    assert answer.skipped in answer.reason
    assert "any parity of at most k = " in answer.guarantee
    assert [share for share, _ in heard] == sorted(share for share, _ in heard)
    assert {type(text) for _, text in heard} == {str}


def test_a_small_table_is_searched_to_the_end_without_using_up_its_time():
    X, labels = noise(300, 12)
    answer = ask(Question(budget="10m"), X, labels, np.random.RandomState(0))
    assert answer.skipped == ""
    assert len(answer.attempts) < 30
    assert "of at most k = " in answer.guarantee
