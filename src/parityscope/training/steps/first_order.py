"""Steps of first order: what an optimiser is here, gradient descent, Adam, and momentum with normalised steps.

torch's optimisers import its compiler when the first one is made, which takes as long as importing torch does; a short
training would spend most of its time on that. Steps here are torch's own, operation by operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

_EPSILON = 1e-8  # torch's, in Adam's denominator


@runtime_checkable
class Optimiser(Protocol):
    """What a descent and its checkpoints need; torch's optimisers have it too.

    >>> weights = [torch.zeros(2, requires_grad=True)]
    >>> [isinstance(optimiser, Optimiser) for optimiser in (Adam(weights, 0.1), torch.optim.Adam(weights, 0.1))]
    [True, True]
    """

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def step(self) -> Any:
        """Take one step along the gradients."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: under `state`, tensors by parameter."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:
        """Go on from what a checkpoint kept."""


class Stepper(ABC):
    """An optimiser's parameters, and the tensors it remembers about each of them.

    >>> class Shrinking(Stepper):
    ...     @torch.no_grad()
    ...     def step(self):
    ...         for parameter in self.parameters:
    ...             parameter.mul_(0.5)
    >>> x = torch.ones(2, requires_grad=True)
    >>> optimiser = Shrinking([x])
    >>> optimiser.step()
    >>> x.tolist(), optimiser.state_dict()
    ([0.5, 0.5], {'state': {}})
    """

    # Which runs found no better step, where steps are searched: they would find none again.
    stuck: Tensor | None = None

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = list(parameters)
        self._states: list[dict[str, Tensor]] = [{} for _ in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @abstractmethod
    def step(self) -> None:
        """Take one step."""

    def state_dict(self) -> dict[str, Any]:
        """Return the tensors of every parameter's state, by the parameter's number."""
        return {"state": {index: dict(state) for index, state in enumerate(self._states) if state}}

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        """Take over the tensors of a stored state; what steps cannot have left is a ValueError."""
        for index, stored in state_dict["state"].items():
            like = self._like(index)
            if set(stored) not in (set(self._states[index]), set(like)):
                raise ValueError(f"of parameter {index} it keeps {', '.join(sorted(stored)) or 'nothing'}")
            for name, tensor in stored.items():
                if (tensor.shape, tensor.dtype) != (like[name].shape, like[name].dtype):
                    raise ValueError(f"{name} of parameter {index} is {tensor.dtype} of shape {tuple(tensor.shape)}")
            self._states[index] = dict(stored)

    def _like(self, index: int) -> dict[str, Tensor]:
        """Return tensors of the names, types and shapes that steps keep of a parameter: of those it begins with."""
        return self._states[index]


class _FirstOrder(Stepper):
    """Steps along gradients, parameter by parameter.

    >>> class Halving(_FirstOrder):
    ...     def _move(self, parameter, gradient, state):
    ...         parameter.mul_(0.5)
    >>> used, unused = (torch.ones(1, requires_grad=True) for _ in range(2))
    >>> used.sum().backward()
    >>> Halving([used, unused]).step()
    >>> used.item(), unused.item()  # what has no gradient stays
    (0.5, 1.0)
    """

    @torch.no_grad()
    def step(self) -> None:
        """Take one step; parameters without a gradient stay."""
        for index, (parameter, state) in enumerate(zip(self.parameters, self._states, strict=True)):
            if parameter.grad is not None:
                if not state:
                    state.update(self._like(index))
                self._move(parameter, parameter.grad, state)

    @abstractmethod
    def _move(self, parameter: Tensor, gradient: Tensor, state: dict[str, Tensor]) -> None:
        """Move one parameter by one step, in place."""


class GradientDescent(_FirstOrder):
    """Plain gradient descent."""

    def __init__(self, parameters: Iterable[Tensor], rate: float) -> None:
        super().__init__(parameters)
        self._rate = rate

    def _move(self, parameter: Tensor, gradient: Tensor, state: dict[str, Tensor]) -> None:
        parameter.add_(gradient, alpha=-self._rate)


class Adam(_FirstOrder):
    """Adam, as torch takes its steps."""

    def __init__(self, parameters: Iterable[Tensor], rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        super().__init__(parameters)
        self._rate, self._betas = rate, betas

    def _move(self, parameter: Tensor, gradient: Tensor, state: dict[str, Tensor]) -> None:
        beta1, beta2 = self._betas
        state["step"] += 1
        state["exp_avg"].lerp_(gradient, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        steps = state["step"].item()
        # Kingma and Ba, Algorithm 1: both means are divided by 1 − β^t, since they start at 0.
        root = (state["exp_avg_sq"].sqrt() / (1 - beta2**steps) ** 0.5).add_(_EPSILON)
        parameter.addcdiv_(state["exp_avg"], root, value=-self._rate / (1 - beta1**steps))

    def _like(self, index: int) -> dict[str, Tensor]:
        # torch's names: checkpoints written with its Adam stay readable.
        moments = (torch.zeros_like(self.parameters[index]) for _ in range(2))
        return {"step": torch.zeros(()), **dict(zip(("exp_avg", "exp_avg_sq"), moments, strict=True))}


class NormalisedMomentum(_FirstOrder):
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
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - beta1)
        state["square"].lerp_(square, 1 - beta2)
        steps = state["step"].item()
        mean = state["mean"] / (1 - beta1**steps)
        root = (state["square"] / (1 - beta2**steps)).sqrt().clamp(min=torch.finfo(gradient.dtype).tiny)
        # Ours: q ← q − a·√(1 + ‖q‖)·m/√v, see above.
        length = (1 + parameter.norm(dim=-1, keepdim=True)).sqrt() if self._grow else 1.0
        parameter.sub_(self._rate * length * mean / root)

    def _like(self, index: int) -> dict[str, Tensor]:
        mean = torch.zeros_like(self.parameters[index])
        return {"step": torch.zeros(()), "mean": mean, "square": mean.mean(self._shared_dimensions, keepdim=True)}
