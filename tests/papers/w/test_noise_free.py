import pytest
import torch

from parityscope.papers.w.formulas import table_1
from parityscope.papers.w.noise_free import noise_free_instance, noise_free_run, noise_free_scores


def test_every_error_term_of_the_proof_is_zero():
    made = noise_free_instance(6, 2)
    table = table_1(made.task, made.statistics, made.active)
    for part in (table.delta, table.alpha_off_mean, table.beta, table.psi, table.gamma, table.zeta):
        assert part.abs().max() == 0
    flat = made.block.embeddings.flatten(0, 1)
    assert torch.equal(flat @ flat.T, torch.eye(len(flat), dtype=torch.float64))
    assert flat.abs().unique().numel() == 1  # corners of the cube, as Definition 3 draws them


@pytest.mark.parametrize(("n", "k"), [(6, 2), (7, 3)])
def test_exact_scores_are_those_of_two_steps(n, k):
    run, exact = noise_free_run(n, k), noise_free_scores(n, k)
    scores = run.blocks[2].scores().detach() / (run.rates.early**2 / (run.rates.m * n**2))  # (T, 2, links, 2)
    secret, elsewhere = [], []
    for link, bit in enumerate(run.start.task.secret):
        possible = scores[: n + link + 1, :, link, : 2 if link else 1]  # the token before the chain is always 0
        secret.append(float(possible[bit].min()))
        others = possible.clone()
        others[bit] = 0
        elsewhere.append(float(others.abs().max()))
    assert min(secret) == pytest.approx(float(exact.secret), rel=1e-9)
    assert max(elsewhere) == pytest.approx(float(exact.elsewhere), rel=1e-9)


def test_copies_of_neurons_change_nothing():
    run = noise_free_run(6, 1)
    assert run.rates.m > 10**9 > run.start.m
    assert run.off_one_hot(3) < 6.0**-9
    assert bool((run.outputs() > 0).all())
