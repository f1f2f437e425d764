import pytest
import torch

from harness.engines import direct_risk
from parityscope import (
    FFNN1,
    Parity,
    ParityTransformer,
    draw_problems,
    population_accuracy,
    population_risk,
)
from parityscope.risk.losses import named_loss


def test_accuracy_counts_inputs():
    problem = Parity(9, (1, 4))
    model = ParityTransformer(9, 2, generator=torch.Generator().manual_seed(0))
    right = sum(((model(x) > 0) == (y > 0)).sum().item() for x, y in problem.enumerate())
    assert population_accuracy(model, problem, engine="enumerate").value.item() == pytest.approx(
        right / 2**9, abs=1e-15
    )


def test_models_without_an_additive_score_are_enumerated_with_their_gradient():
    problem = Parity(12, (0, 5))  # two chunks
    net = FFNN1(12, 4, generator=torch.Generator().manual_seed(0))
    ours = population_risk(net, problem).value
    theirs = direct_risk(net, problem, named_loss("squared-hinge"))
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-13)
    for a, b in zip(
        torch.autograd.grad(ours, net.parameters()), torch.autograd.grad(theirs, net.parameters()), strict=True
    ):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-13)


def test_h1s_risk_at_its_own_start_is_about_four_and_not_one():
    start = torch.randn(64, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    start /= start.norm(dim=-1, keepdim=True)
    problems = draw_problems(12, 3, range(64))
    sharp = population_risk(ParityTransformer(12, 3, directions=start), problems).value
    smooth = population_risk(ParityTransformer(12, 3, directions=start, smoothing=0.01), problems).value
    assert sharp.mean().item() == pytest.approx(4.1, abs=0.2)
    assert smooth.mean().item() == pytest.approx(3.65, abs=0.2)


@pytest.mark.long
def test_memory_stays_under_a_gigabyte_at_26_bits():
    import resource

    model, problem = ParityTransformer(26, 3), Parity(26, (0, 9, 20))
    population_risk(model, problem, engine="enumerate").value.backward()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1e6  # kilobytes, torch itself included


def test_models_with_a_run_axis_are_visited_through_forward():
    class Two(torch.nn.Module):
        def forward(self, x):
            return torch.stack([1 - 2 * x[:, 0].double(), 0 * x[:, 1].double()])

    risk = population_risk(Two(), [Parity(4, (0,)), Parity(4, (1,))])
    assert risk.value.tolist() == [0.0, 1.0]
