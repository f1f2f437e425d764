"""W's three steps where nothing is left to chance: the limit that Lemmas 17 to 27 approach.

Embeddings are rows of a Hadamard matrix and so exactly orthogonal, every pattern of signs ν occurs equally often, and
each batch holds every input once. Definition 3, Assumption 1 and the data can draw exactly this (Assumption 2's d < n
cannot), and every error term of the proof (overlaps, α − ᾱ, ψ, γ, ζ) is 0 there. What is false here by an amount that
does not shrink with n stays false when those terms merely vanish.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.w.cot_block import CotBlock, hinge_gradient
from parityscope.papers.w.instance import Instance, drawn_bits, measured
from parityscope.problems import bits_of, seeded_generator
from parityscope.problems.sequences import ParitySequences, draw_secret

_EPSILON = 1.0
_BELOW_LEMMA_5 = 10  # how far the early rate stays below Lemma 5.4's limit, which must have room


class Rates(NamedTuple):
    """Half the number of neurons, η₀ = η₁ and η₂."""

    m: float
    early: float
    last: float


def rates_of_lemma_5(n: int) -> Rates:
    """Return rates inside Lemma 5.4 and at the edge of 5.6, and the m that both together need; η₂ is Assumption 2's."""
    per_neuron = n * _EPSILON / (120 * _BELOW_LEMMA_5)  # η₀/m
    m = 256 * n**2 * 40 * math.log(n) / per_neuron**2  # η₀η₁/256mn² = 40 log n
    return Rates(m, per_neuron * m, 2 * m * _EPSILON / 3)


def noise_free_instance(n: int, k: int) -> Instance:
    """Return the start, the batch of all inputs and the first gradients, with every sign pattern once: m = 4^k."""
    task = ParitySequences(n, tuple(range(1, 2 * k, 2)) if 2 * k <= n else tuple(range(k)))
    patterns = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=2 * k)), dtype=torch.float64)
    return _started(task, torch.cat((patterns, patterns)), bits_of(torch.arange(2**n), n))


def orthogonal_instance(n: int, k: int, m: int, batch: int, seed: int) -> Instance:
    """Return a start whose embeddings are orthogonal, its signs and batch drawn: Lemma 11's E₁ holds exactly.

    >>> made = orthogonal_instance(n=4, k=2, m=2, batch=5, seed=0)
    >>> torch.equal(made.block.start_signs() > 0, made.active > 0)
    True
    """
    signs = torch.randint(2, (2 * m, 2 * k), generator=seeded_generator(seed, "start")).double() * 2 - 1
    return _started(ParitySequences(n, draw_secret(n, k, seed)), signs, drawn_bits(n, batch, seed))


def _started(task: ParitySequences, signs: Float[Tensor, "neurons places"], bits: Tensor) -> Instance:
    """Return the start of orthogonal embeddings and these signs of ν, with a batch."""
    n, k, m = task.n, task.k, len(signs) // 2
    rows = _hadamard(2 * (n + k))
    embeddings, d = (rows[: 2 * (n + k)] / math.sqrt(len(rows))).unflatten(0, (n + k, 2)), len(rows)
    W = torch.zeros(2 * m, 2 * d, dtype=torch.float64)
    W[:, :d] = _EPSILON * signs @ embeddings[n:].flatten(0, 1)
    h = torch.full((2 * m,), 1 / (2 * m), dtype=torch.float64)
    h[m:] *= -1
    block = CotBlock(n, embeddings, torch.zeros(d, d, dtype=torch.float64), W, h)
    return measured(block, task, bits, _EPSILON, (signs > 0).double().unflatten(1, (k, 2)))


def _hadamard(least: int) -> Float[Tensor, "size size"]:
    """Return Sylvester's matrix of the first power of two that is not below `least`."""
    found = torch.ones(1, 1, dtype=torch.float64)
    while len(found) < least:
        found = torch.cat((torch.cat((found, found), 1), torch.cat((found, -found), 1)))
    return found


