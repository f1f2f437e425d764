"""Settings are chosen on other tables than methods are counted on; budgets and limits are kept."""

import math
import time

import pytest

from parityscope.papers.own.fit_benchmark.comparison import FIRST_FRESH, choose_setting, compare_on
from parityscope.papers.own.fit_benchmark.methods import Method, Refused, grid
from parityscope.papers.own.fit_benchmark.planted import TableKind

KIND = TableKind(n=6, rows=20)


def knowing(asked_seeds, right=lambda seed, setting: True):
    """A method that looks the answer up, notes the seeds it was asked, and is wrong when told to be."""

    def find(X, y, asked, **setting):
        asked_seeds.append(asked.seed)
        return KIND.draw(asked.seed).columns if right(asked.seed, setting) else ()

    return find


def test_the_two_parts_share_no_table():
    seeds = []
    score = compare_on(KIND, Method(knowing(seeds), grid(a=(1, 2))), tables=4, others=2)
    assert seeds == [0, 0, 1, 1, *range(FIRST_FRESH, FIRST_FRESH + 4)]
    assert (score.found, score.tables, score.chosen_on) == (4, 4, 2)


def test_the_setting_with_most_answers_is_taken_even_if_it_then_fails():
    def right(seed, setting):
        return seed < FIRST_FRESH if setting["a"] == 2 else seed != 0

    score = compare_on(KIND, Method(knowing([], right), grid(a=(1, 2, 3))), tables=5, others=3)
    assert score.setting == {"a": 2}
    assert (score.found, score.silent) == (0, 5)  # it names nothing, which is not the same as something wrong


def test_of_equals_the_first_is_taken():
    setting, seen = choose_setting(KIND, Method(knowing([]), grid(a=(5, 2))), 2, math.inf, None)
    assert (setting, seen) == ({"a": 5}, 2)


def test_a_budget_that_is_used_up_leaves_three_tables():
    score = compare_on(KIND, Method(knowing([]), grid(a=(1, 2))), tables=9, others=9, budget=0.0)
    assert (score.tables, score.chosen_on) == (3, 1)


def test_a_slow_setting_is_dropped_and_a_slow_method_refused():
    def find(X, y, asked, *, quick):
        started = time.process_time()
        while not quick and time.process_time() - started < 5:
            pass
        return KIND.draw(asked.seed).columns

    score = compare_on(KIND, Method(find, grid(quick=(False, True))), tables=2, others=2, limit=0.2)
    assert (score.setting, score.found) == ({"quick": True}, 2)
    with pytest.raises(Refused, match=r"more than 0.1 s"):
        choose_setting(KIND, Method(find, ({"quick": False}, {"quick": False})), 2, math.inf, 0.1)


def test_a_refusal_is_passed_on():
    def find(X, y, asked):
        raise Refused("not here")

    with pytest.raises(Refused, match="not here"):
        compare_on(KIND, Method(find), tables=2, others=1)
