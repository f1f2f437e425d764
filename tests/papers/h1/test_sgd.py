from dataclasses import replace

import pytest

from parityscope.papers.claim import computed
from parityscope.papers.registry import load_figure

FIGURE = load_figure("H1-sgd")


@pytest.fixture(scope="module")
def rows():
    """Return a method with fresh examples, where one seed of four did not learn, and with the population."""
    fresh, full = (config for config in FIGURE.CONFIGS["smoke"] if config.label == "bounded, Adam, k = 3")
    trained = computed(full.training)
    some = {"learned": (True, False, True, True), "learned_at": (10, None, 30, None), "steps": (80, 80, 80, 44)}
    every = {"learned": (True,) * 4, "learned_at": (20, 10, 20, 30), "steps": (80,) * 4}
    return [
        replace(trained, config=config, numbers=trained.numbers.model_copy(update=numbers))
        for config, numbers in ((fresh, some), (full, every))
    ]


def test_a_seed_that_learned_between_two_records_counts_with_its_last_step(rows):
    fresh, full = FIGURE.table(rows).rows
    assert fresh[2:4] == ["32", "3/4 (30%–95%)"]
    assert fresh[5:] == ["30", str(30 * 32)]  # the median of 10, 30 and 44
    assert full[2] == "population"
    assert full[5:] == ["20", "–"]


def test_the_population_has_no_examples_to_count(rows):
    _, steps, examples = FIGURE.plot(rows).axes
    assert steps.lines[0].get_ydata().tolist() == [30, 20]
    assert examples.lines[0].get_ydata().tolist() == [30 * 32]


def test_the_fewest_examples_are_those_of_a_batch_with_which_every_seed_learned(rows):
    compared, fewest = FIGURE.findings(rows)
    assert "3 of 4 at batch 32, 4 of 4 with the full batch" in compared.here
    assert fewest.here == "No method learned every seed from fresh examples."
    all_learned = replace(rows[0], numbers=rows[1].numbers)
    assert "at batch 32, 640 in the median, of 2^6 = 64 different inputs" in FIGURE.findings([all_learned])[1].here


def test_a_training_notes_when_it_had_learned():
    fresh, full = (config.training for config in FIGURE.CONFIGS["smoke"] if config.label == "repaired, Adam, k = 3")
    for asked in (fresh, full):
        numbers = asked.run().numbers
        noted = [at for at in numbers.learned_at if at is not None]
        assert all(at % asked.record_every == 0 or at in numbers.steps for at in noted)
        assert len(noted) >= sum(numbers.learned)
