"""Recipes by name: every hyperparameter of a training, visible and overridable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parityscope.core.errors import InvalidInput

PositionCode = Literal["circle", "circle-as-coded", "harmonics", "random-signs", "orthogonal"]


class Recipe(BaseModel):
    """How a transformer is built, started and trained. Values may depend on n and k until `resolved`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    summary: str = Field(description="one line for `learn --help`")
    positions: PositionCode = Field(description="the frozen position code")
    numbers_per_head: Annotated[int, Field(ge=1)] | Literal["log² n", "3k log n"] | None = Field(
        None,
        description="trainable numbers r per head (rounded up); none: what the code has, 8⌈log₂ n⌉ for random signs",
    )
    heads: int | None = Field(None, ge=1, description="attention heads m; none: as many as hidden bits")
    readout: Literal["zig-zag", "cosine", "triangle"] = Field(description="the frozen classification head")
    smoothing: float = Field(0.0, ge=0, description="b of the zig-zag's smoothed ReLU; 0 is ReLU")
    temperature: float | Literal["1/n", "n/4"] = Field(description="τ of the softmax")
    start_radius: Annotated[float, Field(ge=0)] | Literal["√(r/log n)"] = Field(
        description="length of each head's random start direction; √(r/log n): initial scores of variance 1/log n"
    )
    loss: Literal["hinge", "squared-hinge", "squared-mean-hinge", "logistic", "log-correlation"] = Field(
        description="what descends; log-correlation is −log E[yŷ], the hinge with a normalised step"
    )
    optimiser: Literal["gradient-descent", "adam", "head-normalised", "run-normalised", "gauss-newton"] = Field(
        description="adam; momentum whose step length is shared by a head (and grows with it) or by a run; or"
        " second-order steps on log C of one head"
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="memory of the momentum")
    beta2: float = Field(0.999, ge=0, lt=1, description="memory of the squared gradients")
    learning_rate: float | Literal["theorem-5", "one-step"] = Field(
        description="step size; theorem-5: H1's 1/Lemma 7; one-step: 4·log n score units for a hidden pair"
    )
    steps: int | Literal["max(3000, 20n)"] = Field(description="steps at most")
    stop_risk: float | None = Field(None, description="a run stops once its risk is below this")
    patience: int | None = Field(None, ge=1, description="a run stops after so many steps without improvement")
    wide_phase: bool = Field(False, description="from samples: widen the cosine's phase while attention is diffuse")
    beyond_pairs: dict[str, Any] = Field({}, description="what changes when k is not 2")
    on_samples: dict[str, Any] = Field({}, description="what changes when training on drawn examples")

    def adapted(self, k: int, *, from_examples: bool = False, **overrides: Any) -> Recipe:
        """Return the recipe for k hidden bits, from examples or not, with some fields overridden last.

        >>> RECIPES["one-step"].adapted(3).readout
        'cosine'
        """
        chosen = self.overridden(**self.beyond_pairs) if k != 2 else self
        return chosen.overridden(**{**(chosen.on_samples if from_examples else {}), **overrides})

    def resolved(self, n: int, k: int) -> Recipe:
        """Return the recipe with every value that depends on n and k made a number.

        >>> RECIPES["as-coded"].resolved(16, 3).temperature
        4.0
        """
        # Here, not above: names and summaries are read by help and completion, which must not wait for torch.
        from parityscope.theory import initial_score_variance, one_step_learning_rate, theorem_5_learning_rate

        temperature = {"1/n": 1 / n, "n/4": n / 4}.get(str(self.temperature), self.temperature)
        heads, numbers = self.heads or k, self._numbers_per_head(n, k)
        rate, radius = self.learning_rate, self.start_radius
        if rate == "theorem-5":
            rate = theorem_5_learning_rate(k, float(temperature), self.smoothing)
        if rate == "one-step":
            rate = one_step_learning_rate(n, heads)
        if radius == "√(r/log n)":
            radius = math.sqrt(numbers * initial_score_variance(n))
        return self.model_copy(
            update={
                "temperature": float(temperature),
                "learning_rate": float(rate),
                "steps": max(3000, 20 * n) if self.steps == "max(3000, 20n)" else self.steps,
                "heads": heads,
                "numbers_per_head": numbers,
                "start_radius": float(radius),
            }
        )

    def _numbers_per_head(self, n: int, k: int) -> int:
        from parityscope.models.positions import default_numbers_per_head
        from parityscope.theory import one_head_numbers, polylog_numbers

        fixed = {"circle": 2, "circle-as-coded": 2, "orthogonal": n}.get(self.positions)
        if fixed is not None:
            if isinstance(self.numbers_per_head, int) and self.numbers_per_head != fixed:
                raise InvalidInput(
                    f"{self.positions} positions have {fixed} numbers per head, got {self.numbers_per_head}"
                )
            return fixed
        by_rule = {"log² n": polylog_numbers(n), "3k log n": one_head_numbers(n, k)}
        default = 8 if self.positions == "harmonics" else default_numbers_per_head(n)
        numbers = by_rule.get(str(self.numbers_per_head)) or int(self.numbers_per_head or default)
        if self.positions == "harmonics" and numbers % 2:
            raise InvalidInput(f"harmonics come in pairs: numbers_per_head must be even, got {numbers}")
        return numbers

    def overridden(self, **changes: Any) -> Recipe:
        """Return the recipe with some fields changed, validated; an unknown field is an error.

        >>> RECIPES["as-coded"].overridden(learning_rate=0.2).learning_rate
        0.2
        """
        try:
            return Recipe.model_validate({**self.model_dump(), **changes})
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"][:1]))
            if first["type"] == "extra_forbidden":
                known = ", ".join(name for name in Recipe.model_fields if name not in ("name", "summary"))
                raise InvalidInput(f"a recipe has no field {field!r}: choose from {known}") from None
            raise InvalidInput(f"recipe field {field} = {first['input']!r}: {first['msg'].lower()}") from None


