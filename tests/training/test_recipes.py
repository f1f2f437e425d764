import pytest

from harness.recipes import check_recipe
from parityscope import RECIPES, InvalidInput, Recipe
from parityscope.theory import theorem_5_learning_rate
from parityscope.training.recipes import named_recipe

FIELDS = RECIPES["bounded"].model_dump()


def test_as_written_takes_the_texts_choices_and_a_rate_that_moves():
    recipe = named_recipe("as-written").resolved(12, 3)
    assert recipe.temperature == pytest.approx(1 / 12)
    assert recipe.learning_rate == pytest.approx(0.04 / 9)
    proved = named_recipe("as-written").overridden(learning_rate="theorem-5").resolved(12, 3)
    assert proved.learning_rate == theorem_5_learning_rate(3, 1 / 12, recipe.smoothing)
    assert (recipe.heads, recipe.numbers_per_head, recipe.loss) == (3, 2, "squared-hinge")


def test_as_coded_is_the_published_code():
    recipe = named_recipe("as-coded").resolved(16, 3)
    settings = (recipe.temperature, recipe.optimiser, recipe.learning_rate, recipe.steps, recipe.smoothing)
    assert settings == (4.0, "adam", 0.1, 2000, 0.0)
    assert (recipe.loss, recipe.positions) == ("squared-mean-hinge", "circle-as-coded")


def test_the_default_code_is_logarithmic():
    assert [named_recipe("bounded").resolved(n, 2).numbers_per_head for n in (2, 20, 1000)] == [8, 40, 80]


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_resolves_trains_and_refuses_what_does_not_fit(name):
    check_recipe(name)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: named_recipe("magic"), "unknown recipe 'magic': choose one of bounded"),
        (lambda: RECIPES["bounded"].overridden(learningrate=1), "a recipe has no field 'learningrate'"),
        (lambda: RECIPES["bounded"].overridden(heads=0), "recipe field heads = 0: input should be greater"),
        (
            lambda: RECIPES["bounded"].overridden(temperature="warm"),
            "recipe field temperature = 'warm': .*, or a formula: 1/n, n/4",
        ),
        (lambda: Recipe(name="mine", summary=""), "a recipe needs the field 'positions': give it, or start from one"),
        (lambda: Recipe(**{**FIELDS, "loss": "square"}), "recipe field loss = 'square': input should be 'hinge'"),
        (lambda: Recipe(**FIELDS, colour="red"), "a recipe has no field 'colour'"),
        (
            lambda: RECIPES["repaired"].overridden(numbers_per_head=3).resolved(9, 2),
            "circle positions have 2 parameters",
        ),
        (
            lambda: RECIPES["bounded"].overridden(positions="harmonics", numbers_per_head=3).resolved(9, 2),
            "harmonics come in pairs",
        ),
    ],
)
def test_bad_settings_are_named(make, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        make()


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_numbers_must_be_finite(value):
    with pytest.raises(InvalidInput, match=f"learning_rate = '{value}': input should be a finite number"):
        RECIPES["bounded"].overridden(learning_rate=value)
