"""The order of the house: what may import what. A test holds every file to it."""

from __future__ import annotations

# A package may import from those before it and from itself; those on one line do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("problems", "models"),
    ("risk",),
    ("papers.theory",),  # every paper's theory: pure functions, which recipes use too
    ("theory",),  # all of them under one public name
    ("measures",),
    ("records",),
    ("training",),
    ("estimator", "language_models", "runs"),
    ("papers",),
    ("apps",),
)


def layer_of(module: str) -> int:
    """Return the place of a module of this project in the order.

    >>> layer_of("parityscope.core.errors"), layer_of("parityscope.papers.h1.theory.fixed_attention")
    (0, 3)
    """
    parts = module.split(".")[1:]
    name = "papers.theory" if parts[0] == "papers" and "theory" in parts[2:3] else parts[0]
    return next(place for place, packages in enumerate(LAYERS) if name in packages)
