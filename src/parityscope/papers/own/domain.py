"""What the project's own claims share: weights, the domain D, attacks on it, rows of trainings and shares of seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import Share, wilson_share
from parityscope.models import AdditiveScore, Cosine
from parityscope.papers.attack import Attack, maximise
from parityscope.papers.claim import Context
from parityscope.problems import Parity
from parityscope.records import Row
from parityscope.runs.training import Training, TrainingNumbers

BOUNDED = "docs: explanation/bounded-readout"
BOUNDED_PROOF = "explanation/bounded-readout.md"
SEED = 0
PLAIN = "plain Python, input by input"


def bounded_score(c: Tensor) -> AdditiveScore:
    """Return the score S = c·x behind the bounded readout ŷ = cos(πS).

    >>> score = bounded_score(torch.tensor([0.0, 1.0]))
    >>> score.readout(torch.tensor([[1.0, 0.0], [1.0, 1.0]]) @ score.weights).tolist()  # the parity of the second bit
    [1.0, -1.0]
    """
    return AdditiveScore(c, torch.zeros(()), Cosine())


def draws(context: Context, numbers: int) -> Float[Tensor, "draws numbers"]:
    """Return where attacks start."""
    generator = torch.Generator().manual_seed(SEED)
    return 1.5 * torch.randn(context.at(smoke=40, reference=400), numbers, generator=generator, dtype=torch.float64)


def ascend(objective: Callable[[Tensor], Tensor], starts: Tensor, context: Context) -> Attack:
    """Return the largest value of the objective that draws and ascent reach."""
    steps = context.at(smoke=15, reference=60)
    return maximise(lambda points, index: objective(points), starts, keep=16, steps=steps)


def attention_or_ideal(points: Float[Tensor, "batch m"], problem: Parity) -> Float[Tensor, "batch n"]:
    """Return weights that add up to k, on the way from 1_B (first number −∞) to any attention (+∞).

    >>> attention_or_ideal(torch.tensor([[-99.0, 0.0, 0.0], [99.0, 0.0, 0.0]]), Parity(2, (0,))).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    mix = torch.sigmoid(points[:, :1])
    return mix * problem.k * torch.softmax(points[:, 1:], -1) + (1 - mix) * problem.mask()


def in_domain(points: Float[Tensor, "batch m"], problem: Parity) -> Float[Tensor, "batch n"]:
    """Return points of D: 0 < c_j < 2 on B, 0 ≤ c_j < 1 off B, Σc = k; what falls outside is not a number.

    >>> c = in_domain(torch.tensor([[0.0, 1.0, 0.0, 0.0], [9.0, 0.0, 0.0, 30.0]]), Parity(3, (0, 1)))
    >>> round(c[0].sum().item(), 6), bool(c[1].isnan().all())  # the second has a weight of 2 off B
    (2.0, True)
    """
    c = attention_or_ideal(points, problem)
    mask = problem.mask()
    inside = (c < 1 + mask.to(c.dtype)).all(-1) & (c[:, mask] > 0).all(-1)
    return torch.where(inside[:, None], c, torch.nan)


def place(problem: Parity, weights: Tensor) -> dict[str, Any]:
    """Return a point where a statement may be broken, for a replay."""
    law = {"support": list(problem.support), "bias": problem.bias, "noise": problem.noise}
    return {**law, "weights": weights.tolist(), "seed": SEED}


NEARLY_ALL = "nearly every seed: four of five or more, with 95 % confidence"


def rows_of(context: Context, trainings: Sequence[Training]) -> list[Row[Training, TrainingNumbers]]:
    """Return the rows of some trainings."""
    return [context.row(one) for one in trainings]


def share_of(flags: Sequence[bool]) -> Share:
    """Return the share of flags that are set, with its interval.

    >>> str(share_of([True, True, False, True]))
    '3/4 (30%–95%)'
    """
    return wilson_share(sum(flags), len(flags))
