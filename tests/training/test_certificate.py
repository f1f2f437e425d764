import itertools

import pytest
import torch

from parityscope import Parity, draw_problems, is_face, learn
from parityscope.models.positions import harmonics
from parityscope.theory import certified_loss
from parityscope.training.log_attention import log_value


def gaussian(n, r, generator):
    return torch.randn(n, r, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("r", [2, 4, 6])
def test_no_face_is_proved_exactly_where_there_is_none(r):
    seeds = range(12)
    problems = draw_problems(10, 2, seeds)
    run = learn(problems, "concave", seeds, positions=gaussian, numbers_per_head=r)
    faces = torch.tensor([bool(is_face(run.model.positions[i], problem.support)) for i, problem in enumerate(problems)])
    assert torch.equal(run.risk < 0.004, faces)
    assert run.learned[faces].all()
    assert torch.equal(run.certificate.at_least > 0, ~faces)
    assert all(("no face" in sentence) != face for sentence, face in zip(run.proved, faces.tolist(), strict=True))


def test_every_input_may_be_right_without_a_face():
    """A face is what C → 1 needs; near one, the worst loss can stay below 1."""
    (problem,) = draw_problems(10, 2, [30])
    run = learn(problem, "concave", [30], positions=gaussian, numbers_per_head=4)
    assert not is_face(run.model.positions[0], problem.support)
    assert run.accuracy.item() == 1.0
    assert run.proved[0].startswith("every input right: worst loss 0.971; no face of the code: C ≤ 0.768")


def test_no_numbers_go_below_what_is_out_of_reach_and_newton_gets_there():
    problem = Parity(9, (0, 3, 6))
    run = learn(problem, "concave", positions="harmonics", numbers_per_head=4)
    bound = run.certificate.at_least.item()
    reached = -log_value(run.model.score_weights().detach(), problem.mask()).item()
    assert bound - 1e-12 <= reached < bound + 1e-4
    draw = torch.Generator().manual_seed(0)
    code = harmonics(9, 2)
    q, scale = (torch.randn(20_000, size, generator=draw, dtype=torch.float64) for size in (4, 1))
    assert -log_value((q @ code.T + scale - 1).exp(), problem.mask()).min() > bound


def test_a_certificate_holds_at_every_step():
    """Also far from the maximum, where the bound is loose."""
    problem = Parity(9, (0, 3, 6))
    best = learn(problem, "concave", positions="harmonics", numbers_per_head=4)
    reached = -log_value(best.model.score_weights().detach(), problem.mask()).item()
    for steps in range(4):
        run = learn(problem, "concave", positions="harmonics", numbers_per_head=4, steps=steps)
        assert run.certificate.at_least.item() <= reached + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_below_the_certified_loss_no_input_is_wrong_whatever_the_mass(seed):
    draw = torch.Generator().manual_seed(seed)
    n, k = 7, int(torch.randint(1, 5, (), generator=draw))
    hidden = torch.arange(n) < k
    noise = torch.randn(200, n, generator=draw, dtype=torch.float64) * 10 ** (-2 * torch.rand(200, 1, generator=draw))
    c = (hidden + noise).clamp(min=1e-9)
    loss = -log_value(c, hidden)
    limit = torch.tensor([certified_loss(k, mass) for mass in c.sum(-1).tolist()])
    certified = loss < limit
    assert certified.any()
    x = torch.tensor(list(itertools.product((0.0, 1.0), repeat=n)), dtype=torch.float64)
    score = x @ c[certified].T + (k - c[certified].sum(-1)) / 2
    label = 1 - 2 * (x[:, :k].sum(-1) % 2)
    assert ((torch.pi * score).cos() * label[:, None] > 0).all()
