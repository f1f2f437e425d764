import pytest
import torch

from parityscope.models import FFNN1
from parityscope.papers.h1.figures.other_functions import FUNCTIONS, attention_networks, hidden_places, matched_width
from parityscope.problems import bits_of


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_is_a_sign_that_depends_on_all_its_bits(name):
    few = FUNCTIONS[name]
    signs = 1.0 - 2 * bits_of(torch.arange(2**few.k), few.k)
    labels = few.label(signs)
    assert set(labels.tolist()) == {-1.0, 1.0}
    for bit in range(few.k):
        flipped = signs.clone()
        flipped[:, bit] *= -1
        assert (few.label(flipped) != labels).any()


def test_truth_tables():
    signs = 1.0 - 2 * bits_of(torch.arange(8), 3)  # row 7 has every bit 1
    assert FUNCTIONS["AND"].label(signs).tolist() == [-1.0] * 7 + [1.0]
    assert FUNCTIONS["majority"].label(signs).tolist() == [1, 1, 1, -1, 1, -1, -1, -1]
    assert FUNCTIONS["parity"].label(signs).tolist() == [1, -1, -1, 1, -1, 1, 1, -1]


def test_matched_width_is_the_widest_that_fits():
    for n in (8, 64):
        for parameters in (n + 3, 200, 417):
            width = matched_width(parameters, n)
            assert FFNN1(n, width).trained_parameters() <= parameters
            assert FFNN1(n, width + 1).trained_parameters() > parameters


def test_a_seed_has_its_own_places_positions_and_start():
    assert (hidden_places(20, 3, [4])[0] == hidden_places(20, 3, range(8))[4]).all()
    alone, among = attention_networks(10, 3, [5]), attention_networks(10, 3, [2, 5])
    x = torch.ones(4, 10)
    assert torch.allclose(alone(x)[0], among(x)[1])
