"""Verdicts at smoke scale, and where the smallest codes come from."""

import math
from types import SimpleNamespace

import pytest

from harness.claims import check_claim
from parityscope.papers.claim import Context
from parityscope.papers.registry import named_claims

IN_PART = {"H2-softmax", "H2-initial-variance"}


@pytest.mark.parametrize("claim", named_claims(["H2"]), ids=lambda claim: claim.id)
def test_verdict_at_smoke_scale(claim):
    check_claim(claim.id, "holds in part" if claim.id in IN_PART else "holds")


def test_the_smallest_codes_are_those_of_the_figure_where_it_is_stored():
    sizes = (1000, 10_000, 100_000)
    rows = [SimpleNamespace(config=SimpleNamespace(n=n), numbers=SimpleNamespace(median=math.log(n))) for n in sizes]
    (claim,) = named_claims(["H2-parameters"])
    found = claim.check(Context("smoke", rows={"H2-parameters": rows}.__getitem__))
    assert found.evidence["smallest_r"] == {n: math.log(n) for n in sizes}
    assert found.evidence["exponent_in_log_d"] == pytest.approx(1)
