import pytest
import torch

from parityscope.models import FFNN1
from parityscope.papers.h1.figures.other_functions import (
    CONFIGS,
    FUNCTIONS,
    FunctionTraining,
    FunctionTrainingNumbers,
    attention_networks,
    findings,
    hidden_places,
    hidden_target,
    matched_width,
    table,
)
from parityscope.problems import bits_of
from parityscope.records import Row


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


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_truth_table_is_the_function_of_the_bits_at_the_hidden_places(name):
    few = FUNCTIONS[name]
    places = hidden_places(9, few.k, range(4))
    x = torch.randint(0, 2, (4, 50, 9), generator=torch.Generator().manual_seed(0)).float()
    signs = torch.stack([1 - 2 * x[run][:, places[run]] for run in range(4)])
    assert (hidden_target(few.labels(), places)(x) == few.label(signs)).all()


def test_every_config_carries_the_table_of_its_function():
    assert all(one.labels == FUNCTIONS[one.function].labels() for one in CONFIGS["reference"])
    assert all(one.k == FUNCTIONS[one.function].k for one in CONFIGS["reference"])


@pytest.mark.parametrize("architecture", ["attention", "FFNN-1"])
def test_a_function_of_one_bit_is_learned_and_the_better_rate_kept(architecture):
    config = FunctionTraining(
        function="one bit",
        labels=(1, -1),
        n=6,
        architecture=architecture,
        seeds=3,
        steps=300,
        batch=64,
        rates=(1e-6, 0.03),
    )
    numbers = config.run().numbers
    assert all(numbers.learned)
    assert numbers.rate == 0.03
    assert max(numbers.steps) < 300
    assert min(numbers.accuracy) > 0.99
    assert numbers.named == ((True,) * 3 if architecture == "attention" else None)


def numbers(learned, named=None):
    return FunctionTrainingNumbers(
        learned=learned, accuracy=(1.0, 0.5), steps=(40, 60), named=named, rate=0.03, parameters=100
    )


def test_only_seeds_that_learned_count_for_steps_and_names():
    config = CONFIGS["smoke"][0]
    one, none = numbers((True, False), named=(True, True)), numbers((False, False))
    lines = table([Row(config, one), Row(config, none)]).rows
    assert [line[-2:] for line in lines] == [["40", "1"], ["–", "–"]]
    assert [line[5] for line in lines] == ["1/2 (9%–91%)", "0/2 (0%–66%)"]


def test_findings_set_attention_beside_the_network():
    rows = [
        Row(
            one,
            numbers((True, False), named=(True, False)) if one.architecture == "attention" else numbers((False,) * 2),
        )
        for one in CONFIGS["smoke"]
        if one.function in ("AND", "parity")
    ]
    efficiency, bits = (one.here for one in findings(rows))
    assert "n = 8: AND 1 against 0, parity 1 against 0." in efficiency
    assert bits.startswith("In 2 of 2 runs")
    assert table(rows).rows[1][-3:] == ["0.7500", "–", "–"]
