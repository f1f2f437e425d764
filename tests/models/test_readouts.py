import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from own_parts import Silent, Steep
from parityscope import Cosine, InvalidInput, Triangle, ZigZag
from parityscope.models import Wave
from readout_harness import check_readout

GRID = torch.linspace(-1, 8, 2001, dtype=torch.float64)


def equation_2(S, k, b):
    """H1, Eq. (2), as printed."""
    i = torch.arange(1, k + 1, dtype=torch.float64)
    z = S[:, None] + 0.5 - i
    sigma = (z + (z**2 + b).sqrt()) / 2
    return 1 + ((-1) ** i * (8 * i - 4) * sigma).sum(-1)


@given(st.integers(1, 7), st.sampled_from([0.0, 0.01, 1.0]))
def test_zig_zag_is_equation_2(k, b):
    assert torch.allclose(ZigZag(k, b)(GRID), equation_2(GRID, k, b), atol=1e-11)


@pytest.mark.parametrize("readout", [ZigZag(6), Cosine(), Triangle(6)])
def test_every_readout_is_the_parity_at_integers(readout):
    integers = torch.arange(7, dtype=torch.float64)
    assert torch.allclose(readout(integers), (-1.0) ** integers, atol=1e-12)


@pytest.mark.parametrize("readout", [ZigZag(4), ZigZag(4, 0.1), Cosine(), Triangle(4)])
def test_slope_is_the_derivative(readout):
    S = GRID[(GRID * 2 % 1).sub(0.5).abs() < 0.49]  # away from kinks at integers and half-integers
    value, slope = readout.value_and_slope(S)
    step = 1e-6
    finite = (readout(S + step) - readout(S - step)) / (2 * step)
    assert torch.allclose(value, readout(S), atol=1e-14)
    assert torch.allclose(slope, finite, atol=1e-5)


def test_zig_zag_swings_to_2k_minus_1_and_the_bounded_readouts_do_not():
    inside = GRID[(GRID >= 0) & (GRID <= 5)]
    assert ZigZag(5)(inside).abs().max() == pytest.approx(9, abs=0.1)
    assert Cosine()(inside).abs().max() <= 1
    assert Triangle(5)(inside).abs().max() <= 1 + 1e-12


@pytest.mark.parametrize("readout", [ZigZag(3), ZigZag(3, 0.1), Cosine(), Triangle(3), Steep(), Silent()])
def test_what_a_readout_says_of_itself_is_so(readout):
    check_readout(readout, 3)


def test_the_harness_notices_a_wrong_answer():
    class Wrong(Steep):
        def cosine_series(self):
            return (Wave(1.0, 1.0),)

    class Unbounded(ZigZag):
        bounded = True

    for wrong in (Wrong(), Unbounded(3)):
        with pytest.raises(AssertionError):
            check_readout(wrong, 3)


def test_negative_smoothing_is_refused():
    with pytest.raises(InvalidInput, match=r"smoothing b must be 0 or more, got -0\.1"):
        ZigZag(3, -0.1)
