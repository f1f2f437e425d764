import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from additive_model import AdditiveModel
from parityscope import (
    Cosine,
    InvalidInput,
    Parity,
    ParityTransformer,
    population_accuracy,
    population_risk,
)
from parityscope.models.positions import orthogonal


@given(n=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_exact_accuracy_of_the_cosine_readout(n, seed):
    generator = torch.Generator().manual_seed(seed)
    k = 1 + seed % n
    problem = Parity.random(n, k, generator)
    weights = k * torch.softmax(torch.randn(n, dtype=torch.float64, generator=generator), 0)
    model = AdditiveModel(weights, Cosine())
    ours = population_accuracy(model, problem, engine="split").value.item()
    assert ours == pytest.approx(population_accuracy(model, problem, engine="enumerate").value.item(), abs=1e-12)


def test_forty_bits_solved_by_one_hot_heads_have_no_risk():
    support = (3, 17, 38)
    directions = 60.0 * orthogonal(40)[list(support)]
    model = ParityTransformer(40, 3, temperature=1.0, positions=orthogonal(40), directions=directions)
    assert population_risk(model, Parity(40, support)).value.item() == pytest.approx(0.0, abs=1e-12)
    assert population_accuracy(model, Parity(40, support)).value.item() == 1.0
    assert population_accuracy(model, Parity(40, (3, 17, 37))).value.item() == pytest.approx(0.5, abs=1e-12)


def test_too_large_a_request_says_what_it_needs():
    with pytest.raises(InvalidInput, match=r"the split engine needs about \d+ GB at n = 60, k = 3 and stops at 8 GB"):
        population_risk(ParityTransformer(60, 3), Parity(60, (0, 1, 2)), engine="split")
