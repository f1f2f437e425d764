"""Every claim can come out both ways: refuted in a false world, confirmed in a true one."""

import importlib

import pytest

from harness.planted import Planted, verdict_in
from parityscope.papers.registry import PAPERS, all_claims

PLANTED: dict[str, Planted] = {
    claim_id: worlds
    for paper in PAPERS
    for claim_id, worlds in importlib.import_module(f"papers.{paper.folder}.planted").PLANTED.items()
}


@pytest.mark.parametrize("claim_id", PLANTED)
def test_a_false_world_refutes_the_claim(claim_id):
    assert verdict_in(claim_id, PLANTED[claim_id].false) == "fails"


@pytest.mark.parametrize("claim_id", PLANTED)
def test_a_true_world_confirms_the_claim(claim_id):
    assert verdict_in(claim_id, PLANTED[claim_id].true) == "holds"


def test_every_claim_has_planted_worlds_or_says_that_nothing_here_refutes_it():
    assert set(PLANTED) == {claim.id for claim in all_claims() if claim.refutable}
