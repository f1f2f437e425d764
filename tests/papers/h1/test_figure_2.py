from dataclasses import replace

import pytest
import torch

from parityscope.papers.cells import ShownTraining
from parityscope.papers.claim import computed
from parityscope.papers.h1.figures.heads import one_head_per_bit
from parityscope.papers.h1.trainings import NEIGHBOURS
from parityscope.papers.registry import load_figure
from parityscope.runs import training

FIGURE = load_figure("H1-figure-2")


@pytest.fixture(scope="module")
def row():
    """Return three seeds, of which the last two learned."""
    kept = {"watch": ("attention", "weights"), "record_every": 2}
    asked = training("bounded", 8, 3, seeds=range(3), support=(1, 4, 6), **kept)
    trained = computed(asked)
    numbers = trained.numbers.model_copy(update={"learned": (False, True, True)})
    return replace(trained, config=ShownTraining(label="ours", training=asked), numbers=numbers)


def _attending(row, *bits):
    """Return the row with every seed's heads on the given bits."""
    heads = torch.eye(8)[torch.tensor(bits)]
    return replace(row, arrays={**row.arrays, "attention": heads})


def test_heads_on_distinct_bits_are_counted_among_the_seeds_that_learned(row):
    assert one_head_per_bit(_attending(row, (1, 4, 6), (1, 4, 6), (1, 4, 4))) == 1
    assert one_head_per_bit(_attending(row, (1, 1, 6), (1, 4, 6), (6, 4, 1))) == 2


def test_heads_between_neighbours_attend_to_what_is_larger_however_little(row):
    # The published code's recipe ends so on bits 15 and 16: both heads prefer 16, and neither is on 15.
    attention = torch.zeros(3, 3, 20)
    attention[:, 0, 15:17] = torch.tensor([0.4952501, 0.4952605])
    attention[:, 1, 15:17] = torch.tensor([0.4951600, 0.4952745])
    attention[:, 2, 4] = 0.957
    supports = (NEIGHBOURS,) * 3
    shared = replace(
        row, numbers=row.numbers.model_copy(update={"supports": supports}), arrays={"attention": attention}
    )
    assert one_head_per_bit(shared) == 0


def test_the_first_seed_that_learned_is_shown(row):
    (line,) = FIGURE.table([row]).rows
    assert line[:3] == ["ours", "1, 4, 6", "2/3 (21%–94%)"]
    assert line[4] == "1"
    assert line[5] == f"{row.numbers.risk[1]:.4f}"
    none = replace(row, numbers=row.numbers.model_copy(update={"learned": (False, False, False)}))
    assert FIGURE.table([none]).rows[0][3:5] == ["0 of 0", "0"]
    wide, narrow, _ = FIGURE.plot([row]).axes
    assert wide.get_title() == "ours: 2 of 3 learned; seed 1"
    assert narrow.images[0].get_array().T.tolist() == row.arrays["attention"][1].tolist()
