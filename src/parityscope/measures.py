"""What is measured: accuracy, the support that was found, attention entropy, shares with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from parityscope.errors import InvalidInput
from parityscope.models import AdditiveScore, Cosine, ParityTransformer, Triangle
from parityscope.problems import Parity, seeded_generator
from parityscope.risk import Law, law_of, population_accuracy, population_risk
from parityscope.risk.closed_form import certified_perfect, exact_correlation
from parityscope.risk.worst_case import certified_by_worst_loss
from parityscope.ties import largest, predicts_plus

AccuracyKind = Literal["exact", "lower bound", "estimate"]
_ENUMERABLE_BITS = 20
_COUNTABLE_SUMS = 2**23  # the split engine sorts about 2^{n/2} sums per run; this many take seconds
_ESTIMATE_SAMPLES = 2**16


class Accuracy(NamedTuple):
    """The share of inputs classified right, one per run, and what kind of number it is.

    >>> model = ParityTransformer(2, 1, directions=torch.zeros(1, 1, 2, dtype=torch.float64))
    >>> measured_accuracy(model, [Parity(2, (0,))])  # uniform attention misreads (1, 0) only
    Accuracy(value=tensor([0.7500], dtype=torch.float64), kind='exact')
    """

    value: Float[Tensor, " runs"]
    kind: AccuracyKind


def measured_accuracy(model: ParityTransformer, problems: Sequence[Parity]) -> Accuracy:
    """Return the accuracy of every run: exact where a certificate or an engine gives it.

    A certificate (a worst loss below 1) proves that every single input is classified right. Otherwise an exact engine
    counts while that takes seconds (n ≤ 30 for 256 runs, n ≤ 46 for one); beyond, a bounded readout has the lower
    bound C = E[yŷ], any other a sampled estimate.

    >>> from parityscope.models.positions import orthogonal
    >>> sharp = 20 * orthogonal(1000)[[3, 500]].unsqueeze(0)  # heads on bits 3 and 500 of a thousand
    >>> model = ParityTransformer(1000, 2, 2, 1.0, positions=orthogonal(1000), directions=sharp, readout=Cosine())
    >>> accuracy = measured_accuracy(model, [Parity(1000, (3, 500))])
    >>> accuracy.value.tolist(), accuracy.kind
    ([1.0], 'exact')
    """
    score, law = model.additive_score(), law_of(problems)
    with torch.no_grad():
        certified = _certified(score, law)
        if bool(certified.all()):
            return Accuracy(torch.ones(len(problems), dtype=torch.float64), "exact")
        if _countable(score, law.n, len(problems)):
            return Accuracy(population_accuracy(model, problems).value, "exact")
        if score is not None and isinstance(score.readout, Cosine | Triangle):
            bound = _correlation_bound(model, score, problems).clamp(min=0.0)
            return Accuracy(bound.masked_fill(certified, 1.0), "lower bound")
        x = (torch.rand(_ESTIMATE_SAMPLES, law.n, generator=seeded_generator(0, "data")) < law.bias).to(torch.int8)
        labels = torch.stack([problem.label(x) for problem in problems])
        return Accuracy((predicts_plus(model(x)) == (labels > 0)).double().mean(-1), "estimate")


def _certified(score: AdditiveScore | None, law: Law) -> Bool[Tensor, " runs"]:
    """Say which runs provably classify every input right: none of them loses 1."""
    certified = certified_by_worst_loss(score, law)
    if score is not None and isinstance(score.readout, Cosine):
        certified = certified | certified_perfect(score, law)
    return certified


def _correlation_bound(model: ParityTransformer, score: AdditiveScore, problems: Sequence[Parity]) -> Tensor:
    """Return a lower bound on E[yŷ], which no accuracy falls below when |ŷ| ≤ 1."""
    if isinstance(score.readout, Cosine):
        return exact_correlation(score, law_of(problems))
    risk = population_risk(model, [replace(problem, noise=0.0) for problem in problems], loss="hinge")
    return 1 - risk.value - risk.error_bound


def _countable(score: AdditiveScore | None, n: int, runs: int) -> bool:
    """Say whether counting right signs takes seconds: by the split engine, or else by visiting all inputs."""
    if score is None or score.readout.sign_equivalent(0.0, 1.0) is None:
        return n <= _ENUMERABLE_BITS
    return math.log2(runs) + n / 2 <= math.log2(_COUNTABLE_SUMS)


def found_support(weights: Float[Tensor, "*runs n"], k: int) -> Int64[Tensor, "*runs k"]:
    """Return the k positions of largest weight c_j, ascending: what attention says the hidden bits are.

    Where weights are equal (uniform attention, mirror images on the circle) the first positions are named.

    >>> found_support(torch.tensor([0.1, 0.9, 0.0, 1.0]), 2).tolist()
    [1, 3]
    """
    return largest(weights, k)


def attention_entropy(weights: Float[Tensor, "*maps T T"]) -> Float[Tensor, "*maps"]:
    """Return the normalised attention entropy of every map: min over i ≥ 2 of H(attention at i) / log i (W, Eq. (1)).

    Row i of a map says where token i looks, and only the tokens up to itself may be there. 0 means that some token
    looks at a single one, 1 that every token looks everywhere. W averages the result over a validation set.

    >>> round(attention_entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]])).item(), 6)
    1.0
    >>> attention_entropy(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])).item()
    0.0
    """
    length = weights.shape[-1]
    if length < 2:
        raise InvalidInput(f"attention entropy needs at least 2 tokens, got {length}")
    # W, Eq. (1); 0·log 0 is 0.
    entropy = torch.special.entr(weights[..., 1:, :]).sum(-1)
    longest = torch.arange(2, length + 1, device=weights.device, dtype=weights.dtype).log()
    return (entropy / longest).amin(-1)


class Share(NamedTuple):
    """A share of successes with its confidence interval.

    >>> share = wilson_share(8, 16)
    >>> share.value, round(share.low + share.high, 9)  # symmetric about one half
    (0.5, 1.0)
    """

    successes: int
    trials: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself."""
        return self.successes / self.trials

    def __str__(self) -> str:
        return f"{self.successes}/{self.trials} ({self.low:.0%}–{self.high:.0%})"


def wilson_share(successes: int, trials: int, confidence: float = 0.95) -> Share:
    """Return the share of successes with Wilson's interval, which is honest at 0 and at 1 too.

    >>> str(wilson_share(32, 32))
    '32/32 (89%–100%)'
    """
    if not 0 <= successes <= trials or trials < 1:
        raise InvalidInput(f"successes must lie between 0 and trials, got {successes} of {trials}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p, spread = successes / trials, 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / spread
    half = z * math.sqrt(p * (1 - p) / trials + (z / trials) ** 2 / 4) / spread
    return Share(successes, trials, max(0.0, centre - half), min(1.0, centre + half))
