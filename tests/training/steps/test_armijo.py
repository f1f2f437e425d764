import pytest
import torch

from parityscope import InvalidInput, Parity, draw_problems, learn


@pytest.mark.parametrize("mass", ["trained", "k"])
def test_first_order_steps_learn_too_and_only_ascend(mass):
    problems, code = draw_problems(8, 2, [1000, 1001]), {"positions": "orthogonal"}
    run = learn(problems, "concave", [1000, 1001], optimiser="armijo", mass=mass, steps=60, record_every=1, **code)
    assert run.learned.all()
    assert (run.history_risk.diff(dim=0) <= 1e-12).all()
    assert not run.diverged.any()


def test_a_seed_gives_the_same_numbers_alone_or_in_a_batch():
    problems = draw_problems(11, 3, range(4))
    together = learn(problems, "concave", range(4), optimiser="armijo", steps=20)
    alone = learn([problems[2]], "concave", [2], optimiser="armijo", steps=20)
    assert torch.allclose(alone.attention[0], together.attention[2], atol=1e-9, rtol=0)


def test_it_needs_the_cosine():
    with pytest.raises(InvalidInput, match="set readout=cosine"):
        learn(Parity(8, (1, 2)), "concave", optimiser="armijo", readout="triangle")