@dataclass(frozen=True)
class NoiseFreeRun:
    """Three noise-free steps: the block before the first and after each, and what was seen on the way.

    >>> run = noise_free_run(6, 2)
    >>> len(run.blocks), len(run.largest_outputs)
    (4, 3)
    """

    start: Instance
    rates: Rates
    blocks: list[CotBlock]
    largest_outputs: list[float]  # |T| over ε, on each batch before its step
    third_gradient: Float[Tensor, "neurons twice_d"]

    def off_one_hot(self, steps: int) -> float:
        """Return how far the attention output is from the secret's embedding after so many steps, at most."""
        task = self.start.task
        attention = self.blocks[steps].attention(self.start.tokens).detach()
        others = attention.clone()
        others[:, torch.arange(task.k), list(task.secret)] = 0
        # The embeddings are orthogonal, and what the others have is what the secret bit lacks.
        return float((others.square().sum(-1) + others.sum(-1).square()).sqrt().max())

    def outputs(self) -> Float[Tensor, "batch links"]:
        """Return T over ε in the right direction after three steps."""
        task, tokens = self.start.task, self.start.tokens
        return self.blocks[3](tokens).detach() * (2 * task.targets(tokens) - 1) / self.start.epsilon


def noise_free_run(n: int = 10, k: int = 2, last_rate: float = 1.0) -> NoiseFreeRun:
    """Take three steps on the hinge loss at `rates_of_lemma_5`, the last multiplied by `last_rate`.

    Copies of a neuron stay equal, so one stands for m/4^k of them: its own weights get that share of the rate.
    """
    start, rates = noise_free_instance(n, k), rates_of_lemma_5(n)
    block, bits = _copy(start.block), start.tokens[:, :n]
    blocks, outputs, gradient = [_copy(block)], [], torch.zeros(0)
    for rate in (rates.early, rates.early, rates.last * last_rate):
        outputs.append(hinge_gradient(block, start.task, bits) / start.epsilon)
        assert block.A.grad is not None
        assert block.W.grad is not None
        gradient = block.W.grad.clone()
        with torch.no_grad():
            block.A.sub_(block.A.grad, alpha=rate)
            block.W.sub_(gradient, alpha=rate * start.m / rates.m)
        blocks.append(_copy(block))
    return NoiseFreeRun(start, rates, blocks, outputs, gradient)


def _copy(block: CotBlock) -> CotBlock:
    return CotBlock(block.n, block.embeddings, block.A.detach().clone(), block.W.detach().clone(), block.h)


class Scores(NamedTuple):
    """Scores after two steps in units of η₀η₁/mn²: the smallest on the secret, the largest size elsewhere."""

    secret: Fraction
    elsewhere: Fraction


def noise_free_scores(n: int, k: int, first_tokens: tuple[int, ...] = (0,)) -> Scores:
    """Return Lemma 21's scores for any n, exactly: means over the secret bits, since other bits only halve them.

    The token at n + 1 is always 0; were others asked for there, their scores would still be 0.

    >>> float(noise_free_scores(10, 2, (0, 1)).secret)
    0.0
    """
    # Keys: the secret bits, the tokens of the chain so far (the first is always 0), and any other bit.
    secret: list[Fraction] = []
    elsewhere: list[Fraction] = []
    for link in range(k):
        for key in [*range(k), *(f"chain {place}" for place in range(link + 1)), "other"]:
            for at_key, here in itertools.product((0, 1), (0, 1) if link else first_tokens):
                found = _score(n, k, link, key, at_key, here)
                (secret if key == link else elsewhere).append(found)
    return Scores(min(secret), max(map(abs, elsewhere)))


def _score(n: int, k: int, link: int, key: int | str, at_key: int, here: int) -> Fraction:
    place, total = n + 1 + link, Fraction(0)
    for bits in itertools.product((0, 1), repeat=k):
        chain = [sum(bits[:done]) % 2 for done in range(k + 1)]
        if chain[link] != here:
            continue
        seen = bits[key] if isinstance(key, int) else chain[int(key[6:])] if key != "other" else at_key
        if seen != at_key:
            continue
        # ⟨κ, e_{j,b}⟩ is not 0 only at the secret bit of this link and at that of the first.
        pull = [Fraction(0)] * k
        pull[0] += Fraction((-1) ** bits[0], 16 * (n + 1))
        pull[link] += Fraction((-1) ** (bits[link] + here), 8 * place * (4 if link else 2))
        own = pull[key] if isinstance(key, int) else Fraction(0)
        total += (-1) ** chain[link + 1] * (own - sum(pull) / place)
    return total * n**2 / place / 2**k / (2 if key == "other" else 1)
