"""Rules by parity and by cell: every row's cell has the row's parity, and what was never seen falls back on it."""

import numpy as np
import pytest

from parityscope.fit.bits.bits import Bit
from parityscope.fit.interactions.rules import Interaction, fit_rule, prefers_table, truth_table

MIXED = Interaction(
    (Bit(0, levels=(1.0, 2.0)), Bit(3, threshold=0.5), Bit(7, levels=(1.0,))), ((0.0, 1.0, 2.0), None, (0.0, 1.0))
)


def drawn(rows=400, seed=0):
    random = np.random.RandomState(seed)
    values = {0: random.randint(3, size=rows), 3: random.rand(rows), 7: random.randint(2, size=rows)}
    return values, np.where(random.rand(rows) < 0.4, 1, -1)


def test_the_parity_of_a_row_is_that_of_its_cell():
    values, _ = drawn()
    cells = MIXED.cells(values)
    assert set(cells) == set(range(12))
    assert (MIXED.cell_chi()[cells] == MIXED.chi(values)).all()


def test_a_value_never_seen_is_predicted_by_parity():
    values, labels = drawn()
    rule = fit_rule(MIXED, values, labels, table=True)
    new = {0: np.array([7, 1]), 3: np.array([0.1, 0.1]), 7: np.array([0, 0])}
    assert MIXED.cells(new)[0] == -1
    by_parity = fit_rule(MIXED, values, labels, table=False).probability(MIXED, new)
    found = rule.probability(MIXED, new)
    assert found[0] == by_parity[0]
    assert found[1] != by_parity[1]


def test_cells_are_the_shares_of_their_rows_shrunk_towards_their_parity():
    values, labels = drawn()
    rule = fit_rule(MIXED, values, labels, table=True)
    for cell in range(12):
        own = labels[MIXED.cells(values) == cell] > 0
        prior = rule.by_parity[0 if MIXED.cell_chi()[cell] > 0 else 1]
        assert rule.by_cell[cell] == pytest.approx((own.sum() + 2 * prior) / (len(own) + 2))


def test_a_truth_table_counts_every_row_once_and_large_ones_show_the_parities():
    values, labels = drawn()
    names = {0: "gene", 3: "heat", 7: "shift"}
    table = truth_table(MIXED, values, labels, names)
    assert [cell.values for cell in table][:3] == [
        ("0", "heat ≤ 0.5", "0"),
        ("0", "heat ≤ 0.5", "1"),
        ("0", "heat > 0.5", "0"),
    ]
    chosen = (values[0] == 0) & (values[3] <= 0.5) & (values[7] == 1)
    assert (table[1].rows, table[1].second_class) == (chosen.sum(), (labels[chosen] > 0).sum())
    assert sum(cell.rows for cell in table) == len(labels)
    nine = Interaction(tuple(Bit(column, 0.5) for column in range(9)), (None,) * 9)
    bits = {column: np.random.RandomState(column).rand(400) for column in range(9)}
    even, odd = truth_table(nine, bits, labels, dict.fromkeys(range(9), "x"))
    assert (even.values, odd.values) == (("even",), ("odd",))
    assert even.rows == (nine.chi(bits) > 0).sum()


@pytest.mark.parametrize("rows", [60, 100, 200, 400, 2000])
def test_a_clean_parity_is_a_parity_at_every_size_and_an_and_is_not(rows):
    pair = Interaction((Bit(0, 0.5), Bit(1, 0.5)), ((0.0, 1.0), (0.0, 1.0)))
    a, b = np.random.default_rng(rows).integers(0, 2, (2, rows))
    train = int(0.7 * rows)
    assert not prefers_table(pair, {0: a, 1: b}, 2 * (a ^ b) - 1, train)
    assert prefers_table(pair, {0: a, 1: b}, 2 * (a & b) - 1, train)
