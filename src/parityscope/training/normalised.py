"""Optimisers beyond torch's: momentum with normalised steps, and Adam with a rate per run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class _RunAxisOptimiser(torch.optim.Optimizer):
    """Steps parameter by parameter; every parameter has the run axis first."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(self._update(parameter, group))

    @abstractmethod
    def _update(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        """Return what to subtract from the parameter."""


class NormalisedMomentum(_RunAxisOptimiser):
    """Like Adam, but the second moment is shared by a whole head, or by a whole run.

    Adam's per-coordinate scaling turns directions; sharing the scale keeps them. On the circle the step also grows
    with the head's length, q ← q − a·√(1+‖q‖)·m/√v: a head of length ρ attends to an arc of about 1/√ρ, so turning by
    its own width takes a step of √ρ, and lengths must grow without bound for attention to become exact.

    The first step has length rate·√numbers whatever the gradient's size, and its direction:

    >>> heads = nn.Parameter(torch.zeros(1, 1, 2))
    >>> optimiser = NormalisedMomentum([heads], 0.1, (0.9, 0.999), shared_dimensions=(-1,), grow=False)
    >>> (300 * heads[..., 0] + 400 * heads[..., 1]).sum().backward()
    >>> optimiser.step()
    >>> [round(number / -0.1 / 2**0.5, 6) for number in heads.flatten().tolist()]
    [0.6, 0.8]
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        betas: tuple[float, float],
        *,
        shared_dimensions: tuple[int, ...],
        grow: bool,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas})
        self.shared_dimensions, self.grow = shared_dimensions, grow

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        gradient, state, (beta1, beta2) = parameter.grad, self.state[parameter], group["betas"]
        assert gradient is not None
        square = gradient.square().mean(self.shared_dimensions, keepdim=True)
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
        length = (1 + parameter.norm(dim=-1, keepdim=True)).sqrt() if self.grow else 1.0
        step: Tensor = group["lr"] * length * mean / root
        return step


class RunwiseAdam(_RunAxisOptimiser):
    """Adam with a learning rate of its own for every run of the leading run axis.

    A grid of rates is then one tensor program. With equal rates it takes torch's Adam's steps.

    >>> runs = nn.Parameter(torch.zeros(2, 1))
    >>> optimiser = RunwiseAdam([runs], torch.tensor([0.1, 0.01]))
    >>> runs.sum().backward()
    >>> optimiser.step()
    >>> [round(number, 6) for number in runs.flatten().tolist()]
    [-0.1, -0.01]
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], rates: Tensor, betas: tuple[float, float] = (0.9, 0.999)
    ) -> None:
        super().__init__(parameters, {"betas": betas})
        self.rates = rates

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        gradient, state, (beta1, beta2) = parameter.grad, self.state[parameter], group["betas"]
        assert gradient is not None
        if not state:
            state["step"] = torch.zeros(())
            state["mean"], state["square"] = torch.zeros_like(gradient), torch.zeros_like(gradient)
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - beta1)
        state["square"].lerp_(gradient.square(), 1 - beta2)
        steps = state["step"].item()
        root = (state["square"] / (1 - beta2**steps)).sqrt_().add_(1e-8)
        rates = self.rates.to(parameter.dtype).reshape(-1, *(1,) * (parameter.dim() - 1))
        step: Tensor = rates / (1 - beta1**steps) * state["mean"] / root
        return step
