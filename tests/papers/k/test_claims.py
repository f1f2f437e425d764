"""K's statements: their verdicts at smoke scale, second routes, and figures at other sizes than the paper's."""

import pytest

from harness.claims import check_claim, replayed, smoke
from papers.k.planted import AS_PRINTED, curves
from parityscope.papers.claim import check
from parityscope.papers.registry import named_claims

VERDICTS = {
    "K-theorem-2": "misprint",
    "K-proposition-3": "misprint",
    "K-lemma-8": "misprint",
    "K-separation": "holds",
    "K-lemma-4": "proved",
    "K-theorem-5": "holds",
    "K-lemma-6": "proved",
    "K-theorem-7": "holds",
    "K-theorem-7-filter": "misprint",
    "K-lemma-9": "proved",
}
FIGURES = ("K-figure-4", "K-figure-5")


@pytest.mark.parametrize("claim_id", VERDICTS)
def test_verdict_at_smoke_scale(claim_id):
    check_claim(claim_id, VERDICTS[claim_id])


def test_every_statement_is_listed_and_quoted():
    claims = named_claims(["K"])
    assert {claim.id for claim in claims} == {*VERDICTS, *FIGURES}
    assert all(claim.printed for claim in claims)


@pytest.mark.parametrize("claim_id", [name for name, verdict in VERDICTS.items() if verdict == "misprint"])
def test_a_second_route_confirms_what_is_false_as_printed(claim_id):
    found = smoke(claim_id)
    assert found.corrected.verdict == "holds"
    for again in replayed(claim_id, found):
        assert again.confirms
        assert again.again == pytest.approx(again.stored, rel=1e-6)


@pytest.mark.parametrize("claim_id", FIGURES)
def test_curves_of_other_sizes_decide_nothing(claim_id):
    (claim,) = named_claims([claim_id])
    found = check(claim, curves(AS_PRINTED, scale="demo"))
    assert found.verdict == "open"
    assert "2,000 examples for 100 000" in found.qualifier


@pytest.mark.parametrize("claim_id", FIGURES)
def test_one_curve_that_differs_leaves_a_figure_open(claim_id):
    (claim,) = named_claims([claim_id])
    assert check(claim, curves(AS_PRINTED - {("CoT + self-consistency", 32)})).verdict == "open"
