"""Every figure: what its file says, its rows at smoke scale, how they are shown, and the claims that judge them."""

import json

import pytest

from harness.figures import check_contract, check_figure, smoke_rows
from parityscope.papers.claim import check
from parityscope.papers.criterion import VERDICTS
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure
from parityscope.papers.results import context_of

# Seconds each: `make test` holds what their files say, and `make test-slow` computes their rows.
SLOW = {"estimator-benchmark", "P-every-k", "phase-n-k", "P-concave-bounds", "P-numbers", "phase-temperature-rate"}
SLOW |= {"K-examples", "phase-heads-noise", "P-proved-examples", "compare", "H1-sgd"}
READING = [claim for claim in all_claims() if claim.reads_figure]


@pytest.mark.parametrize("name", sorted(SLOW))
def test_what_the_file_of_a_slow_figure_says(name):
    check_contract(load_figure(name), name)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in FIGURE_IDS])
def test_a_figure_computes_and_shows_its_rows(name, smoke_store, tmp_path):
    check_figure(name, smoke_store, tmp_path)


@pytest.mark.parametrize("claim", READING, ids=lambda claim: claim.id)
def test_a_claim_about_a_figure_judges_its_rows(claim, smoke_store):
    rows = smoke_rows(load_figure(claim.figure), smoke_store)
    found = check(claim, context_of("smoke", smoke_store))
    assert found.verdict in VERDICTS
    assert json.loads(json.dumps(found.model_dump()))["id"] == claim.id
    if rows:
        assert "No rows of this figure" not in found.how
