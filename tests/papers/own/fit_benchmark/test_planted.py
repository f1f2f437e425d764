"""Planted tables hold what their kind says."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark.planted import (
    DATA_VARIABLE,
    Penetrance,
    TableKind,
    draw_cases,
    draw_penetrance,
    public_files,
)
from parityscope.problems import seeded_generator


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


@given(
    st.lists(st.floats(0.2, 0.8), min_size=1, max_size=4),
    st.floats(0.0, 0.02),
    st.floats(0.3, 0.7),
    st.integers(0, 100),
)
@settings(max_examples=25, deadline=None)
def test_heritability_is_exact_and_no_proper_subset_has_an_effect(frequencies, heritability, prevalence, seed):
    try:
        table = draw_penetrance(
            frequencies, heritability=heritability, prevalence=prevalence, generator=seeded_generator(seed, "data")
        )
    except InvalidInput as reason:
        assert "lower the heritability" in str(reason)  # noqa: PT017
        return
    # By enumeration of all genotypes, another route than the contrasts.
    shares = np.ones(())
    for q in frequencies:
        shares = np.multiply.outer(shares, [(1 - q) ** 2, 2 * q * (1 - q), q**2])
    assert shares.sum() == pytest.approx(1)
    variance = (shares * table.risk**2).sum() - (shares * table.risk).sum() ** 2
    assert variance / (prevalence * (1 - prevalence)) == pytest.approx(heritability, abs=1e-9)
    assert table.heritability == pytest.approx(heritability, abs=1e-9)
    assert 0 <= table.risk.min() <= table.risk.max() <= 1
    for size in range(len(frequencies)):
        for some in combinations(range(len(frequencies)), size):
            assert table.marginal(*some) == pytest.approx(np.full((3,) * size, prevalence), abs=1e-9)


def test_what_cannot_be_is_refused():
    generator = seeded_generator(0, "data")
    with pytest.raises(InvalidInput, match="lower the heritability"):
        draw_penetrance((0.05, 0.05), heritability=0.9, generator=generator)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        draw_penetrance((0.5, 1.0), heritability=0.1, generator=generator)
    with pytest.raises(InvalidInput, match="as many loci"):
        draw_cases(1, 10, [draw_penetrance((0.5, 0.5), heritability=0.1, generator=generator)], generator=generator)


def test_people_follow_the_table():
    risk = np.array([[0.1, 0.9, 0.1], [0.9, 0.1, 0.9], [0.1, 0.9, 0.1]])
    table = Penetrance(risk, (0.5, 0.5))
    X, y, [pair] = draw_cases(4, 40_000, [table], generator=seeded_generator(1, "data"))
    assert np.bincount(X[:, pair[0]]) / len(X) == pytest.approx([0.25, 0.5, 0.25], abs=0.02)
    for first in range(3):
        for second in range(3):
            here = (X[:, pair[0]] == first) & (X[:, pair[1]] == second)
            assert y[here].mean() == pytest.approx(risk[first, second], abs=0.04)
    assert X.min() == 0
    assert X.max() == 2


def test_with_two_tables_half_of_the_rows_owe_it_to_each():
    risk = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    tables = [Penetrance(risk, (0.5, 0.5))] * 2
    X, y, pairs = draw_cases(6, 40_000, tables, generator=seeded_generator(2, "data"))
    assert len({*pairs[0], *pairs[1]}) == 4
    for pair in pairs:
        says = risk[tuple(X[:, pair].T)]
        assert (says == y).mean() == pytest.approx(0.75, abs=0.02)  # its own half, and half of the other


def test_a_seed_draws_the_same_people_again():
    table = draw_penetrance((0.3, 0.4), heritability=0.1, generator=torch.Generator().manual_seed(3))
    once, again = (draw_cases(9, 50, [table], generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert (once[0] == again[0]).all()
    assert (once[1] == again[1]).all()
    assert once[2] == again[2]
