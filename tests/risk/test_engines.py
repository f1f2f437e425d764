"""Every engine by name: its value, gradient and accuracy against all inputs, its batches, its refusals."""

import pytest

from harness.engines import ENGINE_CASES, check_batch, check_engine, check_refusals
from parityscope.risk.engines import closed_form
from parityscope.risk.population import ENGINES


def test_every_engine_has_its_line():
    assert set(ENGINE_CASES) == set(ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_within_its_error_of_all_inputs_with_their_gradient(engine):
    check_engine(engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_give_together_what_they_give_alone(engine):
    check_batch(engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_does_not_cover_it_refuses_in_a_sentence(engine):
    check_refusals(engine)


@pytest.mark.slow
@pytest.mark.parametrize("error", [lambda mean: mean + 1e-9, lambda mean: mean + 1e-6 * (mean - mean.detach())])
def test_the_harness_notices_a_wrong_value_and_a_wrong_gradient(monkeypatch, error):
    right = closed_form.closed_form_mean
    monkeypatch.setattr(closed_form, "closed_form_mean", lambda *arguments: error(right(*arguments)))
    with pytest.raises(AssertionError):
        check_engine("closed-form")
