import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from additive_model import AdditiveModel
from parityscope import (
    FFNN1,
    Cosine,
    InvalidInput,
    Parity,
    ParityTransformer,
    Triangle,
    ZigZag,
    draw_problems,
    population_accuracy,
    population_risk,
)
from parityscope.risk.losses import LOSSES, named_loss

READOUTS = {"zig-zag": ZigZag(3), "smooth": ZigZag(3, 0.02), "cosine": Cosine(), "triangle": Triangle(3)}


def direct_risk(model, problem, loss):
    """All inputs in one go, through `forward` and plain autograd, label noise and bit bias by weights."""
    x, y = (torch.cat(parts) for parts in zip(*problem.enumerate(), strict=True))
    ones = x.double().sum(-1)
    probability = problem.bias**ones * (1 - problem.bias) ** (problem.n - ones)
    margin = y * model(x)
    losses = (1 - problem.noise) * loss.of_margin(margin) + problem.noise * loss.of_margin(-margin)
    return loss.of_mean((losses * probability).sum())


@given(
    n=st.integers(1, 13),
    seed=st.integers(0, 1000),
    readout=st.sampled_from(sorted(READOUTS)),
    loss=st.sampled_from(sorted(LOSSES)),
    bias=st.sampled_from([0.5, 0.3]),
    noise=st.sampled_from([0.0, 0.1]),
)
def test_value_and_gradient_are_those_of_plain_autograd(n, seed, readout, loss, bias, noise):
    generator = torch.Generator().manual_seed(seed)
    problem = Parity.random(n, min(n, 3), generator, bias=bias, noise=noise)
    weights = 2 * torch.rand(n, generator=generator, dtype=torch.float64)
    model = AdditiveModel(weights, READOUTS[readout], torch.rand((), generator=generator, dtype=torch.float64))
    ours = population_risk(model, problem, loss=loss, engine="enumerate").value
    theirs = direct_risk(model, problem, named_loss(loss))
    # −log E[yŷ] is infinite without a correlation, and its rounding grows as the correlation vanishes.
    assume(loss != "log-correlation" or theirs < 10)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    gradients = torch.autograd.grad(ours, model.parameters())
    expected = torch.autograd.grad(theirs, model.parameters())
    for a, b in zip(gradients, expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-11)


def test_a_batch_of_runs_is_exactly_the_runs_one_by_one():
    problems = draw_problems(11, 3, range(6))
    directions = torch.randn(6, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = ParityTransformer(11, 3, directions=directions)
    together = population_risk(batch, problems, engine="enumerate").value
    for run in range(6):
        alone = population_risk(
            ParityTransformer(11, 3, directions=directions[run]), problems[run], engine="enumerate"
        ).value
        assert together[run].item() == pytest.approx(alone.item(), rel=1e-14)


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


def test_too_many_bits_are_refused_with_what_they_would_need():
    with pytest.raises(InvalidInput, match=r"2\^30 = 1\.1e\+09 inputs and is limited to n ≤ 26"):
        population_risk(ParityTransformer(30, 3), Parity(30, (0, 1, 2)), engine="enumerate")


@pytest.mark.long
def test_memory_stays_under_a_gigabyte_at_26_bits():
    import resource

    model, problem = ParityTransformer(26, 3), Parity(26, (0, 9, 20))
    population_risk(model, problem, engine="enumerate").value.backward()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1e6  # kilobytes, torch itself included
