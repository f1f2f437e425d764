"""One door to the population risk and accuracy: choose an engine, return value, error bound and engine."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from parityscope.errors import InvalidInput
from parityscope.models.additive import AdditiveScore, additive_score
from parityscope.models.piecewise_linear import PiecewiseLinear
from parityscope.risk import closed_form, enumeration
from parityscope.risk.law import Law, Problems, law_of
from parityscope.risk.losses import Loss, named_loss
from parityscope.risk.pieces import Pieces, accuracy_pieces, loss_pieces
from parityscope.risk.runs import Runs
from parityscope.risk.split import split_mean

ENGINES = ("auto", "enumerate", "split", "closed-form")


class Risk(NamedTuple):
    """A value (differentiable, one per run), a bound on its error, and the engine that computed it."""

    value: Tensor
    error_bound: Tensor
    engine: str


def population_risk(model: nn.Module, problem: Problems, *, loss: str = "squared-hinge", engine: str = "auto") -> Risk:
    """Return the risk over the law of the problem, exact up to `error_bound`.

    `problem` is one `Parity`, or one per run of the model. `auto` takes the closed form for a cosine readout, the
    split engine (about 2^{n/2} steps) for a piecewise-linear one, and enumerates otherwise.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> risk = population_risk(ParityTransformer(n=30, k=2), Parity(30, (1, 4)))
    >>> risk.engine, tuple(risk.value.shape)
    ('split', ())
    """
    law, chosen, score = law_of(problem), named_loss(loss), additive_score(model)
    pieces = _pieces(score, chosen, law)
    name = _choose(engine, score, chosen, pieces)
    if name == "closed-form":
        assert score is not None
        mean = closed_form.closed_form_mean(score, law, chosen)
    elif name == "split":
        assert score is not None
        assert pieces is not None
        mean = _split(score, law, pieces)
    else:
        mean = enumeration.enumerated_mean(model, law, chosen)
    value = chosen.of_mean(mean)
    return Risk(value, _rounding_bound(value, law), name)


def population_accuracy(model: nn.Module, problem: Problems, *, engine: str = "auto") -> Risk:
    """Return the exact probability of a right sign, over the law of the bits and noiseless labels.

    A prediction of exactly 0 counts as −1.

    >>> from parityscope.models import parity_ffnn
    >>> from parityscope.problems import Parity
    >>> float(population_accuracy(parity_ffnn(8, (1, 4)), Parity(8, (1, 2))).value)
    0.5
    """
    law, score = law_of(problem), additive_score(model)
    linear = _sign_equivalent(score) if score is not None and _frozen(score) else None
    if engine not in ("auto", "enumerate", "split"):
        raise InvalidInput(f"unknown accuracy engine {engine!r}: choose one of auto, enumerate, split")
    if engine == "split" and linear is None:
        raise InvalidInput(
            "the split engine needs a readout whose sign changes at known places; use engine='enumerate'"
        )
    if linear is None or score is None or engine == "enumerate":
        value, name = enumeration.enumerated_accuracy(model, law), "enumerate"
    else:
        with torch.no_grad():
            value, name = _split(score, law, accuracy_pieces(linear)), "split"
    return Risk(value, _rounding_bound(value, law), name)


def _split(score: AdditiveScore, law: Law, pieces: Pieces) -> Tensor:
    runs = Runs.of(score, law)
    weights, offset, mask = (tensor.detach() for tensor in runs.tensors)
    wanted = torch.is_grad_enabled() and (runs.weights.requires_grad or runs.offset.requires_grad)
    return runs.with_gradient(*split_mean(weights, offset, mask, pieces, bias=law.bias, want_gradient=wanted))


def _sign_equivalent(score: AdditiveScore) -> PiecewiseLinear | None:
    weights, offset = score.weights.detach(), score.offset.detach()
    low = float((weights.clamp(max=0).sum(-1) + offset).min())
    high = float((weights.clamp(min=0).sum(-1) + offset).max())
    return score.readout.sign_equivalent(low, high)


def _frozen(score: AdditiveScore) -> bool:
    """Say whether the readout has nothing to train, so that the score carries the whole gradient."""
    return not any(p.requires_grad for p in score.readout.parameters())


def _pieces(score: AdditiveScore | None, loss: Loss, law: Law) -> Pieces | None:
    """Return the loss as a piecewise polynomial of the score, or None when it is not one."""
    if score is None or not _frozen(score):
        return None
    linear = score.readout.piecewise_linear()
    return None if linear is None else loss_pieces(linear, loss.name, law.noise)


def _choose(engine: str, score: AdditiveScore | None, loss: Loss, pieces: Pieces | None) -> str:
    if engine not in ENGINES:
        raise InvalidInput(f"unknown engine {engine!r}: choose one of {', '.join(ENGINES)}")
    closed = closed_form.applies(score, loss)
    if engine == "closed-form" and not closed:
        raise InvalidInput(
            f"the closed form covers the cosine readout with {', '.join(closed_form.LOSSES)};"
            f" use engine='enumerate' for this model with {loss.name}"
        )
    if engine == "split" and pieces is None:
        raise InvalidInput(
            f"the split engine needs an additive score, a frozen piecewise-linear readout and a hinge loss;"
            f" use engine='enumerate' for this model with {loss.name}"
        )
    if engine != "auto":
        return engine
    return "closed-form" if closed else "enumerate" if pieces is None else "split"


def _rounding_bound(value: Tensor, law: Law) -> Tensor:
    """Return an allowance for float64 rounding: n roundings per score, as many in the pairwise sums."""
    return 4 * law.n * torch.finfo(torch.float64).eps * value.detach().abs().clamp(min=1.0)
