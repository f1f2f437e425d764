"""Verdicts at smoke scale, and counterexamples by a second route: confirmed where they are real, not where planted."""

import pytest

from harness.claims import check_claim, replayed, smoke
from harness.planted import found_in
from parityscope.papers.registry import named_claims

PROVED = {"P-closed-form", "P-worst-loss", "P-concavity", "P-gradient-signs", "P-one-head", "P-one-step"}
PROVED |= {"P-concave", "P-face", "P-two-k-numbers", "P-k-heads", "P-mirror-rate", "P-softmax-trap"}
PROVED |= {"P-few-numbers", "P-clipped", "P-certificate", "P-paths"}
PROVED |= {"P-rate-of-heads", "P-one-step-from-examples", "P-newton", "P-chain"}
REPLAYED = PROVED - {"P-one-step"}
IN_PART = ["P-theorem-5-circle", "P-samples"]


def claims(names, slow):
    """Return the named claims, those that take long for the slow tests."""
    return [
        pytest.param(claim, marks=[pytest.mark.slow] * (claim.id in slow), id=claim.id) for claim in named_claims(names)
    ]


@pytest.mark.parametrize("claim", claims(["P"], slow={"P-samples"}))
def test_verdict_at_smoke_scale(claim):
    verdict = "proved" if claim.id in PROVED else "in part" if claim.id in IN_PART else "holds"
    check_claim(claim.id, verdict)


@pytest.mark.parametrize("claim", claims(IN_PART, slow={"P-samples"}))
def test_a_second_route_confirms_the_counterexample(claim):
    (found,) = replayed(claim.id, smoke(claim.id))
    assert found.confirms
    assert found.again == pytest.approx(found.stored, rel=0.3)


@pytest.mark.parametrize("claim", claims(sorted(REPLAYED), slow={"P-certificate"}))
def test_a_second_route_does_not_fall_for_a_planted_counterexample(claim):
    found = found_in(claim.id, "false")
    assert {clause.verdict for clause in found.clauses} & {"fails", "unconfirmed"}
    again = replayed(claim.id, found)
    assert again
    assert not any(one.confirms for one in again), again
