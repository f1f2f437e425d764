"""What an engine is: it refuses a job or says what it costs, and it computes a mean with a bound.

A new engine is a class in a file of its own, a card in `risk/cards.py`, its name in `registry.py`, and a line in
the tests' harness.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from parityscope.core.threads import single_threaded
from parityscope.models.additive import AdditiveScore
from parityscope.risk.cards import EngineCard
from parityscope.risk.law import Law
from parityscope.risk.losses import Loss
from parityscope.risk.means import Mean, RunMean, Runs
from parityscope.risk.pieces.agreement import checked_score
from parityscope.risk.pieces.pieces import Pieces
from parityscope.risk.pieces.represent import exact_pieces, loss_pieces, score_range, sign_pieces

MERGE = 1e-13  # weights this close, relative to the largest, count as equal
_WIDEST = 20_000.0  # of scores behind a curved readout: a million would take gigabytes of pieces, and minutes
_FIT = 0.02  # seconds: the share of a fit that one of many calls pays


@dataclass(frozen=True, eq=False)
class Job:
    """What is asked: the mean of a loss, or the share of right signs, of a model over a law."""

    model: nn.Module
    law: Law
    loss: Loss | None  # None: the share of right signs
    tolerance: float = 1e-9
    gradient_tolerance: float = math.inf  # what is asked of every entry of the gradient; infinite: nothing

    @cached_property
    def n(self) -> int:
        """The number of bits."""
        return self.law.n

    @cached_property
    def k(self) -> int:
        """The largest number of hidden bits."""
        return int(self.law.mask.sum(-1).max())

    @cached_property
    def score(self) -> AdditiveScore | None:
        """The model's additive score in double precision, or None."""
        return checked_score(self.model, self.law.n)

    @cached_property
    def runs(self) -> Runs:
        """The score and the problems on one run axis."""
        assert self.score is not None
        return Runs.of(self.score, self.law)

    @property
    def count(self) -> int:
        """The number of runs."""
        return 1 if self.score is None else len(self.runs.weights)

    @cached_property
    def frozen(self) -> bool:
        """Whether the readout has nothing to train, so that the score carries the whole gradient."""
        return self.score is not None and not any(p.requires_grad for p in self.score.readout.parameters())

    @cached_property
    def reach(self) -> tuple[float, float]:
        """An interval with whole ends that holds every score."""
        assert self.score is not None
        return score_range(self.score.weights, self.score.offset)

    @cached_property
    def span(self) -> float:
        """How wide the scores are over which a curved readout is cut into pieces; 0 where there is none to cut."""
        assert self.score is not None
        low, high = self.reach
        return high - low if self.score.readout.piecewise_linear() is None else 0.0

    @cached_property
    def distinct(self) -> int:
        """The largest number of distinct weights of a run."""
        weights = self.runs.weights.detach()
        gap = MERGE * weights.abs().amax(-1, keepdim=True)
        return 1 + int((weights.sort(-1).values.diff(dim=-1) > gap).sum(-1).max())

    @cached_property
    def exact(self) -> bool:
        """Whether the function of the score that is averaged is a piecewise polynomial as it is, without a fit."""
        assert self.score is not None
        return self.loss is None or exact_pieces(self.score, self.loss)

    @cached_property
    def pieces(self) -> Pieces | None:
        """The function of the score that is averaged, as piecewise polynomials; None when there is no such form."""
        if self.score is None or not self.frozen:
            return None
        if self.loss is None:
            return sign_pieces(self.score, self.reach)
        return loss_pieces(self.score, self.loss, self.law.noise, self.tolerance / 2, self.reach)


class Refusal(NamedTuple):
    """Why an engine does not compute a mean, as words that follow its name.

    >>> NEEDS_A_SCORE.reason, NEEDS_A_SCORE.too_large
    ('needs a model with an additive score', False)
    """

    reason: str
    too_large: bool = False  # it covers such means, and not one of this size


NEEDS_A_SCORE = Refusal("needs a model with an additive score")


class Engine(ABC):
    """One way to compute a mean over all inputs."""

    card: ClassVar[EngineCard]
    foresees: ClassVar[bool] = True  # whether its error is known before anything is computed
    # What `auto` takes from it although its bound, known only afterwards, may exceed the tolerance.
    takes_any_bound_of: ClassVar[Literal["risk", "accuracy"] | None] = None
    finite_gradient: ClassVar[bool] = (
        False  # whether its gradient is a finite sum, known up to a rounding nobody bounded
    )

    @property
    def name(self) -> str:
        """What `engine=` calls it."""
        return self.card.name

    @abstractmethod
    def refuses(self, job: Job) -> Refusal | None:
        """Return None when the engine computes this mean, or why it does not: not such a one, or not one so large."""

    @abstractmethod
    def cost(self, job: Job) -> float:
        """Return about how many seconds the job takes (value and gradient), from measured constants."""

    @abstractmethod
    def evaluate(self, job: Job) -> Mean:
        """Return the mean of every run with its gradient and the bound on its error, rounding included."""


class OnPieces(Engine):
    """An engine on piecewise polynomials of an additive score."""

    fair_bits: ClassVar[bool] = True  # whether it needs them

    def refuses(self, job: Job) -> Refusal | None:
        """Refuse what is no function of one score, a readout that trains, and signs that change at unknown places."""
        if job.score is None:
            return NEEDS_A_SCORE
        if not job.frozen:
            return Refusal("needs a frozen readout")
        if job.span > _WIDEST:
            return Refusal(f"cuts a curved readout into pieces over scores {_WIDEST:,.0f} wide at most", too_large=True)
        if job.loss is None and job.pieces is None:
            return Refusal("needs a readout whose sign changes at known places (`sign_equivalent`)")
        if self.fair_bits and job.law.bias != 0.5:
            return Refusal(f"needs uniform bits, got bias {job.law.bias}")
        return None

    def fit_seconds(self, job: Job) -> float:
        """Return what a call pays for fitted pieces, which are kept for the calls after it."""
        return 0.0 if not job.frozen or job.exact else _FIT


def one_by_one(job: Job, evaluate: Callable[[Tensor, Tensor, Pieces], RunMean]) -> Mean:
    """Evaluate run by run, given weights (n,), mask (n,) and pieces; an offset of the score shifts the pieces."""
    assert job.pieces is not None
    weights, offset, mask = job.runs.tensors
    with single_threaded(), torch.no_grad():
        rows = [
            evaluate(w, m, job.pieces.shifted(o) if o else job.pieces)
            for w, o, m in zip(weights, offset.tolist(), mask, strict=True)
        ]
    return Mean.of_runs(rows)
