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
from parityscope.risk.engines import visits
from parityscope.risk.losses import as_loss, named_loss


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


class Network(torch.nn.Module):
    """Weights that are computed before the bits are seen, so that chunks share a part of their graph."""

    def __init__(self, n, runs=None, dtype=torch.float64):
        super().__init__()
        shape = (n, 6) if runs is None else (runs, n, 6)
        self.theta = torch.nn.Parameter(torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        hidden = x.to(self.theta.dtype) @ self.theta.softmax(-2)
        return (3 * hidden).cos().sum(-1)


@pytest.mark.parametrize("loss", ["squared-hinge", lambda margin: (-margin).exp()], ids=["named", "own"])
@pytest.mark.parametrize("law", [{}, {"bias": 0.3, "noise": 0.1}], ids=["fair", "unfair"])
@pytest.mark.parametrize("runs", [None, 2], ids=["one", "runs"])
@pytest.mark.parametrize("kept", [2**30, 0], ids=["graph kept", "graph not kept"])
def test_chunks_give_the_value_and_gradient_of_one_tensor(kept, runs, law, loss, monkeypatch):
    monkeypatch.setattr(visits, "_KEPT_BYTES", kept)
    monkeypatch.setattr(visits, "_MOST_BITS", 8)
    model, problem = Network(12, runs), Parity(12, (0, 5), **law)
    ours = population_risk(model, problem if runs is None else [problem] * runs, loss=loss).value
    theirs = direct_risk(model, problem, as_loss(loss)) if runs is None else None
    weights = torch.tensor(1.0) if runs is None else torch.tensor([1.0, -2.0])
    if runs is not None:  # each run alone is one model
        alone = [Network(12) for _ in range(runs)]
        for one, theta in zip(alone, model.theta, strict=True):
            one.theta = torch.nn.Parameter(theta.detach())
        theirs = torch.stack([direct_risk(one, problem, as_loss(loss)) for one in alone])
        expected = torch.stack(
            [
                w * torch.autograd.grad(v, o.theta, retain_graph=True)[0]
                for w, v, o in zip(weights, theirs, alone, strict=True)
            ]
        )
    else:
        expected = torch.autograd.grad(theirs, model.theta)[0]
    assert torch.allclose(ours, theirs, rtol=1e-12)
    (gradient,) = torch.autograd.grad((weights * ours).sum(), model.theta)
    assert torch.allclose(gradient, expected, rtol=1e-10, atol=1e-13)


def test_a_kept_graph_can_be_differentiated_twice_and_another_says_that_it_cannot(monkeypatch):
    model, problem = Network(12), Parity(12, (0, 5))

    def slope():
        value = population_risk(model, problem, loss="squared").value
        return torch.autograd.grad(value, model.theta, create_graph=True)[0]

    (bend,) = torch.autograd.grad(slope()[0, 0], model.theta)
    (expected,) = torch.autograd.grad(direct_risk(model, problem, as_loss("squared")), model.theta, create_graph=True)
    assert torch.allclose(bend, torch.autograd.grad(expected[0, 0], model.theta)[0], atol=1e-12)
    monkeypatch.setattr(visits, "_KEPT_BYTES", 0)
    with pytest.raises(RuntimeError, match="grad"):
        torch.autograd.grad(slope()[0, 0], model.theta)


def test_a_model_in_single_precision_is_within_its_estimated_bound():
    model, problem = Network(13, dtype=torch.float32), Parity(13, (0, 5))
    found = population_risk(model, problem)
    exact = direct_risk(model.double(), problem, as_loss("squared-hinge"))
    assert found.bound_is == "estimated"
    assert abs(found.value - exact) <= found.error_bound < 1e-4


def test_no_input_table_is_shared_with_the_model():
    class Greedy(torch.nn.Module):
        def forward(self, x):
            value = 1 - 2.0 * x[:, 0]
            x.zero_()
            return value

    for _ in range(2):
        assert population_risk(Greedy(), Parity(5, (0,))).value.item() == 0
