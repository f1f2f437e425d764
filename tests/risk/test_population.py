import pytest
import torch

from parityscope import Cosine, InvalidInput, Parity, ParityTransformer, estimated_risk, population_risk
from parityscope.risk import law_of


def test_unknown_engines_and_losses_are_named():
    model, problem = ParityTransformer(6, 2), Parity(6, (0, 1))
    with pytest.raises(InvalidInput, match="unknown engine 'magic': choose one of auto, enumerate"):
        population_risk(model, problem, engine="magic")
    with pytest.raises(InvalidInput, match="unknown loss 'l2': choose one of hinge"):
        population_risk(model, problem, loss="l2")


def test_auto_takes_the_cheapest_engine_that_covers_the_model():
    problem = Parity(6, (0, 1))
    assert population_risk(ParityTransformer(6, 2, readout=Cosine()), problem).engine == "closed-form"
    assert population_risk(ParityTransformer(6, 2), problem).engine == "split"
    assert population_risk(ParityTransformer(6, 2, smoothing=0.1), problem).engine == "enumerate"


def test_a_batch_needs_one_law():
    with pytest.raises(InvalidInput, match="must share n, bias and noise"):
        law_of([Parity(5, (0,)), Parity(6, (0,))])
    with pytest.raises(InvalidInput, match="the list of problems is empty"):
        law_of([])


def test_the_sampled_interval_covers_the_exact_value_as_often_as_it_says():
    model, problem = ParityTransformer(10, 2, generator=torch.Generator().manual_seed(0)), Parity(10, (3, 8))
    exact = population_risk(model, problem).value.item()
    covered = 0
    for seed in range(200):
        estimate = estimated_risk(model, problem, 500, torch.Generator().manual_seed(seed))
        covered += abs(estimate.value.item() - exact) <= estimate.error_bound.item()
    assert 0.90 <= covered / 200 <= 0.99


def test_the_sampled_gradient_is_that_of_the_exact_risk_within_its_error():
    model, problem = ParityTransformer(10, 2, temperature=1.0), Parity(10, (3, 8))
    estimate = estimated_risk(model, problem, 200_000, torch.Generator().manual_seed(0), loss="hinge")
    (sampled,) = torch.autograd.grad(estimate.value, model.parameters())
    (exact,) = torch.autograd.grad(population_risk(model, problem, loss="hinge").value, model.parameters())
    assert torch.allclose(sampled, exact, atol=0.01)


def test_confidence_is_a_probability():
    with pytest.raises(InvalidInput, match=r"confidence must lie strictly between 0 and 1, got 1\.5"):
        estimated_risk(ParityTransformer(4, 2), Parity(4, (0, 1)), 10, torch.Generator(), confidence=1.5)
