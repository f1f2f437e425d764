import pytest
import torch

from parityscope import Parity, learn
from parityscope.papers.h1.figures.adjacent_bits import hard_attention_is_right, hidden_bits, largest_overlap


@pytest.mark.parametrize("n", [12, 20])
def test_hidden_bits_have_the_distance_and_an_opposite_third(n):
    for distance in range(1, n // 3 + 1):
        for turn in range(n):
            bits = hidden_bits(n, distance, turn)
            gaps = sorted(min((a - b) % n, (b - a) % n) for a in bits for b in bits if a < b)
            assert gaps[0] == distance
            assert gaps[1] >= distance


@pytest.mark.parametrize("recipe", ["repaired", "as-coded"])
def test_hard_attention_is_right_exactly_when_every_input_is(recipe):
    problems = [Parity(8, hidden_bits(8, 1 + seed % 2, seed)) for seed in range(12)]
    run = learn(problems, recipe, range(12), steps=40)
    x = torch.cat([x for x, _ in problems[0].enumerate()])
    labels = torch.stack([problem.label(x) for problem in problems])
    right = ((run.model(x, hard=True) > 0) == (labels > 0)).all(-1)
    assert hard_attention_is_right(run).tolist() == right.tolist()
    assert 0 < int(right.sum()) < 12 or recipe == "as-coded"


def test_overlap_is_one_for_equal_heads_and_zero_for_disjoint_ones():
    one, other = torch.tensor([0.5, 0.5, 0.0, 0.0]), torch.tensor([0.0, 0.0, 0.3, 0.7])
    assert largest_overlap(torch.stack([one, other])[None]).item() == 0
    assert largest_overlap(torch.stack([one, other, one])[None]).item() == 1
