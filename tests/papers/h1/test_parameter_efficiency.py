import torch

from parityscope import draw_problems
from parityscope.models import FFNN1, parity_ffnn
from parityscope.papers.cells import ShownTraining
from parityscope.papers.h1.figures.parameter_efficiency import (
    CONFIGS,
    GrowingNetwork,
    GrowingNetworkNumbers,
    TriedModel,
    TriedModels,
    findings,
    network_learned,
    parity_target,
    table,
    tried_models,
)
from parityscope.papers.h1.trainings import stacked
from parityscope.records import Row


def tried(width, *learned):
    return TriedModel(width=width, parameters=10 * width, learned=learned, rate=0.03)


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
    config = next(one for one in CONFIGS["smoke"] if isinstance(one, GrowingNetwork))
    numbers = config.run().numbers
    assert [one.width for one in numbers.tried] == [2, 16][: len(numbers.tried)]
    assert all(len(one.learned) == config.seeds for one in numbers.tried)
    assert not any(all(one.learned) for one in numbers.tried[:-1])
    assert numbers.edge_missing == 0.5


def test_the_smallest_model_learned_in_more_than_half_of_the_seeds():
    half, most = tried(2, True, True, False, False), tried(4, True, True, True, False)
    assert TriedModels("FFNN-1", 8, 2, [half, most]).smallest == most
    assert TriedModels("FFNN-1", 8, 2, [half]).smallest is None


def test_a_transformer_is_one_tried_model_at_the_rate_of_its_recipe():
    config = next(one for one in CONFIGS["smoke"] if one.model_dump().get("label") == "repaired, population")
    assert isinstance(config, ShownTraining)
    row = Row.of(config, config.training.run())
    shown = tried_models(row)
    assert (shown.kind, shown.n, shown.k) == (config.label, config.training.n, config.training.k)
    (model,) = shown.tried
    assert (model.width, model.parameters, model.rate) == (None, 4, 0.21)
    assert model.share == row.numbers.share


def test_findings_count_networks_of_k_neurons_and_the_missing_edge():
    config = GrowingNetwork(n=20, k=2, seeds=4, steps=1, batch=1)
    numbers = GrowingNetworkNumbers(
        tried=(tried(2, True, False, False, False), tried(4, *[True] * 4)), edge_missing=None
    )
    small = Row(config.model_copy(update={"n": 8}), numbers.model_copy(update={"edge_missing": 0.5}))
    rows = [small, Row(config, numbers)]
    smallest, neurons, edge = (one.here for one in findings(rows))
    assert "FFNN-1: k = 2: 40 (n = 8), 40 (n = 20)" in smallest
    assert "learned 2/8" in neurons
    assert "up to n = 20" in neurons
    assert "between 0.500 and 0.500" in edge
    assert [line[:5] for line in table(rows).rows][1:3] == [
        ["FFNN-1", "8", "2", "4", "40"],
        ["FFNN-1", "20", "2", "2", "20"],
    ]
