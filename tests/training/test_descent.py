import pytest
import torch
from torch import nn

from parityscope import RECIPES
from parityscope.training.descent import Evaluation, TrainingState, descend, make_optimiser


class Bowl(nn.Module):
    """One number per run, risk (x − run)²: every run has its own minimum."""

    def __init__(self, runs):
        super().__init__()
        self.x = nn.Parameter(torch.full((runs, 1), 5.0, dtype=torch.float64))

    def evaluate(self):
        risk = (self.x[:, 0] - torch.arange(len(self.x))).square()
        return Evaluation(risk, risk)


def recipe(**changes):
    return RECIPES["as-coded"].overridden(**changes).resolved(8, 2)


def train(model, chosen, **options):
    return descend(
        model, model.evaluate, chosen, TrainingState.fresh(len(model.x)), make_optimiser(model, chosen), **options
    )


def test_gradient_descent_follows_its_formula():
    model = Bowl(3)
    train(model, recipe(optimiser="gradient-descent", learning_rate=0.1, steps=7))
    runs = torch.arange(3, dtype=torch.float64)
    assert torch.allclose(model.x[:, 0], runs + (5 - runs) * 0.8**7)


def test_a_run_stops_at_its_own_step_and_then_keeps_its_parameters():
    model = Bowl(6)
    state = train(model, recipe(optimiser="gradient-descent", learning_rate=0.1, steps=200, stop_risk=1e-4))
    distance = 5 - torch.arange(6, dtype=torch.float64)
    for run in range(6):
        step = int(state.finished_at[run])
        assert (distance[run] * 0.8**step) ** 2 < 1e-4
        assert step == 0 or (distance[run] * 0.8 ** (step - 1)) ** 2 >= 1e-4
        assert model.x[run, 0].item() == pytest.approx(run + distance[run].item() * 0.8**step)


def test_a_diverging_run_is_marked_and_does_not_disturb_the_others():
    class Cliff(Bowl):
        def evaluate(self):
            risk = (self.x[:, 0] - 1).square() * torch.tensor([1.0, torch.inf])
            return Evaluation(risk, risk)

    model = Cliff(2)
    state = train(model, recipe(optimiser="gradient-descent", learning_rate=0.1, steps=50))
    assert state.diverged.tolist() == [False, True]
    assert model.x[0, 0].item() == pytest.approx(1 + 4 * 0.8**50)
    assert model.x[1, 0].item() == 5.0


def test_history_has_the_first_and_the_last_point():
    model = Bowl(2)
    state = train(model, recipe(steps=25), record_every=10)
    assert state.history_steps == [0, 10, 20, 25]
    assert state.history_risk[0].tolist() == [25.0, 16.0]
