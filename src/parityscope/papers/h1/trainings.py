"""Trainings that a figure and a claim of H1 share."""

from __future__ import annotations

from typing import Any

from parityscope.papers.figure import Scale
from parityscope.runs import Training, training

SEPARATE, NEIGHBOURS = (7, 10, 17), (4, 15, 16)  # the paper's 8, 11, 18 and its neighbours 16, 17
# Seeds and steps of Figure 2 as coded: 2000 steps, the published code's own number, leave attention too blunt.
FIGURE_2: dict[Scale, tuple[int, int]] = {"demo": (4, 800), "reference": (8, 4000)}
WATCHED: dict[str, Any] = {"watch": ("attention", "weights")}


def coded_heads(n: int, support: tuple[int, ...], seeds: int, steps: int, **kept: Any) -> Training:
    """Return Figure 2's training with the published code's recipe, at the rate that it prefers in a comment.

    `kept` says what to record instead of what the figure draws.

    >>> coded_heads(20, NEIGHBOURS, *FIGURE_2["demo"]).recipe.learning_rate
    0.2
    """
    return training(
        "as-coded",
        n,
        len(support),
        seeds=range(seeds),
        support=support,
        learning_rate=0.2,
        steps=steps,
        **{"record_every": max(2, steps // 200), **WATCHED, **kept},  # as many columns as the picture can show
    )
