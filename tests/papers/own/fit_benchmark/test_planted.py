"""Planted tables hold what their kind says."""

import os
from pathlib import Path

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark.planted import DATA_VARIABLE, TableKind, public_files


def test_noise_flips_its_share_of_a_parity():
    table = TableKind(n=12, k=3, rows=20_000, noise=0.2).draw(5)
    assert len(table.columns) == 3
    assert (table.X[:, table.columns].sum(axis=1) % 2 == table.y).mean() == pytest.approx(0.8, abs=0.02)
    assert table.X.mean() == pytest.approx(0.5, abs=0.01)


def test_several_single_columns_are_main_effects_without_interaction():
    table = TableKind(n=12, k=1, interactions=3, rows=40_000, noise=0.0).draw(5)
    signs = 1 - 2 * table.X[:, table.columns].astype(float)
    label = 1 - 2 * table.y
    assert signs.T @ label / len(label) == pytest.approx(np.full(3, 1 / 3), abs=0.03)
    assert np.prod(signs, axis=1) @ label / len(label) == pytest.approx(0, abs=0.03)


def test_a_conjunction_and_disjoint_sets():
    table = TableKind(kind="conjunction", k=3, rows=200, noise=0.0).draw(2)
    assert (table.X[:, table.columns].all(axis=1) == table.y).all()
    two = TableKind(interactions=2, k=3, rows=10).draw(2)
    assert [len(some) for some in two.interactions] == [3, 3]
    assert len(two.columns) == 6


def test_a_seed_is_a_table_and_another_seed_another():
    kind = TableKind(kind="genotypes", rows=50)
    assert (kind.draw(7).X == kind.draw(7).X).all()
    assert not (kind.draw(7).X == kind.draw(8).X).all()


def test_sets_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInput, match="do not fit into 5"):
        TableKind(n=5, k=3, interactions=2).draw(0)


def test_a_file_needs_its_folder(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert public_files() == []
    with pytest.raises(InvalidInput, match=DATA_VARIABLE):
        TableKind(kind="GAMETES").draw(0)


@pytest.mark.skipif(not Path(os.environ.get(DATA_VARIABLE, "-")).is_dir(), reason=f"{DATA_VARIABLE} names no folder")
def test_files_are_shuffled_with_their_answer():
    for kind in public_files():
        first, second = kind.draw(0), kind.draw(1)
        assert first.X.shape == second.X.shape == (kind.rows, kind.n)
        assert first.columns != second.columns
        if kind.kind == "parity5+5":
            parities = [table.X[:, table.columns].sum(axis=1) % 2 ^ table.y for table in (first, second)]
            assert all(len(set(parity.tolist())) == 1 for parity in parities)
