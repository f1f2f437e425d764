"""All engines, and which of them answers: the one that is named, or the cheapest whose error meets the tolerance."""

from __future__ import annotations

import math

import torch

from parityscope.core.errors import InvalidInput
from parityscope.risk.cards import AUTO, CARDS, ENGINE_NAMES
from parityscope.risk.engine import Engine, Job
from parityscope.risk.engines.closed_form import ClosedForm
from parityscope.risk.engines.enumeration import Enumeration
from parityscope.risk.engines.grouped import Grouped
from parityscope.risk.engines.lattice.engine import Lattice
from parityscope.risk.engines.pair import Pair
from parityscope.risk.engines.spectral import Spectral
from parityscope.risk.engines.split.engine import Split
from parityscope.risk.means import Mean

REGISTRY: tuple[Engine, ...] = (Enumeration(), Split(), Grouped(), Spectral(), Lattice(), ClosedForm(), Pair())
# An engine that is exact but takes longer than this per run gives way to a quicker one with a bound of its own.
_PATIENCE = 0.02


def answer(job: Job, name: str) -> tuple[Mean, str]:
    """Return the mean by the named engine, or by the one that `auto` takes; and the engine's name.

    For f(S) = 1 − S and weights that add up to at most 2, the hinge never clips: the risk is 1 + E[yS] = 1 − c_i/2.

    >>> from parityscope.models import AdditiveScore, Readout
    >>> from parityscope.models.readouts import PiecewiseLinear
    >>> from parityscope.problems import Parity
    >>> from parityscope.risk.law import law_of
    >>> from parityscope.risk.losses import named_loss
    >>> class Line(Readout):
    ...     def forward(self, S):
    ...         return 1 - S
    ...     def piecewise_linear(self):
    ...         return PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0)
    >>> class Model(torch.nn.Module):
    ...     def additive_score(self):
    ...         return AdditiveScore(torch.full((100,), 0.02, dtype=torch.float64), torch.zeros(()), Line())
    >>> mean, engine = answer(Job(Model(), law_of(Parity(100, (7,))), named_loss("hinge")), "auto")
    >>> round(mean.value.item(), 12), engine
    (0.99, 'grouped')
    """
    if name not in ENGINE_NAMES:
        raise InvalidInput(f"unknown engine {name!r}: choose one of {', '.join(ENGINE_NAMES)}")
    if name == AUTO:
        return _cheapest(job)
    engine = REGISTRY[list(CARDS).index(name)]
    if (reason := engine.covers(job)) is not None:
        others = [other.name for other in REGISTRY if other.covers(job) is None and other.limit(job) is None]
        instead = f"use engine={' or '.join(map(repr, others))}" if others else "no engine covers it"
        raise InvalidInput(f"the {name} engine {reason}; for this model {instead}")
    if (reason := engine.limit(job)) is not None:
        raise InvalidInput(f"the {name} engine {reason}")
    return engine.evaluate(job), name


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
    engine = _certain(job, [engine for engine in REGISTRY if engine.covers(job) is None])
    return math.inf if engine is None else engine.cost(job)


def _certain(job: Job, covering: list[Engine]) -> Engine | None:
    """Return the cheapest engine whose error is known to meet the tolerance; fits are made only if they may pay.

    The others are not even asked what they cost: looking at every weight takes longer than a small job.
    """
    fitting = (engine for engine in covering if engine.foresees and engine.limit(job) is None)
    return next((engine for engine in sorted(fitting, key=lambda one: one.cost(job)) if engine.meets(job)), None)


def _cheapest(job: Job) -> tuple[Mean, str]:
    covering = [engine for engine in REGISTRY if engine.covers(job) is None]
    certain = _certain(job, covering)
    price = math.inf if certain is None else certain.cost(job)
    if certain is not None and price <= _PATIENCE * job.count:
        return certain.evaluate(job), certain.name
    complaints = [f"{engine.name} {reason}" for engine in covering if (reason := engine.limit(job)) is not None]
    # What these can prove is known only afterwards.
    for engine in sorted(covering, key=lambda engine: engine.cost(job)):
        if engine.limit(job) is not None or engine.meets(job) or engine.cost(job) >= price:
            continue
        mean = engine.evaluate(job)
        reached = float(torch.as_tensor(mean.error_bound).max())
        if reached <= job.tolerance or engine.takes_any_bound(job):
            return mean, engine.name
        verb = "proves an error of" if mean.bound_is == "proved" else "estimates its error as"
        complaints.append(f"{engine.name} {verb} {reached:.0e}, not {job.tolerance:.0e}")
    if certain is None:
        signs_unknown = job.loss is None and job.frozen and job.pieces is None
        way = "give the readout a `sign_equivalent`" if signs_unknown else "accept a larger tolerance"
        raise InvalidInput(f"no exact engine fits: {'; '.join(complaints)}; {way}, or sample with estimated_risk")
    return certain.evaluate(job), certain.name
