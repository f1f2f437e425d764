import math
from itertools import pairwise

import pytest
import torch

from parityscope import Cosine, InvalidInput, Parity, ParityTransformer, draw_problems, learn
from parityscope.models.positions import orthogonal
from parityscope.risk import law_of
from parityscope.training.steps.log_attention import log_value
from parityscope.training.steps.mirror import AttentionGradient, coherence_below

SEEDS = range(1000, 1003)


def nearly_orthogonal(n, r, generator):
    """Return unit vectors whose products are at most about 1/60: n free numbers each, tilted towards each other."""
    code = torch.eye(n, r, dtype=torch.float64) + 0.002 * torch.randn(n, r, generator=generator, dtype=torch.float64)
    return code / code.norm(dim=-1, keepdim=True)


def losses(run):
    masks = torch.stack([problem.mask() for problem in run.problems])
    return -log_value(run.model.score_weights().detach(), masks)


@pytest.mark.parametrize(("n", "k", "heads"), [(20, 3, 1), (12, 4, 3)])
@pytest.mark.parametrize("radius", [0.0, 1.0])
def test_free_logits_have_a_certificate_that_holds_at_every_length(n, k, heads, radius):
    problems = draw_problems(n, k, SEEDS)
    for steps in (1, 10, 90):
        run = learn(problems, "mirror", SEEDS, positions="orthogonal", heads=heads, start_radius=radius, steps=steps)
        assert (losses(run) <= run.certificate.at_most).all()
        assert run.certificate.theorem == "Proposition 2d"
    assert run.learned.all()


def test_from_uniform_attention_the_certificate_is_k_log_n_over_k_by_twice_the_steps():
    run = learn(Parity(20, (2, 7)), "mirror", positions="orthogonal", steps=1)
    c = torch.full((), 0.1, dtype=torch.float64)
    steepness = max(
        math.pi**2 / 4 * c / torch.sin(math.pi / 2 * c) ** 2, math.pi**2 / 4 * c / torch.cos(math.pi / 2 * c)
    )
    assert run.certificate.at_most.item() == pytest.approx(2 * math.log(10) * 4 * steepness.item() / 2, rel=1e-9)


@pytest.mark.parametrize("heads", [1, 3])
def test_a_step_pays_for_the_loss_before_and_after_it(heads):
    """η(L + L′) is at most what Σκ·KL(U_B‖a) falls by: the step of the proof, with η from the certificate."""
    problem, start = Parity(9, (1, 4, 7)), torch.randn(1, heads, 9, generator=torch.Generator().manual_seed(3)).double()
    model = ParityTransformer(9, 3, heads, 1.0, positions=orthogonal(9), directions=start, readout=Cosine())
    rule, spent, seen = AttentionGradient(model, law_of([problem])), 0.0, []
    for _ in range(30):
        seen.append((spent, *_loss_and_divergence(model, problem)))
        rule.step()
        spent = seen[0][2] / (2 * rule.certificate().at_most.item())
    for (before, loss, apart), (after, new_loss, nearer) in pairwise(seen):
        assert after > before
        assert new_loss <= loss
        assert (after - before) * (loss + new_loss) <= apart - nearer + 1e-12


def _loss_and_divergence(model, problem):
    attention = model.attention().detach()[0]
    loss = -log_value(model.score_weights().detach(), problem.mask())
    return loss.item(), -(3 * attention[:, list(problem.support)]).log().mean(0).sum().item()


def test_codes_are_certified_only_where_the_theorem_says_so():
    problems = draw_problems(16, 2, SEEDS)
    certified = learn(problems, "mirror", SEEDS, positions=nearly_orthogonal, numbers_per_head=16)
    assert certified.learned.all()
    assert (losses(certified) <= certified.certificate.at_most).all()
    assert torch.isfinite(certified.certificate.at_most).all()
    assert "Theorem 3d" in certified.proved[0]
    for changes in ({}, {"positions": nearly_orthogonal, "numbers_per_head": 16, "start_radius": 0.5}):
        assert torch.isinf(learn(problems, "mirror", SEEDS, **changes, steps=5).certificate.at_most).all()
    dense = draw_problems(6, 3, SEEDS)  # n = 2k
    dense_run = learn(dense, "mirror", SEEDS, positions=nearly_orthogonal, numbers_per_head=6, steps=5)
    assert torch.isinf(dense_run.certificate.at_most).all()


def test_nothing_is_proved_from_outside_the_domain():
    model = ParityTransformer(3, 2, 1, 1.0, positions=orthogonal(3), directions=3 * orthogonal(3)[:1], readout=Cosine())
    run = learn(Parity(3, (1, 2)), "mirror", model=model, steps=3)
    assert torch.isinf(run.certificate.at_most).all()


def test_random_signs_learn_every_seed():
    run = learn(draw_problems(20, 2, SEEDS), "mirror", SEEDS, numbers_per_head=40)
    assert run.learned.all()


def test_coherence_is_measured_of_all_pairs():
    code = torch.eye(600, dtype=torch.float64)
    code[599, [0, 599]] = torch.tensor([0.1, 0.99**0.5], dtype=torch.float64)
    assert coherence_below(code, 0.11)
    assert not coherence_below(code, 0.09)


def test_it_needs_softmax_and_the_cosine():
    for wrong in ({"mass": "trained"}, {"readout": "triangle"}):
        with pytest.raises(InvalidInput, match="attention-gradient steps need softmax heads"):
            learn(Parity(8, (1, 2)), "mirror", **wrong)
