"""What a claim is: its code, the row of its verdict, the rows it may read; and what holds for all claims."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from parityscope.core.errors import MissingExtra
from parityscope.papers import paper_of
from parityscope.papers.claim import Again, Claim, ClaimCheck, Context, Measurement, check
from parityscope.papers.criterion import Clause, at_least
from parityscope.papers.h1.figures.figure_1 import WorkedExample
from parityscope.papers.registry import CLAIM_IDS, FIGURE_IDS, named_claims
from parityscope.papers.rendering import OURS, page_of
from parityscope.papers.results import claim_check
from parityscope.records import Store
from parityscope.runs import training
from parityscope.runs.spec import spec_module

ROOT = Path(__file__).parents[2]
FILE = """
from functools import partial
from parityscope.papers.claim import Claim, Measurement
from parityscope.papers.criterion import Clause, at_most

LIMIT = 3
SMALL = (Clause("it is small", "share", at_most(0.9), "counting on fingers"),)
ONE = (Clause("it is one", "count", at_most(1), "arithmetic"),)

def share(count):
    return count / LIMIT

def first(context):
    return Measurement({"share": share(2)}, "2", "a count", {"count": 2}, "Counted.")

def second(context):
    return Measurement({"count": 1}, "1", "a count", {"count": 1}, "Counted too.")

def counted(count, context):
    return Measurement({"share": share(count)}, str(count), "a count", {"count": count}, "Counted.")

def counting(count):
    def measure(context):
        return counted(count, context)
    return measure

