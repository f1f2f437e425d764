"""One registry: help, docs, dispatcher and limits know the same engines; `auto` keeps its policy."""

from pathlib import Path

import pytest
import torch

from additive_model import AdditiveModel
from parityscope import Cosine, InvalidInput, Parity, ParityTransformer, Triangle, ZigZag, population_risk
from parityscope.risk.cards import ENGINE_NAMES, engine_help, engine_table
from parityscope.risk.engine import Job
from parityscope.risk.law import law_of
from parityscope.risk.losses import named_loss
from parityscope.risk.population import REGISTRY

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "engines.md"


def test_help_lists_every_engine():
    assert all(f"{name}: " in engine_help() for name in ENGINE_NAMES)


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")
def test_the_page_has_the_table_of_the_cards():
    assert engine_table() in PAGE.read_text()


@pytest.mark.parametrize("engine", REGISTRY.values(), ids=REGISTRY)
def test_a_larger_job_costs_more_and_a_reason_is_words(engine):
    readout = Cosine() if engine.name == "closed-form" else Triangle(2)
    costs = []
    for n, runs in ((20, 1), (20, 8), (24, 8)):
        weights = torch.full((runs, n), 2 / n, dtype=torch.float64)
        job = Job(AdditiveModel(weights, readout, torch.zeros(runs)), law_of(Parity(n, (0, 1))), named_loss("hinge"))
        assert engine.refuses(job) is None
        costs.append(engine.cost(job))
    assert 0 < costs[0] < costs[1] <= costs[2]
    full = Job(ParityTransformer(6, 2, full_matrix=True), law_of(Parity(6, (0, 1))), named_loss("hinge"))
    refusal = engine.refuses(full)
    assert refusal is None if engine.name == "enumerate" else "additive score" in refusal.reason


def test_a_refusal_names_engines_that_do_cover_the_job():
    with pytest.raises(InvalidInput, match=r"closed-form engine needs a readout .* use engine='enumerate' or 'split'"):
        population_risk(ParityTransformer(6, 2), Parity(6, (0, 1)), engine="closed-form")


def test_auto_prefers_what_is_proved_and_says_what_is_not():
    smooth, small, large = Cosine(), Parity(8, (1, 4)), Parity(24, (1, 4))

    def asked(problem):
        weights = torch.linspace(0.01, 0.1, problem.n, dtype=torch.float64)
        return population_risk(AdditiveModel(weights, smooth), problem, loss="logistic")

    assert (asked(small).engine, asked(small).bound_is) == ("enumerate", "proved")
    assert (asked(large).engine, asked(large).bound_is) == ("split", "estimated")


def test_equal_weights_are_grouped_where_that_is_cheaper():
    found = [
        population_risk(AdditiveModel(torch.full((n,), 3 / n, dtype=torch.float64), ZigZag(3)), Parity(n, (0, 1, 2)))
        for n in (10, 34)
    ]
    assert [risk.engine for risk in found] == ["split", "grouped"]


@pytest.mark.parametrize(("readout", "engine"), [(Cosine(), "closed-form"), (Triangle(2), "pair")])
def test_sizes_beyond_the_range_of_doubles_are_compared_too(readout, engine):
    scores = torch.randn(5000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = AdditiveModel(2 * scores.softmax(0), readout)
    assert population_risk(model, Parity(5000, (3, 50)), loss="hinge").engine == engine
