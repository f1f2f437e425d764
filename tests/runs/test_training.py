"""The one training: packed it gives what it gives alone, and its address says what it is."""

import pytest
import torch

from parityscope.core.errors import InvalidInput
from parityscope.papers.cells import ShownTraining
from parityscope.papers.registry import load_figure
from parityscope.papers.results import stored_rows, work_of
from parityscope.problems import draw_problems
from parityscope.records import Store
from parityscope.runs import InProcess, Work, run_sweep, run_together, training
from parityscope.runs.spec import packs_of
from parityscope.runs.training import Training
from parityscope.training.learning import learn
from parityscope.training.recipes import Recipe, named_recipe


def assert_same(packed, alone):
    packed, alone = packed.numbers.model_dump(), alone.numbers.model_dump()
    assert packed.keys() == alone.keys()
    for name, values in alone.items():
        floats = isinstance(values, tuple) and isinstance(values[0], float)
        assert packed[name] == (pytest.approx(values, rel=1e-9, abs=1e-9) if floats else values), name


@pytest.mark.parametrize(
    ("recipe", "options", "rates"),
    [
        ("bounded", {"steps": 80}, (0.02, 0.05, 0.2)),
        ("repaired", {"steps": 80}, (0.1, 0.21)),
        ("as-coded", {"steps": 60}, (0.05, 0.1)),
        ("bounded", {"steps": 80, "samples": 400}, (0.05, 0.1)),
    ],
)
def test_a_run_is_the_same_alone_and_packed_with_other_rates_and_temperatures(recipe, options, rates):
    configs = [
        training(recipe, 9, 2, seeds=[seed], temperature=temperature, learning_rate=rate, **options)
        for rate in rates
        for temperature in (0.7, 1.0)
        for seed in (0, 3)
    ]
    assert len({config.batch_shape() for config in configs}) == 1
    results = Training.run_batch(configs)
    for config, packed in zip(configs, results, strict=True):
        assert_same(packed, config.run())
    risks = {round(result.numbers.risk[0], 6) for result in results}
    assert len(risks) > len(rates), "rates and temperatures matter"


