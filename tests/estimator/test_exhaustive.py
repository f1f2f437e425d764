"""Every support scored, against numpy's correlation support by support."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from parityscope.estimator.exhaustive import all_sizes, of_size, walsh


def drawn(bits, rows, seed, bias=0.5):
    random = np.random.RandomState(seed)
    signs = np.where(random.rand(bits, rows) < bias, -1, 1).astype(np.int8)
    return signs, np.where(random.rand(rows) < 0.4, -1, 1).astype(np.int8)


def by_hand(signs, labels, k, owner):
    """Every support with its squared correlation as a fraction, so that ties are ties and not roundings."""
    scored, y, rows = {}, labels.astype(int), len(labels)
    for some in itertools.combinations(range(len(signs)), k):
        if len({owner[i] for i in some}) == k:
            chi = np.prod(signs[list(some)].astype(int), axis=0)
            covariance = rows * int((chi * y).sum()) - int(chi.sum()) * int(y.sum())
            scale = (rows**2 - int(chi.sum()) ** 2) * (rows**2 - int(y.sum()) ** 2)
            scored[some] = Fraction(covariance**2, scale) if scale else Fraction(0)
    return scored


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("owners", ["own", "shared"])
def test_every_size_finds_the_strongest(k, owners):
    signs, labels = drawn(9, 60, seed=k, bias=0.35)
    owner = np.arange(9) if owners == "own" else np.array([0, 0, 1, 2, 2, 2, 3, 4, 5])
    expected = by_hand(signs, labels, k, owner)
    found = of_size(signs, labels, k, owner)
    assert expected[found[0].bits] == max(expected.values())
    assert [one.strength**2 for one in found] == pytest.approx([float(expected[one.bits]) for one in found], abs=1e-12)
    assert [expected[one.bits] for one in found] == sorted(expected.values(), reverse=True)[:4]
    for one in found:
        chi = np.prod(signs[list(one.bits)], axis=0)
        assert one.strength == pytest.approx(np.corrcoef(chi, labels)[0, 1], abs=1e-12)


def test_blocks_of_rows_and_of_prefixes_change_nothing(monkeypatch):
    signs, labels = drawn(12, 101, seed=7)
    whole = of_size(signs, labels, 4, np.arange(12))
    monkeypatch.setattr("parityscope.estimator.exhaustive._BLOCK_NUMBERS", 64)
    monkeypatch.setattr("parityscope.estimator.exhaustive._GROUP_NUMBERS", 1)
    assert of_size(signs, labels, 4, np.arange(12)) == whole


def test_the_spectrum_agrees_with_the_products():
    signs, labels = drawn(8, 90, seed=3, bias=0.3)
    spectrum = all_sizes(signs, labels, 8)
    for k in range(1, 9):
        assert spectrum[k][0].bits == of_size(signs, labels, k, np.arange(8))[0].bits
        assert spectrum[k][0].strength == pytest.approx(of_size(signs, labels, k, np.arange(8))[0].strength)


def test_walsh_is_its_own_inverse_up_to_scale():
    values = np.random.RandomState(0).randn(64)
    assert walsh(walsh(values)) == pytest.approx(64 * values)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_of_many_equal_supports_every_route_names_the_first(k):
    """The majority of seven bits has the same correlation with all parities of one odd size."""
    bits = 7
    signs = np.array(list(itertools.product((1, -1), repeat=bits)), dtype=np.int8).T
    labels = np.where(signs.sum(axis=0) > 0, 1, -1).astype(np.int8)
    first = list(itertools.combinations(range(bits), k))[:4]
    assert [one.bits for one in of_size(signs, labels, k, np.arange(bits))] == first
    assert [one.bits for one in all_sizes(signs, labels, bits)[k]] == first
