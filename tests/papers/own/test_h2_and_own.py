"""Verdicts at smoke scale, and checks that can tell a false statement from a true one."""

import pytest
import torch

from parityscope.papers.claim import Context, check
from parityscope.papers.registry import named_claims
from parityscope.training import objectives

IN_PART = {"H2-softmax", "H2-initial-variance", "P-theorem-5-circle", "P-samples"}


@pytest.mark.parametrize("claim", named_claims(["H2", "P"]), ids=lambda claim: claim.id)
def test_the_verdict_at_smoke_scale(claim):
    outcome = check(claim, Context("smoke")).outcome
    assert outcome.verdict == ("holds in part" if claim.id in IN_PART else "holds")
    assert outcome.evidence


def test_a_wrong_formula_would_be_found(monkeypatch):
    right = objectives.log_correlation
    monkeypatch.setattr(
        "parityscope.papers.own.claims.bounded.log_correlation", lambda c, law: -right(c, law) + 0 * torch.sum(c)
    )
    for name in ("P-concavity", "P-gradient-signs"):
        assert check(named_claims([name])[0], Context("smoke")).outcome.verdict == "fails"
