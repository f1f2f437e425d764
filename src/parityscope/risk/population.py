"""One door to the population risk and accuracy: choose an engine, return value, error bound and engine.

The engine is the one that is named, or the cheapest whose error meets the tolerance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.risk.cards import AUTO, CARDS, ENGINE_NAMES
from parityscope.risk.engine import Engine, Job, OnPieces
from parityscope.risk.engines.closed_form import ClosedForm
from parityscope.risk.engines.enumeration import Enumeration
from parityscope.risk.engines.grouped import Grouped
from parityscope.risk.engines.lattice.engine import Lattice
from parityscope.risk.engines.pair import Pair
from parityscope.risk.engines.spectral.engine import Spectral
from parityscope.risk.engines.split.engine import Split
from parityscope.risk.law import Problems, law_of
from parityscope.risk.losses import AnyLoss, Loss, as_loss
from parityscope.risk.means import BoundIs, Mean
from parityscope.risk.pieces.rounding import UNIT

_BY_NAME: dict[str, Engine] = {
    engine.name: engine for engine in (ClosedForm(), Enumeration(), Grouped(), Lattice(), Pair(), Spectral(), Split())
}
REGISTRY = {name: _BY_NAME[name] for name in CARDS}  # the order is that of the cards, and each of them has its engine
# Seconds: an engine that is exact but takes longer for a run gives way to a quicker one with a bound of its own.
# Neither the spectral engine nor the lattice takes less than that, whatever the weights are.
_PATIENCE = 0.02


def answer(job: Job, name: str) -> tuple[Mean, str]:
    """Return the mean by the named engine, or by the one that `auto` takes; and the engine's name.

    For f(S) = 1 − S and weights that add up to at most 2, the hinge never clips: the risk is 1 + E[yS] = 1 − c_i/2.
    """
    if name not in ENGINE_NAMES:
        raise InvalidInput(f"unknown engine {name!r}: choose one of {', '.join(ENGINE_NAMES)}")
    if name == AUTO:
        return _cheapest(job)
    engine = REGISTRY[name]
    if (refusal := engine.refuses(job)) is None:
        return engine.evaluate(job), name
    if refusal.too_large:
        raise InvalidInput(f"the {name} engine {refusal.reason}")
    others = [other for other in REGISTRY if REGISTRY[other].refuses(job) is None]
    instead = f"use engine={' or '.join(map(repr, others))}" if others else "no engine covers it"
    raise InvalidInput(f"the {name} engine {refusal.reason}; for this model {instead}")


def exact_seconds(job: Job) -> float:
    """Return about how long the quickest engine takes that meets the tolerance for certain; infinite if none does.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk.law import law_of
    >>> jobs = [Job(ParityTransformer(n, 3), law_of(Parity(n, (0, 1, 2))), loss=None) for n in (20, 40, 60)]
    >>> quick, slow, never = map(exact_seconds, jobs)
    >>> quick < 0.1 < slow < never
    True
    """
    certain = _certain(job, _offers(job, [], foreseen=True))
    return math.inf if certain is None else certain.seconds


class _Offer(NamedTuple):
    """An engine that takes a job, and about how long it needs."""

    seconds: float
    engine: Engine


def _offers(job: Job, complaints: list[str], *, foreseen: bool) -> list[_Offer]:
    """Ask engines once whether they take the job and what it costs, cheapest first; add who finds it too large.

    Those that know their error beforehand are asked apart from the others, whose look at every weight takes longer than
    a small job.
    """
    offers = []
    for engine in REGISTRY.values():
        if engine.foresees is not foreseen:
            continue
        if (refusal := engine.refuses(job)) is None:
            offers.append(_Offer(engine.cost(job), engine))
        elif refusal.too_large:
            complaints.append(f"{engine.name} {refusal.reason}")
    return sorted(offers, key=lambda offer: offer.seconds)


def _certain(job: Job, offers: list[_Offer]) -> _Offer | None:
    """Return the cheapest whose error is known to meet the tolerance; fits are made only where they may pay."""
    return next((offer for offer in offers if _meets(offer.engine, job)), None)


def _meets(engine: Engine, job: Job) -> bool:
    """Say whether the error is known to meet the tolerance beforehand: on fitted pieces if their proved error does."""
    if not isinstance(engine, OnPieces) or job.pieces is None:
        return engine.foresees
    return engine.foresees and job.pieces.error <= job.tolerance and job.pieces.error_is == "proved"


def _cheapest(job: Job) -> tuple[Mean, str]:
    complaints: list[str] = []
    offers = _offers(job, complaints, foreseen=True)
    certain = _certain(job, offers)
    if certain is not None and certain.seconds <= _PATIENCE * job.count:
        mean = certain.engine.evaluate(job)
        if _gradient_meets(job, certain.engine, mean, complaints):
            return mean, certain.engine.name
        certain = None
    offers = sorted([*offers, *_offers(job, complaints, foreseen=False)], key=lambda offer: offer.seconds)
    # What these can prove is known only afterwards.
    for seconds, engine in offers:
        if (certain is not None and seconds >= certain.seconds) or _meets(engine, job):
            continue
        mean = engine.evaluate(job)
        reached = float(torch.as_tensor(mean.error_bound).max())
        if reached <= job.tolerance or engine.takes_any_bound_of == ("accuracy" if job.loss is None else "risk"):
            if _gradient_meets(job, engine, mean, complaints):
                return mean, engine.name
            continue
        verb = "proves an error of" if mean.bound_is == "proved" else "estimates its error as"
        complaints.append(f"{engine.name} {verb} {reached:.0e}, not {job.tolerance:.0e}")
    if certain is not None:
        mean = certain.engine.evaluate(job)
        if not _gradient_meets(job, certain.engine, mean, complaints):
            certain = None
    if certain is None:
        signs_unknown = job.loss is None and job.frozen and job.pieces is None
        way = "give the readout a `sign_equivalent`" if signs_unknown else "accept a larger tolerance"
        raise InvalidInput(f"no exact engine fits: {'; '.join(complaints)}; {way}, or sample with estimated_risk")
    return mean, certain.engine.name


def _gradient_meets(job: Job, engine: Engine, mean: Mean, complaints: list[str]) -> bool:
    """Say whether the gradient is known as well as is asked; if not, add what is known."""
    reached = float(torch.as_tensor(mean.gradient_bound).max())
    if job.gradient_tolerance == math.inf or engine.finite_gradient or reached <= job.gradient_tolerance:
        return True
    known = "proves nothing of its gradient" if reached == math.inf else f"proves its gradient to {reached:.0e}"
    complaints.append(f"{engine.name} {known}, not to {job.gradient_tolerance:.0e}")
    return False


ENGINES = ENGINE_NAMES


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
    bound_is : str
        "proved" (docs/explanation/engines.md derives it), or "estimated" where a fit is checked at points only.
    gradient_bound : Tensor or None
        How far any entry of the gradient by the weights and the offset of the score may be from the true one; None
        where no engine proves it. Where the loss has kinks the gradient counts the scores on either side of them, and
        this is far larger than the error of the value, unless `gradient_tolerance` asks for less.

    Uniform attention over a thousand bits knows little of a hidden one:

    >>> from parityscope.models import Cosine, ParityTransformer
    >>> from parityscope.problems import Parity
    >>> model = ParityTransformer(n=1000, k=1, temperature=1e9, readout=Cosine())
    >>> risk = population_risk(model, Parity(1000, (7,)), loss="hinge")
    >>> risk
    Risk(0.9984311, within 9.1e-13, by closed-form, proved)
    >>> round(risk.value.item(), 4), risk.error_bound.item() < 1e-11, risk.engine, risk.bound_is
    (0.9984, True, 'closed-form', 'proved')
    """

    value: Tensor
    error_bound: Tensor
    engine: str
    bound_is: BoundIs = "proved"
    gradient_bound: Tensor | None = None

    def __repr__(self) -> str:
        """Name one number, or how many there are and the first."""
        values, errors = self.value.detach().flatten(), self.error_bound.detach().flatten()
        runs = f"{len(values)} runs, the first " if self.value.ndim else ""
        of_gradient = ""
        if self.gradient_bound is not None:
            of_gradient = f", its gradient within {float(self.gradient_bound.max()):.1e}"
        value = f"{runs}{float(values[0]):.7g}" if len(values) else "no runs"
        within = float(errors.max()) if len(errors) else 0.0
        return f"Risk({value}, within {within:.1e}{of_gradient}, by {self.engine}, {self.bound_is})"


