"""From a resolved recipe to one batched model: every run's positions and start come from its own seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.models import Cosine, ParityTransformer, Readout, Triangle, ZigZag, positions
from parityscope.models.transformer import unit_directions
from parityscope.problems import seeded_generator
from parityscope.training.parts import NOT_ADDRESSABLE, OwnPart
from parityscope.training.recipes import OF_A_RUN, Recipe

_COMPACT_ABOVE = 2**24  # numbers; 128 MB in double precision
# What a ready model has of its own, and a recipe cannot change.
_OF_A_MODEL = ("positions", "numbers_per_head", "heads", "mass", "readout", "smoothing", "temperature", "start_radius")


def build_model(recipe: Recipe | Sequence[Recipe], n: int, k: int, seeds: Sequence[int]) -> ParityTransformer:
    """Return a transformer with a leading run axis, one run per seed; with one recipe for all, or one per seed."""
    recipes = [recipe] if isinstance(recipe, Recipe) else list(recipe)
    recipe = recipes[0]
    assert recipe.heads is not None
    assert recipe.numbers_per_head is not None
    size = (recipe.heads, int(recipe.numbers_per_head))
    starts = [unit_directions(*size, seeded_generator(seed, "start")) for seed in seeds]
    temperatures = [float(one.temperature) for one in recipes]
    radii = torch.tensor([float(one.start_radius) for one in recipes], dtype=torch.float64)
    model = ParityTransformer(
        n,
        k,
        recipe.heads,
        temperatures[0] if len(set(temperatures)) == 1 else torch.tensor(temperatures, dtype=torch.float64),
        positions=_positions(recipe, n, seeds),
        readout=readout_of(recipe, k),
        directions=radii[:, None, None] * torch.stack(starts),
        log_scale=torch.zeros(len(seeds), dtype=torch.float64) if recipe.mass == "trained" else None,
    )
    if model.log_scale is not None:
        _set_scale(model)
    return model


@torch.no_grad()
def _set_scale(model: ParityTransformer) -> None:
    """Let the weights add up to k, or to less where one would exceed ½ and k/n: log C is finite whatever B is."""
    assert model.log_scale is not None
    weights = model.score_weights()
    largest = max(0.5, model.k / model.n)
    model.log_scale.add_(torch.minimum(model.k / weights.sum(-1), largest / weights.amax(-1)).log())


_FIXED_CODES: dict[str, Callable[[int, int], Tensor]] = {
    "circle": lambda n, r: positions.circle(n),
    "circle-as-coded": lambda n, r: positions.circle_as_coded(n),
    "orthogonal": lambda n, r: positions.orthogonal(n),
    "harmonics": lambda n, r: positions.harmonics(n, r // 2),
}


def _positions(recipe: Recipe, n: int, seeds: Sequence[int]) -> Tensor:
    assert recipe.numbers_per_head is not None
    r = int(recipe.numbers_per_head)
    if isinstance(recipe.positions, OwnPart):
        return torch.stack([_own_code(recipe.positions, n, r, seed) for seed in seeds])
    if recipe.positions == "random-signs":
        # Large codes stay at one byte per sign; small ones are faster ready made.
        compact = len(seeds) * n * r > _COMPACT_ABOVE
        draw = positions.draw_signs if compact else positions.random_signs
        return torch.stack([draw(n, r, seeded_generator(seed, "positions")) for seed in seeds])
    if recipe.positions == "gaussian":
        return torch.stack([positions.gaussian(n, r, seeded_generator(seed, "positions")) for seed in seeds])
    return _FIXED_CODES[recipe.positions](n, r)


def _own_code(part: OwnPart, n: int, r: int, seed: int) -> Tensor:
    code = part.value(n, r, seeded_generator(seed, "positions"))
    if not isinstance(code, Tensor) or code.shape != (n, r):
        got = f"shape {tuple(code.shape)}" if isinstance(code, Tensor) else f"a {type(code).__name__}"
        raise InvalidInput(f"the position code {part} must return a tensor of shape (n, r) = ({n}, {r}), got {got}")
    return code if code.dtype == torch.int8 else code.double()


def readout_of(recipe: Recipe, k: int) -> Readout:
    """Return the readout of a recipe for k hidden bits.

    >>> from parityscope.training.recipes import RECIPES
    >>> type(readout_of(RECIPES["one-step"], 2)).__name__
    'Triangle'
    """
    if not isinstance(recipe.readout, OwnPart):
        named = {"zig-zag": lambda: ZigZag(k, recipe.smoothing), "triangle": lambda: Triangle(k), "cosine": Cosine}
        return named[recipe.readout]()
    own = recipe.readout.value
    readout = own if isinstance(own, Readout) else own(k)
    if not isinstance(readout, Readout):
        raise InvalidInput(f"the readout {recipe.readout} must be a Readout, or return one for k = {k}")
    if any(parameter.requires_grad for parameter in readout.parameters()):
        raise InvalidInput(f"a readout is frozen, and {recipe.readout} trains: call requires_grad_(False) on it")
    return readout


def check_trainable_together(recipes: Sequence[Recipe]) -> None:
    """Refuse resolved recipes that do not fit into one tensor program.

    >>> from parityscope.training.recipes import RECIPES
    >>> recipe = RECIPES["bounded"]
    >>> check_trainable_together([recipe, recipe.overridden(learning_rate=0.1)])
    >>> try:
    ...     check_trainable_together([recipe, recipe.overridden(heads=5)])
    ... except InvalidInput as error:
    ...     print(str(error).partition("these ")[2])
    differ in heads
    """
    shared = [
        recipe.model_dump(exclude={"name", "summary", "on_samples", "on_batches", *OF_A_RUN}) for recipe in recipes
    ]
    for other in shared[1:]:
        differs = [field for field, value in shared[0].items() if other[field] != value]
        if differs:
            raise InvalidInput(
                f"recipes trained together may differ in {', '.join(OF_A_RUN)} only, these differ in {differs[0]}"
            )


def ready_model(model: ParityTransformer, n: int, k: int, runs: int) -> ParityTransformer:
    """Return a copy of a user's model with one run per seed; a model without a run axis is the start of all of them.

    >>> model = ParityTransformer(n=8, k=2)
    >>> tuple(ready_model(model, 8, 2, runs=3).directions.shape)
    (3, 2, 2)
    """
    if (model.n, model.k) != (n, k):
        raise InvalidInput(f"the model is for n = {model.n}, k = {model.k}, the problem has n = {n}, k = {k}")
    directions = model.directions
    if directions.dim() == 2:
        directions = directions.expand(runs, *directions.shape)
    if directions.dim() != 3 or len(directions) != runs:
        raise InvalidInput(f"the model needs one run per seed, {runs}, or no run axis: got {tuple(directions.shape)}")
    return model.with_directions(directions)


def recipes_of(model: ParityTransformer, recipes: Sequence[Recipe]) -> list[Recipe]:
    """Return recipes that say of a ready model what it is, one per run when its runs have temperatures of their own.

    A model is no text, so its positions are not addressable; the start radius is the mean length of its heads.

    >>> from parityscope.training.recipes import RECIPES
    >>> (recipe,) = recipes_of(ParityTransformer(n=8, k=2, temperature=0.5), [RECIPES["bounded"]])
    >>> recipe.temperature, recipe.start_radius, recipe.readout, recipe.positions
    (0.5, 1.0, parityscope.models.readouts:ZigZag, a ready model)
    """
    heads, numbers = model.directions.shape[-2:]
    temperature = model.temperature
    own = temperature.tolist() if isinstance(temperature, Tensor) else [temperature] * len(recipes)
    given = recipes if len(recipes) == len(own) else [recipes[0]] * len(own)
    known = {
        "positions": OwnPart("a ready model", NOT_ADDRESSABLE, {}, model),
        "readout": OwnPart.of(model.readout),
        "smoothing": float(getattr(model.readout, "smoothing", 0.0)),
        "heads": int(heads),
        "mass": "k" if model.log_scale is None else "trained",
        "numbers_per_head": int(numbers),
        "start_radius": round(float(model.directions.detach().norm(dim=-1).mean()), 12),
    }
    return [one.model_copy(update={**known, "temperature": t}) for one, t in zip(given, own, strict=True)]


def check_left_alone(overrides: Sequence[str]) -> None:
    """Refuse to change what a ready model brings along.

    >>> check_left_alone(["steps", "learning_rate"])
    """
    if changed := next((name for name in overrides if name in _OF_A_MODEL), None):
        raise InvalidInput(f"a ready model has its own {changed}: leave {changed} out")
