"""Verdicts at smoke scale, and checks that can tell a false statement from a true one."""

import pytest
import torch

from harness.claims import check_claim
from parityscope.papers.claim import Context
from parityscope.papers.registry import named_claims
from parityscope.training import objectives

IN_PART = {"P-theorem-5-circle", "P-samples"}


@pytest.mark.parametrize("claim", named_claims(["P"]), ids=lambda claim: claim.id)
def test_verdict_at_smoke_scale(claim):
    check_claim(claim.id, "holds in part" if claim.id in IN_PART else "holds")


def test_a_wrong_formula_would_be_found(monkeypatch):
    right = objectives.log_correlation
    monkeypatch.setattr(
        "parityscope.papers.own.claims.bounded.log_correlation", lambda c, law: -right(c, law) + 0 * torch.sum(c)
    )
    for claim in named_claims(["P-concavity", "P-gradient-signs"]):
        assert claim.check(Context("smoke")).verdict == "fails"
