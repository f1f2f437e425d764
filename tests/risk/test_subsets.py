import itertools

import pytest
import torch

from parityscope.risk.subsets import subset_products, subset_sums, sums_by_position


@pytest.mark.parametrize("m", [0, 1, 5, 8, 9, 11])  # up to 8 by one product, beyond by halves
def test_sums_and_products_are_those_of_every_subset(m):
    c = torch.randn(2, m, dtype=torch.float64, generator=torch.Generator().manual_seed(m))
    patterns = torch.tensor(list(itertools.product((0.0, 1.0), repeat=m)), dtype=torch.float64).reshape(2**m, m)
    assert torch.allclose(subset_sums(c), c @ patterns.T, atol=1e-12)
    factors = torch.where(patterns[None] > 0, c[:, None], 1 - c[:, None])
    assert torch.allclose(subset_products(1 - c, c), factors.prod(-1), atol=1e-12)


@pytest.mark.parametrize("m", [3, 8, 10])
def test_sums_by_position_is_the_adjoint(m):
    generator = torch.Generator().manual_seed(m)
    c = torch.randn(2, m, dtype=torch.float64, generator=generator)
    d = torch.randn(2, 2**m, dtype=torch.float64, generator=generator)
    assert torch.allclose((subset_sums(c) * d).sum(1), (c * sums_by_position(d, m)).sum(1))
