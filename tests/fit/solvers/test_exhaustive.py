"""Every support scored, against numpy's correlation support by support."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from parityscope.fit.bits.packed import TwoClasses
from parityscope.fit.clock import Clock
from parityscope.fit.solvers.exhaustive import of_size
from parityscope.fit.solvers.walsh import all_sizes, walsh


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
    signs, labels = drawn(9, 150, seed=k, bias=0.35)
    owner = np.arange(9) if owners == "own" else np.array([0, 0, 1, 2, 2, 2, 3, 4, 5])
    expected = by_hand(signs, labels, k, owner)
    found = of_size(TwoClasses.from_signs(signs, labels), k, owner, kept=4)
    assert expected[found[0].bits] == max(expected.values())
    assert [one.strength**2 for one in found] == pytest.approx([float(expected[one.bits]) for one in found], abs=1e-12)
    assert [expected[one.bits] for one in found] == sorted(expected.values(), reverse=True)[:4]
    for one in found:
        chi = np.prod(signs[list(one.bits)], axis=0)
        assert one.strength == pytest.approx(np.corrcoef(chi, labels)[0, 1], abs=1e-12)


@pytest.mark.parametrize("size", [1, 5, 64])
def test_blocks_change_nothing(monkeypatch, size):
    signs, labels = drawn(12, 101, seed=7)
    rows = TwoClasses.from_signs(signs, labels)
    whole = [of_size(rows, k, np.arange(12)) for k in (2, 4)]
    monkeypatch.setattr("parityscope.fit.solvers.exhaustive._BLOCK_SETS", size)
    assert [of_size(rows, k, np.arange(12)) for k in (2, 4)] == whole


def test_a_search_whose_time_is_over_says_so():
    signs, labels = drawn(12, 101, seed=7)
    assert of_size(TwoClasses.from_signs(signs, labels), 3, np.arange(12), clock=Clock(1e-9)) is None


def test_the_spectrum_agrees_with_the_counts():
    signs, labels = drawn(8, 90, seed=3, bias=0.3)
    rows = TwoClasses.from_signs(signs, labels)
    spectrum = all_sizes(rows, 8)
    for k in range(1, 9):
        counted = of_size(rows, k, np.arange(8))
        assert [one.bits for one in spectrum[k]] == [one.bits for one in counted]
        assert [one.strength for one in spectrum[k]] == [one.strength for one in counted]


@pytest.mark.parametrize("bits", [1, 5, 6, 7, 13])
def test_walsh_is_the_sum_over_characters_and_its_own_inverse_up_to_scale(bits):
    values = np.random.RandomState(0).randint(-5, 6, size=2**bits).astype(np.float32)
    spectrum = walsh(values)
    assert (walsh(spectrum) == 2**bits * values).all()
    for s in (0, 2**bits - 1, 2 ** (bits - 1)):
        signs = np.array([(-1) ** (x & s).bit_count() for x in range(2**bits)])
        assert spectrum[s] == (signs * values).sum()


@pytest.mark.parametrize("k", [1, 3, 5])
def test_of_many_equal_supports_every_route_names_the_first(k):
    """The majority of seven bits has the same correlation with all parities of one odd size."""
    bits = 7
    signs = np.array(list(itertools.product((1, -1), repeat=bits)), dtype=np.int8).T
    labels = np.where(signs.sum(axis=0) > 0, 1, -1).astype(np.int8)
    first = list(itertools.combinations(range(bits), k))[:4]
    rows = TwoClasses.from_signs(signs, labels)
    assert [one.bits for one in of_size(rows, k, np.arange(bits), kept=4)] == first
    assert [one.bits for one in all_sizes(rows, bits, kept=4)[k]] == first
