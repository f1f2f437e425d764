"""Blocks of linkage disequilibrium: the block is named, whichever of its columns the rows happen to favour."""

import numpy as np
import pytest

from parityscope.fit.answer import Question, ask

CAUSES = (7, 20)
BLOCKS = {7: {6, 7, 8, 9}, 20: {20, 21, 22}}


def linked_genotypes(random, rows, block):
    """Genotypes of independent loci, but that those of a block have all but a few of their alleles in common."""
    alleles = random.rand(2, rows, 30) < 0.4
    for cause, members in block.items():
        for member in members - {cause}:
            recombined = random.rand(2, rows) < 0.01
            alleles[:, :, member] = np.where(recombined, random.rand(2, rows) < 0.4, alleles[:, :, cause])
    return alleles.sum(axis=0)


@pytest.fixture(scope="module")
def answers():
    """A parity of two carriers, in tables of twelve seeds."""
    found = []
    for seed in range(12):
        random = np.random.RandomState(seed)
        X = linked_genotypes(random, 600, BLOCKS)
        odd = (X[:, CAUSES] > 0).sum(axis=1) % 2 ^ (random.rand(600) < 0.25)
        found.append(ask(Question(2), X, (1 - 2 * odd).astype(np.int8), random).interactions[0])
    return found


def test_the_named_block_holds_the_cause_and_nothing_unlinked(answers):
    held = 0
    for found in answers:
        for column in found.support:
            cause = next(one for one, members in BLOCKS.items() if column in members)
            named = {column, *(int(name.split()[1]) for name in found.block.get(f"column {column}", ()))}
            assert named <= BLOCKS[cause]
            held += cause in named
    # Told apart at 1 %: of 24 causes one may be missed.
    assert held >= 23


def test_without_the_block_it_would_be_a_coin_flip(answers):
    """The rows favour another column of the block in some tables: that is why naming one would not do."""
    assert {found.support for found in answers} > {CAUSES}
    assert all(len(found.block) == 2 for found in answers)


def test_a_table_names_its_block_too():
    random = np.random.RandomState(1)
    X = linked_genotypes(random, 500, {4: {4, 5}})
    both = (X[:, 4] > 0) & (X[:, 11] > 0)
    answer = ask(Question(2), X, np.where(both ^ (random.rand(500) < 0.1), 1, -1).astype(np.int8), random)
    first = answer.interactions[0]
    assert first.kind == "pair table"
    column = next(one for one in first.support if one != 11)
    assert {f"column {column}", *first.block[f"column {column}"]} == {"column 4", "column 5"}
    assert "column 11" not in first.block


@pytest.mark.parametrize(("share", "seed"), [(0.5, 0), (0.1, 1)])
def test_independent_columns_that_explain_as_much_are_told_apart(share, seed):
    """Rare columns agree in most rows for being rare: that does not make them alike."""
    random = np.random.RandomState(seed)
    X = (random.rand(2000, 20) < share).astype(int)
    up = random.rand(2000) < 0.15 + 0.35 * (X[:, 3] + X[:, 8])
    found = ask(Question(max_k=2), X, np.where(up, 1, -1).astype(np.int8), random).interactions
    assert {one.support for one in found} == {(3,), (8,)}
    assert [one.block for one in found] == [{}, {}]
