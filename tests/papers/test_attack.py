import torch

from parityscope.papers.attack import maximise


def test_ascent_climbs_from_the_best_draw_to_the_top():
    top = torch.tensor([0.3, -1.2], dtype=torch.float64)
    starts = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = maximise(lambda points, index: -(points - top).square().sum(-1), starts, keep=4, steps=300, rate=0.05)
    torch.testing.assert_close(found.point, top, atol=1e-2, rtol=0)
    assert (found.random, found.optimised) == (50, 1200)


def test_undefined_starts_are_no_evidence_and_the_best_draw_is_never_lost():
    starts = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)

    def objective(points, index):
        values = points[:, 0].clone()
        return torch.where(index == 2, torch.nan, values)

    found = maximise(objective, starts, keep=1, steps=0)
    assert (found.value, found.index) == (2.0, 1)
