"""Recipes by name: every hyperparameter of a training, visible and overridable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parityscope.core.errors import InvalidInput
from parityscope.training.formulas import (
    NumbersFormula,
    RadiusFormula,
    RateFormula,
    Sizes,
    StepsFormula,
    TemperatureFormula,
    described,
    resolved_value,
)
from parityscope.training.parts import PART_FIELDS, Changes, OwnPart, PartField, is_own

PositionCode = Literal["circle", "circle-as-coded", "harmonics", "random-signs", "gaussian", "orthogonal"]


class Recipe(BaseModel):
    """How a transformer is built, started and trained. Values may depend on n and k until `resolved`.

    `positions`, `readout`, `optimiser` and `schedule` take a name, or a part of your own: the recipe then keeps its
    address, which is where it is defined and a hash of its text (`parityscope.training.parts`).

    Parameters
    ----------
    name, summary : str
        What it is called, and one line for `learn --help`.
    positions : str or callable
        The frozen position code; your own is called with (n, numbers_per_head, generator) and returns a tensor (n, r).
    numbers_per_head : int, formula or None
        Trainable parameters r per head; None: what the code has, 8⌈log₂ n⌉ for random codes and for your own.
    heads : int or None
        Attention heads m; None: as many as hidden bits.
    mass : str
        What the weights c add up to: "k" (softmax), or "trained" (one head: c = exp(Pq + β), β one more parameter).
    readout : str, Readout or callable
        The frozen classification head; your own is a `Readout`, or is called with k and returns one.
    smoothing : float
        b of the zig-zag's smoothed ReLU; 0 is ReLU.
    temperature : float or formula
        τ of the softmax.
    start_radius : float or formula
        Length of each head's random start direction.
    loss : str
        What descends; "log-correlation" is −log E[yŷ], the hinge with a normalised step.
    optimiser : str or callable
        "adam"; "gradient-descent"; momentum whose step length is shared by a head, and grows with it
        ("head-normalised"), or by a run ("run-normalised"); second-order steps on log C of one head ("gauss-newton",
        and "newton" where the mass is trained); gradient ascent on log C with a searched length ("armijo"), or
        with a memory of the last gradients too ("lbfgs"); the gradient at the attention weights, sent back through the
        code ("attention-gradient"); your own is called with the parameters and returns an optimiser, such as one of
        torch's.
    beta1, beta2 : float
        Memory of the momentum and of the squared gradients.
    learning_rate : float or formula
        Step size; of an optimiser of your own, what its steps are multiplied by (1 unless given).
    schedule : str or callable
        What the learning rate is multiplied by: "constant", "linear" (to 0 at the last step), or your own, called with
        the number of the step.
    steps : int or formula
        Steps at most.
    stop_risk : float or None
        A run stops once its risk is below this.
    patience : int or None
        A run stops after so many steps without improvement.
    wide_phase : bool
        From samples: widen the cosine's phase while attention is diffuse.
    beyond_pairs, on_samples, on_batches : dict
        What changes when k is not 2, when training on drawn examples, and when on fresh ones at every step. Steps that
        search on log C ("newton" and its kin) first name the hidden bits from drawn examples, then train on those.

    >>> RECIPES["bounded"].overridden(schedule="linear", steps=100).schedule
    'linear'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    summary: str
    positions: PositionCode | PartField
    numbers_per_head: Annotated[int, Field(ge=1)] | NumbersFormula | None = Field(
        None, description=described("numbers_per_head")
    )
    heads: int | None = Field(None, ge=1)
    mass: Literal["k", "trained"] = "k"
    readout: Literal["zig-zag", "cosine", "triangle"] | PartField
    smoothing: float = Field(0.0, ge=0)
    temperature: float | TemperatureFormula = Field(description=described("temperature"))
    start_radius: Annotated[float, Field(ge=0)] | RadiusFormula = Field(description=described("start_radius"))
    loss: Literal["hinge", "squared-hinge", "squared-mean-hinge", "squared", "logistic", "log-correlation"]
    optimiser: (
        Literal[
            "gradient-descent",
            "adam",
            "head-normalised",
            "run-normalised",
            "gauss-newton",
            "newton",
            "armijo",
            "lbfgs",
            "attention-gradient",
        ]
        | PartField
    )
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.999, ge=0, lt=1)
    learning_rate: float | RateFormula = Field(description=described("learning_rate"))
    schedule: Literal["constant", "linear"] | PartField = "constant"
    steps: int | StepsFormula = Field(description=described("steps"))
    stop_risk: float | None = None
    patience: int | None = Field(None, ge=1)
    wide_phase: bool = False
    beyond_pairs: Changes = {}
    on_samples: Changes = {}
    on_batches: Changes = {}

    def __init__(self, **fields: Any) -> None:
        if is_own(fields.get("optimiser")):
            fields = {"learning_rate": 1.0, **fields}
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidInput(_sentence(error)) from None

    def adapted(self, k: int, *, from_examples: bool = False, from_batches: bool = False, **overrides: Any) -> Recipe:
        """Return the recipe for k hidden bits, from examples or not, fresh or not, with some fields overridden last.

        >>> RECIPES["one-step"].adapted(3).readout
        'cosine'
        """
        chosen = self.overridden(**self.beyond_pairs) if k != 2 else self
        chosen = chosen.overridden(**chosen.on_samples) if from_examples else chosen
        chosen = chosen.overridden(**chosen.on_batches) if from_batches else chosen
        return chosen.overridden(**overrides)

    def resolved(self, n: int, k: int) -> Recipe:
        """Return the recipe with every value that depends on n and k made a number.

        >>> RECIPES["as-coded"].resolved(16, 3).temperature
        4.0
        """
        sizes = Sizes(n, k, self.smoothing, heads=self.heads or k, harmonic=self.positions == "harmonics")
        sizes = sizes._replace(temperature=float(resolved_value("temperature", self.temperature, sizes)))
        sizes = sizes._replace(numbers_per_head=self._numbers_per_head(sizes))
        return self.model_copy(
            update={
                "temperature": sizes.temperature,
                "learning_rate": float(resolved_value("learning_rate", self.learning_rate, sizes)),
                "steps": int(resolved_value("steps", self.steps, sizes)),
                "heads": sizes.heads,
                "numbers_per_head": sizes.numbers_per_head,
                "start_radius": float(resolved_value("start_radius", self.start_radius, sizes)),
            }
        )

    def _numbers_per_head(self, sizes: Sizes) -> int:
        # Here, not above: names and summaries are read by help and completion, which must not wait for torch.
        from parityscope.models.positions import default_numbers_per_head

        code, given = self.positions, self.numbers_per_head
        fixed = {"circle": 2, "circle-as-coded": 2, "orthogonal": sizes.n}.get(str(code))
        if fixed is not None:
            if isinstance(given, int) and given != fixed:
                raise InvalidInput(f"{code} positions have {fixed} parameters per head, got {given}")
            return fixed
        default = 8 if code == "harmonics" else default_numbers_per_head(sizes.n)
        numbers = int(resolved_value("numbers_per_head", default if given is None else given, sizes))
        if code == "harmonics" and numbers % 2:
            raise InvalidInput(f"harmonics come in pairs: numbers_per_head must be even, got {numbers}")
        return numbers

    def overridden(self, **changes: Any) -> Recipe:
        """Return the recipe with some fields changed, validated; an unknown field is an error.

        >>> RECIPES["as-coded"].overridden(learning_rate=0.2).learning_rate
        0.2
        """
        kept = self.model_dump()
        if is_own(changes.get("optimiser")):
            del kept["learning_rate"]
        return Recipe(**{**kept, **changes})

    def own_parts(self) -> Iterator[tuple[str, OwnPart]]:
        """Yield the parts of one's own with the fields they stand in.

        >>> [str(part) for _, part in RECIPES["bounded"].overridden(schedule=OwnPart.of(min)).own_parts()]
        ['builtins:min']
        """
        for field in PART_FIELDS:
            if isinstance(part := getattr(self, field), OwnPart):
                yield field, part

    def check_addressable(self) -> None:
        """Refuse a part whose results could not be told from those of another part.

        >>> RECIPES["bounded"].overridden(schedule=lambda step: 0.99**step).check_addressable()
        Traceback (most recent call last):
        parityscope.core.errors.InvalidInput: schedule = parityscope.training.recipes:<lambda> is not addressable, so \
its results could not be told from another's: define it at the top level of a file
        """
        for field, part in self.own_parts():
            if not part.addressable:
                raise InvalidInput(
                    f"{field} = {part} is not addressable, so its results could not be told from another's: define it"
                    " at the top level of a file"
                )


