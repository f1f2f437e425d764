"""What a browser may ask for: the same fields and rules as the command line, and caps that keep a page live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parityscope.core.errors import InvalidInput
from parityscope.problems import Parity, draw_problems
from parityscope.risk.engines import closed_form, pair
from parityscope.training.build import readout_of
from parityscope.training.recipes import DEFAULT_RECIPE, Recipe, named_recipe

RequestT = TypeVar("RequestT", bound=BaseModel)

# The closed form costs O(n); exact engines for other readouts about 2^{n/2}; a loss that no engine covers 2^n.
CLOSED_FORM_BITS, SPLIT_BITS, ENUMERATED_BITS = 1000, 24, 16
MOST_HIDDEN = 16
MOST_STEPS = 20_000


class LiveSettings(BaseModel):
    """One live training; a field left out is the recipe's own (`learn` without that option)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    n: int = 20
    k: int | None = Field(None, description="none: 3, or the size of the support")
    support: tuple[int, ...] | None = Field(None, description="none: drawn from the seed")
    recipe: str = DEFAULT_RECIPE
    seed: int = Field(0, ge=0, lt=2**32)
    temperature: float | None = None
    learning_rate: float | None = None
    positions: str | None = None
    start_radius: float | None = None
    steps: int | None = Field(None, ge=0)

    def problem(self) -> Parity:
        """Return the problem, refusing what the command line refuses."""
        # Before anything is drawn: a draw of n positions takes memory.
        if self.n > CLOSED_FORM_BITS:
            raise InvalidInput(f"the explorer trains live up to n = {CLOSED_FORM_BITS}, got {self.n}")
        if self.support is None:
            problem = draw_problems(self.n, 3 if self.k is None else self.k, [self.seed])[0]
        else:
            problem = Parity(self.n, self.support)
        if self.k is not None and self.k != problem.k:
            raise InvalidInput(f"k = {self.k} disagrees with the support, which has {problem.k} positions")
        if problem.k > MOST_HIDDEN:
            raise InvalidInput(f"the explorer trains live up to k = {MOST_HIDDEN}, got {problem.k}")
        return problem

    def overrides(self) -> dict[str, Any]:
        """Return the recipe fields that were given."""
        names = ("temperature", "learning_rate", "positions", "start_radius", "steps")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def resolved(self) -> Recipe:
        """Return the recipe with every value a number, refusing what cannot be shown live.

        >>> LiveSettings(n=40, recipe="as-coded").resolved()
        Traceback (most recent call last):
        parityscope.core.errors.InvalidInput: the zig-zag readout trains live up to n = 24, got 40
        """
        problem = self.problem()
        recipe = named_recipe(self.recipe).adapted(problem.k, **self.overrides()).resolved(problem.n, problem.k)
        if int(recipe.steps) > MOST_STEPS:
            raise InvalidInput(f"the explorer takes at most {MOST_STEPS} steps, got {recipe.steps}")
        if float(recipe.temperature) <= 0:
            raise InvalidInput(f"temperature must be positive, got {recipe.temperature:g}")
        if float(recipe.learning_rate) <= 0:
            raise InvalidInput(f"learning rate must be positive, got {recipe.learning_rate:g}")
        limit = _live_bits(recipe, problem.k)
        if problem.n > limit:
            raise InvalidInput(f"the {recipe.readout} readout trains live up to n = {limit}, got {problem.n}")
        return recipe

    def snippet(self, shown_step: int) -> str:
        """Return the Python lines that give the state after `shown_step` steps."""
        problem = self.problem()
        options = {**self.overrides(), "steps": shown_step}
        given = "".join(f", {name}={value!r}" for name, value in options.items())
        return (
            "import parityscope as ps\n\n"
            f"problem = ps.Parity(n={problem.n}, support={problem.support})\n"
            f'run = ps.learn(problem, "{self.recipe}", seeds=[{self.seed}]{given})\n'
            "print(run.risk, run.accuracy, run.found, run.attention)\n"
            "print(run.model.directions, run.model.score_weights())  # the heads, and the weight of each bit in S\n"
            "print(run.history_steps, run.history_risk)\n"
        )


def _live_bits(recipe: Recipe, k: int) -> int:
    readout = readout_of(recipe, k)
    linear = readout.piecewise_linear()
    if readout.cosine_series() is not None and recipe.loss in closed_form.LOSSES:
        return CLOSED_FORM_BITS
    if linear == pair.TWO_NEURONS and recipe.loss in pair.LOSSES:
        return CLOSED_FORM_BITS
    return ENUMERATED_BITS if linear is None and readout.analytic() is None else SPLIT_BITS


def read_request(kind: type[RequestT], data: Any) -> RequestT:
    """Return a validated request; what is wrong with it is one sentence.

    >>> read_request(LiveSettings, {"n": "many"})
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: n = 'many': input should be a valid integer, unable to parse string \
as an integer
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("a request is an object of settings")
    try:
        return kind.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "request"
        if first["type"] == "extra_forbidden":
            raise InvalidInput(f"there is no setting {name!r}: choose from {', '.join(kind.model_fields)}") from None
        raise InvalidInput(f"{name} = {first['input']!r}: {first['msg'].lower()}") from None
