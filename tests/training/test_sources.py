import json

import pytest
import torch

from parityscope import InvalidInput, Parity, draw_problems, learn
from parityscope.training.sources import Source

FRESH = range(1000, 1008)


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("source", [{}, {"samples": 800}])
def test_every_k_is_found_without_being_told(k, source):
    run = learn(draw_problems(16, k, FRESH[:4], noise=0.1), "concave", FRESH[:4], k_at_most=6, **source)
    assert run.evidence.k.tolist() == [k] * 4
    assert run.learned.all()
    assert run.found.shape == (4, 6)
    assert (run.evidence.chance < 1e-6).all()
    json.dumps(run.to_json(), allow_nan=False)


def test_the_phase_tells_k_mod_4_before_anything_is_learned():
    seen = []
    for k in range(1, 7):
        run = learn(draw_problems(16, k, FRESH), "concave", FRESH, k_at_most=6, steps=0)
        seen.append({phase % 4 for phase in run.evidence.k.tolist()})
    assert seen == [{k % 4} for k in range(1, 7)]


def test_being_told_changes_nothing_but_the_size_of_the_head():
    problems = draw_problems(20, 3, FRESH)
    told = learn(problems, "concave", FRESH, numbers_per_head=30)
    untold = learn(problems, "concave", FRESH, numbers_per_head=30, k_at_most=5)
    assert torch.allclose(told.model.score_weights(), untold.model.score_weights(), atol=0.1)
    assert told.evidence is None
    assert untold.evidence.sentences() == ("k = 3",) * 8


def test_an_unknown_k_needs_a_trained_mass_and_room():
    problem = Parity(12, (1, 5, 6))
    for recipe, source in (("bounded", {}), ("mirror", {}), ("concave", {"batch": 8})):
        with pytest.raises(InvalidInput, match="an unknown k needs a trained mass"):
            learn(problem, recipe, k_at_most=4, **source)
    with pytest.raises(InvalidInput, match="k_at_most must be at least that, got 2"):
        learn(problem, "concave", k_at_most=2)


def test_a_wrong_name_proves_nothing():
    run = learn(Parity(30, (1, 5, 6)), "concave", samples=5)
    assert not run.recovered.any()
    assert run.certificate is None
    assert run.proved == ("",)


def test_fresh_examples_still_train_concave():
    run = learn(Parity(8, (1, 5)), "concave", batch=200)
    assert run.recovered.all()


def test_a_source_is_one_thing():
    with pytest.raises(InvalidInput, match="not both"):
        Source(10, 10).check(None)