# On few examples log Ĉ is noise at the start; the plain correlation with one step length per run is not.
_BOUNDED_ON_SAMPLES: dict[str, Any] = {
    "loss": "hinge",
    "optimiser": "run-normalised",
    "learning_rate": 0.1,
    "beta1": 0.9,
    "beta2": 0.999,
    "steps": 250,
    "stop_risk": 0.002,
    "patience": 60,
    "wide_phase": True,
}

# Ours, for any k: one head whose few numbers suffice for all hidden bits, from exactly uniform attention.
_ANY_K: dict[str, Any] = {
    "heads": 1,
    "numbers_per_head": "3k log n",
    "readout": "cosine",
    "start_radius": 0.0,
    "loss": "log-correlation",
    "optimiser": "gauss-newton",
    "learning_rate": 1.0,
    "steps": 20,
    "stop_risk": 0.004,
    "on_samples": _BOUNDED_ON_SAMPLES,
}

_ALL = (
    Recipe(
        name="bounded",
        summary="the project's own: random-sign positions, near-uniform start, bounded readout cos(πS)",
        positions="random-signs",
        readout="cosine",
        temperature=1.0,
        start_radius=1.0,
        loss="log-correlation",
        optimiser="adam",
        learning_rate=0.05,
        steps=3000,
        stop_risk=0.004,
        on_samples=_BOUNDED_ON_SAMPLES,
    ),
    Recipe(
        # Differs from H1: cos(πS) for the zig-zag, a near-uniform start, −log C for the squared hinge, normalised
        # steps.
        name="repaired",
        summary="H1's model with 2 numbers per head on the circle; only the readout is bounded",
        positions="circle",
        readout="cosine",
        temperature=1.0,
        start_radius=0.1,
        loss="log-correlation",
        optimiser="head-normalised",
        learning_rate=0.21,
        beta1=0.97,
        beta2=0.97,
        steps="max(3000, 20n)",
        stop_risk=0.004,
        on_samples=_BOUNDED_ON_SAMPLES,
    ),
    Recipe(
        # H1, Theorem 5. The text leaves b, c₁ (of τ = c₁/n) and the number of steps open: 0.01, 1 and 1000 here;
        # AS_WRITTEN_GRID below is the documented grid around them.
        name="as-written",
        summary="H1's text: sharp start, zig-zag readout, squared hinge, gradient descent with Theorem 5's rate",
        positions="circle",
        readout="zig-zag",
        smoothing=0.01,
        temperature="1/n",
        start_radius=1.0,
        loss="squared-hinge",
        optimiser="gradient-descent",
        learning_rate="theorem-5",
        steps=1000,
    ),
    Recipe(
        # Differs from H1's code: trains on the exact population instead of ⌊0.8·2^n⌋ draws with replacement, three
        # quarters of them for training (`--samples` restores a draw), and so has no minibatches beyond n = 17.
        name="as-coded",
        summary="H1's published code: almost uniform start (scores divided by n/4), (mean hinge)², Adam",
        positions="circle-as-coded",
        readout="zig-zag",
        temperature="n/4",
        start_radius=1.0,
        loss="squared-mean-hinge",
        optimiser="adam",
        learning_rate=0.1,
        steps=2000,
    ),
    Recipe(
        # Our reading: of H2 only the abstract and a review are public.
        name="one-step",
        summary="H2: two heads, log² n numbers each, one gradient step finds a pair; other k: a few steps of one head",
        positions="random-signs",
        numbers_per_head="log² n",
        heads=2,
        readout="triangle",
        temperature=1.0,
        start_radius="√(r/log n)",
        loss="hinge",
        optimiser="gradient-descent",
        learning_rate="one-step",
        steps=1,
        beyond_pairs=_ANY_K,
        # Uneven attention makes the examples' noise uneven too, and the loudest noise wins.
        on_samples={"start_radius": 0.0},
    ),
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
DEFAULT_RECIPE = "bounded"

AS_WRITTEN_GRID: tuple[dict[str, float], ...] = tuple(
    {"temperature": temperature, "learning_rate": rate}
    for temperature in (1.0, 0.3, 1 / 12)
    for rate in (1.0, 0.1, 0.01)
)


def named_recipe(name: str) -> Recipe:
    """Return the recipe called `name`.

    >>> named_recipe("as-written").optimiser
    'gradient-descent'
    """
    if name not in RECIPES:
        raise InvalidInput(f"unknown recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name]


# What runs of one tensor program may each have their own of.
OF_A_RUN = ("temperature", "learning_rate", "start_radius")


def check_trainable_together(recipes: Sequence[Recipe]) -> None:
    """Refuse resolved recipes that do not fit into one tensor program.

    >>> recipe = RECIPES["bounded"]
    >>> check_trainable_together([recipe, recipe.overridden(learning_rate=0.1)])
    >>> try:
    ...     check_trainable_together([recipe, recipe.overridden(heads=5)])
    ... except InvalidInput as error:
    ...     print(str(error).partition("these ")[2])
    differ in heads
    """
    shared = [recipe.model_dump(exclude={"name", "summary", "on_samples", *OF_A_RUN}) for recipe in recipes]
    for other in shared[1:]:
        differs = [field for field, value in shared[0].items() if other[field] != value]
        if differs:
            raise InvalidInput(
                f"recipes trained together may differ in {', '.join(OF_A_RUN)} only, these differ in {differs[0]}"
            )
