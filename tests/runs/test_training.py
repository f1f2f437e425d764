"""Packed trainings give what they give alone, and phase cells count them."""

import pytest
import torch

from parityscope import InvalidInput
from parityscope.papers.own.figures import phase
from parityscope.problems import draw_problems
from parityscope.runs.training import Training, batch_shape, run, run_batch, train_together
from parityscope.training.learning import learn
from parityscope.training.recipes import named_recipe


def assert_same(packed, alone):
    assert packed.numbers.keys() == alone.numbers.keys()
    for name, value in alone.numbers.items():
        expected = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
        assert packed.numbers[name] == expected, name


@pytest.mark.parametrize(
    ("recipe", "options", "rates"),
    [
        ("bounded", {}, (0.02, 0.05, 0.2)),
        ("repaired", {}, (0.1, 0.21)),
        ("as-coded", {"settings": {"steps": 60}}, (0.05, 0.1)),
        ("bounded", {"samples": 400}, (0.05, 0.1)),
    ],
)
def test_a_run_is_the_same_alone_and_packed_with_other_rates_and_temperatures(recipe, options, rates):
    settings = options.pop("settings", {"steps": 80})
    configs = [
        Training(
            n=9, k=2, seed=seed, recipe=recipe, **options, settings={**settings, "temperature": t, "learning_rate": r}
        )
        for r in rates
        for t in (0.7, 1.0)
        for seed in (0, 3)
    ]
    assert len({batch_shape(config) for config in configs}) == 1
    results = run_batch(configs)
    for config, packed in zip(configs, results, strict=True):
        assert_same(packed, run(config))
    assert len({round(result.numbers["risk"], 6) for result in results}) > len(rates), "rates and temperatures matter"


def test_noise_is_each_run_s_own_when_training_on_examples():
    configs = [Training(n=8, k=2, seed=1, samples=300, noise=noise) for noise in (0.0, 0.2, 0.4)]
    assert len({batch_shape(config) for config in configs}) == 1
    for config, packed in zip(configs, run_batch(configs), strict=True):
        assert_same(packed, run(config))
    in_population = [Training(n=8, k=2, noise=noise) for noise in (0.0, 0.2)]
    assert len({batch_shape(config) for config in in_population}) == 2


def test_settings_go_before_those_a_recipe_has_for_examples():
    trained = train_together([Training(n=8, k=2, samples=100, settings={"learning_rate": 0.3, "steps": 7})])
    assert (trained.recipe.learning_rate, trained.recipe.steps) == (0.3, 7)
    assert trained.recipe.optimiser == named_recipe("bounded").on_samples["optimiser"]


def test_recipes_that_do_not_fit_together_are_refused():
    bounded = named_recipe("bounded")
    with pytest.raises(InvalidInput, match="may differ in temperature, learning_rate, start_radius only"):
        learn(draw_problems(8, 2, (0, 1)), [bounded, bounded.overridden(steps=5)], (0, 1))
    with pytest.raises(InvalidInput, match="one recipe for all seeds or one per seed: got 2 for 3 seeds"):
        learn(draw_problems(8, 2, (0, 1, 2)), [bounded, bounded], (0, 1, 2))


def test_a_learning_rate_of_its_own_takes_exactly_its_share_of_each_step():
    """Gradient descent, one step: the displacement is rate × gradient, whatever the others do."""
    recipe = named_recipe("repaired").overridden(optimiser="gradient-descent", steps=1)
    recipes = [recipe.overridden(learning_rate=rate) for rate in (0.5, 0.125)]
    start = learn(draw_problems(8, 2, (4, 4)), recipe.overridden(steps=0), (4, 4)).model.directions.detach()
    moved = learn(draw_problems(8, 2, (4, 4)), recipes, (4, 4)).model.directions.detach() - start
    assert float(moved.abs().max()) > 0
    torch.testing.assert_close(moved[0], 4 * moved[1], rtol=1e-12, atol=1e-14)


def test_cells_count_their_own_seeds():
    cells = [
        phase.Cell(panel="p", recipe="bounded", n=8, k=2, seeds=seeds, settings={"learning_rate": rate, "steps": 60})
        for seeds, rate in ((3, 0.05), (5, 1e-6), (2, 0.2))
    ]
    assert len({phase.batch_shape(cell) for cell in cells}) == 1
    together = [result.numbers for result in phase.run_batch(cells)]
    assert together == [phase.run(cell).numbers for cell in cells]
    assert [numbers["learned"] for numbers in together] == [3, 0, 2]
