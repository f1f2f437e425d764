"""Trying hard to break a bound: random draws first, then ascent from the worst of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from parityscope.training.steps.first_order import Adam


@dataclass(frozen=True)
class Attack:
    """The largest value found, where, and how many evaluations it took.

    >>> Attack(0.5, torch.zeros(2), index=3, random=100, optimised=60).evaluations()
    {'random_evaluations': 100, 'optimised_evaluations': 60}
    """

    value: float
    point: Tensor
    index: int  # which of the starts led there
    random: int
    optimised: int

    def evaluations(self) -> dict[str, int]:
        """Return how hard it was tried, for the evidence."""
        return {"random_evaluations": self.random, "optimised_evaluations": self.optimised}


def tried_by(attacks: Sequence[Attack]) -> str:
    """Say how hard several attacks tried.

    >>> tried_by([Attack(0.5, torch.zeros(2), index=3, random=1000, optimised=60)] * 2)
    '2,000 draws and 120 steps of ascent'
    """
    drawn, climbed = sum(attack.random for attack in attacks), sum(attack.optimised for attack in attacks)
    return f"{drawn:,} draws and {climbed:,} steps of ascent"


def maximise(
    objective: Callable[[Tensor, Tensor], Tensor],
    starts: Tensor,
    *,
    keep: int = 16,
    steps: int = 60,
    rate: float = 0.05,
) -> Attack:
    """Return the largest value of `objective` that random starts and Adam's ascent from the best of them reach.

    `objective(points, index)` gets some points and which starts they came from, and returns one value per point.
    """
    with torch.no_grad():
        values = objective(starts, torch.arange(len(starts)))
    # A start where the objective is undefined is no evidence either way.
    values = values.nan_to_num(nan=-torch.inf)
    best_index = values.topk(min(keep, len(starts))).indices
    points = starts[best_index].clone().requires_grad_()
    best_value, best_point = values[best_index].clone(), starts[best_index].clone()
    optimiser = Adam([points], rate)
    for _ in range(steps):
        optimiser.zero_grad()
        found = objective(points, best_index)
        better = found.detach() > best_value
        best_value[better], best_point[better] = found.detach()[better], points.detach()[better]
        (-found).sum().backward()
        assert points.grad is not None
        points.grad.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
        optimiser.step()
    top = int(best_value.argmax())
    return Attack(float(best_value[top]), best_point[top], int(best_index[top]), len(starts), steps * len(points))