def refuse_impossible(recipe: Recipe) -> None:
    """Refuse a resolved recipe with numbers that no training can have.

    >>> refuse_impossible(RECIPES["as-coded"].overridden(learning_rate=-0.1).resolved(16, 3))
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: learning_rate must be positive and finite, got -0.1
    """
    for name in ("learning_rate", "temperature"):
        if not 0 < float(getattr(recipe, name)) < math.inf:
            raise InvalidInput(f"{name} must be positive and finite, got {getattr(recipe, name):g}")
    for name, number in (("steps", int(recipe.steps)), ("patience", recipe.patience or 0)):
        if not 0 <= number < 2**31:
            raise InvalidInput(f"{name} must be 0 or more, and below 2^31, got {number}")
    if not math.isfinite(float(recipe.start_radius)):
        raise InvalidInput(f"start_radius must be finite, got {recipe.start_radius}")


def _sentence(error: ValidationError) -> str:
    """Return what is wrong with the first field that is."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"][:1]))
    if first["type"] == "extra_forbidden":
        known = ", ".join(name for name in Recipe.model_fields if name not in ("name", "summary"))
        return f"a recipe has no field {field!r}: choose from {known}"
    if first["type"] == "missing":
        return f"a recipe needs the field {field!r}: give it, or start from one of RECIPES with `overridden`"
    of_field = [one for one in error.errors() if one["loc"][:1] == first["loc"][:1]]
    formulas = [one["msg"].removeprefix("Value error") for one in of_field if one["type"] == "value_error"]
    more = formulas[0] if formulas and first["type"].endswith("_parsing") else ""
    return f"recipe field {field} = {first['input']!r}: {first['msg'].lower()}{more}"


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

# One head whose numbers are as many as make k positions a face of the code, from exactly uniform attention.
_ONE_HEAD: dict[str, Any] = {
    "positions": "random-signs",
    "numbers_per_head": "face",
    "heads": 1,
    "readout": "cosine",
    "temperature": 1.0,
    "start_radius": 0.0,
    "loss": "log-correlation",
    "learning_rate": 1.0,
    "stop_risk": 0.004,
}

BOUNDED = Recipe(
    name="bounded",
    summary="the project's own: random-sign positions, near-uniform initialisation, bounded readout cos(πS)",
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
)
_ALL = (
    BOUNDED,
    Recipe(
        name="concave",
        summary="ours: one head whose log C is concave in its parameters (2k log n random signs, or 2k harmonics); "
        "Newton",
        mass="trained",
        optimiser="newton",
        steps=1000,
        # Fresh examples are no set that could name the bits; and their phase is widened by a mass of its own.
        on_batches={**_BOUNDED_ON_SAMPLES, "mass": "k"},
        **_ONE_HEAD,
    ),
    Recipe(
        name="mirror",
        summary="ours: one softmax head; the gradient with respect to attention used as the update of the logits; "
        "proved rate",
        optimiser="attention-gradient",
        steps=3000,
        on_samples=_BOUNDED_ON_SAMPLES,
        **_ONE_HEAD,
    ),
    BOUNDED.overridden(
        # Differs from H1: cos(πS) for the zig-zag, a near-uniform start, −log C for the squared hinge, normalised
        # steps.
        name="repaired",
        summary="H1's model with 2 trainable parameters per head on the circle; only the readout is bounded",
        positions="circle",
        start_radius=0.1,
        optimiser="head-normalised",
        learning_rate=0.21,
        beta1=0.97,
        beta2=0.97,
        steps="max(3000, 20n)",
    ),
    Recipe(
        # H1, Theorem 5. The text leaves b, c₁ (of τ = c₁/n) and the number of steps open: 0.01, 1 and 1000 here;
        # AS_WRITTEN_GRID below is the documented grid around them.
        name="as-written",
        summary="H1's text: sharp initialisation, zig-zag readout, squared hinge, gradient descent, learning rate"
        " that moves the heads",
        positions="circle",
        readout="zig-zag",
        smoothing=0.01,
        temperature="1/n",
        start_radius=1.0,
        loss="squared-hinge",
        optimiser="gradient-descent",
        learning_rate="0.04/k²",
        steps=2000,
    ),
    Recipe(
        # Differs from H1's code: trains on the exact population instead of ⌊0.8·2^n⌋ draws with replacement, three
        # quarters of them for training (`--samples` restores a draw), and so has no minibatches beyond n = 17.
        name="as-coded",
        summary="H1's published code: almost uniform initialisation (scores divided by n/4), (mean hinge)², Adam",
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
        # Our reading: of H2 only the abstract and a review were available to us.
        name="one-step",
        summary="H2: two heads, log² n parameters each, one gradient step recovers a pair; other k: a few steps of one "
        "head",
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
DEFAULT_RECIPE = BOUNDED.name

AS_WRITTEN_GRID: tuple[dict[str, float], ...] = tuple(
    {"temperature": temperature, "learning_rate": rate}
    for temperature in (1.0, 0.3, 1 / 12)
    for rate in (1.0, 0.1, 0.01)
)


def named_recipe(name: str) -> Recipe:
    """Return the recipe called `name`."""
    if name not in RECIPES:
        raise InvalidInput(f"unknown recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name]


# What runs of one tensor program may each have their own of.
OF_A_RUN = ("temperature", "learning_rate", "start_radius")
