import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.readouts import NAMED_READOUTS, check_named_readout, check_readout
from own_parts import Silent, Steep
from parityscope import InvalidInput, ZigZag
from parityscope.models import Wave

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


@pytest.mark.parametrize("name", NAMED_READOUTS)
def test_a_named_readout_is_what_it_says(name):
    check_named_readout(name)


@pytest.mark.parametrize("readout", [Steep(), Silent()])
def test_a_readout_of_one_s_own_is_what_it_says(readout):
    check_readout(readout, 3)


def test_zig_zag_swings_to_2k_minus_1():
    inside = GRID[(GRID >= 0) & (GRID <= 5)]
    assert ZigZag(5)(inside).abs().max() == pytest.approx(9, abs=0.1)


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
