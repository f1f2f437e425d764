"""Exponential heads for the claims on concave learning: c = exp(Pq + β), trained by Newton's steps; codes to attack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parityscope.models import Cosine, ParityTransformer
from parityscope.problems import Parity
from parityscope.risk import Law, law_of
from parityscope.training.steps.certificate import Certificate, concave_certificate
from parityscope.training.steps.log_attention import log_value
from parityscope.training.steps.newton import DampedNewton

CONCAVE = "docs: explanation/concave"
CONCAVE_PROOF = "explanation/concave.md"
CONCAVE_PROOFS = "explanation/concave-proofs.md"
ENOUGH = 0.004  # of −log C: the recipes stop here

Supports = Sequence[tuple[int, ...]]


def exponential_head(
    code: Float[Tensor, "*#runs n r"], supports: Supports, start: Float[Tensor, "runs lifted"] | None = None
) -> tuple[ParityTransformer, Law]:
    """Return one head with a trained scale for every support, and the law of its labels; it starts uniform.

    `start` has (q, β) of every run.
    """
    (n, r), k, runs = code.shape[-2:], len(supports[0]), len(supports)
    if start is None:
        start = torch.zeros(runs, r + 1, dtype=torch.float64)
        start[:, -1] = math.log(k / n)
    law = law_of([Parity(n, support) for support in supports])
    q, scale = start[:, None, :-1], start[:, -1]
    return ParityTransformer(n, k, 1, 1.0, positions=code, readout=Cosine(), directions=q, log_scale=scale), law


@dataclass(frozen=True)
class Climbed:
    """Where Newton's steps end: the weights, log C, the most steps of any run, and what is proved of each.

    >>> nothing = Certificate(torch.zeros(1), torch.zeros(1), "nothing")
    >>> Climbed(torch.ones(1, 1), torch.tensor([-0.003]), steps=4, certificate=nothing).learned.tolist()
    [True]
    """

    weights: Float[Tensor, "runs n"]
    value: Float[Tensor, " runs"]
    steps: int
    certificate: Certificate

    @property
    def learned(self) -> Bool[Tensor, " runs"]:
        """Which runs came so close to C = 1 that training stops."""
        return -self.value <= ENOUGH


def climb(model: ParityTransformer, law: Law, steps: int = 300) -> Climbed:
    """Take Newton's steps on log C until it is learned, or no step raises it."""
    newton, taken = DampedNewton(model, law), 0
    going = torch.ones(len(model.directions), dtype=torch.bool)
    while bool(going.any()) and taken < steps:
        # A step leaves runs alone whose gradient is 0.
        model.directions.grad = going[:, None, None].expand_as(model.directions).double()
        newton.step()
        assert newton.stuck is not None
        going = going & (-log_value(model.score_weights(), law.mask) > ENOUGH) & ~newton.stuck
        taken += 1
    weights = model.score_weights().detach()
    return Climbed(weights, log_value(weights, law.mask), taken, concave_certificate(model, law))


def drawn_supports(count: int, n: int, k: int, generator: torch.Generator) -> list[tuple[int, ...]]:
    """Return some supports of k of n positions.

    >>> drawn_supports(2, 5, 5, torch.Generator())
    [(0, 1, 2, 3, 4), (0, 1, 2, 3, 4)]
    """
    return [tuple(sorted(torch.randperm(n, generator=generator)[:k].tolist())) for _ in range(count)]


def drawn_codes(count: int, n: int, r: int, generator: torch.Generator) -> Float[Tensor, "count n r"]:
    """Return codes of small whole numbers: fractions can judge them, and positions in a row or a plane occur."""
    return torch.randint(-4, 5, (count, n, r), generator=generator).double()


def inside(
    code: Float[Tensor, "*#runs n r"], hidden: Bool[Tensor, "*#runs n"], numbers: Float[Tensor, "runs lifted"]
) -> Float[Tensor, "runs lifted"]:
    """Return (q, β) with weights in D, below 2 on B and below 1 elsewhere: the last number says how far below."""
    q = numbers[:, :-1]
    scores = (code @ q[..., None])[..., 0] - math.log(2) * hidden
    below = torch.nn.functional.softplus(numbers[:, -1])
    return torch.cat([q, -(scores.amax(-1) + below)[:, None]], dim=-1)
