"""PLINK reads the files that we write, and its allelic test is the one its manual describes."""

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark import peers
from parityscope.papers.own.fit_benchmark.planted import TableKind

needs_plink = pytest.mark.skipif(peers.plink_path() is None, reason="PLINK 1.9 (Debian: plink1.9) is not installed")


@needs_plink
@pytest.mark.parametrize("test", ["allelic", "boost", "no-ueki"])
def test_a_planted_pair_is_the_strongest(test):
    table = TableKind(rows=400).draw(3)
    assert peers.fast_epistasis(2 * table.X, table.y, test)[0].pair == table.columns


@needs_plink
def test_the_statistic_is_that_of_the_allele_table():
    table = TableKind(kind="genotypes", n=4, rows=500, heritability=0.1).draw(0)
    found = {one.pair: one.statistic for one in peers.fast_epistasis(table.X, table.y, "no-ueki")}
    for pair, statistic in found.items():
        odds, variances = [], []
        for label in (0, 1):
            people = table.X[table.y == label][:, pair].astype(float)
            one, other = people.T
            cells = [(a * b).sum() for a in (one, 2 - one) for b in (other, 2 - other)]
            odds.append(np.log(cells[0] * cells[3] / (cells[1] * cells[2])))
            variances.append(sum(1 / cell for cell in cells))
        assert statistic == pytest.approx((odds[0] - odds[1]) ** 2 / sum(variances), rel=2e-3)


def test_without_the_program_it_says_so(monkeypatch):
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    with pytest.raises(InvalidInput, match="apt-get install"):
        peers.fast_epistasis(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
