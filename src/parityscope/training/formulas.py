"""Values of a recipe that depend on the problem: formulas by the names that users type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, NamedTuple

from pydantic import AfterValidator


class Sizes(NamedTuple):
    """What a formula may depend on: the problem, and what is resolved before it, in this order."""

    n: int
    k: int
    smoothing: float
    heads: int
    temperature: float = math.nan
    numbers_per_head: int = 0
    harmonic: bool = False


class Formula(NamedTuple):
    """A value by a rule.

    >>> formula_of("temperature", "n/4").value(Sizes(n=20, k=3, smoothing=0.0, heads=3))
    5.0
    """

    name: str  # what users type
    value: Callable[[Sizes], float]
    description: str  # one line


# Theory is imported where it is used: names and descriptions are read by help, which must not wait for torch.
def _theorem_5(sizes: Sizes) -> float:
    from parityscope.theory import theorem_5_learning_rate

    return theorem_5_learning_rate(sizes.k, sizes.temperature, sizes.smoothing)


def _one_step(sizes: Sizes) -> float:
    from parityscope.theory import one_step_learning_rate

    return one_step_learning_rate(sizes.n, sizes.heads)


def _polylog(sizes: Sizes) -> int:
    from parityscope.theory import polylog_numbers

    return polylog_numbers(sizes.n)


def _one_head(sizes: Sizes) -> int:
    from parityscope.theory import one_head_numbers

    return one_head_numbers(sizes.n, sizes.k)


def _face(sizes: Sizes) -> int:
    from parityscope.theory import face_numbers

    return face_numbers(sizes.n, sizes.k, harmonic=sizes.harmonic)


def _radius(sizes: Sizes) -> float:
    from parityscope.theory import initial_score_variance

    return math.sqrt(sizes.numbers_per_head * initial_score_variance(sizes.n))


# By field of the recipe. A new formula is one more line.
FORMULAS: dict[str, tuple[Formula, ...]] = {
    "temperature": (
        Formula("1/n", lambda sizes: 1 / sizes.n, "H1's sharp start, Theorem 5 with c₁ = 1"),
        Formula("n/4", lambda sizes: sizes.n / 4, "H1's published code"),
    ),
    "numbers_per_head": (
        Formula("log² n", _polylog, "H2's polylog, rounded up"),
        Formula("3k log n", _one_head, "what lets one head single out k positions, rounded up"),
        Formula("face", _face, "what makes k positions a face of the code: 2k harmonics, or 2k log n rounded up"),
    ),
    "learning_rate": (
        Formula("0.04/k²", lambda sizes: 0.04 / sizes.k**2, "moves H1's heads; the risk falls at every step"),
        Formula("theorem-5", _theorem_5, "1/smoothness of the risk, H1's Lemma 7: nothing moves"),
        Formula("one-step", _one_step, "4·log n score units for a hidden pair in one step"),
    ),
    "steps": (Formula("max(3000, 20n)", lambda sizes: max(3000, 20 * sizes.n), "longer for many bits"),),
    "start_radius": (Formula("√(r/log n)", _radius, "initial scores of variance 1/log n, as H2's review says"),),
}


def formula_of(field: str, name: str) -> Formula:
    """Return the formula that a field of a recipe knows by this name."""
    for formula in FORMULAS[field]:
        if formula.name == name:
            return formula
    raise ValueError(f"or a formula: {', '.join(one.name for one in FORMULAS[field])}")


def resolved_value(field: str, value: float | str, sizes: Sizes) -> float:
    """Return the number a field stands for."""
    return formula_of(field, value).value(sizes) if isinstance(value, str) else value


def described(field: str) -> str:
    """Return the formulas of a field for its description."""
    return "; ".join(f"{formula.name}: {formula.description}" for formula in FORMULAS[field])


def _known(field: str) -> AfterValidator:
    def known(name: str) -> str:
        return formula_of(field, name).name

    return AfterValidator(known)


TemperatureFormula = Annotated[str, _known("temperature")]
NumbersFormula = Annotated[str, _known("numbers_per_head")]
RateFormula = Annotated[str, _known("learning_rate")]
StepsFormula = Annotated[str, _known("steps")]
RadiusFormula = Annotated[str, _known("start_radius")]
