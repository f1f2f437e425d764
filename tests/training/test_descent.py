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


def test_a_stalled_run_stops_after_its_patience_but_not_before_it_left_the_start():
    class Plateau(Bowl):
        def evaluate(self):
            risk = 0 * self.x[:, 0] + torch.tensor([0.5, 0.9])
            return Evaluation(risk, risk)

    model = Plateau(2)
    state = train(model, recipe(steps=50, patience=5), patience_below=0.8)
    assert state.finished_at.tolist() == [6, 50]


@pytest.mark.parametrize(
    ("name", "shared", "grow"), [("head-normalised", (-1,), True), ("run-normalised", (-2, -1), False)]
)
def test_normalised_momentum_follows_its_formula(name, shared, grow):
    start = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    class Pull(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Parameter(start.clone())

    model = Pull()
    chosen = recipe(optimiser=name, learning_rate=0.3, beta1=0.8, beta2=0.9)
    optimiser = make_optimiser(model, chosen)
    q, mean, square = start.clone(), torch.zeros_like(start), torch.zeros(())
    for t in range(1, 6):
        optimiser.zero_grad()
        (model.q * target).sum().backward()
        optimiser.step()
        mean = 0.8 * mean + 0.2 * target
        square = 0.9 * square + 0.1 * target.square().mean(shared, keepdim=True)
        length = (1 + q.norm(dim=-1, keepdim=True)).sqrt() if grow else 1.0
        q = q - 0.3 * length * (mean / (1 - 0.8**t)) / (square / (1 - 0.9**t)).sqrt()
    assert torch.allclose(model.q, q, atol=1e-12)
