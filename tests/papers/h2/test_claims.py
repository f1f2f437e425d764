"""Verdicts at smoke scale, where the smallest codes come from, and counterexamples by a second route."""

import math
from types import SimpleNamespace

import pytest

from harness.claims import check_claim, smoke
from parityscope.papers.claim import Context, check
from parityscope.papers.registry import named_claims
from parityscope.papers.rendering import claims_markdown, judgement_markdown

OPEN = {
    "H2-initial-variance",  # seven seeds are too few at smoke scale
    "H2-softmax",  # “uniquely”
}


@pytest.mark.parametrize("claim", named_claims(["H2"]), ids=lambda claim: claim.id)
def test_verdict_at_smoke_scale(claim):
    check_claim(claim.id, "open" if claim.id in OPEN else "holds")


@pytest.mark.parametrize("claim", [claim for claim in named_claims(["H2"]) if claim.replay], ids=lambda claim: claim.id)
def test_a_second_route_takes_the_same_step(claim):
    """No statement of H2 fails here, so the routes are tried at the points that were measured."""
    measured = claim.measure(Context("smoke"))
    for quantity, route in claim.replay.items():
        point = measured.points[quantity]
        assert route(point).value == pytest.approx(point["value"], rel=1e-2, abs=1e-9)


def test_where_h2_is_judged_it_is_said_how_it_is_known():
    (claim,) = named_claims(["H2-ffnn"])
    found = smoke(claim.id)
    for page in (claims_markdown([found], "smoke"), judgement_markdown(found, "smoke")):
        assert "machine-written page" in page


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
