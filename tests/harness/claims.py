"""What every claim must pass; a file of claims is tested by listing its verdicts at smoke scale."""

import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from parityscope.papers.claim import ClaimNumbers, Context, Replay, check, replay
from parityscope.papers.figure import SCALES
from parityscope.papers.registry import named_claims
from parityscope.papers.rendering import counterexample_of
from parityscope.papers.results import context_of, needs_of
from parityscope.records import Config, Store
from parityscope.records.code import reached
from parityscope.runs.spec import check_configs_travel


@cache
def _store() -> Store:
    return Store(Path(tempfile.mkdtemp()) / "store")


@cache
def _checked(claim_id: str) -> tuple[ClaimNumbers, list[Config]]:
    """Check a claim at smoke scale, once per process, on stored rows; return also the configs it asked for."""
    (claim,) = named_claims([claim_id])
    stored, asked = context_of("smoke", _store()), []

    def row(config):
        asked.append(config)
        return stored.row(config)

    return check(claim, Context("smoke", stored.rows, row)), asked


def smoke(claim_id: str) -> ClaimNumbers:
    """Return what a claim comes to at smoke scale."""
    return _checked(claim_id)[0]


def check_claim(claim_id: str, verdict: str) -> None:
    """Assert a claim's verdict, and what holds for every claim."""
    found, asked = _checked(claim_id)
    assert (found.id, found.verdict) == (claim_id, verdict)
    assert found.number
    assert found.how
    assert json.loads(json.dumps(found.model_dump()))["evidence"]  # plain numbers all the way down
    _check_counterexample(claim_id, found)
    _check_needs(claim_id, asked)


def _check_counterexample(claim_id: str, found: ClaimNumbers) -> None:
    points = counterexample_of(found) or {}
    assert set(points) <= {clause.quantity for clause in found.clauses if clause.verdict == "fails"}
    if any(clause.verdict == "fails" and not clause.corrected for clause in found.clauses):
        assert points, "what fails has a counterexample"
    if points:
        again = replayed(claim_id, found)
        assert len(again) == len(points), "a counterexample has a second route"
        assert all(one.confirms for one in again), again


def replayed(claim_id: str, found: ClaimNumbers) -> Sequence[Replay]:
    """Return the counterexamples of a claim by their second route, as they would be read from a file."""
    (claim,) = named_claims([claim_id])
    stored = ClaimNumbers.model_validate_json(found.model_dump_json())
    return replay(claim, stored, "smoke", Context("smoke")).replays


def _check_needs(claim_id: str, asked: list[Config]) -> None:
    (claim,) = named_claims([claim_id])
    keys = [config.key for config in claim.needs(Context("smoke"))]
    assert [config.key for config in asked] == keys, "a check asks for each row that it declares, once, in that order"
    assert len(set(keys)) == len(keys)
    for scale in SCALES:
        check_configs_travel(needs_of([claim], scale))
    for kind in {type(config) for config in asked}:
        # Otherwise an edit of any recipe would make the rows of all of them stale.
        assert ("parityscope.training.recipes", "RECIPES") not in reached(kind.__module__, kind.__qualname__)
