"""All engines, and which of them answers: the one that is named, or the cheapest whose error meets the tolerance."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from parityscope.core.errors import InvalidInput
from parityscope.risk.cards import AUTO, CARDS, ENGINE_NAMES
from parityscope.risk.engine import Engine, Job, OnPieces
from parityscope.risk.engines.closed_form import ClosedForm
from parityscope.risk.engines.enumeration import Enumeration
from parityscope.risk.engines.grouped import Grouped
from parityscope.risk.engines.lattice.engine import Lattice
from parityscope.risk.engines.pair import Pair
from parityscope.risk.engines.spectral import Spectral
from parityscope.risk.engines.split.engine import Split
from parityscope.risk.means import Mean

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
        return certain.engine.evaluate(job), certain.engine.name
    offers = sorted([*offers, *_offers(job, complaints, foreseen=False)], key=lambda offer: offer.seconds)
    # What these can prove is known only afterwards.
    for seconds, engine in offers:
        if (certain is not None and seconds >= certain.seconds) or _meets(engine, job):
            continue
        mean = engine.evaluate(job)
        reached = float(torch.as_tensor(mean.error_bound).max())
        if reached <= job.tolerance or engine.takes_any_bound_of == ("accuracy" if job.loss is None else "risk"):
            return mean, engine.name
        verb = "proves an error of" if mean.bound_is == "proved" else "estimates its error as"
        complaints.append(f"{engine.name} {verb} {reached:.0e}, not {job.tolerance:.0e}")
    if certain is None:
        signs_unknown = job.loss is None and job.frozen and job.pieces is None
        way = "give the readout a `sign_equivalent`" if signs_unknown else "accept a larger tolerance"
        raise InvalidInput(f"no exact engine fits: {'; '.join(complaints)}; {way}, or sample with estimated_risk")
    return certain.engine.evaluate(job), certain.engine.name
