import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from parityscope import InvalidInput, Parity, draw_problems, learn
from parityscope.training.steps.ascent import two_loops


@pytest.mark.parametrize("mass", ["trained", "k"])
def test_first_order_steps_learn_too_and_only_ascend(mass):
    problems, code = draw_problems(8, 2, [1000, 1001]), {"positions": "orthogonal"}
    run = learn(problems, "concave", [1000, 1001], optimiser="armijo", mass=mass, steps=60, record_every=1, **code)
    assert run.learned.all()
    assert (run.history_risk.diff(dim=0) <= 1e-12).all()
    assert not run.diverged.any()


def test_it_needs_the_cosine():
    with pytest.raises(InvalidInput, match="set readout=cosine"):
        learn(Parity(8, (1, 2)), "concave", optimiser="armijo", readout="triangle")


FRESH = range(1000, 1008)


@pytest.mark.parametrize(("n", "k", "code"), [(20, 3, "random-signs"), (100, 5, "gaussian"), (20, 2, "harmonics")])
def test_it_learns_in_tens_of_steps_and_only_ascends(n, k, code):
    run = learn(draw_problems(n, k, FRESH), "concave", FRESH, optimiser="lbfgs", positions=code, record_every=1)
    assert run.learned.all()
    assert run.steps.max() <= 100
    assert (run.history_risk.diff(dim=0) <= 1e-12).all()


def test_what_is_no_face_ends_at_newtons_maximum():
    problems, seeds = [Parity(9, (0, 4)), Parity(9, (1, 3))], range(2)
    newton, quasi = (
        learn(problems, "concave", seeds, optimiser=name, positions="circle", steps=300) for name in ("newton", "lbfgs")
    )
    assert not newton.learned.any()
    assert torch.allclose(newton.risk, quasi.risk, atol=1e-6)
    assert (quasi.steps < 300).all()  # it stops by itself


@pytest.mark.parametrize(("optimiser", "n", "steps"), [("armijo", 11, 20), ("lbfgs", 30, 6)])
def test_a_seed_gives_the_same_numbers_alone_or_in_a_batch(optimiser, n, steps):
    problems = draw_problems(n, 3, range(4))
    together = learn(problems, "concave", range(4), optimiser=optimiser, steps=steps)
    alone = learn([problems[2]], "concave", [2], optimiser=optimiser, steps=steps)
    assert torch.allclose(alone.attention[0], together.attention[2], atol=1e-9, rtol=0)


def test_a_checkpoint_resumes_with_its_memory(tmp_path, monkeypatch):
    problems, options = draw_problems(30, 3, range(2)), {"optimiser": "lbfgs", "steps": 9}
    whole = learn(problems, "concave", range(2), **options)

    class Stopped(Exception):
        pass

    def stop(progress):
        if progress.step == 6:
            raise Stopped

    monkeypatch.setattr("parityscope.training.checkpoint._SECONDS_BETWEEN", 0.0)
    interrupted = {"checkpoint": tmp_path / "state", **options}
    with pytest.raises(Stopped):
        learn(problems, "concave", range(2), on_progress=stop, **interrupted)
    again = learn(problems, "concave", range(2), resume=True, **interrupted)
    assert torch.allclose(whole.attention, again.attention, atol=1e-12, rtol=0)


def test_two_loops_are_the_inverse_of_bfgs_updates():
    """The same pairs, multiplied out as matrices: H ← (1 − ρsyᵀ)H(1 − ρysᵀ) + ρssᵀ."""
    draw = torch.Generator().manual_seed(0)
    root = torch.randn(5, 5, generator=draw, dtype=torch.float64)
    hessian = root @ root.T + torch.eye(5, dtype=torch.float64)
    moves = torch.randn(1, 3, 5, generator=draw, dtype=torch.float64)
    falls, gradient = moves @ hessian, torch.randn(1, 5, generator=draw, dtype=torch.float64)
    inverse = torch.eye(5, dtype=torch.float64) * (moves[0, -1] @ falls[0, -1]) / (falls[0, -1] @ falls[0, -1])
    for s, y in zip(moves[0], falls[0], strict=True):
        left = torch.eye(5, dtype=torch.float64) - torch.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + torch.outer(s, s) / (s @ y)
    padded = [torch.cat([torch.zeros(1, 2, 5, dtype=torch.float64), pairs], dim=1) for pairs in (moves, falls)]
    assert torch.allclose(two_loops(gradient, *padded)[0], inverse @ gradient[0], rtol=1e-10)


def test_scipy_finds_the_same_maximum():
    problem = Parity(9, (0, 4))
    run = learn(problem, "concave", [0], optimiser="lbfgs", positions="circle", steps=200)
    code, hidden = run.model.positions.numpy(), np.isin(np.arange(9), problem.support)

    def loss(numbers):
        half = np.pi / 2 * np.exp(code @ numbers[:2] + numbers[2])
        if (half >= np.pi / 2 * (1 + hidden)).any():
            return 1e3
        return -np.log(np.where(hidden, np.sin(half), np.cos(half))).sum()

    best = minimize(loss, [0, 0, np.log(2 / 9)], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).fun
    assert float(run.risk[0]) == pytest.approx(1 - np.exp(-best), abs=1e-7)


def test_it_needs_a_trained_scale():
    with pytest.raises(InvalidInput, match="lbfgs steps need one head with a trained scale"):
        learn(Parity(8, (1, 2)), "mirror", optimiser="lbfgs")
