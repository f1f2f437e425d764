import itertools

import numpy as np
import pytest

from parityscope.risk.engines.subsets import subset_products, subset_sums, sums_by_position


@pytest.mark.parametrize("m", [0, 1, 5, 8, 9, 11])  # up to 8 by one product, beyond by halves
def test_sums_and_products_are_those_of_every_subset(m):
    c = np.random.default_rng(m).standard_normal((2, m))
    patterns = np.array(list(itertools.product((0.0, 1.0), repeat=m))).reshape(2**m, m)
    assert np.allclose(subset_sums(c), c @ patterns.T, atol=1e-12)
    factors = np.where(patterns[None] > 0, c[:, None], 1 - c[:, None])
    assert np.allclose(subset_products(1 - c, c), factors.prod(-1), atol=1e-12)


@pytest.mark.parametrize("m", [3, 8, 10])
def test_sums_by_position_is_the_adjoint(m):
    generator = np.random.default_rng(m)
    c, d = generator.standard_normal((2, m)), generator.standard_normal((2, 2**m))
    assert np.allclose((subset_sums(c) * d).sum(1), (c * sums_by_position(d, m)).sum(1))
