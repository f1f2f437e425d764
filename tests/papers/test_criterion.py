"""Criteria: comparisons of numbers and intervals, clauses, and the verdict that they make together."""

import itertools
import math
from dataclasses import FrozenInstanceError
from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope.core.errors import InvalidInput
from parityscope.core.statistics import wilson_share
from parityscope.papers.criterion import (
    VERDICTS,
    Between,
    Clause,
    Criterion,
    Limit,
    above,
    at_least,
    at_most,
    below,
    bootstrap,
    fails,
    judge,
    rule,
    shown,
)

numbers = st.floats(allow_nan=False, allow_infinity=True)
intervals = st.tuples(numbers, numbers).map(lambda ends: Between(min(ends), max(ends)))
shares = st.integers(1, 40).flatmap(lambda n: st.integers(0, n).map(lambda k: wilson_share(k, n)))
limits = st.builds(Limit, st.sampled_from(["≤", "<", "≥", ">"]), st.floats(-2, 2))
measured = st.one_of(numbers, intervals, shares, st.none(), st.just(math.nan))
refutations = st.sampled_from(["otherwise", "never"])


@given(limits, numbers)
def test_a_number_satisfies_a_comparison_or_its_opposite(limit, number):
    assert limit.admits(number) != (~limit).admits(number)
    assert ~~limit == limit


@given(limits, intervals)
def test_an_interval_satisfies_a_comparison_if_both_ends_do(limit, interval):
    assert limit.admits(interval) == (limit.admits(interval.low) and limit.admits(interval.high))
    assert not (limit.admits(interval) and (~limit).admits(interval))


@given(limits)
def test_what_was_not_measured_satisfies_nothing(limit):
    for nothing in (None, math.nan, Between(math.nan, 1.0), Between(0.0, math.nan)):
        assert not limit.admits(nothing)
        assert not (~limit).admits(nothing)


@pytest.mark.parametrize(
    ("limit", "admitted", "refused"),
    [(at_most(1), 1.0, 1.1), (below(1), 0.9, 1.0), (at_least(1), 1.0, 0.9), (above(1), 1.1, 1.0)],
)
def test_comparisons_at_their_limit(limit, admitted, refused):
    assert limit.admits(admitted)
    assert not limit.admits(refused)


@given(limits, refutations, measured)
def test_a_clause_across_its_limit_stays_open_and_one_that_nothing_refutes_never_fails(limit, refuted_if, found):
    verdict = Clause("", "number", limit, "", refuted_if).verdict(found)
    if limit.admits(found):
        assert verdict == "holds"
    elif refuted_if == "never":
        assert verdict == "open"
    else:
        assert verdict == ("fails" if (~limit).admits(found) else "open")


def test_between_two_limits_a_clause_stays_open():
    clause = Clause("", "distance", at_most(1e-9), "rounding", above(1e-6))
    assert [clause.verdict(number) for number in (0.0, 1e-8, 1e-5)] == ["holds", "open", "fails"]


def test_a_share_of_few_seeds_stays_open_where_many_decide():
    clause = Clause("most seeds learn", "share", above(0.5), "Wilson's 95 % interval")
    assert [clause.verdict(wilson_share(*one)) for one in ((4, 5), (80, 100), (1, 5), (20, 100))] == [
        "open",
        "holds",
        "open",
        "fails",
    ]


CLAUSES = {
    "holds": Clause("", "holds", at_most(1), ""),
    "fails": Clause("", "fails", at_most(-1), ""),
    "open": Clause("", "open", at_most(-1), "", "never"),
}
ZEROS = dict.fromkeys(CLAUSES, 0.0)


def verdict_on(clauses):
    """Return the verdict where a second route confirms every counterexample."""
    return judge(rule(clauses, ZEROS, CLAUSES))


@given(st.lists(st.sampled_from(list(CLAUSES)), max_size=4))
def test_a_verdict_is_that_of_its_clauses_in_any_order(kinds):
    verdict = verdict_on([CLAUSES[kind] for kind in kinds])
    assert verdict in VERDICTS
    assert {verdict_on([CLAUSES[kind] for kind in order]) for order in permutations(kinds)} == {verdict}
    assert (verdict == "holds") == ("holds" in kinds and "fails" not in kinds)
    assert (verdict == "in part") == ({"holds", "fails"} <= set(kinds))
    assert (verdict == "fails") == ("fails" in kinds and "holds" not in kinds)
    assert (verdict == "open") == (set(kinds) <= {"open"})


