"""The methods a user would pick instead find what they can: a fair comparison needs working rivals."""

import numpy as np
import pytest

from parityscope.papers.own.fit_benchmark.baselines import METHODS, Asked, Refused
from parityscope.papers.own.fit_benchmark.peers import PEERS
from parityscope.papers.own.fit_benchmark.planted import TableKind

ALL = {**METHODS, **PEERS}
UNSURE = {"mutual information", "neural network", "gradient boosting", "attention"}


def find(name, table, asked, setting=None):
    """Name the columns by one setting; a method that is not installed, or takes no such table, skips."""
    method = ALL[name]
    try:
        return method.find(table.X, table.y, asked, **(setting or method.settings[0]))
    except Refused as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", ALL)
def test_every_method_finds_a_single_column(name):
    table = TableKind(n=8, k=1, rows=300).draw(0)
    assert find(name, table, Asked(1)) == table.columns


@pytest.mark.parametrize("name", sorted(ALL.keys() - UNSURE))
def test_these_find_an_easy_pair(name):
    table = TableKind(n=8, rows=400, noise=0.0).draw(1)
    assert find(name, table, Asked(2)) == table.columns


@pytest.mark.parametrize("name", ["auto", "MDR", "L1 on products", "PLINK 1.9", "EBM"])
def test_these_find_both_of_two_pairs(name):
    table = TableKind(n=12, rows=800, noise=0.05, interactions=2).draw(1)
    assert find(name, table, Asked(2, sets=2)) == table.columns


@pytest.mark.parametrize("name", ["L1 on products", "gradient boosting", "random forest", "MDR", "PLINK 1.9"])
def test_every_setting_runs(name):
    table = TableKind(kind="genotypes", n=6, rows=200).draw(1)
    answers = [find(name, table, Asked(2), setting) for setting in ALL[name].settings]
    assert all(len(answer) in (0, 2) for answer in answers)
    assert table.columns in answers


def test_a_filter_sees_nothing_in_a_pair():
    tables = [TableKind(n=12, rows=400, noise=0.0).draw(seed) for seed in range(4)]
    assert any(find("mutual information", table, Asked(2)) != table.columns for table in tables)


def test_what_is_too_large_or_of_another_kind_is_refused():
    y = np.array([0, 1, 0, 1])
    with pytest.raises(Refused, match="more than 25000"):
        METHODS["L1 on products"].find(np.zeros((4, 300)), y, Asked(3), C=0.1, squares=False)
    with pytest.raises(Refused, match="multiplications for all sets of 4"):
        METHODS["MDR"].find(np.zeros((4, 3000)), y, Asked(4), folds=1)
    with pytest.raises(Refused, match="ranks pairs, not sets of 3"):
        PEERS["PLINK 1.9"].find(np.zeros((4, 9)), y, Asked(3), test="boost")


def test_a_package_that_is_missing_refuses(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(Refused, match=r"lightgbm is not installed: pip install 'parityscope\[peers\]'"):
        PEERS["LightGBM"].find(np.zeros((4, 2)), np.array([0, 1, 0, 1]), Asked(2), leaves=7, trees=5, rate=0.1)
