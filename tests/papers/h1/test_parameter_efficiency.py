import torch

from parityscope import draw_problems
from parityscope.models import FFNN1, parity_ffnn
from parityscope.papers.h1.figures.parameter_efficiency import CONFIGS, network_learned, parity_target, run, smallest
from parityscope.records import Row
from parityscope.training.networks import stacked


def test_targets_are_the_labels():
    problems = draw_problems(7, 3, range(4))
    x, _ = problems[0].sample(20, torch.Generator().manual_seed(0))
    labels = torch.stack([problem.label(x) for problem in problems])
    assert (parity_target(problems)(x.float().expand(4, -1, -1)) == labels).all()


def test_the_construction_counts_as_learned_and_a_random_network_does_not():
    problems = draw_problems(7, 3, range(3))
    nets = [parity_ffnn(7, problems[0].support), parity_ffnn(7, problems[1].support), FFNN1(7, 3)]
    assert network_learned(stacked(nets), problems).tolist() == [True, True, False]


def test_growing_stops_at_the_first_width_that_learns_every_seed():
    config = next(c for c in CONFIGS["smoke"] if c.kind == "FFNN-1")
    numbers = run(config).numbers
    counts = [one["learned"] for one in numbers["tried"]]
    assert all(count < config.seeds for count in counts[:-1])
    assert numbers["edge_missing"] == 0.5
    row = Row("x", config.model_dump(), {"tried": [{"learned": 2, "parameters": 1}, {"learned": 3, "parameters": 9}]})
    assert smallest(row)["parameters"] == 9  # 2 of 4 is not more than half