CLAIMS = (
    Claim("P-first", "Two is less than three.", SMALL, first, "Page 1", seconds=1),
    Claim("P-second", "One is one.", ONE, second, "Page 1", seconds=1),
    Claim("P-partial", "Two is small.", SMALL, partial(counted, 2), "Page 1", seconds=1),
    Claim("P-closure", "Two is little.", SMALL, counting(2), "Page 1", seconds=1),
)
"""
SHARED = {"P-first", "P-partial", "P-closure"}


def changed(old: str, new: str) -> set[str]:
    """Return the claims of the file whose code changes with an edit."""
    assert old in FILE
    before, after = (spec_module(text, "claims.py").CLAIMS for text in (FILE, FILE.replace(old, new)))
    return {claim.id for claim, edited in zip(before, after, strict=True) if claim.code() != edited.code()}


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ('"2", "a count"', '"two", "a count"', {"P-first"}),
        ("One is one.", "One is 1.", {"P-second"}),
        ("LIMIT = 3", "LIMIT = 4", SHARED),
        ("at_most(0.9)", "at_most(0.8)", SHARED),
        ("counting on fingers", "counting aloud", SHARED),
        ("partial(counted, 2)", "partial(counted, 1)", {"P-partial"}),
        ("partial(counted, 2)", "partial(counted, count=2)", {"P-partial"}),
        ("counting(2)", "counting(1)", {"P-closure"}),
        ("def second(context):", "def second(context):\n    # as everybody knows", set()),
    ],
)
def test_an_edit_makes_the_claims_stale_that_can_see_it(old, new, stale):
    assert changed(old, new) == stale


def test_the_rows_that_a_claim_needs_are_part_of_its_code():
    def needs(context):
        return [training("bounded", 12, 3)]

    claim, with_rows = claim_of(halves), claim_of(halves, needs=needs)
    assert claim.code() != with_rows.code()
    assert (claim.reads_rows, with_rows.reads_rows) == (False, True)


def test_a_second_route_is_part_of_a_claims_code():
    claim = claim_of(halves)
    assert claim.code() != replace(claim, replay={"sum": lambda point: Again(1.0, "by another heart")}).code()
    assert claim.code() != replace(claim, replay=None).code()


def test_a_count_goes_by_scale_and_the_demos_is_the_references_unless_given():
    scales = [Context(scale) for scale in ("smoke", "demo", "reference")]
    assert [context.at(smoke=0, reference=9) for context in scales] == [0, 9, 9]
    assert [context.at(smoke=1, reference=9, demo=0) for context in scales] == [1, 0, 9]


def test_seconds_are_those_that_passed(monkeypatch):
    """On a clock that ticks once whenever it is read: what passes between two readings is one second."""
    ticks = count(100)
    monkeypatch.setattr("parityscope.papers.claim.time.perf_counter", lambda: next(ticks))
    assert check(claim_of(halves), Context()).seconds == 1.0
    assert Context().row(WorkedExample()).seconds == 1.0


@pytest.mark.slow
def test_the_code_of_a_claim_is_the_same_in_every_process():
    program = (
        "from parityscope.papers.registry import all_claims;"
        "print(*(f'{claim.id} {claim.code()}' for claim in all_claims()), sep='\\n')"
    )
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.splitlines()
        for seed in ("1", "2")
    )
    assert first == second
    assert len({line.split()[1] for line in first}) == len(CLAIM_IDS)


SUM = Clause("they add up to one", "sum", at_least(1), "arithmetic")


def halves(context):
    return Measurement({"sum": 0.5 + 0.5}, "1/2 + 1/2 = 1", "one sum", {"terms": 2}, "Added.", {"sum": {}})


def claim_of(measure, clauses=(SUM,), **more):
    again = {"sum": lambda point: Again(1.0, "by heart")}
    return Claim("P-halves", "Two halves are one.", clauses, measure, "nowhere", seconds=1, replay=again, **more)


def test_a_verdict_is_stored_as_a_row_and_found_again(tmp_path):
    store, (claim,) = Store(tmp_path), named_claims(["H1-lemma-16"])
    config = claim_check(claim, "smoke", store)
    assert config == ClaimCheck(claim="H1-lemma-16", scale="smoke")
    assert config.code() == claim.code()
    store.add(config, config.run(), seconds=0.1)
    found = store.row(config).numbers
    assert (found.id, found.paper, found.verdict) == ("H1-lemma-16", "H1", "in part")
    assert found.statement == claim.statement
    assert store.row(ClaimCheck(claim="H1-lemma-16", scale="demo")) is None


def test_new_rows_are_judged_anew():
    assert ClaimCheck(claim="H2-parameters", scale="smoke").key != (
        ClaimCheck(claim="H2-parameters", scale="smoke", rows=("5d41",)).key
    )


@pytest.mark.parametrize(
    "ask", [lambda context: context.rows("H1-figure-2"), lambda context: context.row(training("bounded", 8, 2))]
)
def test_a_check_that_asks_for_rows_it_did_not_declare_fails_loudly(monkeypatch, ask):
    def curious(context):
        ask(context)
        return halves(context)

    claim = claim_of(curious)
    monkeypatch.setattr("parityscope.papers.claim.named_claims", lambda ids: [claim])
    with pytest.raises(AssertionError, match="says neither reads_figure nor needs"):
        ClaimCheck(claim="P-halves", scale="smoke").run()


def test_without_its_extra_a_claim_is_open():
    def needy(context):
        raise MissingExtra("install parityscope[figures]")

    found = check(claim_of(needy), Context("smoke"))
    assert found.verdict == "open"
    assert found.how == "install parityscope[figures]."
    assert [clause.measured for clause in found.clauses] == ["not measured"]


def test_a_proof_makes_what_holds_proved_and_saves_nothing_that_fails():
    def thirds(context):
        return halves(context)._replace(measured={"sum": 1 / 3 + 1 / 3}, points={})

    verdicts = [check(claim_of(measure, proof="explanation/sums"), Context()).verdict for measure in (halves, thirds)]
    assert verdicts == ["proved", "open"]  # a counterexample would make it fail


def test_the_printed_and_the_corrected_form_are_judged_apart():
    printed = Clause("their sum is two", "sum", at_least(2), "as printed")
    found = check(claim_of(halves, (printed, replace(SUM, corrected=True)), corrected="Their sum is one."), Context())
    assert (found.verdict, found.corrected.verdict, found.corrected.as_meant) == ("fails", "holds", False)
    assert found.criterion.refuted_if == "sum < 2"
    assert [(clause.verdict, clause.corrected) for clause in found.clauses] == [("fails", False), ("holds", True)]
    assert found.corrected.qualifier == ""
    seen = replace(SUM, refuted_if="never")
    both = check(
        claim_of(halves, (printed, replace(SUM, corrected=True), seen), corrected="Their sum is one."), Context()
    )
    assert both.corrected.qualifier == "where tested"


def test_a_statement_is_refutable_if_a_clause_of_its_printed_form_is():
    never = replace(SUM, refuted_if="never")
    assert claim_of(halves, (never, SUM)).refutable
    assert not claim_of(halves, (never,)).refutable
    assert not claim_of(halves, (never, replace(SUM, corrected=True))).refutable
    assert check(claim_of(halves, (never,)), Context()).clauses[0].refuted_if is None


def test_json_has_what_machines_are_promised():
    found = check(claim_of(halves), Context()).model_dump()
    assert {"id", "paper", "statement", "verdict", "criterion", "refutable", "corrected", "evidence", "how"} <= set(
        found
    )
    assert found["criterion"] == {"refuted_if": "sum < 1", "holds_if": "sum ≥ 1", "source": "arithmetic"}
    assert json.loads(json.dumps(found)) == found | {"clauses": [*found["clauses"]]}


@pytest.mark.parametrize("claim_id", CLAIM_IDS)
def test_claims_are_well_formed(claim_id):
    (claim,) = named_claims([claim_id])
    assert isinstance(claim, Claim)
    assert claim.id == claim_id
    assert len(claim.statement) > 20
    assert claim.where
    assert claim.seconds > 0
    assert claim.figure in (None, *FIGURE_IDS)
    assert (claim.corrected is not None) == any(clause.corrected for clause in claim.clauses)
    assert not claim.misprint or claim.corrected, "what the authors meant is judged too"
    assert set(claim.replay or ()) <= {clause.quantity for clause in claim.clauses}
    assert any(not clause.corrected for clause in claim.clauses)
    assert claim.sizes is not None or "-figure-" not in claim_id, "rows of other sizes decide nothing"
    assert claim.proof is None or (ROOT / page_of(claim.proof).partition("#")[0]).is_file()


@pytest.mark.parametrize("claim_id", [name for name in CLAIM_IDS if paper_of(name) != OURS])
def test_statements_of_papers_are_quoted(claim_id):
    (claim,) = named_claims([claim_id])
    assert claim.printed
    assert len(claim.printed) <= 700, "the words or the formula, not the page"


@pytest.mark.parametrize("claim_id", CLAIM_IDS)
def test_criteria_are_well_formed(claim_id):
    (claim,) = named_claims([claim_id])
    # A second route confirms a quantity: of two clauses on one it might confirm only one.
    assert len({clause.quantity for clause in claim.clauses}) == len(claim.clauses)
    for clause in claim.clauses:
        assert clause.says
        assert clause.quantity
        assert clause.source, "a limit comes from somewhere"
        if clause.refuting is not None:
            ends = (clause.holds_if.value, clause.refuting.value, -math.inf, math.inf)
            assert not any(clause.holds_if.admits(end) and clause.refuting.admits(end) for end in ends)


def test_ids_are_unique_and_papers_select_their_claims():
    assert len(set(CLAIM_IDS)) == len(CLAIM_IDS)
    assert [claim.id for claim in named_claims(["H1"])] == [name for name in CLAIM_IDS if name.startswith("H1-")]


def test_all_claims_fit_their_budget():
    assert sum(claim.seconds for claim in named_claims(CLAIM_IDS)) <= 240
