"""Names of claims as people type them: exact, short, a part; several and none are refused with a few ids."""

import pytest

from parityscope.core.errors import InvalidInput
from parityscope.papers.registry import CLAIM_IDS, PAPERS, claim_ids_called, short_claim_names, source_of


@pytest.mark.parametrize("claim_id", CLAIM_IDS)
def test_every_id_is_its_own_name_in_any_case(claim_id):
    assert claim_ids_called(claim_id) == claim_ids_called(claim_id.lower()) == (claim_id,)


@pytest.mark.parametrize("name", short_claim_names())
def test_without_its_paper_an_id_is_found_where_it_is_the_only_one(name):
    (found,) = claim_ids_called(name)
    assert found.partition("-")[2] == name


def test_a_paper_is_all_its_claims():
    for paper in PAPERS:
        assert claim_ids_called(paper.name) == claim_ids_called(paper.name.lower()) == paper.claim_ids


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("theorem-11", "H1-theorem-11"),
        ("theorem-1", "W-theorem-1"),  # and not Theorem 11
        ("derivative", "H1-lemma-14-derivative"),
        ("corollary", "H1-corollary-20"),
        ("W-figure-6-f", "W-figure-6-fine-tuning"),
        ("Figure-6", "W-figure-6"),  # its own name comes before the beginning of another
        ("noise", "P-noise-and-bias"),
    ],
)
def test_a_part_that_only_one_claim_has_is_enough(name, found):
    assert claim_ids_called(name) == (found,)


def test_several_claims_are_named_and_none_is_chosen():
    with pytest.raises(InvalidInput, match=r"^'lemma-7' may be H1-lemma-7 or W-lemma-7: say which$"):
        claim_ids_called("lemma-7")
    with pytest.raises(InvalidInput, match=r"^'lemma' may be (\S+, ){7}\S+ or one of \d+ more: say which$"):
        claim_ids_called("lemma")


@pytest.mark.parametrize("name", ["H1-lemma-99", "proposition-2", "lemma-1.5", "nonsense", "(["])
def test_an_unknown_name_gets_the_nearest_few(name):
    with pytest.raises(InvalidInput) as refused:
        claim_ids_called(name)
    sentence = str(refused.value)
    assert sentence.startswith(f"unknown claim {name!r}: the nearest are ")
    assert 1 <= sum(claim_id in sentence.split(": the")[1].replace(",", "").split() for claim_id in CLAIM_IDS) <= 5


def test_no_number_is_cut():
    """Proposition 2 does not exist; whoever asks for it does not want Proposition 21."""
    for name in ("H1-proposition-2", "H1-theorem-1", "0"):
        with pytest.raises(InvalidInput, match=f"unknown claim '{name}'"):
            claim_ids_called(name)


def test_every_claim_has_its_file():
    assert {source_of(claim_id).split("/")[1] for claim_id in CLAIM_IDS} == {paper.folder for paper in PAPERS}
