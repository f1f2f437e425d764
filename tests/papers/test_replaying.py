"""Counterexamples by their second route: those of a store, those found now, and claims that have none."""

import math
from dataclasses import replace

import pytest

from parityscope.papers.claim import Again, Claim, Context, Measurement, check, replay
from parityscope.papers.criterion import Between, Clause, at_most
from parityscope.papers.registry import named_claims
from parityscope.papers.results import check_with_rows, stored_verdicts
from parityscope.records import Store

SMALL = Clause("it is small", "number", at_most(1), "the text")
LEMMA, TRUE_LEMMA = "H1-lemma-14-derivative", "H1-lemma-15"


def claim_of(number, **more):
    """Return a claim that a number above 1 refutes, whose second route doubles the half of it."""
    found = Measurement({"number": number}, str(number), "once", {}, "Read.", {"number": {"half": number / 2}})
    replay = {"number": lambda point: Again(2 * point["half"], "doubling")}
    claim = Claim("P-small", "Numbers are small.", (SMALL,), lambda context: found, "nowhere", seconds=1, replay=replay)
    return replace(claim, **more)


def test_a_stored_counterexample_is_replayed_without_a_check():
    claim = claim_of(3.0)
    found = check(claim, Context())

    def never(context):
        raise AssertionError("checked again")

    replayed = replay(replace(claim, measure=never), found, "reference", Context())
    assert (replayed.stored, replayed.scale, replayed.missing, replayed.confirms) == (True, "reference", None, True)
    assert replayed.to_json()["replays"] == [
        {"what": "number", "stored": 3.0, "again": 3.0, "route": "doubling", "confirms": True}
    ]


def test_without_a_stored_one_the_check_comes_first():
    replayed = replay(claim_of(3.0), None, "smoke", Context("smoke"))
    assert not replayed.stored
    assert replayed.confirms


def test_a_route_that_does_not_refute_is_told():
    claim = claim_of(3.0)
    stored = check(claim, Context())
    stored.evidence["counterexample"]["number"]["half"] = 0.1
    assert not replay(claim, stored, "smoke", Context()).confirms


@pytest.mark.parametrize(
    ("judged", "confirms"), [(1.5, True), (Between(0.5, 1.5), False), (Between(1.5, 2), True), (math.nan, False)]
)
def test_the_clause_may_be_asked_about_something_else_than_the_number(judged, confirms):
    claim = claim_of(3.0, replay={"number": lambda point: Again(3.0, "looking", judged, "what is seen")})
    (again,) = replay(claim, None, "smoke", Context()).replays
    assert (again.what, again.stored, again.again, again.confirms) == ("what is seen", 3.0, 3.0, confirms)


def test_only_a_clause_that_fails_has_a_counterexample():
    assert check(claim_of(0.5), Context()).evidence == {}
    assert check(claim_of(3.0), Context()).evidence == {
        "counterexample": {"number": {"half": 1.5, "value": 3.0, "confirmed": {"value": 3.0, "by": "doubling"}}}
    }


def test_a_refutation_is_confirmed_only_by_all_its_second_numbers():
    both = (SMALL, Clause("so is another", "another", at_most(1), "the text"))
    found = Measurement({"number": 3.0, "another": 3.0}, "3", "once", {}, "Read.", {"number": {}, "another": {}})
    routes = {"number": lambda point: Again(3.0, "again"), "another": lambda point: Again(0.5, "again")}
    claim = claim_of(3.0, clauses=both, measure=lambda context: found, replay=routes)
    replayed = replay(claim, None, "smoke", Context("smoke"))
    assert [one.confirms for one in replayed.replays] == [True, False]
    assert not replayed.confirms


def test_nothing_to_replay_is_a_sentence():
    assert replay(claim_of(0.5), None, "smoke", Context()).missing == (
        "P-small has no counterexample to replay: at scale smoke it is 'holds'"
    )
    assert replay(claim_of(3.0, replay=None), None, "smoke", Context()).missing == (
        "P-small has no counterexample that can be replayed"
    )
    for claim in (claim_of(0.5), claim_of(3.0, replay=None)):
        found = check(claim, Context())
        assert [replay(claim, one, "smoke", Context("smoke")).stored for one in (found, None)] == [True, False]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A lemma that is refuted at two scales, and one that is not, at one."""
    store = Store(tmp_path_factory.mktemp("store"))
    for name, scale in ((LEMMA, "smoke"), (LEMMA, "demo"), (TRUE_LEMMA, "smoke")):
        (claim,) = named_claims([name])
        check_with_rows(claim, scale, store)
    return store


@pytest.mark.parametrize(("asked", "found"), [("smoke", "smoke"), ("demo", "demo"), ("reference", "demo")])
def test_the_scale_that_is_asked_for_comes_first_and_then_the_largest(store, asked, found):
    verdicts = stored_verdicts(asked, store)
    assert {name: scale for name, (scale, _) in verdicts.items()} == {LEMMA: found, TRUE_LEMMA: "smoke"}


def test_what_was_stored_is_enough_to_replay(store):
    (claim,) = named_claims([LEMMA])
    scale, found = stored_verdicts("smoke", store)[LEMMA]
    (again,) = replay(claim, found, scale, Context("smoke")).replays
    assert again.confirms
    assert again.again == pytest.approx(again.stored, rel=1e-6)
