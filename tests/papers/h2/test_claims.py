"""Verdicts at smoke scale, where the smallest codes come from, and counterexamples by a second route."""

import math
from types import SimpleNamespace

import pytest

from harness.claims import check_claim, replayed, smoke
from parityscope.papers.claim import Context, check
from parityscope.papers.registry import named_claims

HOLDS = {"H2-one-step", "H2-parameters", "H2-every-input", "H2-temperature"}  # of the others a clause is false
REPLAYED = ["H2-initial-variance", "H2-softmax", "H2-samples", "H2-ffnn"]


@pytest.mark.parametrize("claim", named_claims(["H2"]), ids=lambda claim: claim.id)
def test_verdict_at_smoke_scale(claim):
    check_claim(claim.id, "holds" if claim.id in HOLDS else "in part")


@pytest.mark.parametrize("claim", named_claims(REPLAYED), ids=lambda claim: claim.id)
def test_a_second_route_confirms_the_counterexample(claim):
    replays = replayed(claim.id, smoke(claim.id))
    assert replays
    for found in replays:
        assert found.confirms
        assert found.again == pytest.approx(found.stored, rel=1e-2, abs=1e-9)


def test_the_smallest_codes_are_those_of_the_figure_where_it_is_stored():
    sizes = (1000, 10_000, 100_000)
    rows = [
        SimpleNamespace(config=SimpleNamespace(n=n), numbers=SimpleNamespace(smallest=(math.log(n),) * 5))
        for n in sizes
    ]
    (claim,) = named_claims(["H2-parameters"])
    found = check(claim, Context("smoke", rows={"H2-parameters": rows}.__getitem__))
    assert found.evidence["smallest_r"] == pytest.approx({n: math.log(n) for n in sizes})
    assert found.evidence["exponent_in_log_d"] == pytest.approx(1)
