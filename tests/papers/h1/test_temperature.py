import pytest
import torch

from parityscope.papers.h1.figures.temperature import (
    CONFIGS,
    TemperatureNumbers,
    TemperatureTraining,
    findings,
    plot,
    table,
)
from parityscope.problems import draw_problems
from parityscope.records import Row
from parityscope.runs import training
from parityscope.training.learning import learn


def test_temperature_is_a_unit_of_length():
    """Another τ is the same training when start and step are measured in units of τ."""
    problems = draw_problems(8, 2, range(3))
    one = learn(problems, "as-coded", range(3), steps=30, temperature=2.0, start_radius=1.0, learning_rate=0.1)
    other = learn(problems, "as-coded", range(3), steps=30, temperature=6.0, start_radius=3.0, learning_rate=0.3)
    assert torch.allclose(one.attention, other.attention, atol=1e-5)  # Adam's ε is not scaled along
    plain = {"optimiser": "gradient-descent", "steps": 30}
    one = learn(problems, "as-coded", range(3), temperature=2.0, start_radius=1.0, learning_rate=0.1, **plain)
    other = learn(problems, "as-coded", range(3), temperature=6.0, start_radius=3.0, learning_rate=0.9, **plain)
    assert torch.allclose(one.attention, other.attention, atol=1e-9)


def test_heads_are_measured_in_units_of_the_temperature():
    def lengths(tau):
        changes = {"temperature": tau, "start_radius": tau / 2, "learning_rate": tau / 20, "steps": 30}
        asked = training("as-coded", 8, 2, seeds=range(3), **changes)
        return TemperatureTraining(label="as coded", start="own radius", training=asked).run().numbers.length

    assert lengths(2.0) == pytest.approx(lengths(6.0), rel=1e-4)


def test_the_start_keeps_its_radius_or_its_sharpness():
    def starts(recipe, start):
        chosen = [one for one in CONFIGS["demo"] if (one.label, one.start) == (recipe, start)]
        return [(float(one.training.recipe.start_radius), one.temperature) for one in chosen]

    for recipe in ("repaired", "bounded"):
        own = training(recipe, 12, 3).recipe
        assert {radius for radius, _ in starts(recipe, "own radius")} == {own.start_radius}
        sharpness = [radius / tau for radius, tau in starts(recipe, "own sharpness")]
        assert sharpness == pytest.approx([own.start_radius / own.temperature] * len(sharpness))


def test_medians_are_those_of_the_seeds_that_learned():
    configs = [one for one in CONFIGS["smoke"] if one.label == "repaired" and one.start == "own radius"]
    some = TemperatureNumbers(
        learned=(True, False, True, False),
        recovered=(True, True, True, False),
        steps=(10, 200, 20, 200),
        length=(6, 1, 8, 1),
    )
    none = some.model_copy(update={"learned": (False,) * 4})
    rows = [Row(config, numbers) for config, numbers in zip(configs, (some, none), strict=True)]
    assert [line[4:] for line in table(rows).rows] == [["3", "15", "200", "7"], ["3", "–", "200", "–"]]
    _, steps, length = plot(rows).axes
    assert steps.lines[0].get_ydata().tolist() == [15]
    assert length.lines[0].get_ydata().tolist() == [7]
    vanishing_not, vanishing, sharp = (finding.here for finding in findings(rows))
    assert "repaired 0/4" in vanishing_not
    assert "repaired 2/4" in vanishing
    assert "ends between 7 and 7" in sharp
    assert findings([Row(config, none) for config in configs])[2].here == "Repaired: no run learned."
