"""Learn: what a browser may ask for, with caps that keep a page live, and what the page draws of a training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.measures import found_support, measured_accuracy
from parityscope.models import ParityTransformer
from parityscope.models.additive import AdditiveScore
from parityscope.problems import Parity, draw_problems
from parityscope.risk.engines import closed_form, pair
from parityscope.training.build import build_model, readout_of
from parityscope.training.learning import LEARNED_ACCURACY
from parityscope.training.recipes import DEFAULT_RECIPE, Recipe, named_recipe, refuse_impossible

RequestT = TypeVar("RequestT", bound=BaseModel)

# The closed form costs O(n); exact engines for other readouts about 2^{n/2}; a loss that no engine covers 2^n.
CLOSED_FORM_BITS, SPLIT_BITS, ENUMERATED_BITS = 1000, 24, 16
MOST_HIDDEN = 16
MOST_STEPS = 20_000
_POINTS = 121
CIRCLES = ("circle", "circle-as-coded")  # position codes on which a head has an angle
_NEGLIGIBLE = 6.5  # standard deviations of the kernel after which its transform, e^{-t²/2} < 1e-9, counts as zero


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
        """Return the recipe with every value a number, refusing what cannot be shown live."""
        problem = self.problem()
        recipe = named_recipe(self.recipe).adapted(problem.k, **self.overrides()).resolved(problem.n, problem.k)
        if int(recipe.steps) > MOST_STEPS:
            raise InvalidInput(f"the explorer takes at most {MOST_STEPS} steps, got {recipe.steps}")
        refuse_impossible(recipe)
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
    """Return a validated request; what is wrong with it is one sentence."""
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


def rounded(values: Tensor, digits: int = 5) -> Any:
    """Return nested lists with so many decimals that no eye could tell the difference."""
    return values.detach().double().round(decimals=digits).tolist()


def _score_axis(k: int) -> Tensor:
    """Return the values of S at which the readout and the density are drawn."""
    return torch.linspace(-0.5, k + 0.5, _POINTS, dtype=torch.float64)


def opening(settings: LiveSettings, recipe: Recipe, problem: Parity) -> dict[str, Any]:
    """Return what the page needs once per training.

    >>> settings = LiveSettings(n=20, support=(7, 10, 17), recipe="as-written")
    >>> first = opening(settings, settings.resolved(), settings.problem())
    >>> first["heads"], first["parameters"], len(first["circle"])  # a direction in the plane for each of k heads
    (3, 6, 20)
    """
    model = build_model(recipe, problem.n, problem.k, [settings.seed])
    axis = _score_axis(problem.k)
    on_circle = recipe.positions in CIRCLES
    return {
        "type": "ready",
        "n": problem.n,
        "k": problem.k,
        "support": list(problem.support),
        "recipe": recipe.model_dump(mode="json", exclude={"on_samples", "beyond_pairs"}),
        "heads": model.heads,
        "parameters": model.trained_parameters(),
        "circle": rounded(model.positions) if on_circle else None,
        "score_axis": rounded(axis),
        "readout": rounded(model.readout(axis)),
    }


def frame(model: ParityTransformer, problem: Parity, step: int, risk: float) -> dict[str, Any]:
    """Return one moment of a training of one run: everything is exact or says what it is."""
    with torch.no_grad():
        attention = model.attention()[0]
        weights = model.score_weights()[0]
        accuracy = measured_accuracy(model, [problem])
        score = model.additive_score()
        assert score is not None
        density = exact_score_density(score, problem.mask(), _score_axis(problem.k))
    found = found_support(weights, problem.k).tolist()
    return {
        "type": "frame",
        "step": step,
        "risk": risk if math.isfinite(risk) else None,
        "accuracy": float(accuracy.value[0]),
        "accuracy_kind": accuracy.kind,
        "attention": rounded(attention),
        "weights": rounded(weights),
        "directions": rounded(model.directions[0]) if model.directions.shape[-1] == 2 else None,
        "found": found,
        "learned": float(accuracy.value[0]) > LEARNED_ACCURACY and found == list(problem.support),
        "density": {"plus": rounded(density.plus[0], 4), "minus": rounded(density.minus[0], 4)},
    }


class ScoreDensity(NamedTuple):
    """The density of S where the label is +1 and where it is −1; the two together integrate to 1."""

    plus: Float[Tensor, "*runs points"]
    minus: Float[Tensor, "*runs points"]


def exact_score_density(
    score: AdditiveScore, hidden: Bool[Tensor, " n"], at: Float[Tensor, " points"], width: float = 0.03
) -> ScoreDensity:
    """Return the density of S + width·N(0, 1) at some points, over uniform bits, without visiting an input.

    S takes up to 2^n values, so its law is shown through a narrow Gaussian; beyond that nothing is approximated (the
    Fourier series leaves out terms below 1e-9). Independent bits make the characteristic function a product:
    """
    weights = score.weights.detach()
    low = float((weights.clamp(max=0).sum(-1) + score.offset).min()) - _NEGLIGIBLE * width
    high = float((weights.clamp(min=0).sum(-1) + score.offset).max()) + _NEGLIGIBLE * width
    # A whole period lets frames of one training share their frequencies.
    period = math.ceil(max(high, float(at.max())) - min(low, float(at.min())))
    t, kernel = _frequencies(period, width)
    angle = t[:, None] * weights[..., None, :]  # (*runs, frequencies, n)
    # E[e^{iax}] = e^{ia/2} cos(a/2) and E[(−1)^x e^{iax}] = −i e^{ia/2} sin(a/2)
    sine, cosine = (angle / 2).sin(), (angle / 2).cos()
    turn = t * (weights.sum(-1, keepdim=True) / 2 + score.offset)
    whole = torch.polar(kernel * cosine.prod(-1), turn)
    signed = torch.polar(kernel * torch.where(hidden, sine, cosine).prod(-1), turn - math.pi / 2 * hidden.sum())
    cosines, sines = _waves(period, width, tuple(at.tolist()))
    total, difference = (phi.real @ cosines + phi.imag @ sines for phi in (whole, signed))
    return ScoreDensity(((total + difference) / 2).clamp(min=0.0), ((total - difference) / 2).clamp(min=0.0))


@lru_cache(maxsize=64)
def _frequencies(period: int, width: float) -> tuple[Tensor, Tensor]:
    """Return the frequencies of a Fourier series on the period, and the Gaussian's weight of each."""
    last = math.ceil(_NEGLIGIBLE / width * period / (2 * math.pi))
    t = 2 * math.pi / period * torch.arange(last + 1, dtype=torch.float64)
    return t, torch.exp(-((width * t) ** 2) / 2) * torch.where(t == 0, 1.0, 2.0) / period


@lru_cache(maxsize=64)
def _waves(period: int, width: float, at: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Return cos(ts) and sin(ts) for every frequency t and every point s: (frequencies, points) each."""
    phase = _frequencies(period, width)[0][:, None] * torch.tensor(at, dtype=torch.float64)
    return phase.cos(), phase.sin()
