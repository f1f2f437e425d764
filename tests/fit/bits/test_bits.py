"""Columns become bits: two values, few values, many values, copies and constants."""

import numpy as np
import pytest

from parityscope.fit.bits.bits import Bit, refine
from parityscope.fit.bits.encoding import encode


def test_kinds_of_columns():
    random = np.random.RandomState(0)
    X = np.column_stack(
        [
            random.randint(2, size=50),
            random.randint(3, size=50),
            random.randn(50),
            np.full(50, 7.0),
            random.randint(2, size=50),
        ]
    )
    X[:, 4] = 5 - X[:, 0]  # 4 and 5, the negation of column 0
    table = encode(X, np.arange(50))
    assert table.constant == (3,)
    assert table.copies == {0: (4,)}
    assert table.choices == (1, 3, 49, 0, 0)
    assert table.columns == 3
    levels = [bit.levels for bit in table.bits if bit.column == 1]
    assert levels == [(1.0,), (2.0,), (1.0, 2.0)]
    assert sum(bit.column == 2 for bit in table.bits) == 7


def test_signs_are_rows_in_order():
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    table = encode(X, np.array([2, 0, 3, 1]))
    assert table.signs.tolist() == [[-1, 1, 1, -1], [-1, -1, 1, 1]]


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, bool])
def test_any_number_type(dtype):
    X = np.random.RandomState(0).randint(2, size=(40, 3)).astype(dtype)
    table = encode(X, np.arange(40))
    assert (table.signs == 1 - 2 * X.astype(int).T).all()


def test_thresholds_move_to_where_the_parity_changes():
    random = np.random.RandomState(0)
    values = {0: random.rand(2000), 3: random.rand(2000)}
    labels = np.where((values[0] > 0.62) ^ (values[3] > 0.31), -1, 1).astype(np.int8)
    refined = refine((Bit(0, threshold=0.5), Bit(3, threshold=0.5)), values, labels)
    assert [bit.threshold for bit in refined] == pytest.approx([0.62, 0.31], abs=2e-3)
    assert (refined[0].signs(values[0]) * refined[1].signs(values[3]) == labels).all()


def test_equal_values_are_never_split_and_cuts_survive_rounding():
    low = 1.0
    high = np.nextafter(low, 2.0)
    bit = refine((Bit(0, threshold=low),), {0: np.array([low, high] * 5)}, np.array([1, -1] * 5, dtype=np.int8))[0]
    assert bit.signs(np.array([low, high])).tolist() == [1, -1]


def test_numbers_that_are_mere_names_are_asked_for_one_by_one():
    X = np.array([[3, 0], [-1, 1], [5, 0], [0, 1], [4, 0], [1, 0]])
    table = encode(X, np.arange(6), unordered=frozenset({0}))
    assert [bit.levels for bit in table.bits if bit.column == 0] == [(0.0,), (1.0,), (3.0,), (4.0,), (5.0,)]
    assert table.choices == (5, 1)
    assert 0 not in table.levels
    assert table.signs[2].tolist() == [-1, 1, 1, 1, 1, 1]  # is it 3?
    assert encode(X, np.arange(6)).bits[0].threshold is not None


def test_copies_are_found_among_all_kinds_of_columns():
    random = np.random.RandomState(3)
    bits, genotypes, four, wide = (
        random.randint(2, size=40),
        random.randint(3, size=40),
        random.randint(4, size=40),
        random.randn(40),
    )
    X = np.column_stack([bits, genotypes, four, wide, 1 - bits, genotypes, four, wide, 2 - genotypes, -wide])
    table = encode(X, random.permutation(40), (20, 20))
    assert table.copies == {0: (4,), 1: (5,), 2: (6,), 3: (7,)}
    assert [bit.column for bit in table.bits] == sorted(bit.column for bit in table.bits)
    assert sum(bit.column == 2 for bit in table.bits) == 7


def test_words_are_the_answers_of_the_bits_in_every_block(monkeypatch):
    random = np.random.RandomState(4)
    X = np.column_stack([random.randint(2, size=90), random.randint(4, size=(90, 3)), random.randn(90, 2)])
    order = random.permutation(90)
    whole = encode(X, order, (30, 60))
    monkeypatch.setattr("parityscope.fit.bits.encoding._BLOCK_NUMBERS", 90)
    by_column = encode(X, order, (30, 60))
    assert whole.bits == by_column.bits
    assert (whole.words == by_column.words).all()
    for bit, signs in zip(whole.bits, whole.signs, strict=True):
        assert (signs == bit.signs(X[order, bit.column])).all()