def test_noise_is_each_run_s_own_when_training_on_examples():
    configs = [training("bounded", 8, 2, seeds=[1], samples=300, noise=noise) for noise in (0.0, 0.2, 0.4)]
    assert len({config.batch_shape() for config in configs}) == 1
    for config, packed in zip(configs, Training.run_batch(configs), strict=True):
        assert_same(packed, config.run())
    in_population = [training("bounded", 8, 2, noise=noise) for noise in (0.0, 0.2)]
    assert len({config.batch_shape() for config in in_population}) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"n": 9},
        {"k": 3},
        {"recipe": "repaired"},
        {"samples": 100},
        {"batch": 100},
        {"bias": 0.4},
        {"heads": 3},
        {"steps": 50},
        {"record_every": 5},
        {"watch": ("risk",)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_does_not_fit_into_one_program_is_not_packed(change):
    settings = {"recipe": "bounded", "n": 8, "k": 2}
    assert training(**settings).batch_shape() != training(**{**settings, **change}).batch_shape()


def test_trainings_of_several_seeds_are_packed_too():
    settings = ((range(3), 0.05), (range(5), 1e-6), ([4, 2], 0.2))
    configs = [training(n=8, k=2, seeds=seeds, learning_rate=rate, steps=60) for seeds, rate in settings]
    results = Training.run_batch(configs)
    for config, packed in zip(configs, results, strict=True):
        assert_same(packed, config.run())
    assert [sum(result.numbers.learned) for result in results] == [3, 0, 2]


def test_a_pack_holds_so_many_runs():
    configs = [training(n=8, k=2, seeds=range(count)) for count in (100, 156, 1, 300, 2, 3)]
    packs = packs_of(Work("trainings", tuple(configs)))
    assert [[len(config.seeds) for config in pack.configs] for pack in packs] == [[100, 156], [1], [300], [2, 3]]


def test_what_is_watched_is_a_program_of_its_own():
    configs = [training(n=8, k=2, seeds=[seed], watch=("risk",)) for seed in (0, 1)]
    assert [len(pack.configs) for pack in packs_of(Work("trainings", tuple(configs)))] == [1, 1]


def test_settings_go_before_those_a_recipe_has_for_examples():
    recipe = training("bounded", 8, 2, samples=100, learning_rate=0.3, steps=7).recipe
    assert (recipe.learning_rate, recipe.steps) == (0.3, 7)
    assert recipe.optimiser == named_recipe("bounded").on_samples["optimiser"]


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


# Any value but that of `bounded` at n = 8, k = 2.
OTHER_VALUES = {
    "name": "another",
    "summary": "decides nothing",
    "positions": "circle",
    "numbers_per_head": 10,
    "heads": 3,
    "mass": "trained",
    "readout": "zig-zag",
    "smoothing": 0.1,
    "temperature": 0.5,
    "start_radius": 0.5,
    "loss": "hinge",
    "optimiser": "gradient-descent",
    "beta1": 0.8,
    "beta2": 0.9,
    "learning_rate": 0.1,
    "schedule": "linear",
    "steps": 10,
    "stop_risk": 0.1,
    "patience": 5,
    "wide_phase": True,
    "beyond_pairs": {"heads": 1},
    "on_samples": {"heads": 1},
    "on_batches": {"heads": 1},
}
DECIDES_NOTHING = {"summary", "beyond_pairs", "on_samples", "on_batches"}  # here: k is 2, and there are no examples


@pytest.mark.parametrize("field", Recipe.model_fields)
def test_a_changed_recipe_is_another_training(field):
    changed = training("bounded", 8, 2, **{field: OTHER_VALUES[field]})
    assert (changed.key == training("bounded", 8, 2).key) == (field in DECIDES_NOTHING)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 9},
        {"k": 3},
        {"seeds": (1,)},
        {"support": (1, 5)},
        {"samples": 100},
        {"batch": 100},
        {"noise": 0.1},
        {"bias": 0.4},
        {"watch": ("risk",)},
        {"record_every": 5},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_problem_is_another_training(change):
    assert training(**{"n": 8, "k": 2, **change}).key != training(n=8, k=2).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (training("bounded", 8, 2), training(named_recipe("bounded"), 8, 2, heads=2, numbers_per_head=24)),
        (training("as-coded", 8, 2), training("as-coded", 8, 2, temperature=2)),
        (training("one-step", 50, 2), training("one-step", 50, 2, numbers_per_head="log² n", steps=1)),
        (training("one-step", 50, 3), training("one-step", 50, 3, **named_recipe("one-step").beyond_pairs)),
        (training(n=8, k=2, seeds=range(3)), training(n=8, k=2, seeds=[0, 1, 2])),
        (training(n=8, k=2, support=(5, 1)), training(n=8, k=2, support=(1, 5))),
        (training(n=8, k=2, watch=("risk", "learned")), training(n=8, k=2, watch=("learned", "risk"))),
    ],
    ids=["defaults", "formula", "rule", "beyond pairs", "seeds", "support", "watch"],
)
def test_two_spellings_of_a_training_are_one(one, other):
    assert one == other
    assert one.key == other.key
    assert Training.model_validate_json(one.model_dump_json()).key == one.key


def test_a_support_has_as_many_bits_as_are_hidden():
    with pytest.raises(InvalidInput, match="a support of k = 3 bits is needed"):
        training(n=8, k=3, support=(1, 5)).run()


WATCHED = {"n": 10, "k": 2, "seeds": range(3), "steps": 40, "record_every": 8}


