"""What is measured of a trained model: its accuracy, the support it recovers, the entropy of its attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.core.ties import largest, predicts_plus, tolerance
from parityscope.models import AdditiveScore
from parityscope.models.additive import additive_score
from parityscope.models.readouts import COSINE
from parityscope.problems import Parity, seeded_generator
from parityscope.risk import Law, law_of, population_accuracy, population_risk
from parityscope.risk.engines.closed_form import certified_perfect, exact_correlation
from parityscope.risk.population import seconds_to_count
from parityscope.risk.worst_case import certified_by_worst_loss

AccuracyKind = Literal["exact", "lower bound", "estimate"]
_SECONDS = 5.0  # an exact count may take so long
_INTERVAL_RUNS = 16  # a proved interval takes a fraction of a second per run
_INTERVAL = 1e-4  # its half width at most, where it is given
_ESTIMATE_SAMPLES = 2**16


class Accuracy(NamedTuple):
    """The share of inputs classified right, one per run, and what kind of number it is.

    >>> from parityscope.models import ParityTransformer
    >>> model = ParityTransformer(2, 1, directions=torch.zeros(1, 1, 2, dtype=torch.float64))
    >>> measured_accuracy(model, [Parity(2, (0,))])  # uniform attention misreads (1, 0) only
    Accuracy(value=tensor([0.7500], dtype=torch.float64), kind='exact')
    """

    value: Float[Tensor, " runs"]
    kind: AccuracyKind


def measured_accuracy(model: nn.Module, problems: Sequence[Parity]) -> Accuracy:
    """Return the accuracy of every run: exact where a certificate or an engine gives it.

    A certificate (a worst loss below 1) proves that every single input is classified right. Otherwise an exact engine
    counts while that takes seconds (n ≤ 30 for 256 runs, n ≤ 46 for one); beyond, a bounded readout has the lower
    bound C = E[yŷ], any other the lower end of a proved interval, narrower than 2e-4, or a sampled estimate.

    >>> from parityscope.models import Cosine, ParityTransformer
    >>> from parityscope.models.positions import orthogonal
    >>> sharp = 20 * orthogonal(1000)[[3, 500]].unsqueeze(0)  # heads on bits 3 and 500 of a thousand
    >>> model = ParityTransformer(1000, 2, 2, 1.0, positions=orthogonal(1000), directions=sharp, readout=Cosine())
    >>> accuracy = measured_accuracy(model, [Parity(1000, (3, 500))])
    >>> accuracy.value.tolist(), accuracy.kind
    ([1.0], 'exact')
    """
    score, law = additive_score(model), law_of(problems)
    with torch.no_grad():
        certified = _certified(score, law)
        if bool(certified.all()):
            return Accuracy(torch.ones(len(problems), dtype=torch.float64), "exact")
        if seconds_to_count(model, problems) <= _SECONDS:
            return Accuracy(population_accuracy(model, problems).value, "exact")
        if score is not None and score.readout.bounded:
            bound = _correlation_bound(model, score, problems).clamp(min=0.0)
            return Accuracy(bound.masked_fill(certified, 1.0), "lower bound")
        if (
            score is not None
            and len(problems) <= _INTERVAL_RUNS
            and score.readout.sign_equivalent(0.0, 1.0) is not None
        ):
            interval = population_accuracy(model, problems, engine="lattice", tolerance=_INTERVAL)
            if bool((interval.error_bound <= _INTERVAL).all()):
                low = (interval.value - interval.error_bound).clamp(min=0.0)
                return Accuracy(low.masked_fill(certified, 1.0), "lower bound")
        x = (torch.rand(_ESTIMATE_SAMPLES, law.n, generator=seeded_generator(0, "data")) < law.bias).to(torch.int8)
        labels = torch.stack([problem.label(x) for problem in problems])
        return Accuracy((predicts_plus(model(x)) == (labels > 0)).double().mean(-1), "estimate")


def _certified(score: AdditiveScore | None, law: Law) -> Bool[Tensor, " runs"]:
    """Say which runs provably classify every input right: none of them loses 1."""
    certified = certified_by_worst_loss(score, law)
    if score is not None and score.readout.cosine_series() == COSINE:
        certified = certified | certified_perfect(score, law)
    return certified


def _correlation_bound(model: nn.Module, score: AdditiveScore, problems: Sequence[Parity]) -> Tensor:
    """Return a lower bound on E[yŷ], which no accuracy falls below when |ŷ| ≤ 1."""
    if score.readout.cosine_series() is not None:
        return exact_correlation(score, law_of(problems))
    risk = population_risk(model, [replace(problem, noise=0.0) for problem in problems], loss="hinge")
    return 1 - risk.value - risk.error_bound


def found_support(weights: Float[Tensor, "*runs n"], k: int) -> Int64[Tensor, "*runs k"]:
    """Return the k positions of largest weight c_j, ascending: what attention says the hidden bits are.

    Where weights are equal (uniform attention, mirror images on the circle) the first positions are named.

    >>> import torch
    >>> found_support(torch.tensor([0.1, 0.9, 0.0, 1.0]), 2).tolist()
    [1, 3]
    """
    return largest(weights, k)


def attended_support(weights: Float[Tensor, "runs n"], at_most: int) -> Int64[Tensor, "runs at_most"]:
    """Return the positions with a weight above ½, ascending, and −1 in the places that are left.

    What attention names when nobody says how many bits there are; of more than `at_most` the heaviest are taken.

    >>> import torch
    >>> attended_support(torch.tensor([[0.1, 0.9, 0.0, 1.0], [0.9, 0.0, 0.1, 0.2]]), 3).tolist()
    [[1, 3, -1], [0, -1, -1]]
    """
    positions = largest(weights, at_most)
    heavy = weights.gather(-1, positions) > 0.5 + tolerance(weights.dtype)
    order = (~heavy).to(positions.dtype).argsort(dim=-1, stable=True)
    return positions.where(heavy, -1).gather(-1, order)


def attention_entropy(weights: Float[Tensor, "*maps T T"]) -> Float[Tensor, "*maps"]:
    """Return the normalised attention entropy of every map: min over i ≥ 2 of H(attention at i) / log i (W, Eq. (1)).

    Row i of a map says where token i looks, and only the tokens up to itself may be there. 0 means that some token
    looks at a single one, 1 that every token looks everywhere. W averages the result over a validation set.

    Parameters
    ----------
    weights : Tensor (…, T, T)
        Attention maps; row i adds up to 1 over the tokens up to i.

    Returns
    -------
    Tensor (…)
        One number from 0 to 1 per map.

    >>> round(attention_entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]])).item(), 6)
    1.0
    >>> attention_entropy(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])).item()
    0.0
    """
    length = weights.shape[-1]
    if length < 2:
        raise InvalidInput(f"attention entropy needs at least 2 tokens, got {length}")
    return normalised_entropy(weights).amin(-1)  # W, Eq. (1)


def normalised_entropy(weights: Float[Tensor, "*maps T T"]) -> Float[Tensor, "*maps T-1"]:
    """Return H(attention at i) / log i of every token i ≥ 2.

    >>> normalised_entropy(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    length = weights.shape[-1]
    entropy = torch.special.entr(weights[..., 1:, :]).sum(-1)  # 0·log 0 is 0
    longest = torch.arange(2, length + 1, device=weights.device, dtype=weights.dtype).log()
    return entropy / longest