def population_risk(
    model: nn.Module,
    problem: Problems,
    *,
    loss: AnyLoss = "squared-hinge",
    engine: str = "auto",
    tolerance: float = 1e-9,
    gradient_tolerance: float | None = None,
) -> Risk:
    """Return the risk over the law of the problem, exact up to `error_bound`.

    Parameters
    ----------
    model : nn.Module
        Maps bits (batch, n) to predictions (batch,), or (runs, batch) when its parameters carry a run axis. One that
        names its additive score (`additive_score`, as `ParityTransformer` does) has fast engines.
    problem : Parity, sequence of Parity, or Law
        What is predicted: one problem, or one per run of the model.
    loss : str or callable
        "hinge", "squared-hinge" (H1's text), "squared-mean-hinge" (H1's code), "squared": (1 − yŷ)², "logistic", or
        "log-correlation": −log E[yŷ], which is infinite where label and prediction are not correlated. Or a callable
        that maps a tensor of margins yŷ to the losses, elementwise and differentiable by torch; the bound is then an
        estimate.
    engine : str
        "auto" takes the cheapest engine whose error is known to meet `tolerance`; where that takes long (20 ms a run)
        or there is none, a quicker one whose bound turns out to meet it; and for H2's readout at large n the pair
        engine, whose bound may exceed it. Any of them can be named: `parityscope learn --help` lists them.
    tolerance : float
        The largest error that "auto" accepts from an engine that approximates.
    gradient_tolerance : float, optional
        The largest error that it accepts of any entry of the gradient; without it the gradient is as good as the value
        makes it. A tenth of it takes the spectral engine about ten times as long: at n = 100, a second for 1e-6.

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
    (0.0, 'grouped')
    """
    chosen = as_loss(loss)
    asked = math.inf if gradient_tolerance is None else _positive(gradient_tolerance, "gradient_tolerance")
    job = Job(model, law_of(problem), chosen, _positive(tolerance), asked)
    mean, name = answer(job, engine)
    return risk_of(job, mean, chosen, name)