def test_a_watched_risk_is_the_curve_of_every_run():
    result = training(**WATCHED, watch=("risk",)).run()
    assert result.arrays.keys() == {"steps", "risk"}
    steps, risk = result.arrays["steps"], result.arrays["risk"]
    assert steps[:3].tolist() == [0, 8, 16]
    assert risk.shape == (len(steps), 3)
    assert (risk[0] > risk[-1]).all()


def test_a_watched_attention_is_that_at_the_end():
    result = training(**WATCHED, watch=("attention",)).run()
    assert result.arrays.keys() == {"attention"}
    attention = result.arrays["attention"]
    assert attention.shape == (3, 2, 10)
    torch.testing.assert_close(attention.sum(-1), torch.ones(3, 2))
    assert result.numbers.learned == (True, True, True)
    largest = attention.sum(1).topk(2).indices.sort().values.tolist()
    assert largest == [list(support) for support in result.numbers.supports]


def test_watched_weights_begin_even_and_end_on_the_hidden_bits():
    result = training(**WATCHED, watch=("weights",)).run()
    assert result.arrays.keys() == {"steps", "weights"}
    weights = result.arrays["weights"]
    assert weights.shape == (len(result.arrays["steps"]), 3, 10)
    torch.testing.assert_close(weights.sum(-1), torch.full(weights.shape[:-1], 2.0))
    for run, support in enumerate(result.numbers.supports):
        assert sorted(weights[-1, run].topk(2).indices.tolist()) == list(support)
        assert weights[0, run].max() < weights[-1, run].max()


def test_a_run_that_is_watched_says_when_it_had_learned():
    result = training(**WATCHED, watch=("learned",)).run()
    assert not result.arrays
    for at, steps in zip(result.numbers.learned_at, result.numbers.steps, strict=True):
        assert at % 8 == 0
        assert 0 < at <= steps + 8
    assert training(**{**WATCHED, "steps": 1}, watch=("learned",)).run().numbers.learned_at == (None, None, None)
    assert training(**WATCHED).run().numbers.learned_at is None


def test_to_be_watched_changes_no_number():
    everything = training(**WATCHED, watch=("risk", "attention", "weights", "learned")).run().numbers
    assert everything.model_copy(update={"learned_at": None}) == training(**WATCHED).run().numbers


def test_a_training_that_two_figures_show_is_run_once_and_has_one_row(tmp_path):
    shared, own = training(n=8, k=2, seeds=range(2)), training(n=8, k=3, seeds=range(2))
    first = [ShownTraining(label="ours", training=shared)]
    second = [
        ShownTraining(label="a pair", training=training(n=8, k=2, seeds=[0, 1])),
        ShownTraining(label="three", training=own),
    ]
    works = [Work("figure", tuple(shown.row_config() for shown in figure)) for figure in (first, second)]
    store = Store(tmp_path)
    assert run_together(works, store, InProcess()).run_now == 2
    assert len(store.rows("training")) == 2
    assert store.row(first[0].row_config()) == store.row(second[0].row_config())


def test_figures_share_rows(tmp_path):
    """H2-error shows one training in both of its panels: at d = 300 the scan passes the start of the other panel."""
    figure, store = load_figure("H2-error"), Store(tmp_path)
    configs = figure.CONFIGS["smoke"]
    shown = [one for one in configs if one.training.n == 300 and one.variance == 1.0]
    assert [one.label for one in shown] == ["size", "variance"]
    run_sweep(Work(figure.ID, tuple(one.row_config() for one in shown)), store, InProcess())
    assert len(store.rows("training")) == 1
    assert [row.config.label for row in stored_rows(figure, "smoke", store)] == ["size", "variance"]
    assert len({config.key for config in work_of(figure, "smoke").configs}) == len(configs) - 1


def test_the_points_of_a_phase_diagram_are_few_programs():
    work = work_of(load_figure("phase-temperature-rate"), "smoke")
    packs = packs_of(work)
    assert [len(pack.configs) for pack in packs] == [9, 9]  # the points of each recipe
