import pytest
import torch

from parityscope.papers.h1.figures.heads import Film, FilmNumbers
from parityscope.papers.registry import load_figure
from parityscope.records import Row
from parityscope.runs import training

FIGURE = load_figure("heads-lock-on")


def test_the_film_ends_where_the_heads_of_the_first_seed_stopped():
    asked = training("bounded", 12, 3, seeds=range(4), support=(2, 5, 9), steps=400, record_every=1)
    numbers, arrays = Film(training=asked).run()
    assert all(numbers.learned)
    assert int(arrays["steps"][-1]) == numbers.steps[0] < 400
    assert sorted(arrays["attention"][-1].argmax(-1).tolist()) == [2, 5, 9]
    assert numbers.least_attention == pytest.approx(float(arrays["attention"][-1].amax(-1).min()), rel=1e-6)
    # The start is nearly uniform, and every head's attention sums to 1 all along.
    assert float(arrays["attention"][0].max()) < 0.2
    assert torch.allclose(arrays["attention"].sum(-1), torch.ones(()), atol=1e-5)


def test_a_film_of_examples_is_trained_on_examples():
    few = training("bounded", 6, 2, seeds=range(2), samples=200, steps=5)
    numbers, arrays = Film(training=few).run()
    assert numbers.steps == (5, 5)
    assert len(arrays["steps"]) == 2


@pytest.fixture
def rows():
    """Return two films of head 0 on bit 0 and head 1 on bit 1; one seed of two learned."""
    arrays = {"steps": torch.tensor([0, 1, 2]), "attention": torch.eye(4)[:2].expand(3, 2, 4)}
    numbers = FilmNumbers(learned=(True, False), steps=(2, 7), least_attention=1.0)
    asked = {"seeds": range(2), "support": (0, 1), "steps": 7}
    return [Row(Film(training=training(name, 4, 2, **asked)), numbers, arrays) for name in ("as-written", "bounded")]


def test_a_head_on_one_bit_paints_it_in_its_colour(rows):
    picture = FIGURE.plot(rows).axes[0].images[0].get_array()
    blue, orange = picture[0, 0], picture[1, 0]
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]
    assert (picture[2:] == 1).all()


def test_steps_are_those_of_the_seeds_that_learned(rows):
    written, ours = (finding.here for finding in FIGURE.findings(rows))
    assert written == "As written 1/2 (9%–91%) of the seeds learned in 7 steps."
    assert ours.endswith("the median after 2 steps.")
    assert [line[2] for line in FIGURE.table(rows).rows] == ["2", "2"]
    none = Row(rows[0].config, FilmNumbers(learned=(False, False), steps=(7, 7), least_attention=0.1), rows[0].arrays)
    assert FIGURE.table([none]).rows[0][1:] == ["0/2 (0%–66%)", "–", "0.100"]
