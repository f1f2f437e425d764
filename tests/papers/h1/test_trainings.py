import pytest
import torch

from parityscope import Parity, draw_problems
from parityscope.models import FFNN1
from parityscope.papers.h1.trainings import FreshTraining, seeded_ffnn, train_on_fresh_examples
from parityscope.problems import seeded_generator
from parityscope.risk import population_accuracy
from parityscope.training.descent import Evaluation, TrainingState, descend, shares_of
from parityscope.training.steps.first_order import Adam


def parities(problems):
    mask = torch.stack([problem.mask() for problem in problems]).double()
    return lambda x: 1 - 2 * ((x.double() @ mask.unsqueeze(-1)).squeeze(-1) % 2)


def test_a_rate_per_run_is_adam_run_by_run():
    rates, start = [0.1, 0.01], torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = torch.nn.ParameterList([start.clone()])
    shares = shares_of(rates, 0.1)

    def value(p):
        return (p.sin().square() + 0.1 * p).sum(-1)

    rule = FreshTraining(steps=20, stop_risk=None)
    descend(
        together,
        lambda: Evaluation(value(together[0]), value(together[0])),
        rule,
        TrainingState.fresh(2),
        Adam(together, 0.1),
        scale=lambda step: shares,
    )
    for row, rate, ours in zip(start, rates, together[0], strict=True):
        alone = torch.nn.Parameter(row.clone())
        optimiser = torch.optim.Adam([alone], lr=rate)
        for _ in range(20):
            optimiser.zero_grad()
            value(alone).backward()
            optimiser.step()
        assert torch.allclose(ours, alone, atol=1e-12)


def test_a_seed_trains_the_same_alone_or_among_others():
    problems, training = draw_problems(6, 2, range(3)), FreshTraining(steps=40, batch=32, stop_risk=None)
    together = seeded_ffnn(6, 5, range(3))
    train_on_fresh_examples(together, parities(problems), 6, range(3), [0.03] * 3, training)
    alone = seeded_ffnn(6, 5, [2])
    train_on_fresh_examples(alone, parities(problems[2:]), 6, [2], [0.03], training)
    assert torch.allclose(alone.beta[0], together.beta[2], atol=1e-9)


def test_a_wide_network_learns_and_stops_when_it_has():
    problems = draw_problems(8, 2, range(4))
    net = seeded_ffnn(8, 16, range(4))
    state = train_on_fresh_examples(net, parities(problems), 8, range(4), [0.03] * 4, FreshTraining(steps=2000))
    assert (state.finished_at < 2000).all()
    assert (population_accuracy(net, problems).value > 0.99).all()


def test_a_network_that_misses_a_hidden_bit_stays_at_one_half():
    problem = Parity(5, (0, 3))

    class Blind(FFNN1):
        def forward(self, x):
            return super().forward(x * torch.tensor([1, 1, 1, 0, 1]))

    net = Blind(5, 16, runs=(1,), generator=seeded_generator(0, "start"))
    train_on_fresh_examples(net, parities([problem]), 5, [0], [0.03], FreshTraining(steps=200, batch=64))
    assert population_accuracy(net, [problem]).value.item() == pytest.approx(0.5, abs=1e-12)
