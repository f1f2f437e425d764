import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope import InvalidInput, Parity, draw_problems
from parityscope.problems import bits_of, seeded_generator


@st.composite
def sizes(draw, max_n=10):
    n = draw(st.integers(1, max_n))
    support = draw(st.sets(st.integers(0, n - 1), min_size=1))
    return n, tuple(support)


@given(sizes())
def test_label_is_the_product_of_signs(size):
    problem = Parity(*size)
    for x, y in problem.enumerate(chunk=7):
        signs = (-1.0) ** x[:, list(problem.support)].double()
        assert torch.equal(signs.prod(-1), y.double())


@given(sizes(), st.integers(1, 100))
def test_enumeration_visits_every_input_once_whatever_the_chunk(size, chunk):
    problem = Parity(*size)
    rows = torch.cat([x for x, _ in problem.enumerate(chunk)])
    assert torch.equal(rows, bits_of(torch.arange(2**problem.n), problem.n))
    assert len(torch.unique(rows, dim=0)) == 2**problem.n


def test_biased_bits_and_noisy_labels_have_the_stated_rates():
    problem = Parity(30, (2, 9), bias=0.2, noise=0.1)
    x, y = problem.sample(20_000, torch.Generator().manual_seed(1))
    # Five standard deviations: 0.4/√600000 for the bits, 0.3/√20000 for the flips.
    assert x.double().mean().item() == pytest.approx(0.2, abs=5 * 0.4 / 600_000**0.5)
    assert (y != problem.label(x)).double().mean().item() == pytest.approx(0.1, abs=5 * 0.3 / 20_000**0.5)


def test_the_same_seed_draws_the_same_problem_alone_or_in_a_batch():
    assert draw_problems(50, 4, [5])[0] == draw_problems(50, 4, range(10))[5]
    assert len({p.support for p in draw_problems(50, 4, range(10))}) > 1


def test_streams_of_one_seed_differ():
    draws = {torch.rand(1, generator=seeded_generator(3, s)).item() for s in ("support", "positions", "start", "data")}
    assert len(draws) == 4


def test_support_is_kept_sorted():
    assert Parity(9, (7, 1)).support == (1, 7)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Parity(0, ()), "n must be at least 1, got 0"),
        (lambda: Parity(5, ()), "k must lie between 1 and n = 5, got 0"),
        (lambda: Parity(2, (0, 1, 2)), "k must lie between 1 and n = 2, got 3"),
        (lambda: Parity(5, (1, 1)), "support repeats a position: 1,1"),
        (lambda: Parity(5, (5,)), "support position 5 is out of range: 0 to 4"),
        (lambda: Parity(5, (-1,)), "support position -1 is out of range: 0 to 4"),
        (lambda: Parity(5, (1,), bias=1.0), "bias must lie strictly between 0 and 1, got 1.0"),
        (lambda: Parity(5, (1,), noise=0.5), "noise must be at least 0 and below 0.5, got 0.5"),
        (lambda: Parity(3, (1,)).label(torch.tensor([[0, 2, 1]])), "bits must be 0 or 1, got 2"),
        (lambda: Parity(3, (1,)).label(torch.tensor([[0, torch.nan, 1]])), "inputs contain NaN"),
        (lambda: Parity(3, (1,)).label(torch.zeros(4, 2)), "inputs must have n = 3 bits"),
        (lambda: Parity(3, (1,)).sample(0, torch.Generator()), "the number of samples must be at least 1, got 0"),
        (lambda: draw_problems(4, 5, [0]), "k must lie between 1 and n = 4, got 5"),
        (lambda: seeded_generator(-1, "data"), "seed must be 0 or more, got -1"),
    ],
)
def test_bad_input_is_named_in_one_sentence(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()
