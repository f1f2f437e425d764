"""One door to the population risk and accuracy: choose an engine, return value, error bound and engine."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from parityscope.errors import InvalidInput
from parityscope.models.additive import additive_score
from parityscope.risk import closed_form, enumeration
from parityscope.risk.law import Law, Problems, law_of
from parityscope.risk.losses import Loss, named_loss

ENGINES = ("auto", "enumerate", "closed-form")


class Risk(NamedTuple):
    """A value (differentiable, one per run), a bound on its error, and the engine that computed it."""

    value: Tensor
    error_bound: Tensor
    engine: str


def population_risk(model: nn.Module, problem: Problems, *, loss: str = "squared-hinge", engine: str = "auto") -> Risk:
    """Return the risk over the law of the problem, exact up to `error_bound`.

    `problem` is one `Parity`, or one per run of the model. For independent bits and a cosine readout `auto` takes
    the closed form; otherwise it enumerates.

    >>> from parityscope.models import parity_ffnn
    >>> from parityscope.problems import Parity
    >>> risk = population_risk(parity_ffnn(8, (1, 4)), Parity(8, (1, 4)))
    >>> risk.value.item(), risk.engine
    (0.0, 'enumerate')
    """
    law, chosen = law_of(problem), named_loss(loss)
    name = _choose(engine, model, chosen)
    if name == "closed-form":
        score = additive_score(model)
        assert score is not None
        mean = closed_form.closed_form_mean(score, law, chosen)
    else:
        mean = enumeration.enumerated_mean(model, law, chosen)
    value = chosen.of_mean(mean)
    return Risk(value, _rounding_bound(value, law), name)


def population_accuracy(model: nn.Module, problem: Problems) -> Risk:
    """Return the exact probability of a right sign, over the law of the bits and noiseless labels.

    >>> from parityscope.models import parity_ffnn
    >>> from parityscope.problems import Parity
    >>> float(population_accuracy(parity_ffnn(8, (1, 4)), Parity(8, (1, 2))).value)
    0.5
    """
    law = law_of(problem)
    value = enumeration.enumerated_accuracy(model, law)
    return Risk(value, _rounding_bound(value, law), "enumerate")


def _choose(engine: str, model: nn.Module, loss: Loss) -> str:
    if engine not in ENGINES:
        raise InvalidInput(f"unknown engine {engine!r}: choose one of {', '.join(ENGINES)}")
    applies = closed_form.applies(additive_score(model), loss)
    if engine == "closed-form" and not applies:
        raise InvalidInput(
            f"the closed form covers the cosine readout with {', '.join(closed_form.LOSSES)};"
            f" use engine='enumerate' for this model with {loss.name}"
        )
    return ("closed-form" if applies else "enumerate") if engine == "auto" else engine


def _rounding_bound(value: Tensor, law: Law) -> Tensor:
    """Return an allowance for float64 rounding: n roundings per score, as many in the pairwise sums."""
    return 4 * law.n * torch.finfo(torch.float64).eps * value.detach().abs().clamp(min=1.0)
