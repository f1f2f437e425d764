import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from additive_model import AdditiveModel
from parityscope import Cosine, Parity, ParityTransformer, Readout, population_accuracy, population_risk
from parityscope.models import Wave
from parityscope.risk import law_of
from parityscope.risk.engines.closed_form import certified_perfect, exact_correlation


@given(st.integers(2, 10), st.integers(0, 1000))
def test_the_three_formulas_of_the_page(n, seed):
    """C, the hinge risk and the squared-hinge risk as stated for attention weights, Σc = k."""
    generator = torch.Generator().manual_seed(seed)
    k = 1 + seed % n
    problem = Parity.random(n, k, generator)
    c = k * torch.softmax(torch.randn(n, generator=generator, dtype=torch.float64), 0)
    mask = problem.mask()
    C = (math.pi / 2 * c[mask]).sin().prod() * (math.pi / 2 * c[~mask]).cos().prod()
    model = AdditiveModel(c, Cosine())
    assert exact_correlation(model.additive_score(), law_of(problem)).item() == pytest.approx(C.item(), abs=1e-14)
    hinge = population_risk(model, problem, loss="hinge", engine="enumerate").value.item()
    squared = population_risk(model, problem, loss="squared-hinge", engine="enumerate").value.item()
    assert hinge == pytest.approx(1 - C.item(), abs=1e-13)
    extra = 0.5 * (-1) ** k * (math.pi * c).cos().prod().item()
    assert squared == pytest.approx(1.5 - 2 * C.item() + extra, abs=1e-13)
    # accuracy ≥ C, because a wrong sign costs a hinge loss of at least 1
    assert population_accuracy(model, problem).value.item() >= C.item() - 1e-12


def test_the_certificate_means_every_input_is_right():
    problem = Parity(10, (2, 5, 7))
    generator = torch.Generator().manual_seed(0)
    kept = 0
    for _ in range(200):
        noise = torch.randn(10, generator=generator, dtype=torch.float64)
        c = (
            problem.mask().double()
            + 0.8 * torch.rand((), generator=generator, dtype=torch.float64) * noise / noise.abs().sum()
        )
        model = AdditiveModel(c, Cosine())
        if certified_perfect(model.additive_score(), law_of(problem)):
            kept += 1
            assert population_accuracy(model, problem).value.item() == 1.0
    assert 20 < kept < 200


def test_it_reaches_a_thousand_bits():
    model = ParityTransformer(1000, 10, readout=Cosine(), temperature=1e6)
    risk = population_risk(model, Parity(1000, tuple(range(10))), loss="hinge")
    assert risk.engine == "closed-form"
    c = 10 / 1000
    expected = 10 * math.log(math.sin(math.pi * c / 2)) + 990 * math.log(math.cos(math.pi * c / 2))
    C = exact_correlation(model.additive_score(), law_of(Parity(1000, tuple(range(10))))).item()
    assert math.log(C) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_several_waves_of_several_sizes_are_those_of_all_inputs(loss):
    class Two(Readout):
        bounded = True

        def forward(self, S):
            return 0.7 * torch.cos(torch.pi * S) - 0.3 * torch.cos(3 * torch.pi * S)

        def cosine_series(self):
            return (Wave(1.0, 0.7), Wave(3.0, -0.3))

    weights = torch.linspace(0.1, 0.7, 7, dtype=torch.float64)
    model, problem = AdditiveModel(weights, Two(), 0.2), Parity(7, (1, 4), bias=0.3, noise=0.1)
    exact, visited = (population_risk(model, problem, loss=loss, engine=name) for name in ("closed-form", "enumerate"))
    assert abs(exact.value - visited.value) <= exact.error_bound + visited.error_bound
    assert exact.error_bound < 1e-12
