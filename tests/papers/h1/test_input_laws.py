import re
from dataclasses import replace

import pytest
import torch

from parityscope.models import parity_ffnn, parity_transformer
from parityscope.papers.cells import ShownTraining
from parityscope.papers.claim import computed
from parityscope.papers.h1.figures.input_laws import CONFIGS, Constructions, findings, plot, table
from parityscope.problems import Parity
from parityscope.risk import population_risk


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("bias", [0.5, 0.2])
def test_the_parity_has_risk_four_times_the_noise_and_the_best_predictor_less(bias, noise):
    problem = Parity(8, (0, 3, 5), bias=bias, noise=noise)
    net = parity_ffnn(8, problem.support)
    assert float(population_risk(net, problem).value.detach()) == pytest.approx(4 * noise, abs=1e-12)
    with torch.no_grad():
        net.alpha *= 1 - 2 * noise
        net.bias *= 1 - 2 * noise
    assert float(population_risk(net, problem).value.detach()) == pytest.approx(4 * noise * (1 - noise), abs=1e-12)


def test_the_transformer_is_exact_in_the_limit_of_a_small_temperature():
    problem = Parity(10, (2, 3, 7), bias=0.3)
    with torch.no_grad():
        models = [parity_transformer(10, problem.support, temperature) for temperature in (0.1, 0.03, 0.003)]
        risks = [float(population_risk(model, problem).value) for model in models]
    assert risks[0] > risks[1] > risks[2] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("bias", "noise"), [(0.3, 0.0), (0.5, 0.2)])
def test_the_constructions_lose_less_the_sharper_they_attend(bias, noise):
    numbers = Constructions(n=6, k=2, bias=bias, noise=noise, seeds=3).run().numbers
    assert numbers.ffnn == pytest.approx(0, abs=1e-12)
    assert sorted(numbers.transformer[:3], reverse=True) == list(numbers.transformer[:3])
    assert numbers.transformer[-1] < 1e-9


@pytest.fixture(scope="module")
def rows():
    """Return all smoke rows, one training shown for every learner and law."""
    trained = computed(next(one for one in CONFIGS["smoke"] if isinstance(one, ShownTraining)).training)
    return [
        replace(trained, config=one) if isinstance(one, ShownTraining) else computed(one) for one in CONFIGS["smoke"]
    ]


def test_every_learner_meets_every_law_of_the_constructions(rows):
    lines = table(rows).rows
    laws = [line[1:3] for line in lines if line[0].startswith("Prop. 3")]
    assert laws == [["0.5", "0"], ["0.3", "0"], ["0.5", "0.1"]]
    for learner in ("repaired, population", "bounded, population", "bounded, 500 examples"):
        assert [line[1:3] for line in lines if line[0] == learner] == laws
    # A constant says −1: right unless both bits of k = 2 differ.
    assert [line[6] for line in lines[-3:]] == ["0.5000", f"{0.3**2 + 0.7**2:.4f}", "0.5000"]


def test_bias_and_noise_are_told_apart(rows):
    expressed, biased, noisy = (finding.here for finding in findings(rows))
    most = re.match(r"Over 3 distributions FFNN-1's risk beyond the parity's own 4ν is at most (\S+);", expressed)
    assert float(most[1]) < 1e-14
    assert biased.startswith("repaired, population: 4 of 4 at p = 0.3; bounded, population: ")
    assert noisy.endswith("bounded, 500 examples: 4 of 4 at ν = 0.1.")
    left, against_bias, against_noise = plot(rows).axes
    assert len(left.lines) == 3  # two laws with clean labels, and FFNN-1
    assert against_bias.lines[3].get_xdata().tolist() == pytest.approx([0.3, 0.5])
    assert against_noise.lines[3].get_xdata().tolist() == pytest.approx([0.0, 0.1])
