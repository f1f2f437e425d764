import pytest

from parityscope.claims import check, named_claims
from parityscope.claims.contract import Context
from parityscope.claims.w_training import _small_beats_large
from parityscope.experiments.contract import Row

# What was computed when this was written; a change means that the code or the mathematics changed.
EXPECTED = {
    "W-theorem-1": "holds",
    "W-theorem-2": "not testable here",
    "W-theorem-3": "holds in part",
    "W-lemma-4": "holds in part",
    "W-lemma-5": "holds",
    "W-lemma-7": "fails",
    "W-lemma-12": "holds",
    "W-lemma-14": "holds in part",
    "W-lemma-18": "fails",
    "W-lemma-20": "holds",
    "W-lemma-23": "fails",
    "W-lemma-25": "fails",
    "W-lemma-32": "holds",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts_are_computed(name):
    (claim,) = named_claims([name])
    outcome = check(claim, Context("smoke")).outcome
    assert outcome.verdict == EXPECTED[name], outcome.number


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
