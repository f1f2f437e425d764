"""Walsh spectra against boofun (PyPI), a library for the analysis of Boolean functions."""

import itertools
import warnings

import numpy as np
import pytest
import torch

from parityscope import Parity, ParityTransformer, SparseParityClassifier, population_accuracy, population_risk
from parityscope.models import Triangle

with warnings.catch_warnings():  # it complains of libraries that it could use
    warnings.simplefilter("ignore")
    boofun = pytest.importorskip("boofun", reason="needs boofun: pip install 'parityscope[cross-checks]'")

N = 6
INPUTS = torch.tensor(list(itertools.product((0, 1), repeat=N)))  # the first bit is the highest
SUPPORTS = [subset for k in range(1, N + 1) for subset in itertools.combinations(range(N), k)]


def spectrum_of(truth_table):
    """Return boofun's coefficient of every support; its labels are 0 and 1, of which 0 stands for +1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coefficients = boofun.create(truth_table.tolist()).fourier()
    return {support: coefficients[sum(1 << (N - 1 - j) for j in support)] for support in SUPPORTS}


def model_of(seed):
    directions = torch.randn(3, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return ParityTransformer(N, 3, 3, 0.5, directions=directions, readout=Triangle(3))


def test_boofun_has_the_order_of_bits_that_is_assumed_here():
    for support in SUPPORTS:
        parity = INPUTS[:, list(support)].sum(-1) % 2
        assert {found for found, value in spectrum_of(parity).items() if abs(value) > 1e-9} == {support}
        assert spectrum_of(parity)[support] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(4))
def test_accuracies_are_the_walsh_spectrum_of_the_sign(seed):
    """P(sign ŷ = χ_B) = (1 + the coefficient of B)/2, for each of the 63 parities that could be hidden."""
    model = model_of(seed)
    predictions = model(INPUTS).detach()
    assert predictions.abs().min() > 1e-9  # no ties, which a truth table cannot have
    theirs = spectrum_of((predictions < 0).int())
    for support in SUPPORTS:
        ours = 2 * population_accuracy(model, Parity(N, support)).value.item() - 1
        assert ours == pytest.approx(theirs[support], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_risks_are_the_walsh_spectrum_of_the_sign(seed):
    """Of a model that says ±1 the hinge risk is 1 minus the coefficient of B."""

    class Sign(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model_of(seed)

        def forward(self, x):
            return self.model(x).sign()

    theirs = spectrum_of((Sign()(INPUTS) < 0).int())
    for support in SUPPORTS[::5]:
        risk = population_risk(Sign(), Parity(N, support), loss="hinge")
        assert 1 - risk.value.item() == pytest.approx(theirs[support], abs=1e-12)


def test_what_the_estimator_names_is_the_largest_coefficient():
    """On the table of all inputs, ten times over, with some labels wrong: the largest coefficient is found."""
    for seed in range(4):
        random = np.random.RandomState(seed)
        heavy = SUPPORTS[random.randint(7, len(SUPPORTS))]
        table = INPUTS[:, list(heavy)].sum(-1).numpy() % 2
        table = np.where(random.rand(len(table)) < 0.15, 1 - table, table)
        theirs = spectrum_of(table)
        largest = max(theirs, key=lambda support: abs(theirs[support]))
        X, y = np.tile(INPUTS.numpy(), (10, 1)), np.tile(table, 10)
        found = SparseParityClassifier(k=len(largest)).fit(X, y)
        assert tuple(found.support_) == largest
        agrees = (INPUTS[:, list(largest)].sum(-1).numpy() % 2 == table).mean()
        assert theirs[largest] == pytest.approx(2 * agrees - 1)
