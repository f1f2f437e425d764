"""Verdicts at smoke scale, and counterexamples by a second route: confirmed where they are real, not where planted."""

import pytest

from harness.claims import check_claim, replayed, smoke
from papers.own.planted import PLANTED
from parityscope.papers.claim import check
from parityscope.papers.registry import named_claims

PROVED = {"P-closed-form", "P-worst-loss", "P-concavity", "P-gradient-signs", "P-one-head", "P-one-step"}
PROVED |= {"P-concave", "P-face", "P-two-k-numbers", "P-k-heads", "P-mirror-rate", "P-softmax-trap"}
PROVED |= {"P-few-numbers", "P-clipped", "P-certificate", "P-paths"}
REPLAYED = PROVED - {"P-one-step"}
IN_PART = ["P-theorem-5-circle", "P-samples"]


@pytest.mark.parametrize("claim", named_claims(["P"]), ids=lambda claim: claim.id)
def test_verdict_at_smoke_scale(claim):
    verdict = "proved" if claim.id in PROVED else "in part" if claim.id in IN_PART else "holds"
    check_claim(claim.id, verdict)


@pytest.mark.parametrize("claim", named_claims(IN_PART), ids=lambda claim: claim.id)
def test_a_second_route_confirms_the_counterexample(claim):
    (found,) = replayed(claim.id, smoke(claim.id))
    assert found.confirms
    assert found.again == pytest.approx(found.stored, rel=0.3)


@pytest.mark.parametrize("claim", named_claims(sorted(REPLAYED)), ids=lambda claim: claim.id)
def test_a_second_route_does_not_fall_for_a_planted_counterexample(claim, monkeypatch):
    with monkeypatch.context() as patch:
        for path, value in PLANTED[claim.id].false.patches.items():
            patch.setattr(path, value)
        found = check(claim, PLANTED[claim.id].false.context)
    assert {clause.verdict for clause in found.clauses} & {"fails", "unconfirmed"}
    again = replayed(claim.id, found)
    assert again
    assert not any(one.confirms for one in again), again
