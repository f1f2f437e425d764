"""The risk of a jittered score: as smooth as an optimiser likes it, with a gradient that is certified."""

from __future__ import annotations

import math

from torch import nn

from parityscope.core.errors import InvalidInput
from parityscope.risk.engine import Job, one_by_one
from parityscope.risk.engines.spectral.engine import Spectral, spectral_risk
from parityscope.risk.law import Problems, law_of
from parityscope.risk.losses import AnyLoss, as_loss
from parityscope.risk.population import Risk, risk_of


def jittered_risk(model: nn.Module, problem: Problems, *, width: float = 1e-5, loss: AnyLoss = "squared-hinge") -> Risk:
    """Return the risk when every score S is moved by a random u of standard deviation ``width``, with its gradient.

    This is another function than the risk: u has Bohman's density, the square of the transform of a cosine arch, whose
    own transform ends at π/width, so that the mean is a finite series. Beyond half as far again as scores go, and a
    thousand widths, where u leads with a probability below 1e-9, the loss counts as any function no larger than it is
    before; the bounds hold for all of these. It differs from the risk by about
    ½·width²·(density of S at the kinks × their size + the mean curvature), 1e-9 at 1e-5, and its gradient, unlike that
    of a loss with kinks, is smooth. Both bounds of the result are distances from the jittered risk, mostly rounding.

    Parameters
    ----------
    model, problem, loss
        As for `population_risk`: an additive score, a frozen readout, fair bits; a few dozen bits or more.
    width : float
        The standard deviation of u, in units of the score.

    Returns
    -------
    Risk
        Value (differentiable in the model's parameters) and the bounds on it and on its gradient.

    >>> import torch
    >>> from parityscope.models import ParityTransformer
    >>> from parityscope.problems import Parity
    >>> heads = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]], dtype=torch.float64)
    >>> risk = jittered_risk(ParityTransformer(n=100, k=3, temperature=0.5, directions=heads), Parity(100, (1, 2, 3)))
    >>> bool(risk.error_bound < 1e-8), bool(risk.gradient_bound < 1e-7)
    (True, True)
    """
    if not 0 < width < math.inf:
        raise InvalidInput(f"the width must be a positive number, got {width}")
    chosen = as_loss(loss)
    job = Job(model, law_of(problem), chosen)
    engine = Spectral()
    if (refusal := engine.refuses(job)) is not None:
        raise InvalidInput(f"a jittered risk {refusal.reason}")
    if not bool(job.runs.weights.isfinite().all()):
        raise InvalidInput("a jittered risk needs finite weights")
    mean = one_by_one(job, lambda c, mask, pieces: spectral_risk(c, mask, pieces, job.tolerance, jitter=width))
    return risk_of(job, mean, chosen, engine.name)
