"""Clauses that many of W's statements share: equations, events of small probability, sizes that are not the paper's."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from parityscope.core.statistics import Share, wilson_share
from parityscope.papers.criterion import Between, Clause, Limit, above, at_most
from parityscope.papers.w.regime import first_n_with_a_k

FEWEST_SEEDS = 5  # fewer trainings are an illustration
_ROUNDING = "rounding of double precision; a wrong term is far larger"
WITHOUT_NOISE = "the lemma's own constant, where the noise that it bounds is exactly 0"
# What claims say of themselves where their statement was tested so.
NOISE = (
    "“Without noise” is an instance of ours in which overlaps, γ and ζ are exactly 0; with noise there are only sizes "
    "that run here. Both are outside Assumption 2, which no machine can meet."
)
MEAN_LOSS = "L is the mean over the batch, as Lemma 12's proof takes it; B.1.1's L^{(t)} has no 1/B."
AS_CORRECTED = "What it quotes of other lemmas inherits their verdicts and is read as corrected there."
_NOT_ITS_SIZES = (
    "the paper's own bound; sizes that run here are not Assumption 2's, whose range of k is empty below n = "
    f"{first_n_with_a_k(0.9)} at δ = 0.9 and {first_n_with_a_k(0.1)} at δ = 0.1, so missing it refutes nothing"
)


def equation(says: str, quantity: str, *, corrected: bool = False) -> Clause:
    """Return the clause of an equation whose two sides were computed: they agree, or differ by more than rounding."""
    return Clause(says, quantity, at_most(1e-9), _ROUNDING, above(1e-6), corrected)


def rare(says: str, quantity: str, probability: float, allowed: str, *, corrected: bool = False) -> Clause:
    """Return the clause of an event that may happen with a probability: a share of draws with its interval decides."""
    source = f"the paper's probability, {allowed}; a 95 % interval"
    return Clause(says, quantity, at_most(probability), source, corrected=corrected)


def at_sizes_that_run(says: str, quantity: str, limit: Limit) -> Clause:
    """Return the clause of a training at sizes that run here: it can confirm what it shows, and refutes nothing.

    >>> at_sizes_that_run("attention is one-hot", "distance", at_most(1e-8)).refuting is None
    True
    """
    return Clause(says, quantity, limit, _NOT_ITS_SIZES, "never")


def span_of_seeds(values: Sequence[float]) -> Between | None:
    """Return between what a number of several trainings lies; of fewer than five, nothing that decides.

    >>> span_of_seeds([0.5, 0.25, 0.75, 0.5, 0.5]), span_of_seeds([0.5, 0.25])
    (Between(low=0.25, high=0.75), None)
    """
    return Between(min(values), max(values)) if len(values) >= FEWEST_SEEDS else None


class _OfFewSeeds(Share):
    """A share of fewer than five trainings: it may be anything, so that it is shown and decides nothing."""

    def __str__(self) -> str:
        return f"{self.successes}/{self.trials}, fewer than {FEWEST_SEEDS} seeds"


def share_of_seeds(shown: Sequence[bool]) -> Share | None:
    """Return in which share of trainings something showed, with its interval; that of fewer than five is 0 to 1.

    >>> str(share_of_seeds([True] * 5)), str(share_of_seeds([True] * 4)), share_of_seeds([])
    ('5/5 (57%–100%)', '4/4, fewer than 5 seeds', None)
    """
    if not shown:
        return None
    if len(shown) < FEWEST_SEEDS:
        return _OfFewSeeds(sum(shown), len(shown), 0.0, 1.0)
    return wilson_share(sum(shown), len(shown))


def relative_distance(found: Tensor, wanted: Tensor) -> float:
    """Return the largest difference of two tensors over the largest entry of the second.

    >>> import torch
    >>> relative_distance(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 4.0]))
    0.25
    """
    return float((found - wanted).abs().max() / wanted.abs().max())
