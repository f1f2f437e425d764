import pytest

from parityscope.papers.cells import ShownTraining
from parityscope.papers.figure import SCALES
from parityscope.papers.h1.figures.failure import StartGradient, StartGradientNumbers
from parityscope.papers.registry import load_figure
from parityscope.records import Row
from parityscope.runs.training import TrainingNumbers

FIGURE = load_figure("H1-why-it-fails")

LEARNED = TrainingNumbers(
    supports=((0, 1, 2),) * 4,
    found=((0, 1, 2),) * 4,
    recovered=(True,) * 4,
    learned=(True, True, True, False),
    risk=(0.0,) * 4,
    accuracy=(1.0,) * 4,
    accuracy_is="exact",
    worst_loss=None,
    steps=(5,) * 4,
    diverged=(False,) * 4,
    parameters=6,
    engine="split",
)


def rows_with(dependent, free):
    """Rows of the smoke configs whose starts all have these lengths."""
    numbers = StartGradientNumbers(dependent=dependent, free=free)
    return [Row(one, LEARNED if isinstance(one, ShownTraining) else numbers) for one in FIGURE.CONFIGS["smoke"]]


def test_the_share_is_the_median_over_seeds():
    assert StartGradientNumbers(dependent=(1.0, 3.0, 1.0), free=(3.0, 1.0, 1.0)).share == 0.5
    assert StartGradientNumbers(dependent=(1.0, 3.0), free=(3.0, 1.0)).share == 0.5
    assert StartGradientNumbers(dependent=(0.0, 0.0, 1.0), free=(0.0, 2.0, 0.0)).share == 0.0  # no gradient, no share


@pytest.mark.parametrize("scale", SCALES)
def test_every_training_starts_at_a_start_that_is_split(scale):
    starts = [one.training for one in FIGURE.CONFIGS[scale] if isinstance(one, StartGradient)]
    trained = [one.training for one in FIGURE.CONFIGS[scale] if isinstance(one, ShownTraining)]
    assert trained
    assert all(one in starts and one.recipe.steps > 0 for one in trained)
    assert all(one.recipe.steps == 0 for one in starts if one not in trained)


def test_lengths_do_not_depend_on_how_long_the_training_is():
    start = next(one for one in FIGURE.CONFIGS["smoke"] if isinstance(one, StartGradient))
    short = start.training.model_copy(update={"recipe": start.training.recipe.overridden(steps=1)})
    numbers = start.run().numbers
    assert numbers == StartGradient(training=short).run().numbers
    assert len(numbers.dependent) == len(numbers.free) == len(start.training.seeds)


def test_the_table_has_a_line_per_start_and_what_was_learned_from_it():
    rows = rows_with((1e-6, 3e-6), (0.1, 0.3))
    lines = FIGURE.table(rows).rows
    assert len(lines) == sum(isinstance(row.config, StartGradient) for row in rows)
    assert lines[0] == ["zig-zag, squared hinge", "8", "0.1", "2.0e-06", "2.0e-01", "0.000", "3 of 4"]
    assert {line[-1] for line in lines if line[2] == "8"} == {"–"}


def test_findings_sort_trainings_by_the_share_of_their_start():
    ratio, low = FIGURE.findings(rows_with((1e-6, 3e-6), (0.1, 0.3)))
    assert "is 1e+05 times longer" in ratio.here
    assert "12/16" in low.here.partition("others")[0]
    assert low.here.endswith("others: none tried.")
    high = FIGURE.findings(rows_with((1.0, 1.0), (0.1, 0.3)))[1].here
    assert "none tried" in high.partition("others")[0]
    assert "12/16" in high.partition("others")[2]
