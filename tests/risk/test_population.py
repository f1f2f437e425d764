import pytest
import torch

from additive_model import AdditiveModel
from parityscope import (
    Cosine,
    InvalidInput,
    Parity,
    ParityTransformer,
    ZigZag,
    estimated_risk,
    jittered_risk,
    population_accuracy,
    population_risk,
)
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


class TestExtremes:
    """What a diverging training or a tiny unit leads to is a sentence, or a number that claims no bound."""

    def test_a_temperature_that_scores_cannot_be_divided_by_is_a_sentence(self):
        with pytest.raises(InvalidInput, match="temperature must be at least 1e-300"):
            ParityTransformer(10, 2, temperature=5e-324)

    @pytest.mark.parametrize("n", [10, 100])
    def test_weights_that_are_no_numbers_leave_no_bound(self, n):
        weights = torch.linspace(0.01, 0.03, n, dtype=torch.float64)
        weights[3] = torch.nan
        risk = population_risk(AdditiveModel(weights, ZigZag(2)), Parity(n, (0, 1)))
        assert risk.value.isnan()
        assert risk.error_bound == torch.inf
        assert risk.gradient_bound is None

    @pytest.mark.parametrize("weight", [1e200, -1e308, torch.inf])
    def test_scores_whose_powers_are_no_numbers_end_their_own_run_alone(self, weight):
        weights = torch.linspace(0.01, 0.03, 10, dtype=torch.float64).repeat(2, 1)
        alone = population_risk(AdditiveModel(weights[0], ZigZag(2)), Parity(10, (0, 1)))
        weights[1, 3] = weight
        risk = population_risk(AdditiveModel(weights, ZigZag(2)), Parity(10, (0, 1)))
        assert risk.value[1].isnan()
        assert risk.error_bound[1] == torch.inf
        assert risk.value[0].item() == pytest.approx(alone.value.item(), abs=1e-12)
        assert risk.error_bound[0] < 1e-9

    def test_a_jittered_risk_of_what_is_no_number_is_a_sentence(self):
        weights = torch.full((100,), torch.nan, dtype=torch.float64)
        with pytest.raises(InvalidInput, match="a jittered risk needs finite weights"):
            jittered_risk(AdditiveModel(weights, ZigZag(2)), Parity(100, (0, 1)))

    @pytest.mark.parametrize("count", [population_accuracy, population_risk])
    def test_scores_too_wide_to_cut_a_wave_are_left_to_enumeration(self, count):
        # One piece per unit of score would take gigabytes here.
        weights = 1e8 * torch.rand(12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        model, problem = AdditiveModel(weights, Cosine()), Parity(12, (0, 1))
        found = count(model, problem, engine="auto")
        assert found.engine in ("enumerate", "closed-form")
        assert found.error_bound <= 1
        with pytest.raises(InvalidInput, match="20,000 wide"):
            count(model, problem, engine="split")
