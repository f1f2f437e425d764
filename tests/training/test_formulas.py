"""Formulas give what their names say."""

import math

import pytest

from parityscope import RECIPES, theory
from parityscope.training.formulas import FORMULAS, Sizes, described, formula_of, resolved_value
from parityscope.training.recipes import Recipe

SIZES = Sizes(n=200, k=3, smoothing=0.01, heads=2, temperature=0.5, numbers_per_head=40)
EXPECTED = {
    ("temperature", "1/n"): 1 / 200,
    ("temperature", "n/4"): 50.0,
    ("numbers_per_head", "log² n"): math.ceil(math.log(200) ** 2),
    ("numbers_per_head", "3k log n"): math.ceil(9 * math.log(200)),
    ("numbers_per_head", "face"): math.ceil(6 * math.log(200)),
    ("learning_rate", "0.04/k²"): 0.04 / 9,
    ("learning_rate", "theorem-5"): theory.theorem_5_learning_rate(3, 0.5, 0.01),
    ("learning_rate", "one-step"): theory.one_step_learning_rate(200, 2),
    ("steps", "max(3000, 20n)"): 4000,
    ("start_radius", "√(r/log n)"): math.sqrt(40 / math.log(200)),
}


def test_every_formula_has_its_value():
    assert {(field, formula.name) for field, some in FORMULAS.items() for formula in some} == set(EXPECTED)
    for (field, name), value in EXPECTED.items():
        assert resolved_value(field, name, SIZES) == pytest.approx(value, rel=1e-12)


def test_harmonics_need_2k_numbers_for_a_face_or_as_many_as_there_are():
    sizes = SIZES._replace(harmonic=True)
    assert resolved_value("numbers_per_head", "face", sizes) == 6
    assert resolved_value("numbers_per_head", "face", sizes._replace(n=5)) == 4


@pytest.mark.parametrize("field", FORMULAS)
def test_a_field_knows_its_formulas_and_says_so(field):
    assert Recipe.model_fields[field].description == described(field)
    for formula in FORMULAS[field]:
        assert formula_of(field, formula.name).description in described(field)
        assert getattr(RECIPES["bounded"].overridden(**{field: formula.name}), field) == formula.name
