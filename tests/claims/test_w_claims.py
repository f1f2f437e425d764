import pytest

from parityscope.claims import check, named_claims
from parityscope.claims.contract import Context
from parityscope.claims.w_figures import _small_beats_large
from parityscope.experiments.contract import Row

# What was computed when this was written, where a lemma does not simply hold; a change means that the code or the
# mathematics changed.
EXPECTED = {
    "W-theorem-2": "not testable here",
    "W-theorem-3": "holds in part",
    "W-lemma-4": "holds in part",
    "W-lemma-7": "fails",
    "W-lemma-10": "holds in part",
    "W-lemma-11": "holds in part",
    "W-lemma-14": "holds in part",
    "W-lemma-17": "not testable here",
    "W-lemma-18": "fails",
    "W-lemma-19": "holds in part",
    "W-lemma-21": "holds in part",
    "W-lemma-22": "holds in part",
    "W-lemma-23": "fails",
    "W-lemma-24": "holds in part",
    "W-lemma-25": "fails",
    "W-lemma-26": "holds in part",
}
PROVED = [claim for claim in named_claims(["W"]) if claim.id.startswith(("W-theorem", "W-lemma"))]


@pytest.mark.parametrize("claim", PROVED, ids=lambda claim: claim.id)
def test_verdicts_are_computed(claim):
    outcome = check(claim, Context("smoke")).outcome
    assert outcome.verdict == EXPECTED.get(claim.id, "holds"), outcome.number


def test_figures_without_rows_say_how_to_get_them():
    for number in (1, 2, 3, 4, 5, 8, 9, 10, 11):
        (claim,) = named_claims([f"W-figure-{number}"])
        outcome = check(claim, Context("laptop")).outcome
        assert outcome.verdict == "not testable here"
        assert f"parityscope reproduce W-figure-{number}" in outcome.how


def row(pool, learned):
    return Row("", {"training": {"pool": pool}}, {"samples": [None, None, 512 if learned else None]})


@pytest.mark.parametrize(
    ("learned", "verdict"),
    [((True, True, False), "holds"), ((False, True, False), "holds in part"), ((False, False, True), "fails")],
)
def test_a_smaller_pool_must_win(learned, verdict):
    rows = [row(pool, ok) for pool, ok in zip((500, 2000, None), learned, strict=True)]
    assert _small_beats_large(rows)[0] == verdict


def test_the_lemmas_are_all_there():
    ids = {claim.id for claim in named_claims(["W"])}
    assert {f"W-lemma-{number}" for number in range(1, 33)} <= ids
