import itertools

import pytest
import torch

from parityscope import Parity, draw_problems, is_face, learn
from parityscope.models.positions import harmonics
from parityscope.papers.claim import Context
from parityscope.papers.own.claims.certificates import CLAIMS
from parityscope.papers.own.exponential import climb, exponential_head
from parityscope.theory import certified_loss
from parityscope.training.steps.certificate import Certificate, _Relation
from parityscope.training.steps.log_attention import log_value

PLANAR = torch.tensor([[0, 0], [1, 0], [0.5, -1e-13], [0.3, -1], [0.7, -1]], dtype=torch.float64)
THIN = [
    (PLANAR, (0, 1)),
    (harmonics(700, 3), (0, 2, 4)),
    (harmonics(500, 3), (0, 2, 4)),
    (harmonics(200, 4), (0, 2, 4, 6)),
]


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


@pytest.mark.parametrize(("code", "support"), THIN)
def test_a_face_of_a_tiny_margin_is_not_said_to_be_none(code, support):
    """Double numbers along the face's own q hold it: any bound above their −log C is false."""
    hidden = torch.zeros(len(code), dtype=torch.bool)
    hidden[list(support)] = True
    q = is_face(code, support).q
    margin = float((code @ q)[hidden].min() - (code @ q)[~hidden].max())
    scores = code @ (5 / margin * q)
    assert -log_value((scores - scores[hidden].mean()).exp(), hidden) < 0.01
    for steps in (3, 60):
        climbed = climb(*exponential_head(code, [support]), steps=steps)
        assert climbed.certificate.at_least.item() == 0
        assert climbed.certificate.gap.item() == -climbed.value.item() > 0.01
        (said,) = climbed.certificate.sentences()
        assert said.startswith(f"a face of margin {is_face(code, support).margin:.1g}, which these steps do not reach")


def test_a_face_at_the_border_of_rounding_is_not_said_to_be_none():
    """Its margin is 1.02 times what `is_face` tells; whether it does may depend on the processor."""
    certificate = learn(Parity(1000, (0, 2, 4)), "concave", positions="harmonics", numbers_per_head=6).certificate
    assert certificate.at_least.item() == 0


@pytest.mark.parametrize(("n", "k"), [(200, 5), (500, 4), (150, 6)])
def test_a_face_that_rounding_hides_is_not_said_to_be_none(n, k):
    certificate = climb(*exponential_head(harmonics(n, k), [tuple(range(0, 2 * k, 2))]), steps=20).certificate
    assert certificate.at_least.item() == 0
    assert "which rounding hides" in certificate.sentences()[0]


def test_the_claim_sees_a_remainder_that_is_ignored(monkeypatch):
    (claim,) = CLAIMS
    monkeypatch.setattr(_Relation, "for_all", lambda self: self._least(self.y, self.y))
    found = claim.measure(Context("smoke")).measured
    assert found["faces that are certified to be none"] == 2
    assert found["largest certified −log C that no parameters go below, over what was reached"] > 100


def test_codes_in_a_plane_are_certified_for_numbers_up_to_a_length():
    """A square in a space of three: no exact relation of rounded codes is sure to exist; its diagonal is no face."""
    code = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=torch.float64)
    climbed = climb(*exponential_head(code, [(0, 2)]), steps=60)
    certificate = climbed.certificate
    assert 0.999 * -climbed.value.item() < certificate.at_least.item() <= -climbed.value.item()
    assert 1e6 <= certificate.up_to.item() < 1e16
    assert certificate.sentences()[0].startswith("no face of the code, to rounding: C ≤ ")
    assert certificate.gap.item() < 0.001


def test_a_gap_is_what_log_C_can_still_rise_by():
    problem = Parity(9, (0, 3, 6))
    best = learn(problem, "concave", positions="harmonics", numbers_per_head=4)
    early = learn(problem, "concave", positions="harmonics", numbers_per_head=4, steps=3)
    losses = [-log_value(run.model.score_weights().detach(), problem.mask()) for run in (best, early)]
    assert (losses[1] - losses[0] <= early.certificate.gap).all()
    assert (best.certificate.gap < 1e-4).all()
    assert torch.isinf(Certificate(torch.ones(1), torch.zeros(1), "a theorem").gap)


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
