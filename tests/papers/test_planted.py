"""Every claim can come out both ways: refuted in a false world, confirmed in a true one."""

import pytest

from harness.planted import REFUTED, all_planted, verdict_in
from parityscope.papers.registry import all_claims

PLANTED = all_planted()


@pytest.mark.parametrize("claim_id", PLANTED)
def test_a_false_world_refutes_the_claim(claim_id):
    assert verdict_in(claim_id, "false") in REFUTED


@pytest.mark.parametrize("claim_id", PLANTED)
def test_a_true_world_confirms_the_claim(claim_id):
    assert verdict_in(claim_id, "true") == PLANTED[claim_id].confirmed


def test_every_claim_has_planted_worlds_or_says_that_nothing_here_refutes_it():
    assert set(PLANTED) == {claim.id for claim in all_claims() if claim.refutable}
