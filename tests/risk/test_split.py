import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from additive_model import AdditiveModel
from parityscope import (
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
from parityscope.models.positions import orthogonal


def make_weights(kind, n, k, mask, generator):
    """Weights from uniform to one-hot, with repeats, zeros and signs."""
    draw = torch.randn(n, dtype=torch.float64, generator=generator)
    return {
        "uniform": torch.full((n,), k / n, dtype=torch.float64),
        "diffuse": k * torch.softmax(draw, 0),
        "sharp": k * torch.softmax(6 * draw, 0),
        "solved": mask.double(),
        "nearly solved": mask.double() + 1e-3 * draw,
        "repeated": (draw * 2).round() / 4,
        "sparse": draw.relu() * (draw > 0.5),
        "zero": torch.zeros(n, dtype=torch.float64),
        "signed": 2 * draw,
    }[kind]


KINDS = ["uniform", "diffuse", "sharp", "solved", "nearly solved", "repeated", "sparse", "zero", "signed"]


@settings(max_examples=150)
@given(
    n=st.integers(1, 14),
    k=st.integers(1, 6),
    kind=st.sampled_from(KINDS),
    readout=st.sampled_from(["zig-zag", "triangle"]),
    loss=st.sampled_from(["hinge", "squared-hinge", "squared-mean-hinge"]),
    offset=st.sampled_from([0.0, 0.3, -0.5]),
    bias=st.sampled_from([0.5, 0.2]),
    noise=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 10**6),
)
def test_value_gradient_and_accuracy_are_those_of_enumeration(n, k, kind, readout, loss, offset, bias, noise, seed):
    generator = torch.Generator().manual_seed(seed)
    k = min(n, k)
    problem = Parity.random(n, k, generator, bias=bias, noise=noise)
    weights = make_weights(kind, n, k, problem.mask(), generator)
    model = AdditiveModel(weights, ZigZag(k) if readout == "zig-zag" else Triangle(k), offset)
    split = population_risk(model, problem, loss=loss, engine="split").value
    listed = population_risk(model, problem, loss=loss, engine="enumerate").value
    assert split.item() == pytest.approx(listed.item(), rel=1e-10, abs=1e-12)
    # Many of these scores lie on kinks and on sign changes: there too the engines go by one rule.
    ours = torch.autograd.grad(split, model.parameters())
    theirs = torch.autograd.grad(listed, model.parameters())
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-10 * max(1.0, b.abs().max().item()))
    right = population_accuracy(model, problem, engine="split").value.item()
    assert right == pytest.approx(population_accuracy(model, problem, engine="enumerate").value.item(), abs=1e-12)


@given(n=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_exact_accuracy_of_the_cosine_readout(n, seed):
    generator = torch.Generator().manual_seed(seed)
    k = 1 + seed % n
    problem = Parity.random(n, k, generator)
    weights = k * torch.softmax(torch.randn(n, dtype=torch.float64, generator=generator), 0)
    model = AdditiveModel(weights, Cosine())
    ours = population_accuracy(model, problem, engine="split").value.item()
    assert ours == pytest.approx(population_accuracy(model, problem, engine="enumerate").value.item(), abs=1e-12)


def test_a_batch_is_the_runs_one_by_one():
    problems = draw_problems(16, 3, range(40))
    directions = torch.randn(40, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    batch = ParityTransformer(16, 3, directions=directions)
    together = population_risk(batch, problems, engine="split").value
    (gradient,) = torch.autograd.grad(together.sum(), batch.parameters())
    for run in (0, 17, 39):
        alone = ParityTransformer(16, 3, directions=directions[run])
        value = population_risk(alone, problems[run], engine="split").value
        (expected,) = torch.autograd.grad(value, alone.parameters())
        assert together[run].item() == pytest.approx(value.item(), rel=1e-13)
        assert torch.allclose(gradient[run], expected, rtol=1e-10, atol=1e-12)


def test_forty_bits_solved_by_one_hot_heads_have_no_risk():
    support = (3, 17, 38)
    directions = 60.0 * orthogonal(40)[list(support)]
    model = ParityTransformer(40, 3, temperature=1.0, positions=orthogonal(40), directions=directions)
    assert population_risk(model, Parity(40, support)).value.item() == pytest.approx(0.0, abs=1e-12)
    assert population_accuracy(model, Parity(40, support)).value.item() == 1.0
    assert population_accuracy(model, Parity(40, (3, 17, 37))).value.item() == pytest.approx(0.5, abs=1e-12)


def test_too_large_a_request_says_what_it_needs():
    with pytest.raises(InvalidInput, match=r"the split engine needs about \d+ GB at n = 60, k = 3 and stops at 8 GB"):
        population_risk(ParityTransformer(60, 3), Parity(60, (0, 1, 2)), engine="split")


def test_what_it_does_not_cover_is_said():
    with pytest.raises(InvalidInput, match="the split engine needs an additive score and a frozen readout"):
        population_risk(ParityTransformer(8, 2, full_matrix=True), Parity(8, (0, 1)), engine="split")
    with pytest.raises(InvalidInput, match="the split engine needs an additive score and a frozen readout"):
        population_risk(ParityTransformer(8, 2, smoothing=0.1), Parity(8, (0, 1)), engine="split", loss="logistic")
