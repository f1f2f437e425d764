"""The gradient of the risk in two parts: what depends on the hidden set B, and what is the same for every B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parityscope.problems import Parity
from parityscope.risk.population import population_risk


def gradient_parts(
    model: nn.Module, problems: Sequence[Parity], loss: str
) -> tuple[Float[Tensor, "runs numbers"], Float[Tensor, "runs numbers"]]:
    """Return the gradient's part that depends on B and the part that does not, per run: (runs, numbers) each.

    Label noise ν scales the first by 1 − 2ν and leaves the second, so two noise levels tell them apart exactly, for
    every loss that is a mean over inputs (the squared mean hinge is not).

    Parameters
    ----------
    model : Module
        One run per problem, on a leading axis of every parameter.
    problems : sequence of Parity
        One per run; their own label noise does not count.
    loss : str
        A loss of the margin: hinge, squared-hinge, logistic.
    """

    def gradient(noise: float) -> Tensor:
        noisy = [replace(problem, noise=noise) for problem in problems]
        risk = population_risk(model, noisy, loss=loss).value
        gradients = torch.autograd.grad(risk.sum(), list(model.parameters()))
        return torch.cat([one.flatten(1) for one in gradients], dim=1)

    clean, half = gradient(0.0), gradient(0.25)
    free = 2 * half - clean
    return clean - free, free