def population_accuracy(model: nn.Module, problem: Problems, *, engine: str = "auto", tolerance: float = 1e-9) -> Risk:
    """Return the exact probability of a right sign, over the law of the bits and noiseless labels.

    Parameters
    ----------
    model, problem
        As for `population_risk`.
    engine : str
        As for `population_risk`; the closed form and the pair engine do not count.
    tolerance : float
        The error to aim at. Where only the lattice fits, an accuracy is an interval: value ± error bound, proved, and
        wider than 1e-9: how many scores lie within 1e-9 of a change of sign cannot be known there.

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
    job = Job(model, law_of(problem), None, _positive(tolerance))
    with torch.no_grad():
        mean, name = answer(job, engine)
        bound = _bound(job, mean)
        return Risk(_value(job, mean), bound.clamp(max=1.0).where(bound.isfinite(), bound), name, mean.bound_is)


def seconds_to_count(model: nn.Module, problem: Problems) -> float:
    """Return about how many seconds `population_accuracy` would take; infinite where nothing can count.

    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> seconds_to_count(ParityTransformer(20, 3), Parity(20, (0, 1, 2))) < 1
    True
    """
    return exact_seconds(Job(model, law_of(problem), None))


def _positive(tolerance: float, name: str = "tolerance") -> float:
    if not tolerance > 0:
        raise InvalidInput(f"the {name} must be a positive number, got {tolerance}")
    return tolerance


def _value(job: Job, mean: Mean) -> Tensor:
    """Return the mean in the shape of the runs, with its gradient."""
    return mean.value if job.score is None else job.runs.with_gradient(mean)


def _bound(job: Job, mean: Mean) -> Tensor:
    bound = torch.as_tensor(mean.error_bound, dtype=torch.float64, device=mean.value.device)
    bound = torch.where(mean.value.detach().isnan(), torch.inf, bound)  # a training that diverged: nothing is known
    return bound.expand(mean.value.shape).reshape(mean.value.shape if job.score is None else job.runs.shape)


def risk_of(job: Job, mean: Mean, loss: Loss, engine: str) -> Risk:
    """Return the risk of a mean loss: what is done to the mean is done to its error."""
    of_inputs, error = _value(job, mean), _bound(job, mean)
    value = loss.of_mean(of_inputs)
    if value is not of_inputs:
        at = of_inputs.detach()
        error = torch.where(error > 0, error * loss.stretch(at, error), 0.0) + 4 * UNIT * value.detach().abs()
    return Risk(value, error, engine, mean.bound_is, _gradient_bound(job, mean, loss))


def _gradient_bound(job: Job, mean: Mean, loss: Loss) -> Tensor | None:
    """Return the bound on the gradient of the risk, where the engine has one; a square adds the error of its factor."""
    if mean.by_weight is None or loss.name == "log-correlation":
        return None
    bound = torch.as_tensor(mean.gradient_bound, dtype=torch.float64).expand(len(mean.value))
    if not bool(bound.isfinite().all()) or bool(mean.by_weight.isnan().any()):
        return None
    if loss.name == "squared-mean-hinge":
        error = torch.as_tensor(mean.error_bound, dtype=torch.float64)
        bound = 2 * (mean.value.abs() + error) * bound + 2 * error * mean.by_weight.abs().amax(-1)
    return bound.reshape(job.runs.shape)
