import pytest
import torch

from parityscope.papers.h1.figures.adjacent_bits import (
    CONFIGS,
    Distances,
    DistancesNumbers,
    findings,
    hard_attention_is_right,
    hidden_bits,
    largest_overlap,
    plot,
    table,
)
from parityscope.problems import Parity
from parityscope.records import Row
from parityscope.runs import training
from parityscope.training.learning import learn


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


def test_every_distance_is_what_it_gives_alone():
    recipe = training("repaired", 9, 3).recipe
    both, near = (Distances(label="", recipe=recipe, n=9, distances=d, seeds=4).run() for d in ((1, 3), (1,)))
    assert both.numbers.learned[:1] == near.numbers.learned
    assert both.numbers.hard_right[:1] == near.numbers.hard_right
    assert both.numbers.two_in_the_middle[:1] == near.numbers.two_in_the_middle
    assert torch.allclose(both.arrays["overlap"][:1], near.arrays["overlap"], atol=1e-9)
    assert both.arrays["learned"].sum(-1).tolist() == list(both.numbers.learned)


def test_random_signs_have_no_middle():
    recipe = training("bounded", 6, 3).recipe
    assert Distances(label="", recipe=recipe, n=6, distances=(1,), seeds=2).run().numbers.two_in_the_middle is None


def _row(config, learned, hard_right, two_in_the_middle):
    shape = (len(config.distances), config.seeds)
    overlap = torch.arange(shape[1], dtype=torch.float64).expand(shape) / 10
    which = torch.stack([torch.arange(shape[1]) < count for count in learned])
    numbers = DistancesNumbers(learned=learned, hard_right=hard_right, two_in_the_middle=two_in_the_middle)
    return Row(config, numbers, {"overlap": overlap, "learned": which})


def test_only_runs_that_learned_are_asked_for_more():
    circle, signs = CONFIGS["smoke"][1], CONFIGS["smoke"][3]
    rows = [_row(circle, (3, 0, 4), (1, 0, 4), (2, 0, 0)), _row(signs, (4, 4, 4), (4, 4, 4), None)]
    lines = table(rows).rows
    assert lines[0][2:] == ["3/4 (30%–95%)", "0.10", "1/3 (6%–79%)", "2 of 3"]
    assert lines[1][3:] == ["–", "–", "0 of 0"]
    assert lines[3][5] == "–"
    middle, hard, soft = (finding.here for finding in findings(rows))
    assert middle.endswith(": repaired, n = 9: 2 of 3 that learned, median overlap 0.10.")
    assert "repaired, n = 9: 1 of 3 for neighbours, 4 of 4 for larger distances" in hard
    assert "bounded, n = 9: 4/4 (51%–100%) for neighbours, 8/8 (68%–100%) for larger distances" in soft
    _, overlap, right = plot(rows).axes
    assert overlap.lines[0].get_ydata().tolist() == pytest.approx([0.1, 0.15])
    assert right.lines[0].get_ydata().tolist() == pytest.approx([1 / 3, 1.0])
