"""Exponential heads of the claims: where they start, and that a broken learner is noticed."""

import torch

from parityscope.papers.claim import Context, check
from parityscope.papers.own.again import best_log_c, mirror_descent
from parityscope.papers.own.exponential import climb, drawn_codes, exponential_head, inside
from parityscope.papers.registry import named_claims
from parityscope.training.steps.log_attention import log_value


def test_numbers_inside_have_weights_in_the_domain():
    generator = torch.Generator().manual_seed(0)
    code, hidden = drawn_codes(1, 6, 3, generator)[0], torch.arange(6) < 2
    numbers = 5 * torch.randn(50, 4, generator=generator, dtype=torch.float64)
    model, _ = exponential_head(code, [(0, 1)] * 50, inside(code, hidden, numbers))
    assert bool(torch.isfinite(log_value(model.score_weights().detach(), hidden)).all())


def test_two_programs_climb_to_the_same_height():
    generator = torch.Generator().manual_seed(1)
    codes = drawn_codes(8, 7, 2, generator)
    climbed = climb(*exponential_head(codes, [(0, 3)] * 8))
    for code, value, learned in zip(codes, climbed.value.tolist(), climbed.learned.tolist(), strict=True):
        again = best_log_c(code.tolist(), (0, 3))
        assert learned if again > -1e-3 else abs(value - again) < 1e-6


def test_a_learner_that_stands_still_refutes_that_faces_are_learned(monkeypatch):
    (claim,) = named_claims(["P-face"])
    monkeypatch.setattr(
        "parityscope.papers.own.claims.faces.climb", lambda model, law, steps: climb(model, law, steps=0)
    )
    found = {clause.says: clause.verdict for clause in check(claim, Context("smoke")).clauses}
    assert found["a face is learned"] == "unconfirmed"  # refuted; no second route replays a planted learner


def test_small_and_large_mirror_steps_agree():
    ends = [mirror_descent([0.4] * 5, [0, 2], share=share, until=10.0)[2] for share in (0.02, 0.1)]
    assert abs(ends[0] - ends[1]) < 0.1 * ends[0]
