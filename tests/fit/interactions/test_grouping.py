"""Which interactions are one: those whose table is more than their sum."""

import numpy as np
import pytest
from scipy.stats import f

from parityscope.fit.bits.bits import Bit
from parityscope.fit.interactions.grouping import _f_tail, _left, groups_of, part_of
from parityscope.fit.interactions.joint import Part
from parityscope.fit.interactions.rules import Interaction


def single(column):
    return Part(Interaction((Bit(column, levels=(1.0,)),), ((0.0, 1.0),)), table=False)


def values_of(rows, columns, seed=0):
    random = np.random.RandomState(seed)
    return {column: random.randint(2, size=rows) for column in range(columns)}, random


def test_the_tail_of_f_is_good_enough_for_a_level():
    for ratio, above, below in [(6.7, 1, 500), (3.4, 4, 300), (2.0, 12, 800), (1.0, 3, 100)]:
        assert _f_tail(ratio, above, below) == pytest.approx(f.sf(ratio, above, below), rel=0.15)


def test_three_columns_of_a_conjunction_are_one_group():
    values, random = values_of(800, 4)
    up = (values[0] & values[1] & values[2]).astype(bool) ^ (random.rand(800) < 0.1)
    parts = [single(column) for column in range(4)]
    assert groups_of(parts, values, np.where(up, 1, -1), alpha=0.01) == [(0, 1, 2), (3,)]
    assert part_of(parts, (0, 1, 2)).interaction.shape == (2, 2, 2)


def test_what_is_owed_now_to_one_and_now_to_another_stays_apart():
    values, random = values_of(3000, 3)
    cause = random.randint(3, size=3000)
    label = np.choose(cause, [values[column] for column in range(3)])
    assert groups_of([single(c) for c in range(3)], values, np.where(label, 1, -1), alpha=0.01) == [(0,), (1,), (2,)]


def test_a_column_within_a_table_belongs_to_it():
    values, _ = values_of(400, 2)
    pair = Part(Interaction((Bit(0, levels=(1.0,)), Bit(1, levels=(1.0,))), ((0.0, 1.0), (0.0, 1.0))), table=True)
    label = values[0] & values[1]
    assert groups_of([single(0), pair], values, np.where(label, 1, -1), alpha=0.01) == [(0, 1)]


def test_groups_stay_within_the_number_of_columns_that_was_given():
    values, random = values_of(800, 3)
    up = (values[0] & values[1] & values[2]).astype(bool) ^ (random.rand(800) < 0.1)
    parts = [single(column) for column in range(3)]
    assert max(map(len, groups_of(parts, values, np.where(up, 1, -1), alpha=0.01, most_columns=2))) == 2


@pytest.mark.parametrize("sizes", [(6,), (2, 2), (5, 9), (3, 4, 2)])
def test_what_a_sum_leaves_is_that_of_least_squares_on_indicators(sizes):
    random = np.random.RandomState(0)
    factors = [np.unique(random.randint(size, size=300), return_inverse=True)[1] for size in sizes]
    if len(sizes) > 1:
        factors[1] = np.where(factors[0] == 0, 0, factors[1])  # a design of less than full rank otherwise
    labels = random.choice([-1, 1], size=300)
    design = np.column_stack([cells[:, None] == np.unique(cells) for cells in factors]).astype(float)
    fitted, _, rank, _ = np.linalg.lstsq(design, labels.astype(float), rcond=1e-9)
    left, found = _left(factors, labels)
    assert found == rank
    assert left == pytest.approx(float(((labels - design @ fitted) ** 2).sum()), abs=1e-6)


def test_questions_about_the_same_columns_are_one_group():
    values = {0: np.linspace(-2, 2, 400)}
    ends = [Part(Interaction((Bit(0, threshold=cut),), (None,)), table=False) for cut in (-1.0, 1.0)]
    labels = np.where(np.abs(values[0]) < 1, 1, -1)
    assert groups_of(ends, values, labels, alpha=0.01) == [(0, 1)]
    assert part_of(ends, (0, 1)).interaction.shape == (2, 2)
