import pytest
import torch

from parityscope import Cosine, Parity, ParityTransformer, population_risk
from parityscope.papers.h1.gradient_parts import gradient_parts
from parityscope.problems import bits_of, draw_problems
from parityscope.risk.losses import named_loss

READOUTS = {"zig-zag": None, "cosine": Cosine()}
LOSSES = ("hinge", "squared-hinge")


def heads(runs, n, k, readout, sharpness=1.0):
    generator = torch.Generator().manual_seed(3)
    directions = sharpness * torch.randn(runs, k, 2, generator=generator, dtype=torch.float64)
    return ParityTransformer(n, k, temperature=1.0, readout=READOUTS[readout], directions=directions)


def even_and_odd_gradient(model, problems, loss):
    """The second route: ℓ(yŷ) = ½[ℓ(ŷ) + ℓ(−ŷ)] + y·½[ℓ(ŷ) − ℓ(−ŷ)], over all inputs."""
    n, of_margin = problems[0].n, named_loss(loss).of_margin
    x = bits_of(torch.arange(2**n), n)
    y = torch.stack([problem.label(x) for problem in problems])
    prediction = model(x.double())
    even = (of_margin(prediction) + of_margin(-prediction)) / 2
    odd = (of_margin(prediction) - of_margin(-prediction)) / 2
    means = ((y * odd).mean(-1).sum(), even.mean(-1).sum())
    return [torch.autograd.grad(mean, model.directions, retain_graph=True)[0].flatten(1) for mean in means]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("readout", READOUTS)
def test_the_parts_are_the_gradients_of_the_odd_and_of_the_even_loss(readout, loss):
    problems = draw_problems(7, 3, range(4))
    model = heads(4, 7, 3, readout)
    for part, other in zip(
        gradient_parts(model, problems, loss), even_and_odd_gradient(model, problems, loss), strict=True
    ):
        assert torch.allclose(part, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_part_is_the_same_for_every_hidden_set_and_the_other_is_not(loss):
    problems = [Parity(9, support) for support in ((0, 1, 2), (1, 4, 7), (3, 4, 8))]
    directions = heads(1, 9, 3, "zig-zag").directions.detach().expand(3, -1, -1)
    dependent, free = gradient_parts(ParityTransformer(9, 3, temperature=1.0, directions=directions), problems, loss)
    assert torch.allclose(free, free[:1].expand_as(free), rtol=0, atol=1e-12)
    assert free.norm() > 1e-3
    assert all((dependent[i] - dependent[j]).norm() > 1e-6 for i, j in ((0, 1), (0, 2), (1, 2)))


def test_together_they_are_the_gradient_whatever_noise_the_problems_have():
    problems = draw_problems(8, 2, range(3))
    model = heads(3, 8, 2, "zig-zag")
    risk = population_risk(model, problems, loss="squared-hinge").value.sum()
    (gradient,) = torch.autograd.grad(risk, model.directions)
    noisy = draw_problems(8, 2, range(3), noise=0.2)
    assert torch.allclose(sum(gradient_parts(model, noisy, "squared-hinge")), gradient.flatten(1), rtol=0, atol=1e-12)


def test_with_a_bounded_readout_the_hinge_has_no_part_that_does_not_know_the_bits():
    dependent, free = gradient_parts(heads(3, 10, 3, "cosine"), draw_problems(10, 3, range(3)), "hinge")
    assert free.abs().max() < 1e-12 < dependent.norm(dim=-1).min()
