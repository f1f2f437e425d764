"""From a resolved recipe to one batched model: every run's positions and start come from its own seed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer, Readout, Triangle, ZigZag, positions
from parityscope.models.transformer import unit_directions
from parityscope.problems import seeded_generator
from parityscope.training.recipes import Recipe

_COMPACT_ABOVE = 2**24  # numbers; 128 MB in double precision


def build_model(recipe: Recipe | Sequence[Recipe], n: int, k: int, seeds: Sequence[int]) -> ParityTransformer:
    """Return a transformer with a leading run axis, one run per seed; with one recipe for all, or one per seed.

    >>> from parityscope.training.recipes import named_recipe
    >>> recipe = named_recipe("as-coded").resolved(8, 2)
    >>> tuple(build_model(recipe, 8, 2, range(5)).attention().shape)
    (5, 2, 8)
    """
    recipes = [recipe] if isinstance(recipe, Recipe) else list(recipe)
    recipe = recipes[0]
    assert recipe.heads is not None
    assert recipe.numbers_per_head is not None
    size = (recipe.heads, int(recipe.numbers_per_head))
    starts = [unit_directions(*size, seeded_generator(seed, "start")) for seed in seeds]
    code, temperature = _positions(recipe, n, seeds), float(recipe.temperature)
    temperatures = [float(one.temperature) for one in recipes]
    if len(set(temperatures)) > 1:
        # Scores are divided by τ; runs that have their own have it in their position codes.
        code, temperature = code / _per_run(temperatures), 1.0
    return ParityTransformer(
        n,
        k,
        recipe.heads,
        temperature,
        positions=code,
        readout=_readout(recipe, k),
        directions=_per_run([float(one.start_radius) for one in recipes]) * torch.stack(starts),
    )


def _per_run(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None, None]


def _positions(recipe: Recipe, n: int, seeds: Sequence[int]) -> Tensor:
    assert recipe.numbers_per_head is not None
    r = int(recipe.numbers_per_head)
    if recipe.positions == "random-signs":
        # Large codes stay at one byte per sign; small ones are faster ready made.
        compact = len(seeds) * n * r > _COMPACT_ABOVE
        draw = positions.draw_signs if compact else positions.random_signs
        return torch.stack([draw(n, r, seeded_generator(seed, "positions")) for seed in seeds])
    if recipe.positions == "harmonics":
        return positions.harmonics(n, r // 2)
    codes = {
        "circle": positions.circle,
        "circle-as-coded": positions.circle_as_coded,
        "orthogonal": positions.orthogonal,
    }
    return codes[recipe.positions](n)


def _readout(recipe: Recipe, k: int) -> Readout:
    if recipe.readout == "zig-zag":
        return ZigZag(k, recipe.smoothing)
    return Triangle(k) if recipe.readout == "triangle" else Cosine()
