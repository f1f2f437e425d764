import pytest
import torch

from harness.claims import check_claim
from harness.claims import smoke as smoke_check
from parityscope.papers.claim import Context, check
from parityscope.papers.registry import named_claims
from parityscope.papers.results import claims_context
from parityscope.papers.w.claims.figures import _figure_1, _figure_2, _first_layer_sparse, _small_beats_large
from parityscope.papers.w.settings import smoke
from parityscope.records import Row
from parityscope.runs.decoder import DecoderNumbers

# What was computed when this was written, where a lemma does not simply hold; a change means that the code or the
# mathematics changed.
EXPECTED = {
    "W-theorem-3": "holds in part",
    "W-lemma-4": "holds in part",
    "W-lemma-7": "fails",
    "W-lemma-10": "holds in part",
    "W-lemma-11": "holds in part",
    "W-lemma-14": "holds in part",
    "W-lemma-18": "fails",
    "W-lemma-19": "holds in part",
    "W-lemma-21": "holds in part",
    "W-lemma-22": "holds in part",
    "W-lemma-23": "fails",
    "W-lemma-24": "holds in part",
    "W-lemma-25": "fails",
    "W-lemma-26": "holds in part",
}
WITHOUT_EVIDENCE = {"W-lemma-17", "W-theorem-2"}  # nothing is computed for the first, the second reads a figure
PROVED = [claim.id for claim in named_claims(["W"]) if claim.id.startswith(("W-theorem", "W-lemma"))]


@pytest.mark.parametrize("claim_id", sorted({*PROVED} - WITHOUT_EVIDENCE))
def test_verdicts_are_computed(claim_id):
    check_claim(claim_id, EXPECTED.get(claim_id, "holds"))


@pytest.mark.parametrize("claim_id", sorted(WITHOUT_EVIDENCE))
def test_what_cannot_be_tested_says_so(claim_id):
    assert smoke_check(claim_id).verdict == "not testable here"


def test_theorem_3_and_its_lemmas_share_one_training():
    sharing = named_claims(["W-theorem-3", *(f"W-lemma-{number}" for number in (21, 22, 24, 26, 27))])
    assert len({config.key for claim in sharing for config in claim.needs(Context("smoke"))}) == 1


def test_without_a_store_a_training_is_computed_once(tmp_path):
    context, config = claims_context("smoke", tmp_path / "nowhere"), smoke("").row_config()
    assert context.row(config) is context.row(config)


def test_figures_without_rows_say_how_to_get_them():
    for number in (1, 2, 3, 4, 5, 8, 9, 10, 11):
        (claim,) = named_claims([f"W-figure-{number}"])
        outcome = check(claim, Context("demo"))
        assert outcome.verdict == "not testable here"
        assert f"parityscope reproduce W-figure-{number}" in outcome.how


def row(pool, learned):
    numbers = DecoderNumbers.model_construct(samples=(None, None, 512 if learned else None))
    return Row(smoke("", pool=pool), numbers)


@pytest.mark.parametrize(
    ("learned", "verdict"),
    [((True, True, False), "holds"), ((False, True, False), "holds in part"), ((False, False, True), "fails")],
)
def test_a_smaller_pool_must_win(learned, verdict):
    rows = [row(pool, ok) for pool, ok in zip((500, 2000, None), learned, strict=True)]
    assert _small_beats_large(rows)[0] == verdict


def test_claims_about_figures_differ_in_their_code():
    found = [claim.code() for claim in named_claims(["W"]) if claim.id.startswith("W-figure")]
    assert len(set(found)) == len(found) == 12


def test_the_lemmas_are_all_there():
    ids = {claim.id for claim in named_claims(["W"])}
    assert {f"W-lemma-{number}" for number in range(1, 33)} <= ids


def trained(chain, k, count):
    shown = smoke("", k=k, chain_of_thought=chain, steps=1000, batch=100)
    return Row(shown, DecoderNumbers.model_construct(samples=(count,)))


@pytest.mark.parametrize(
    ("with_chain", "without", "verdict"),
    [
        ((500, 550, 600), (1000, 10_000, None), "holds"),  # 10 per bit, the last at least
        ((500, None, 600), (1000, 10_000, None), "holds in part"),  # one k was not reached
        ((500, 550, 600), (1000, 1500, 2000), "fails"),
        ((500, 1000, 2000), (1000, 10_000, 100_000), "fails"),
    ],
)
def test_growth_must_be_exponential_without_and_slow_with_chain_of_thought(with_chain, without, verdict):
    rows = [trained(True, k, count) for k, count in enumerate(with_chain, 1)]
    rows += [trained(False, k, count) for k, count in enumerate(without, 1)]
    assert _figure_1(rows)[0] == verdict


@pytest.mark.parametrize(
    ("with_chain", "without", "verdict"),
    [((500, 600), (900, None), "holds"), ((500, 950), (900, 950), "holds in part"), ((950, 950), (900, 900), "fails")],
)
def test_chain_of_thought_must_win_in_every_pair(with_chain, without, verdict):
    rows = [trained(True, k, count) for k, count in enumerate(with_chain, 2)]
    rows += [trained(False, k, count) for k, count in enumerate(without, 2)]
    assert _figure_2(rows)[0] == verdict


@pytest.mark.parametrize(
    ("on_secret", "second", "verdict"), [(0.9, 0.95, "holds"), (0.9, 0.5, "holds in part"), (0.1, 0.95, "fails")]
)
def test_the_first_layer_must_attend_and_the_second_not(on_secret, second, verdict):
    attention = torch.zeros(2, 1, 4, 4)
    attention[0, 0, [2, 3], [1, 0]] = on_secret  # n = 2: positions 2 and 3 predict, from bits 1 and 0
    arrays = {"attention": attention, "entropy": torch.tensor([[[0.1], [second]]])}
    row = Row(smoke("", n=2), DecoderNumbers.model_construct(secret=(1, 0)), arrays)
    assert _first_layer_sparse([row])[0] == verdict
