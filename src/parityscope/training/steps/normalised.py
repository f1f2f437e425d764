"""Momentum with normalised steps."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from parityscope.training.steps.first_order import FirstOrder


class NormalisedMomentum(FirstOrder):
    """Like Adam, but the second moment is shared by a whole head, or by a whole run.

    Adam's per-coordinate scaling turns directions; sharing the scale keeps them. On the circle the step also grows
    with the head's length, q ← q − a·√(1+‖q‖)·m/√v: a head of length ρ attends to an arc of about 1/√ρ, so turning by
    its own width takes a step of √ρ, and lengths must grow without bound for attention to become exact.

    The first step has length rate·√numbers whatever the gradient's size, and its direction:

    >>> heads = torch.zeros(1, 1, 2, requires_grad=True)
    >>> optimiser = NormalisedMomentum([heads], 0.1, (0.9, 0.999), shared_dimensions=(-1,), grow=False)
    >>> (300 * heads[..., 0] + 400 * heads[..., 1]).sum().backward()
    >>> optimiser.step()
    >>> [round(number / -0.1 / 2**0.5, 6) for number in heads.flatten().tolist()]
    [0.6, 0.8]
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        rate: float,
        betas: tuple[float, float],
        *,
        shared_dimensions: tuple[int, ...],
        grow: bool,
    ) -> None:
        super().__init__(parameters)
        self._rate, self._betas = rate, betas
        self._shared_dimensions, self._grow = shared_dimensions, grow

    def _move(self, parameter: Tensor, gradient: Tensor, state: dict[str, Tensor]) -> None:
        beta1, beta2 = self._betas
        square = gradient.square().mean(self._shared_dimensions, keepdim=True)
        if not state:
            state["step"] = torch.zeros(())
            state["mean"] = torch.zeros_like(gradient)
            state["square"] = torch.zeros_like(square)
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - beta1)
        state["square"].lerp_(square, 1 - beta2)
        steps = state["step"].item()
        mean = state["mean"] / (1 - beta1**steps)
        root = (state["square"] / (1 - beta2**steps)).sqrt().clamp(min=torch.finfo(gradient.dtype).tiny)
        length = (1 + parameter.norm(dim=-1, keepdim=True)).sqrt() if self._grow else 1.0
        parameter.sub_(self._rate * length * mean / root)
