"""Every engine against a C program that visits all 2^n inputs and knows nothing of this project."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from parityscope import Parity, ParityTransformer, population_accuracy, population_risk
from parityscope.models import ZigZag

LOSSES = ("hinge", "squared-hinge", "logistic")
SOURCE = Path(__file__).with_name("brute_force.c")
ROUNDING = 1e-12  # of the C program, which adds in extended precision; the engines state their own


@pytest.fixture(scope="module")
def brute_force(tmp_path_factory):
    """Return a function that hands a model and a problem to the compiled program."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler: apt-get install gcc")
    program = tmp_path_factory.mktemp("c") / "brute-force"
    subprocess.run([compiler, "-O2", "-std=c99", "-o", program, SOURCE, "-lm"], check=True)

    def mean_over_all_inputs(model, problem, loss):
        weights = model.attention().sum(-2)
        setting = (problem.n, problem.k, LOSSES.index(loss), *map(float.hex, (model.readout.smoothing, problem.bias)))
        words = [*setting, problem.noise, *map(float.hex, weights.tolist()), *problem.support]
        given = " ".join(map(str, words))
        told = subprocess.run([program], input=given, capture_output=True, text=True, check=True).stdout
        return map(float.fromhex, told.split())

    return mean_over_all_inputs


def example(n, k, temperature, smoothing=0.0, seed=0, **law):
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(k, 2, generator=generator, dtype=torch.float64)
    model = ParityTransformer(n, k, k, temperature, directions=directions, readout=ZigZag(k, smoothing))
    support = tuple(torch.randperm(n, generator=generator)[:k].tolist())
    return model, Parity(n, support, **law)


CASES = [  # an engine, a loss, a model and a law for which it is made
    ("enumerate", "squared-hinge", {"n": 12, "k": 3, "temperature": 0.3}),
    ("enumerate", "logistic", {"n": 11, "k": 4, "temperature": 1.0, "smoothing": 0.01}),
    ("split", "squared-hinge", {"n": 16, "k": 3, "temperature": 0.1}),
    ("split", "hinge", {"n": 15, "k": 5, "temperature": 2.0, "bias": 0.3, "noise": 0.1}),
    ("lattice", "squared-hinge", {"n": 14, "k": 3, "temperature": 0.5}),
    ("lattice", "hinge", {"n": 13, "k": 2, "temperature": 0.2, "bias": 0.7}),
    ("auto", "squared-hinge", {"n": 18, "k": 4, "temperature": 4.5}),
    ("auto", "logistic", {"n": 12, "k": 3, "temperature": 0.4}),
    ("auto", "squared-hinge", {"n": 12, "k": 3, "temperature": 1 / 12, "smoothing": 0.01}),
]


@pytest.mark.parametrize(("engine", "loss", "setting"), CASES)
def test_risk_is_that_of_the_c_program(brute_force, engine, loss, setting):
    for seed in range(3):
        model, problem = example(**setting, seed=seed)
        risk = population_risk(model, problem, loss=loss, engine=engine)
        expected, _ = brute_force(model, problem, loss)
        assert abs(risk.value.item() - expected) <= risk.error_bound.item() + ROUNDING * max(1.0, expected)
        assert risk.error_bound.item() < 1e-6


@pytest.mark.parametrize("setting", [setting for _, _, setting in CASES])
def test_accuracy_is_that_of_the_c_program(brute_force, setting):
    model, problem = example(**setting)
    accuracy = population_accuracy(model, problem)
    _, expected = brute_force(model, problem, "hinge")
    assert abs(accuracy.value.item() - expected) <= accuracy.error_bound.item() + ROUNDING
    assert accuracy.error_bound.item() < 1e-9


@pytest.mark.slow
def test_risk_over_four_million_inputs(brute_force):
    model, problem = example(22, 3, 0.2)
    expected, _ = brute_force(model, problem, "squared-hinge")
    for engine in ("split", "lattice"):
        risk = population_risk(model, problem, engine=engine)
        assert abs(risk.value.item() - expected) <= risk.error_bound.item() + ROUNDING * max(1.0, expected)
