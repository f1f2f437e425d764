"""Theorem 3's training, three steps of mini-batch SGD on the simplified block, and why the block then answers right.

At each link a signal stands against an offset that the secret bit ignores. Where attention is one-hot, T[i] is a
function of two bits, the token at i and the secret bit, so that for each token T = offset ± signal, and every answer is
right if and only if |offset| < signal. While each neuron that started active stays so (W, Lemmas 17 and 26), both have
closed forms for i ≥ n + 2, with η₀ = η₁ = e·mnε and η₂ = f·mε:

    signal = ε·(f/32 + e·n/16i)                                                    (third step, early steps)
    offset = ε·(N₊ − N₋)/2m − Σ_t η_t (δ_t/B) Σ_r h_r² 1(ν_r > 0)                  (start, drift)

N₊ and N₋ count active neurons of either sign, and δ_t is W's Table 1: by how much next tokens 0 outnumber next tokens 1
in the batch. Their standard deviations are ε/√(8m) and e·nε/(4√B).

At the first link, whose token is always 0, T is about ±e·nε/4(n + 1) before the third step and its drift √2 times as
wide. Where it passes 1 the hinge bends, one of the two answers gets no gradient in the third step, and is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import torch
from jaxtyping import Float, Int8
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from parityscope.core.ties import predicts_plus
from parityscope.papers.w.cot_block import CotBlock, hinge_gradient, right_way
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences, draw_secret
from parityscope.records import Numbers


class ThreeSteps(BaseModel):
    """Sizes and rates of Theorem 3's training; the defaults work at n = 20, k = 4.

    Before the third step |T| is about (early rate)·ε/4 at the first link and must stay below 1, where the hinge bends;
    scores on the secret are about m·((early rate)·ε)²/128. So early steps are small, ε is large and the block wide.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(20, ge=2)
    k: int = Field(4, ge=1)
    d: int = Field(2048, ge=2, description="embedding dimension")
    m: int = Field(512, ge=1, description="half the number of neurons")
    epsilon: float = Field(5.0, gt=0, description="size of the start weights")
    batch: int = Field(16384, ge=1, description="fresh sequences per step")
    early_rate: float = Field(0.5, gt=0, description="η₀ = η₁ in units of m·n·ε")
    last_rate: float = Field(5.0, gt=0, description="η₂ in units of m·ε")
    held_out: int = Field(10_000, ge=1)
    seed: int = Field(0, ge=0)

    @property
    def rates(self) -> tuple[float, float, float]:
        """Return η₀, η₁, η₂."""
        early = self.early_rate * self.m * self.n * self.epsilon
        return early, early, self.last_rate * self.m * self.epsilon


@dataclass(frozen=True)
class ThreeStepsRun:
    """What three steps gave: the block before the first step and after each, and how the last one does.

    >>> run = take_three_steps(ThreeSteps(n=6, k=2, d=32, m=4, batch=64, held_out=8))
    >>> len(run.blocks), bool(run.blocks[1].A.any()), bool(run.blocks[2].A.any())  # A moves second
    (4, False, True)
    """

    config: ThreeSteps
    task: ParitySequences
    blocks: Sequence[CotBlock]
    token_accuracy: float
    sequence_accuracy: float
    secret_attention: Tensor  # (held-out, links)
    margin: float  # smallest output in the right direction
    largest_output_in_training: float  # above 1 the hinge would not be linear

    @property
    def perfect(self) -> bool:
        """Whether every token of every held-out sequence is right."""
        return self.token_accuracy == 1.0


def take_three_steps(config: ThreeSteps) -> ThreeStepsRun:
    """Train by three SGD steps on the hinge loss (W, Appendix B.1.1) and measure on held-out sequences."""
    task = ParitySequences(config.n, draw_secret(config.n, config.k, config.seed))
    held_out = HeldOut(config.n, config.held_out, config.seed)
    generator = seeded_generator(config.seed, "start")
    sizes = (config.n, config.k, config.d, config.m, config.epsilon)
    block = CotBlock.at_start(*sizes, generator, torch.float32)
    blocks, largest = [_copy(block)], 0.0
    for step, rate in enumerate(config.rates):
        bits = _batch_of_step(config, held_out, step)
        largest = max(largest, hinge_gradient(block, task, bits))
        with torch.no_grad():
            for parameter in (block.A, block.W):
                assert parameter.grad is not None
                parameter.sub_(parameter.grad, alpha=rate)
        blocks.append(_copy(block))
    right, whole, attention, margin = examine(block, task, held_out.bits)
    return ThreeStepsRun(config, task, blocks, right, whole, attention, margin, largest)


def _batch_of_step(config: ThreeSteps, held_out: HeldOut, step: int) -> Int8[Tensor, "batch n"]:
    """Return the fresh inputs of one step; the same again each time it is asked.

    >>> config = ThreeSteps(n=6, k=2, batch=5, held_out=8)
    >>> held_out = HeldOut(config.n, config.held_out, config.seed)
    >>> batches = [_batch_of_step(config, held_out, step) for step in (0, 0, 1)]
    >>> torch.equal(batches[0], batches[1]), torch.equal(batches[0], batches[2])
    (True, False)
    """
    return held_out.draw(config.batch, seeded_generator(config.seed, "data", step))


