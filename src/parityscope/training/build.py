"""From a resolved recipe to one batched model: every run's positions and start come from its own seed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer, Readout, Triangle, ZigZag, positions
from parityscope.problems import seeded_generator
from parityscope.training.recipes import Recipe

_COMPACT_ABOVE = 2**24  # numbers; 128 MB in double precision


def build_model(recipe: Recipe, n: int, k: int, seeds: Sequence[int]) -> ParityTransformer:
    """Return a transformer with a leading run axis, one run per seed.

    >>> from parityscope.training.recipes import named_recipe
    >>> recipe = named_recipe("as-coded").resolved(8, 2)
    >>> tuple(build_model(recipe, 8, 2, range(5)).attention().shape)
    (5, 2, 8)
    """
    assert recipe.heads is not None
    assert recipe.numbers_per_head is not None
    starts = [_start(recipe.heads, int(recipe.numbers_per_head), seed) for seed in seeds]
    return ParityTransformer(
        n,
        k,
        recipe.heads,
        float(recipe.temperature),
        positions=_positions(recipe, n, seeds),
        readout=_readout(recipe, k),
        directions=float(recipe.start_radius) * torch.stack(starts),
    )


def _start(heads: int, numbers: int, seed: int) -> Tensor:
    """Return unit directions, uniform on the sphere."""
    draw = torch.randn(heads, numbers, generator=seeded_generator(seed, "start"), dtype=torch.float64)
    return draw / draw.norm(dim=-1, keepdim=True)


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
