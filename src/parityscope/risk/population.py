"""One door to the population risk and accuracy: choose an engine, return value, error bound and engine."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.models.additive import AdditiveScore, additive_score
from parityscope.models.readouts import COSINE
from parityscope.risk import closed_form, enumeration, pair
from parityscope.risk.engines import evaluate_pieces
from parityscope.risk.law import Law, Problems, law_of
from parityscope.risk.losses import Loss, named_loss
from parityscope.risk.pieces import Pieces
from parityscope.risk.relu_readout import relu_sum_accuracy, relu_sum_risk
from parityscope.risk.represent import HINGE_POWERS, accuracy_pieces, exact_pieces, loss_pieces, score_range
from parityscope.risk.runs import Runs

_ON_PIECES = ("split", "spectral", "grouped")
ENGINES = ("auto", "enumerate", *_ON_PIECES, "closed-form", "pair")
# Fitted pieces are many, and take seconds to fit: up to this size visiting all inputs is faster.
_ENUMERATE_UP_TO = 16
# The split engine is exact and fast up to here; beyond, H2's readout has one of its own.
_SPLIT_A_PAIR_UP_TO = 30


class Risk(NamedTuple):
    """A mean over all inputs, and how far it can be trusted.

    Parameters
    ----------
    value : Tensor
        A scalar, or one number per run; differentiable in the model's parameters.
    error_bound : Tensor
        How far the value may be from the true one, rounding included; of a sampled risk, half its interval.
    engine : str
        How it was computed.

    Uniform attention over a thousand bits knows little of a hidden one:

    >>> from parityscope.models import Cosine, ParityTransformer
    >>> from parityscope.problems import Parity
    >>> model = ParityTransformer(n=1000, k=1, temperature=1e9, readout=Cosine())
    >>> risk = population_risk(model, Parity(1000, (7,)), loss="hinge")
    >>> round(risk.value.item(), 4), risk.error_bound.item() < 1e-11, risk.engine
    (0.9984, True, 'closed-form')
    """

    value: Tensor
    error_bound: Tensor
    engine: str


def population_risk(
    model: nn.Module,
    problem: Problems,
    *,
    loss: str = "squared-hinge",
    engine: str = "auto",
    tolerance: float = 1e-9,
) -> Risk:
    """Return the risk over the law of the problem, exact up to `error_bound`.

    Parameters
    ----------
    model : nn.Module
        Maps bits (batch, n) to predictions (batch,), or (runs, batch) when its parameters carry a run axis. One that
        names its additive score (`additive_score`, as `ParityTransformer` does) has fast engines.
    problem : Parity, sequence of Parity, or Law
        What is predicted: one problem, or one per run of the model.
    loss : str
        "hinge", "squared-hinge" (H1's text), "squared-mean-hinge" (H1's code), "logistic", or "log-correlation":
        −log E[yŷ], which is infinite where label and prediction are not correlated.
    engine : str
        "auto" takes the closed form for sums of cosines; for other frozen readouts of an additive score the cheapest of
        split (about 2^{n/2} steps), grouped (few distinct weights) and spectral (diffuse attention at large n) whose
        estimated error meets `tolerance`; for H2's readout beyond n = 30 the pair engine, whose error bound may exceed
        `tolerance`; and enumerates everything else. Any of them can be named.
    tolerance : float
        The largest error that "auto" accepts from an engine that approximates.

    Returns
    -------
    Risk
        Value (differentiable in the model's parameters), error bound and engine.

    Heads that point at the hidden bits leave no risk:

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.models.positions import circle
    >>> from parityscope.problems import Parity
    >>> model = ParityTransformer(n=20, k=3, temperature=1e-3, directions=circle(20)[[1, 4, 7]])
    >>> risk = population_risk(model, Parity(20, (1, 4, 7)))
    >>> round(abs(risk.value.item()), 12), risk.engine
    (0.0, 'split')
    """
    if engine not in ENGINES:
        raise InvalidInput(f"unknown engine {engine!r}: choose one of {', '.join(ENGINES)}")
    law, chosen, score = law_of(problem), named_loss(loss), additive_score(model)
    if engine in ("auto", "closed-form") and closed_form.applies(score, chosen):
        assert score is not None
        mean = closed_form.closed_form_mean(score, law, chosen)
        return _risk(mean, chosen, law, "closed-form", product=score.readout.cosine_series() == COSINE)
    if engine == "closed-form":
        raise InvalidInput(
            f"the closed form covers bounded readouts that are sums of cosines with {', '.join(closed_form.LOSSES)};"
            f" use engine='enumerate' for this model with {loss}"
        )
    if engine == "pair" or (engine == "auto" and law.n > _SPLIT_A_PAIR_UP_TO):
        if score is not None and pair.applies(score, law, chosen):
            of_pair = pair.pair_mean(score, law)
            mean = of_pair.value if chosen.name == "hinge" else of_pair.value - 1
            return _risk(mean, chosen, law, "pair", of_pair.error_bound)
        if engine == "pair":
            raise InvalidInput(
                f"the pair engine covers the triangle readout with k = 2, fair bits and {' or '.join(pair.LOSSES)}"
            )
    relu = None if score is None or engine not in ("auto", "split") else score.readout.relu_sum()
    if score is not None and relu is not None and chosen.name in HINGE_POWERS:
        power = HINGE_POWERS[chosen.name]
        mean = relu_sum_risk(Runs.of(score, law), relu, power, bias=law.bias, noise=law.noise)
        return _risk(mean, chosen, law, "split")
    few = engine == "auto" and law.n <= _ENUMERATE_UP_TO and score is not None and not exact_pieces(score, chosen.name)
    pieces = None if few or engine == "enumerate" else _pieces(score, chosen, law, tolerance)
    if engine in _ON_PIECES and pieces is None:
        raise InvalidInput(
            f"the {engine} engine needs an additive score and a frozen readout that is piecewise linear (or analytic,"
            f" with a hinge loss); use engine='enumerate' for this model with {loss}"
        )
    if score is None or pieces is None:
        return _risk(enumeration.enumerated_mean(model, law, chosen), chosen, law, "enumerate")
    return _evaluated(score, law, pieces, engine, tolerance, chosen)


def population_accuracy(model: nn.Module, problem: Problems, *, engine: str = "auto", tolerance: float = 1e-9) -> Risk:
    """Return the exact probability of a right sign, over the law of the bits and noiseless labels.

    Parameters
    ----------
    model, problem
        As for `population_risk`.
    engine : str
        "auto", "enumerate", or an engine on piecewise functions of the score: "split", "spectral", "grouped".
    tolerance : float
        The largest error that "auto" accepts from an engine that approximates.

    Returns
    -------
    Risk
        The accuracy as its `value`, which has no gradient.

    A prediction of 0 (up to rounding) counts as −1.

    >>> from parityscope.models import parity_ffnn
    >>> from parityscope.problems import Parity
    >>> float(population_accuracy(parity_ffnn(8, (1, 4)), Parity(8, (1, 2))).value)
    0.5
    """
    if engine not in ("auto", "enumerate", *_ON_PIECES):
        raise InvalidInput(
            f"unknown accuracy engine {engine!r}: choose one of auto, enumerate, {', '.join(_ON_PIECES)}"
        )
    law, score = law_of(problem), additive_score(model)
    relu = None if score is None or engine not in ("auto", "split") else score.readout.relu_sum()
    if score is not None and relu is not None:
        with torch.no_grad():
            value = relu_sum_accuracy(Runs.of(score, law), relu, bias=law.bias)
        return Risk(value, _rounding_bound(value, law), "split")
    linear = None
    if score is not None and _frozen(score) and engine != "enumerate":
        linear = score.readout.sign_equivalent(*score_range(score.weights.detach(), score.offset.detach()))
    if score is not None and linear is not None:
        with torch.no_grad():
            return _evaluated(score, law, accuracy_pieces(linear), engine, tolerance, named_loss("hinge"))
    if engine in _ON_PIECES:
        raise InvalidInput(f"the {engine} engine needs a readout whose sign changes at known places; use 'enumerate'")
    value = enumeration.enumerated_accuracy(model, law)
    return Risk(value, _rounding_bound(value, law), "enumerate")


def _evaluated(score: AdditiveScore, law: Law, pieces: Pieces, engine: str, tolerance: float, loss: Loss) -> Risk:
    runs = Runs.of(score, law)
    mean, name = evaluate_pieces(runs, pieces, law.bias, engine, tolerance)
    proved = torch.as_tensor(mean.error_bound, dtype=mean.value.dtype) + pieces.error * (name == "split")
    return _risk(runs.with_gradient(mean), loss, law, name, proved.expand(len(mean.value)).reshape(runs.shape))


def _risk(
    mean: Tensor,
    loss: Loss,
    law: Law,
    engine: str,
    proved: Tensor | None = None,
    *,
    product: bool = False,
) -> Risk:
    """Return the risk of a mean loss whose error is at most `proved`, besides rounding."""
    value, at = loss.of_mean(mean), mean.detach()
    error = torch.zeros_like(at) if proved is None else proved.to(at)
    # A sum is known to n roundings of size 1, which a logarithm enlarges; a product of n factors to n of its own size.
    if loss.name == "log-correlation" and not product:
        error = error + _rounding_bound(at, law)
    bound = torch.where(error > 0, error * loss.stretch(at, error), 0.0)
    return Risk(value, bound + _rounding_bound(value, law), engine)


def _frozen(score: AdditiveScore) -> bool:
    """Say whether the readout has nothing to train, so that the score carries the whole gradient."""
    return not any(p.requires_grad for p in score.readout.parameters())


def _pieces(score: AdditiveScore | None, loss: Loss, law: Law, tolerance: float) -> Pieces | None:
    if score is None or not _frozen(score):
        return None
    return loss_pieces(score, loss.name, law.noise, tolerance / 2)


def _rounding_bound(value: Tensor, law: Law) -> Tensor:
    """Return an allowance for float64 rounding: n roundings per score, as many in the pairwise sums."""
    return 4 * law.n * torch.finfo(torch.float64).eps * value.detach().abs().clamp(min=1.0)