def examine(block: CotBlock, task: ParitySequences, bits: Tensor) -> tuple[float, float, Tensor, float]:
    """Return token and sequence accuracy, attention on the secret (batch, links) and the smallest right-way output."""
    outputs, attention = right_way(block, task, bits)
    right = predicts_plus(outputs)  # an output of 0 says nothing and counts as wrong
    return (float(right.double().mean()), float(right.all(1).double().mean()), attention, float(outputs.min()))


def _copy(block: CotBlock) -> CotBlock:
    return CotBlock(block.n, block.embeddings, block.A.detach().clone(), block.W.detach().clone(), block.h)


class Answers(NamedTuple):
    """Parts of T after three steps at one-hot attention, over ε, by link and the token there."""

    signal: Float[Tensor, "links 2"]
    offset: Float[Tensor, "links 2"]
    start: Float[Tensor, "links 2"]  # the offset before the first step
    drift: Float[Tensor, "links 2"]  # what the batches' imbalance added to it, by the closed form


class WeakestAnswer(Numbers):
    """Where the signal exceeds the offset by least, over ε; the first link is apart, its token is always 0."""

    link: int  # from 1
    token: int
    signal: float
    offset: float
    start: float
    drift: float

    @property
    def right(self) -> bool:
        """Whether both answers there are right."""
        return abs(self.offset) < self.signal


class Expected(NamedTuple):
    """Closed forms over ε while no neuron switches: answers after the first link, and T at the first before step three.

    >>> expected = expected_answers(ThreeSteps())
    >>> round(expected.signal, 3), round(expected.spread, 3)
    (0.185, 0.025)
    """

    signal: float  # at the second link
    spread: float  # standard deviation of the offset there
    first: float  # |T| at the first link before the third step
    first_spread: float  # standard deviation of the offset there

    def chance_of_a_bend(self, epsilon: float) -> float:
        """Return how likely |T| passes 1 at the first link before the third step: the hinge bends, answers are lost."""
        return 2 * NormalDist().cdf((self.first - 1 / epsilon) / self.first_spread)


def expected_answers(config: ThreeSteps) -> Expected:
    """Return signals and spreads of offsets."""
    signal = config.last_rate / 32 + config.early_rate * config.n / (16 * (config.n + 2))
    first = config.early_rate * config.n / (4 * (config.n + 1))
    start = 1 / math.sqrt(8 * config.m)
    drift = config.early_rate * config.n / (4 * math.sqrt(config.batch))
    # The first token is always 0, so that its δ has twice the variance.
    return Expected(signal, math.hypot(start, drift), first, math.hypot(start, math.sqrt(2) * drift))


@torch.no_grad()
def answers_of(run: ThreeStepsRun) -> Answers:
    """Return the parts of every answer of a finished training."""
    config, block = run.config, run.blocks[-1]
    own = block.start_signs().double() / config.epsilon  # (neurons, links, 2)
    keys = block.embeddings[list(run.task.secret)]
    seen = torch.einsum("rd,ibd->rib", block.W[:, block.d :], keys).double() / config.epsilon
    h = block.h.double()
    outputs = torch.einsum("r,riab->iab", h, (own[..., None] + seen[:, :, None]).relu())  # (links, token, secret bit)
    started = run.blocks[0].start_signs().double() / config.epsilon
    direction = torch.tensor([-1.0, 1.0]).double()  # a 0 at the link hands the secret bit on, a 1 turns it round
    return Answers(
        signal=direction * (outputs[..., 0] - outputs[..., 1]) / 2,
        offset=outputs.mean(-1),
        start=torch.einsum("r,rib->ib", h, started.relu()),
        drift=_drift(run, (started > 0).double()),
    )


def _drift(run: ThreeStepsRun, active: Float[Tensor, "neurons links 2"]) -> Float[Tensor, "links 2"]:
    config = run.config
    held_out = HeldOut(config.n, config.held_out, config.seed)
    pull = torch.einsum("r,rib->ib", run.blocks[0].h.double().square(), active)
    total = torch.zeros_like(pull)
    for step, rate in enumerate(config.rates):
        delta = imbalance(run, _batch_of_step(config, held_out, step))
        total -= rate / config.epsilon * delta / config.batch * pull
    return total


def imbalance(run: ThreeStepsRun, bits: Tensor) -> Float[Tensor, "links 2"]:
    """Return W's δ of a batch: for each token at a link, next tokens 0 minus next tokens 1."""
    tokens = run.task.tokens(bits)
    signs = (1 - 2 * run.task.targets(tokens)).double()
    own = tokens[:, run.task.n : run.task.n + run.task.k].double()
    return torch.stack(((signs * (1 - own)).sum(0), (signs * own).sum(0)), 1)


def weakest_answer(run: ThreeStepsRun) -> WeakestAnswer | None:
    """Return the link after the first, and the token there, where the signal exceeds the offset by least."""
    if run.task.k < 2:
        return None
    answers = answers_of(run)
    place = int((answers.signal - answers.offset.abs())[1:].argmin())
    link, token = 1 + place // 2, place % 2
    parts = {name: float(values[link, token]) for name, values in answers._asdict().items()}
    return WeakestAnswer(link=link + 1, token=token, **parts)
