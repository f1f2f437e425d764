import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parityscope import InvalidInput, Parity, draw_problems, learn
from parityscope.problems import seeded_generator
from parityscope.theory import path_samples, phase_signal, wide_phase
from parityscope.training.attention_path import named_set, path_gradients

FRESH = range(1000, 1032)


def every_input(problem):
    x = torch.tensor(list(product((0, 1), repeat=problem.n)), dtype=torch.int8)
    return x, problem.label(x).to(torch.int8)


def correlation(x, y, weights, k):
    """Return the mean of y·cos(π(S − (Λ − k)/2)), as the readout is written down."""
    S = x.double() @ weights
    return (y * (math.pi * (S - (weights.sum() - k) / 2)).cos()).mean()


@pytest.mark.parametrize("named", [(), (3,), (1, 4), (0, 5, 6)])
def test_it_is_the_gradient_of_the_empirical_correlation(named):
    x, y = Parity(9, (0, 3, 5, 6), noise=0.2).sample(50, torch.Generator().manual_seed(1))
    left, rest = 4 - len(named), 9 - len(named)
    width = wide_phase(rest, left) if left > 1 else 0.0
    weights = torch.full((9,), width / rest, dtype=torch.float64)
    weights[list(named)] = 1.0
    weights.requires_grad_()
    correlation(x, y, weights, 4).backward()
    others = [position for position in range(9) if position not in named]
    gradient = path_gradients(x, y, torch.tensor([named], dtype=torch.int64), 4)[0]
    assert torch.allclose(gradient[others].double(), 2 / math.pi * weights.grad[others], atol=1e-6)
    assert (gradient[list(named)] == -math.inf).all()


@given(st.integers(2, 4), st.data())
def test_on_all_inputs_the_rest_of_b_is_largest_and_beside_a_wrong_bit_there_is_nothing(k, data):
    problem = Parity(8, tuple(sorted(data.draw(st.permutations(range(8)))[:k])))
    m = data.draw(st.integers(1, k - 1))
    x, y = every_input(problem)
    hidden, missing = list(problem.support[:m]), list(problem.support[m:])
    wrong = [position for position in range(8) if position not in problem.support]
    right = path_gradients(x, y, torch.tensor([hidden]), k)[0]
    width = wide_phase(8 - m, k - m) if k - m > 1 else 0.0
    assert right[missing].tolist() == pytest.approx([phase_signal(8 - m, k - m, width)] * (k - m), abs=1e-6)
    assert (right[wrong] < 1e-6).all()
    astray = path_gradients(x, y, torch.tensor([[*hidden[1:], wrong[0]]]), k)[0]
    assert astray[missing + wrong[1:]].abs().max() < 1e-6


@pytest.mark.parametrize(("n", "k", "noise"), [(100, 2, 0.0), (20, 3, 0.2), (12, 4, 0.0), (30, 1, 0.1)])
def test_the_theorems_number_of_examples_is_enough(n, k, noise):
    count = math.ceil(path_samples(n, k, noise=noise))
    for problem, seed in zip(draw_problems(n, k, FRESH[:8], noise=noise), FRESH[:8], strict=True):
        assert named_set(*problem.sample(count, seeded_generator(seed, "data")), k).support == problem.support


@pytest.mark.parametrize(("n", "k", "samples", "noise"), [(100, 2, 40, 0.0), (50, 3, 300, 0.0), (20, 3, 150, 0.2)])
def test_concave_learns_from_few_examples(n, k, samples, noise):
    run = learn(draw_problems(n, k, FRESH, noise=noise), "concave", FRESH, samples=samples)
    assert run.success.successes >= 29
    assert (run.learned == run.recovered).all()  # what is named is learned
    right = run.recovered
    assert (run.evidence.z[right] > 0.7 * math.sqrt(samples) * (1 - 2 * noise)).all()


def test_coin_flips_are_no_evidence():
    x, y = Parity(30, (1, 2, 3), noise=0.5 - 1e-9).sample(300, torch.Generator().manual_seed(0))
    assert named_set(x, y, 3).log_chance > math.log(0.01)


def test_ties_and_all_bits():
    assert named_set(torch.zeros(1, 4, dtype=torch.int8), torch.ones(1, dtype=torch.int8), 2).support == (0, 1)
    x, y = Parity(4, (0, 1, 2, 3)).sample(60, torch.Generator().manual_seed(0))
    assert named_set(x, y, 4).support == (0, 1, 2, 3)


def test_biased_bits_are_refused_before_the_search():
    with pytest.raises(InvalidInput, match=r"fair bits, got bias = 0\.3, with which log\|C\| is not concave"):
        learn(Parity(8, (1, 2), bias=0.3), "concave", samples=100)
