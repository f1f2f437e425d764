"""What every recipe must pass: a new one is tested by being listed in `RECIPES`."""

import math

import pytest

from parityscope import InvalidInput, Recipe
from parityscope.records import Row
from parityscope.runs import training
from parityscope.training.parts import PART_FIELDS
from parityscope.training.recipes import RECIPES

RESOLVED = ("temperature", "learning_rate", "start_radius", "steps", "heads", "numbers_per_head")


def check_recipe(name):
    """Resolve, train and override a recipe."""
    recipe = RECIPES[name]
    assert recipe.name == name
    assert 0 < len(recipe.summary) <= 120
    for n, k in ((8, 2), (20, 3), (100, 5)):
        for from_examples in (False, True):
            _check_resolved(recipe.adapted(k, from_examples=from_examples), n, k)
    for source in ({}, {"samples": 64}, {"batch": 16}):
        _check_trains(name, source)
    for field in Recipe.model_fields:
        _check_override(recipe, field)


def _check_resolved(recipe, n, k):
    """Every value is a number, once and for all, also after a journey through JSON."""
    resolved = recipe.resolved(n, k)
    assert all(isinstance(getattr(resolved, field), int | float) for field in RESOLVED)
    assert resolved.resolved(n, k) == resolved
    assert Recipe.model_validate_json(resolved.model_dump_json()) == resolved


def _check_trains(name, source):
    """A few steps at n = 8, k = 2 give typed numbers that are finite, and the same ones again."""
    config = training(name, 8, 2, seeds=range(2), steps=3, **source)
    numbers = Row.of(config, config.run()).numbers
    assert all(math.isfinite(risk) for risk in numbers.risk)
    assert not any(numbers.diverged)
    assert max(numbers.steps) <= 3
    assert len(numbers.found) == len(numbers.accuracy) == 2
    scales = int(config.recipe.mass == "trained")
    assert numbers.parameters == config.recipe.heads * config.recipe.numbers_per_head + scales
    assert config.run().numbers == numbers


def _check_override(recipe, field):
    """A field keeps its own value, and refuses one of another kind in a sentence that names it."""
    assert recipe.overridden(**{field: getattr(recipe, field)}) == recipe
    text_or_part = (*PART_FIELDS, "name", "summary", "beyond_pairs", "on_samples", "on_batches")
    with pytest.raises(InvalidInput, match=f"^recipe field {field} = ") as refusal:
        recipe.overridden(**{field: 3 if field in text_or_part else "warm"})
    assert "\n" not in str(refusal.value)
