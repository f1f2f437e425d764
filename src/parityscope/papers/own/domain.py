"""What the project's own claims and figures share: weights, the domain D, attacks on it, one step from examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.statistics import Share, wilson_share
from parityscope.models import AdditiveScore, Cosine
from parityscope.papers.attack import Attack, maximise
from parityscope.papers.claim import Context
from parityscope.problems import Parity, bits_of
from parityscope.records import Row
from parityscope.runs.training import Training, TrainingNumbers
from parityscope.theory import one_step_height, path_phase

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


def entries_at_uniform(n: int, k: int) -> tuple[Tensor, Tensor]:
    """Return, of every input, the terms y·sin(πk/2 − εR)·s of the gradient at uniform attention, and its bits.

    The hidden bits are the first k.
    """
    bits = bits_of(torch.arange(2**n), n).double()
    signs = 1 - 2 * bits
    weight = signs[:, :k].prod(-1) * (math.pi * k / 2 - path_phase(n, k, 0) * signs.sum(-1)).sin()
    return weight[:, None] * signs, bits


def drawn_gradients(
    terms: Tensor, samples: float, noise: float, draws: int, generator: np.random.Generator
) -> Float[Tensor, "draws n"]:
    """Return mean gradients of so many independent examples, drawn as counts of the inputs: N may be astronomical."""
    inputs = len(terms)
    counts = generator.multinomial(math.ceil(samples), np.full(inputs, 1 / inputs), size=draws)
    flipped = generator.binomial(counts, noise)
    return torch.from_numpy((counts - 2 * flipped) / math.ceil(samples)) @ terms


def one_mirror_step(gradient: Float[Tensor, "draws n"], k: int) -> Float[Tensor, "draws n"]:
    """Return the weights, of mass k, after the step from uniform attention whose largest logit is H."""
    height = one_step_height(gradient.shape[-1], k)
    return k * torch.softmax(height * gradient / gradient.amax(-1, keepdim=True), -1)


def all_right(c: Float[Tensor, "draws n"], bits: Tensor, k: int) -> Tensor:
    """Say which weights answer every input correctly, B the first k positions."""
    answers = (math.pi * c @ bits.T).cos()
    return (answers * (1 - 2 * bits[:, :k]).prod(-1) > 0).all(-1)
