"""Theorem 3's training: three steps of mini-batch SGD, each with its own rate, on the simplified block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from parityscope.core.ties import predicts_plus
from parityscope.models.cot_block import CotBlock
from parityscope.problems import seeded_generator
from parityscope.problems.sequences import HeldOut, ParitySequences, draw_secret

_CHUNK = 4096


class ThreeSteps(BaseModel):
    """Sizes and rates of Theorem 3's training; the defaults work at n = 20, k = 4.

    >>> ThreeSteps(n=10, m=2, epsilon=0.5, early_rate=4.0, last_rate=6.0).rates  # η₀ = η₁ = 4·mnε and η₂ = 6·mε
    (40.0, 40.0, 6.0)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(20, ge=2)
    k: int = Field(4, ge=1)
    d: int = Field(2048, ge=2, description="embedding dimension")
    m: int = Field(192, ge=1, description="half the number of neurons")
    epsilon: float = Field(1.2, gt=0, description="size of the start weights")
    batch: int = Field(32768, ge=1, description="fresh sequences per step")
    early_rate: float = Field(4.0, gt=0, description="η₀ = η₁ in units of m·n·ε")
    last_rate: float = Field(6.0, gt=0, description="η₂ in units of m·ε")
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

    >>> take_three_steps(ThreeSteps(n=6, k=1, d=128, m=16, epsilon=1.0, batch=512, held_out=16)).perfect
    True
    """
    task = ParitySequences(config.n, draw_secret(config.n, config.k, config.seed))
    held_out = HeldOut(config.n, config.held_out, config.seed)
    generator = seeded_generator(config.seed, "start")
    sizes = (config.n, config.k, config.d, config.m, config.epsilon)
    block = CotBlock.at_start(*sizes, generator, torch.float32)
    blocks, largest = [_copy(block)], 0.0
    for step, rate in enumerate(config.rates):
        bits = held_out.draw(config.batch, seeded_generator(config.seed, "data", step))
        largest = max(largest, hinge_gradient(block, task, bits))
        with torch.no_grad():
            for parameter in (block.A, block.W):
                assert parameter.grad is not None
                parameter.sub_(parameter.grad, alpha=rate)
        blocks.append(_copy(block))
    right, whole, attention, margin = examine(block, task, held_out.bits)
    return ThreeStepsRun(config, task, blocks, right, whole, attention, margin, largest)


def hinge_gradient(block: CotBlock, task: ParitySequences, bits: Tensor) -> float:
    """Leave the gradient of the batch's mean loss Σ_i max(0, (−1)^{b[i+1]} T[i] + 1) in the block; return max |T|.

    Attention's half of W starts at zero, so the first gradient leaves A alone (W, Lemma 8).

    >>> task = ParitySequences(4, (0, 2))
    >>> block = CotBlock.at_start(4, 2, d=16, m=4, epsilon=0.5, generator=torch.Generator().manual_seed(0))
    >>> largest = hinge_gradient(block, task, torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]]))
    >>> bool(block.A.grad.any()), bool(block.W.grad.any())
    (False, True)
    """
    block.zero_grad()
    largest = 0.0
    for part in bits.split(_CHUNK):
        tokens = task.tokens(part)
        output = block(tokens)
        largest = max(largest, float(output.detach().abs().max()))
        signs = 1 - 2 * task.targets(tokens)
        (torch.relu(signs * output + 1).sum() / len(bits)).backward()
    return largest


@torch.no_grad()
def examine(block: CotBlock, task: ParitySequences, bits: Tensor) -> tuple[float, float, Tensor, float]:
    """Return token and sequence accuracy, attention on the secret (batch, links) and the smallest right-way output.

    >>> block = CotBlock.at_start(4, 2, d=16, m=4, epsilon=0.5, generator=torch.Generator().manual_seed(0))
    >>> *_, attention, _ = examine(block, ParitySequences(4, (0, 2)), torch.tensor([[0, 1, 1, 0]]))
    >>> [round(share, 4) for share in attention[0].tolist()]  # uniform over 5 tokens, then over 6
    [0.2, 0.1667]
    """
    outputs, attentions = [], []
    for part in bits.split(_CHUNK):
        tokens = task.tokens(part)
        outputs.append(block(tokens) * (2 * task.targets(tokens) - 1))
        attentions.append(block.attention(tokens)[:, torch.arange(task.k), list(task.secret)])
    right_way = torch.cat(outputs)
    right = predicts_plus(right_way)  # an output of 0 says nothing and counts as wrong
    return (
        float(right.double().mean()),
        float(right.all(1).double().mean()),
        torch.cat(attentions),
        float(right_way.min()),
    )


def _copy(block: CotBlock) -> CotBlock:
    return CotBlock(block.n, block.embeddings, block.A.detach().clone(), block.W.detach().clone(), block.h)
