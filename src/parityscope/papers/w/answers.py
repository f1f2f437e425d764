"""Why a trained block of Theorem 3 answers right: at each link a signal against an offset that the secret bit ignores.

Where attention is one-hot, T[i] is a function of two bits, the token at i and the secret bit, so that for each token
T = offset ± signal, and every answer is right if and only if |offset| < signal. While each neuron that started active
stays so (W, Lemmas 17 and 26), both have closed forms for i ≥ n + 2, with η₀ = η₁ = e·mnε and η₂ = f·mε:

    signal = ε·(f/32 + e·n/16i)                                                    (third step, early steps)
    offset = ε·(N₊ − N₋)/2m − Σ_t η_t (δ_t/B) Σ_r h_r² 1(ν_r > 0)                  (start, drift)

N₊ and N₋ count active neurons of either sign, and δ_t is W's Table 1: by how much next tokens 0 outnumber next tokens 1
in the batch. Their standard deviations are ε/√(8m) and e·nε/(4√B).

At the first link, whose token is always 0, T is about ±e·nε/4(n + 1) before the third step and its drift √2 times as
wide. Where it passes 1 the hinge bends, one of the two answers gets no gradient in the third step, and is lost.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.w.block_steps import ThreeSteps, ThreeStepsRun, batch_of_step
from parityscope.problems.sequences import HeldOut
from parityscope.records import Numbers


class Answers(NamedTuple):
    """Parts of T after three steps at one-hot attention, over ε, by link and the token there.

    >>> from parityscope.papers.w.block_steps import take_three_steps
    >>> config = ThreeSteps(n=8, k=2, d=512, m=64, epsilon=1.0, early_rate=2.0, batch=2048, held_out=16)
    >>> answers = answers_of(take_three_steps(config))
    >>> tuple(answers.signal.shape), bool((answers.offset.abs() < answers.signal)[1].all())  # both tokens at link 2
    ((2, 2), True)
    """

    signal: Float[Tensor, "links 2"]
    offset: Float[Tensor, "links 2"]
    start: Float[Tensor, "links 2"]  # the offset before the first step
    drift: Float[Tensor, "links 2"]  # what the batches' imbalance added to it, by the closed form


class WeakestAnswer(Numbers):
    """The place where the signal exceeds the offset by least, over ε; the first link is apart, its token is always 0.

    >>> WeakestAnswer(link=2, token=0, signal=0.175, offset=-0.176, start=-0.044, drift=-0.138).right
    False
    """

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
        """Return how likely |T| passes 1 at the first link before the third step: the hinge bends, answers are lost.

        >>> default, wide = ThreeSteps(), ThreeSteps(m=768, early_rate=0.4)  # scores are the same
        >>> [f"{expected_answers(one).chance_of_a_bend(one.epsilon):.0e}" for one in (default, wide)]
        ['1e-02', '4e-05']
        """
        return 2 * NormalDist().cdf((self.first - 1 / epsilon) / self.first_spread)


def expected_answers(config: ThreeSteps) -> Expected:
    """Return signals and spreads of offsets.

    >>> early, late = (expected_answers(ThreeSteps(early_rate=rate, epsilon=2.5 / rate)) for rate in (4.0, 0.5))
    >>> early.signal / early.spread < 3 < 7 < late.signal / late.spread  # the same scores, another ε
    True
    """
    signal = config.last_rate / 32 + config.early_rate * config.n / (16 * (config.n + 2))
    first = config.early_rate * config.n / (4 * (config.n + 1))
    start = 1 / math.sqrt(8 * config.m)
    drift = config.early_rate * config.n / (4 * math.sqrt(config.batch))
    # The first token is always 0, so that its δ has twice the variance.
    return Expected(signal, math.hypot(start, drift), first, math.hypot(start, math.sqrt(2) * drift))


@torch.no_grad()
def answers_of(run: ThreeStepsRun) -> Answers:
    """Return the parts of every answer of a finished training.

    >>> from parityscope.papers.w.block_steps import take_three_steps
    >>> answers = answers_of(take_three_steps(ThreeSteps(n=6, k=2, d=64, m=8, batch=256, held_out=8)))
    >>> tuple(answers.drift.shape)
    (2, 2)
    """
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
        delta = imbalance(run, batch_of_step(config, held_out, step))
        total -= rate / config.epsilon * delta / config.batch * pull
    return total


def imbalance(run: ThreeStepsRun, bits: Tensor) -> Float[Tensor, "links 2"]:
    """Return W's δ of a batch: for each token at a link, next tokens 0 minus next tokens 1.

    >>> from parityscope.papers.w.block_steps import take_three_steps
    >>> run = take_three_steps(ThreeSteps(n=4, k=1, d=16, m=2, batch=8, held_out=4))
    >>> bits = torch.zeros(3, 4, dtype=torch.int64)
    >>> imbalance(run, bits).tolist()  # three sequences of zeros: 0 follows on 0
    [[3.0, 0.0]]
    """
    tokens = run.task.tokens(bits)
    signs = (1 - 2 * run.task.targets(tokens)).double()
    own = tokens[:, run.task.n : run.task.n + run.task.k].double()
    return torch.stack(((signs * (1 - own)).sum(0), (signs * own).sum(0)), 1)


def weakest_answer(run: ThreeStepsRun) -> WeakestAnswer | None:
    """Return the link after the first, and the token there, where the signal exceeds the offset by least.

    >>> from parityscope.papers.w.block_steps import take_three_steps
    >>> weakest_answer(take_three_steps(ThreeSteps(n=4, k=1, d=16, m=2, batch=8, held_out=4))) is None
    True
    """
    if run.task.k < 2:
        return None
    answers = answers_of(run)
    place = int((answers.signal - answers.offset.abs())[1:].argmin())
    link, token = 1 + place // 2, place % 2
    parts = {name: float(values[link, token]) for name, values in answers._asdict().items()}
    return WeakestAnswer(link=link + 1, token=token, **parts)
