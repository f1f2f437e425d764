import pytest
import torch

from parityscope import InvalidInput
from parityscope.models import positions


def test_circle_is_the_papers_with_position_one_first():
    n = 7
    angle = 2 * torch.pi * torch.arange(1, n + 1, dtype=torch.float64) / n
    assert torch.allclose(positions.circle(n), torch.stack([angle.sin(), angle.cos()], -1), atol=1e-15)


def test_the_coded_circle_is_the_papers_turned_by_one_position_and_swapped():
    n = 12
    turned = positions.circle(n).roll(1, dims=0).flip(-1)
    assert torch.allclose(positions.circle_as_coded(n), turned, atol=1e-14)


def test_harmonics_are_orthogonal_over_the_circle():
    code = positions.harmonics(16, 4)
    assert torch.allclose(code.T @ code, 8 * torch.eye(8, dtype=torch.float64), atol=1e-12)


def test_random_signs_are_unit_vectors_and_come_from_the_generator():
    a, b = (positions.random_signs(50, 24, torch.Generator().manual_seed(s)) for s in (0, 1))
    assert torch.allclose(a.norm(dim=-1), torch.ones(50, dtype=torch.float64))
    assert not torch.equal(a, b)


@pytest.mark.parametrize(("n", "r"), [(2, 1), (8, 3), (30, 5), (100, 8)])
def test_random_signs_never_repeat_a_row(n, r):
    for seed in range(20):
        code = positions.random_signs(n, r, torch.Generator().manual_seed(seed))
        assert len(torch.unique(code, dim=0)) == n


def test_too_few_signs_are_refused():
    with pytest.raises(InvalidInput, match="3 signs tell at most 8 positions apart, got n = 9"):
        positions.random_signs(9, 3, torch.Generator())


@pytest.mark.parametrize("r", [3, 64, 70])
def test_no_two_positions_are_the_same_even_when_long_beginnings_are(r):
    rows = positions.draw_signs(8, r, torch.Generator().manual_seed(0))
    assert len(positions._repeated_rows(rows)) == 0
    rows[5] = rows[2]
    assert positions._repeated_rows(rows).tolist() == [5]
    if r > 64:
        rows[5, -1] *= -1
        assert len(positions._repeated_rows(rows)) == 0


def test_gaussian_codes_are_unit_vectors_in_every_direction():
    code = positions.gaussian(4000, 3, torch.Generator().manual_seed(0))
    assert torch.allclose(code.norm(dim=-1), torch.ones(4000, dtype=torch.float64))
    # Uniform on the sphere: mean 0 and second moments 1/3, within five standard deviations.
    assert code.mean(0).abs().max() < 5 / (3 * 4000) ** 0.5
    assert (code.T @ code / 4000 - torch.eye(3) / 3).abs().max() < 5 * 0.3 / 4000**0.5
    assert not torch.equal(code, positions.gaussian(4000, 3, torch.Generator().manual_seed(1)))
