"""Which interactions are one: those whose table is more than their sum."""

import numpy as np
import pytest
from scipy.stats import f

from parityscope.estimator.bits import Bit
from parityscope.estimator.grouping import _f_tail, groups_of, part_of
from parityscope.estimator.joint import Part
from parityscope.estimator.rules import Interaction


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
