"""What a claim is: its code, the row of its verdict, the rows it may read; and what holds for all claims."""

import os
import subprocess
import sys

import pytest

from parityscope.core.errors import InvalidInput, MissingExtra
from parityscope.papers.claim import VERDICTS, Check, Claim, ClaimCheck, Context, check
from parityscope.papers.registry import CLAIM_IDS, FIGURE_IDS, named_claims
from parityscope.papers.results import claim_check
from parityscope.records import Store
from parityscope.runs import training
from parityscope.runs.spec import spec_module

FILE = """
from functools import partial
from parityscope.papers.claim import Check, Claim

LIMIT = 3

def below(count):
    return count < LIMIT

def first(context):
    return Check("holds" if below(2) else "fails", "2", {"count": 2}, "Counted.")

def second(context):
    return Check("holds", "1", {"count": 1}, "Counted too.")

def counted(count, context):
    return Check("holds" if below(count) else "fails", str(count), {"count": count}, "Counted.")

def counting(count):
    def check(context):
        return counted(count, context)
    return check

CLAIMS = (
    Claim("P-first", "Two is less than three.", first, seconds=1),
    Claim("P-second", "One is one.", second, seconds=1),
    Claim("P-partial", "Two is small.", partial(counted, 2), seconds=1),
    Claim("P-closure", "Two is little.", counting(2), seconds=1),
)
"""


def changed(old: str, new: str) -> set[str]:
    """Return the claims of the file whose code changes with an edit."""
    assert old in FILE
    before, after = (spec_module(text, "claims.py").CLAIMS for text in (FILE, FILE.replace(old, new)))
    return {claim.id for claim, edited in zip(before, after, strict=True) if claim.code() != edited.code()}


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ('"2", {"count": 2}', '"two", {"count": 2}', {"P-first"}),
        ("One is one.", "One is 1.", {"P-second"}),
        ("LIMIT = 3", "LIMIT = 4", {"P-first", "P-partial", "P-closure"}),
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

    claim = Claim("P-halves", "Two halves are one.", halves, seconds=1)
    with_rows = Claim("P-halves", "Two halves are one.", halves, seconds=1, needs=needs)
    assert claim.code() != with_rows.code()
    assert (claim.reads_rows, with_rows.reads_rows) == (False, True)


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


def halves(context):
    return Check("holds", "1/2 + 1/2 = 1", {"sum": 0.5 + 0.5}, "Added.")


def test_a_verdict_is_stored_as_a_row_and_found_again(tmp_path):
    store, (claim,) = Store(tmp_path), named_claims(["H1-remark-12"])
    config = claim_check(claim, "smoke", store)
    assert config == ClaimCheck(claim="H1-remark-12", scale="smoke")
    assert config.code() == claim.code()
    store.add(config, config.run(), seconds=0.1)
    found = store.row(config).numbers
    assert (found.id, found.paper, found.verdict) == ("H1-remark-12", "H1", "holds in part")
    assert found.statement == claim.statement
    assert store.row(ClaimCheck(claim="H1-remark-12", scale="demo")) is None


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

    claim = Claim("P-curious", "Rows can be had for the asking.", curious, seconds=1)
    monkeypatch.setattr("parityscope.papers.registry.named_claims", lambda ids: [claim])
    with pytest.raises(AssertionError, match="says neither reads_figure nor needs"):
        ClaimCheck(claim="P-curious", scale="smoke").run()


def test_without_its_extra_a_claim_is_not_testable():
    def needy(context):
        raise MissingExtra("install parityscope[figures]")

    found = check(Claim("P-needy", "Pictures say more.", needy, seconds=1), Context("smoke"))
    assert found.verdict == "not testable here"
    assert found.verdict in VERDICTS
    assert found.how == "install parityscope[figures]."


@pytest.mark.parametrize("claim_id", CLAIM_IDS)
def test_claims_are_well_formed(claim_id):
    (claim,) = named_claims([claim_id])
    assert isinstance(claim, Claim)
    assert claim.id == claim_id
    assert len(claim.statement) > 20
    assert claim.seconds > 0
    assert claim.figure in (None, *FIGURE_IDS)


def test_ids_are_unique_and_papers_select_their_claims():
    assert len(set(CLAIM_IDS)) == len(CLAIM_IDS)
    assert [claim.id for claim in named_claims(["H1"])] == [name for name in CLAIM_IDS if name.startswith("H1-")]
    with pytest.raises(InvalidInput, match="unknown claim 'H1-lemma-99': choose from H1-"):
        named_claims(["H1-lemma-99"])


def test_all_claims_fit_their_budget():
    assert sum(claim.seconds for claim in named_claims(CLAIM_IDS)) <= 240
