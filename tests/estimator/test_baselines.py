"""The methods a user would pick instead find what they can: a fair comparison needs working rivals."""

import numpy as np
import pytest

from parityscope.estimator.baselines import METHODS, TooLarge
from parityscope.problems import Parity, seeded_generator


@pytest.mark.parametrize("name", METHODS)
def test_every_method_finds_a_single_column(name):
    x, y = Parity(8, (5,), noise=0.1).sample(300, seeded_generator(0, "data"))
    assert METHODS[name](x.numpy(), (y.numpy() < 0).astype(np.int64), 1, 0) == (5,)


@pytest.mark.parametrize("name", ["auto", "exhaustive", "attention", "L1 on products", "ReliefF", "random forest"])
def test_these_find_an_easy_pair(name):
    x, y = Parity(8, (2, 5)).sample(400, seeded_generator(1, "data"))
    assert METHODS[name](x.numpy(), (y.numpy() < 0).astype(np.int64), 2, 0) == (2, 5)


def test_a_filter_sees_nothing_in_a_pair():
    answers = set()
    for seed in range(4):
        x, y = Parity(12, (2, 5)).sample(400, seeded_generator(seed, "data"))
        answers.add(METHODS["mutual information"](x.numpy(), (y.numpy() < 0).astype(np.int64), 2, 0))
    assert answers != {(2, 5)}


def test_too_many_products_are_refused():
    with pytest.raises(TooLarge, match="more than 25000"):
        METHODS["L1 on products"](np.zeros((4, 300)), np.array([0, 1, 0, 1]), 3, 0)