@given(st.lists(st.sampled_from(list(CLAUSES)), max_size=4))
def test_without_a_confirmed_counterexample_or_at_other_sizes_nothing_fails(kinds):
    clauses = [CLAUSES[kind] for kind in kinds]
    unconfirmed, elsewhere = rule(clauses, ZEROS, ()), rule(clauses, ZEROS, CLAUSES, own_sizes=False)
    assert judge(unconfirmed) == ("holds" if "holds" in kinds and "fails" not in kinds else "open")
    assert judge(elsewhere) == "open"
    assert [kinds.count(kind) for kind in ("holds", "fails")] == [elsewhere.count("seen"), elsewhere.count("not seen")]


@given(st.lists(st.sampled_from(["holds", "open"]), max_size=4), measured)
def test_no_measurement_of_a_clause_that_nothing_refutes_makes_a_statement_fail(kinds, found):
    harmless = Clause("", "harmless", at_most(0), "", "never")
    clauses = [*(CLAUSES[kind] for kind in kinds), harmless]
    assert judge(rule(clauses, {**ZEROS, "harmless": found}, [*CLAUSES, "harmless"])) != "fails"


def test_what_nothing_refutes_is_seen_at_most():
    never = [Clause("", "number", at_most(1), "", "never")]
    assert [rule(never, {"number": one}, ()) for one in (0.0, 2.0, None)] == [["seen"], ["open"], ["open"]]


def test_a_number_refutes_the_clauses_on_its_own_quantity_only():
    clauses = [Clause("", "small", at_most(1), ""), Clause("", "less small", at_most(3), "")]
    assert fails("small", 2.0, clauses)
    assert not fails("small", 1.0, clauses)
    assert not fails("less small", 2.0, clauses)
    assert not fails("another", 9.0, clauses)


def test_a_check_that_forgot_a_quantity_is_an_error():
    with pytest.raises(InvalidInput, match=r"a check must measure 'holds', got \['other'\]"):
        rule([CLAUSES["holds"]], {"other": 1.0}, ())


def test_a_criterion_in_words_says_everything_once():
    small, large = Clause("", "a", at_most(1), "the text"), Clause("", "b", at_least(2), "the text", "never")
    both = Criterion(refuted_if="a > 1", holds_if="a ≤ 1; and b ≥ 2", source="the text")
    assert Criterion.of([small, large]) == both
    assert Criterion.of([large]).refuted_if == "nothing that can be computed here"
    assert Criterion.of([]).holds_if == "nothing computed here"


def test_measurements_are_short():
    assert [shown(one) for one in (None, 1 / 3, Between(0, 1e9), wilson_share(31, 32))] == [
        "not measured",
        "0.333",
        "0 … 1e+09",
        "31/32 (84%–99%)",
    ]


def test_a_clause_is_of_the_printed_form_unless_said_otherwise_and_stays_as_it_is():
    clause = Clause("the risk is 0", "risk", at_most(1e-9), "rounding")
    assert not clause.corrected
    with pytest.raises(FrozenInstanceError):
        clause.quantity = "another"


def test_a_bootstrap_leaves_out_a_fortieth_of_the_draws_at_either_end():
    """Draws that are numbered 0 … 199: the central 190 of them are 5 … 194."""
    draws = itertools.count()
    assert bootstrap([torch.zeros(3)], lambda groups: float(next(draws))) == Between(5, 194)


def test_a_bootstrap_draws_every_group_with_replacement_and_knows_nothing_where_one_draw_is_undefined():
    seen = []
    bootstrap([torch.arange(4.0), torch.arange(10.0, 12.0)], lambda groups: seen.append(groups) or 0.0)
    assert {(len(first), len(second)) for first, second in seen} == {(4, 2)}
    assert {float(one) for _, second in seen for one in second} == {10.0, 11.0}
    assert any(len(set(first.tolist())) < 4 for first, _ in seen)
    draws = itertools.count()
    unknown = bootstrap([torch.zeros(3)], lambda groups: 0.0 if next(draws) else math.nan)
    assert unknown == Between(-math.inf, math.inf)
