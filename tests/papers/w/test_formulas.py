import torch

from parityscope.papers.w import formulas
from parityscope.papers.w.instance import instance, slope_of_loss


def test_the_counted_gradients_are_autograds():
    made = instance(n=6, k=2, d=1024, m=8, batch=50)
    assert torch.allclose(formulas.attended_gradient(made), made.gradient_attended, atol=1e-14)
    assert torch.allclose(formulas.own_gradient(made), made.gradient_own, atol=1e-14)


def test_the_slope_of_the_plain_loss_is_autograds():
    made = instance(n=4, k=2, d=64, m=2, batch=6)
    for r, entry in ((0, 3), (3, 70)):
        direction = torch.eye(128, dtype=torch.float64)[entry]
        gradient = torch.cat((made.gradient_own, made.gradient_attended), 1)[r, entry]
        assert abs(slope_of_loss(made, r, direction) - float(gradient)) < 1e-9


def test_table_1_is_counted_one_by_one():
    made = instance(n=4, k=2, d=64, m=3, batch=30)
    table = formulas.table_1(made.task, made.statistics, made.active)
    alpha, secret = made.statistics.alpha, made.task.secret
    for j in range(6):
        for b1 in (0, 1):
            links = [link for link in range(2) if secret[link] != j and j <= 4 + link]
            beta = sum(float(alpha[link, j, b1].sum()) / (5 + link) for link in links)
            assert abs(float(table.beta[j, b1]) - beta) < 1e-12
            for r in range(6):
                psi = sum(float(made.active[r, link] @ alpha[link, j, b1]) / (5 + link) for link in links)
                assert abs(float(table.psi[r, j, b1]) - psi) < 1e-12
    together = float((made.active[:, 0, 1] * made.active[:, 1, 0]).sum())
    assert abs(float(table.gamma[0, 1, 1, 0]) - (together - 3 / 2) / 6) < 1e-12
    zeta = float((made.active[:, 1, 0] * table.psi[:, 2, 1]).sum())
    assert abs(float(table.zeta[1, 0, 2, 1]) - zeta) < 1e-12
