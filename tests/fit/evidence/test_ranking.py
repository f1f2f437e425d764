"""Of many equally strong candidates the first are kept, however the numbers are sorted."""

import numpy as np
import pytest

from parityscope.fit.evidence.ranking import strongest


@pytest.mark.parametrize("rows", [5, 50, 5000])
@pytest.mark.parametrize("count", [1, 4, 7])
def test_it_is_a_stable_sort_cut_short(rows, count):
    random = np.random.RandomState(rows)
    for levels in (2, 3, 10, 10_000):
        strength = random.randint(-levels, levels + 1, size=rows) / levels
        whole = sorted(range(rows), key=lambda place: (-abs(strength[place]), place))
        assert strongest(strength, count).tolist() == whole[:count]


def test_where_all_are_equal_the_first_are_kept():
    assert strongest(np.zeros(9), 4).tolist() == [0, 1, 2, 3]
    assert strongest(np.ones(3), 4).tolist() == [0, 1, 2]
    assert strongest(np.empty(0), 4).tolist() == []
