"""Theorem 3's training: three steps of mini-batch SGD, each with its own rate, on the simplified block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int8
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from parityscope.core.ties import predicts_plus
from parityscope.papers.w.block_gradient import hinge_gradient, right_way
from parityscope.papers.w.cot_block import CotBlock
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences, draw_secret


class ThreeSteps(BaseModel):
    """Sizes and rates of Theorem 3's training; the defaults work at n = 20, k = 4.

    Before the third step |T| is about (early rate)·ε/4 at the first link and must stay below 1, where the hinge bends;
    scores on the secret are about m·((early rate)·ε)²/128. So early steps are small, ε is large and the block wide.

    >>> ThreeSteps(n=10, m=2, epsilon=0.5, early_rate=4.0, last_rate=6.0).rates  # η₀ = η₁ = 4·mnε and η₂ = 6·mε
    (40.0, 40.0, 6.0)
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
    """Train by three SGD steps on the hinge loss (W, Appendix B.1.1) and measure on held-out sequences.

    >>> small = ThreeSteps(n=6, k=1, d=128, m=16, epsilon=1.0, early_rate=4.0, batch=512, held_out=16)
    >>> take_three_steps(small).perfect
    True
    """
    task = ParitySequences(config.n, draw_secret(config.n, config.k, config.seed))
    held_out = HeldOut(config.n, config.held_out, config.seed)
    generator = seeded_generator(config.seed, "start")
    sizes = (config.n, config.k, config.d, config.m, config.epsilon)
    block = CotBlock.at_start(*sizes, generator, torch.float32)
    blocks, largest = [_copy(block)], 0.0
    for step, rate in enumerate(config.rates):
        bits = batch_of_step(config, held_out, step)
        largest = max(largest, hinge_gradient(block, task, bits))
        with torch.no_grad():
            for parameter in (block.A, block.W):
                assert parameter.grad is not None
                parameter.sub_(parameter.grad, alpha=rate)
        blocks.append(_copy(block))
    right, whole, attention, margin = examine(block, task, held_out.bits)
    return ThreeStepsRun(config, task, blocks, right, whole, attention, margin, largest)


def batch_of_step(config: ThreeSteps, held_out: HeldOut, step: int) -> Int8[Tensor, "batch n"]:
    """Return the fresh inputs of one step; the same again each time it is asked.

    >>> config = ThreeSteps(n=6, k=2, batch=5, held_out=8)
    >>> held_out = HeldOut(config.n, config.held_out, config.seed)
    >>> batches = [batch_of_step(config, held_out, step) for step in (0, 0, 1)]
    >>> torch.equal(batches[0], batches[1]), torch.equal(batches[0], batches[2])
    (True, False)
    """
    return held_out.draw(config.batch, seeded_generator(config.seed, "data", step))


def examine(block: CotBlock, task: ParitySequences, bits: Tensor) -> tuple[float, float, Tensor, float]:
    """Return token and sequence accuracy, attention on the secret (batch, links) and the smallest right-way output.

    >>> block = CotBlock.at_start(4, 2, d=16, m=4, epsilon=0.5, generator=torch.Generator().manual_seed(0))
    >>> *_, attention, _ = examine(block, ParitySequences(4, (0, 2)), torch.tensor([[0, 1, 1, 0]]))
    >>> [round(share, 4) for share in attention[0].tolist()]  # uniform over 5 tokens, then over 6
    [0.2, 0.1667]
    """
    outputs, attention = right_way(block, task, bits)
    right = predicts_plus(outputs)  # an output of 0 says nothing and counts as wrong
    return (
        float(right.double().mean()),
        float(right.all(1).double().mean()),
        attention,
        float(outputs.min()),
    )


def _copy(block: CotBlock) -> CotBlock:
    return CotBlock(block.n, block.embeddings, block.A.detach().clone(), block.W.detach().clone(), block.h)
