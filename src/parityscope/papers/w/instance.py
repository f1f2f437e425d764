"""A small instance of W's appendix in double precision: batch statistics, gradients, and the block word by word."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.w.cot_block import CotBlock, hinge_gradient
from parityscope.problems import bits_of, seeded_generator
from parityscope.problems.sequences import ParitySequences, draw_secret

DELTA = 0.1  # the δ of every probability checked
_EPSILON = 0.5


@dataclass(frozen=True)
class Statistics:
    """Table 1 of W for one batch; i runs over predicting positions, j over all tokens, b over bits.

    >>> counted = instance(n=4, k=2, d=32, m=2).statistics  # every input once
    >>> counted.count, counted.delta.tolist()
    (16, [[0.0, 0.0], [0.0, 0.0]])
    """

    delta: Float[Tensor, "links 2"]
    alpha: Float[Tensor, "links T 2 2"]  # b1 of token j, then b2 of token i; zero for j > i
    count: int


@dataclass(frozen=True)
class Instance:
    """The block at its start, a batch, and the gradients of both halves of W.

    >>> made = instance(n=4, k=2, d=32, m=2)
    >>> made.m, made.place.tolist(), tuple(made.gradient_own.shape)
    (2, [5.0, 6.0], (4, 32))
    """

    block: CotBlock
    task: ParitySequences
    tokens: Tensor
    epsilon: float
    statistics: Statistics
    gradient_own: Float[Tensor, "neurons d"]  # of W_{r,1:d}
    gradient_attended: Float[Tensor, "neurons d"]  # of W_{r,d+1:2d}
    active: Float[Tensor, "neurons links 2"]  # 1(ν_{r,i,b} > 0)

    @property
    def m(self) -> int:
        """Half the number of neurons."""
        return len(self.block.h) // 2

    @property
    def place(self) -> Float[Tensor, " links"]:
        """The paper's i of each predicting position: n + 1, …, n + k."""
        return places(self.task)


def places(task: ParitySequences) -> Float[Tensor, " links"]:
    """Return the paper's i of each predicting position."""
    return torch.arange(task.n + 1, task.n + task.k + 1, dtype=torch.float64)


def drawn_bits(n: int, count: int, seed: int, step: int = 0) -> Tensor:
    """Return the inputs of one batch, drawn uniformly.

    >>> drawn_bits(4, 3, seed=0).shape, bool((drawn_bits(4, 3, 0) == drawn_bits(4, 3, 0, step=1)).all())
    (torch.Size([3, 4]), False)
    """
    return torch.randint(2, (count, n), generator=seeded_generator(seed, "data", step))


def instance(n: int = 10, k: int = 3, d: int = 512, m: int = 32, batch: int | None = None, seed: int = 0) -> Instance:
    """Return an instance whose batch is drawn, or holds every input once when `batch` is None."""
    task = ParitySequences(n, draw_secret(n, k, seed))
    block = CotBlock.at_start(n, k, d, m, _EPSILON, seeded_generator(seed, "start"))
    bits = bits_of(torch.arange(2**n), n) if batch is None else drawn_bits(n, batch, seed)
    return measured(block, task, bits, _EPSILON, (block.start_signs().detach() > 0).double())


def second_instance(first: Instance, rate: float, seed: int = 0) -> Instance:
    """Return the instance after a first step at this rate, with a second batch as large as the first.

    >>> made = instance(n=4, k=2, d=32, m=2, batch=5)
    >>> bool(second_instance(made, rate=1.0).block.W[:, 32:].any())  # what is attended to counts now
    True
    """
    step = rate * torch.cat((first.gradient_own, first.gradient_attended), 1)
    block = CotBlock(
        first.task.n,
        first.block.embeddings,
        first.block.A.detach().clone(),
        first.block.W.detach() - step,
        first.block.h,
    )
    bits = drawn_bits(first.task.n, first.statistics.count, seed, step=1)
    return measured(block, first.task, bits, first.epsilon, first.active)


def measured(block: CotBlock, task: ParitySequences, bits: Tensor, epsilon: float, active: Tensor) -> Instance:
    """Return the instance of a block and a batch: its statistics and gradients."""
    hinge_gradient(block, task, bits)
    assert block.W.grad is not None
    tokens = task.tokens(bits)
    own, attended = (half.clone() for half in block.W.grad.split(block.d, 1))
    return Instance(block, task, tokens, epsilon, statistics(task, tokens), own, attended, active)


def statistics(task: ParitySequences, tokens: Tensor) -> Statistics:
    """Return δ and α of Table 1 by counting.

    A chain of one bit repeats the secret one: α is +1 for every 0 there and −1 for every 1.
    """
    T = task.n + task.k
    signs = (1 - 2 * task.targets(tokens)).double()  # (batch, links)
    one_hot = torch.nn.functional.one_hot(tokens[:, :T], 2).double()  # (batch, T, 2)
    own = one_hot[:, task.n :]
    delta = torch.einsum("si,sib->ib", signs, own)
    alpha = torch.einsum("si,sja,sib->ijab", signs, one_hot, own)
    later = torch.arange(T) > torch.arange(task.n, T)[:, None]
    return Statistics(delta, alpha.masked_fill(later[:, :, None, None], 0.0), len(tokens))


def expected_alpha(task: ParitySequences) -> Float[Tensor, "links 2 2"]:
    """Return ᾱ_{i,S[i],b1,b2} / B of Table 1: ±¼, and ±½ at the first link, whose token is always 0."""
    sign = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    mean = sign.expand(task.k, 2, 2).clone() / 4
    mean[0] = torch.tensor([[0.5, 0.0], [-0.5, 0.0]])  # at i = n + 1 the token is always 0
    return mean


def dual_embeddings(block: CotBlock) -> Float[Tensor, "T 2 d"]:
    """Return vectors with ⟨dual_{i,b}, e_{i',b'}⟩ = 1((i, b) = (i', b')): Lemma 2 for all tokens."""
    flat = block.embeddings.flatten(0, 1)
    return torch.linalg.solve(flat @ flat.T, flat).unflatten(0, block.embeddings.shape[:2])


def with_one_hot_attention(of: Instance) -> CotBlock:
    """Return the block at its start with attention hand-set on the secret: scores 40 log n there and 0 elsewhere."""
    dual, n = dual_embeddings(of.block), of.task.n
    query = dual[n:].sum(1)  # (links, d), for both bits
    key = dual[list(of.task.secret)].sum(1)
    A = 40 * math.log(n) * torch.einsum("id,ie->de", key, query)
    return CotBlock(n, of.block.embeddings, A, of.block.W.detach().clone(), of.block.h)


def output(W: Tensor, of: Instance, tokens: list[int], i: int, A: Tensor | None = None) -> Tensor:
    """Return T(b)[i] at the 0-based position i: hᵀ ReLU(W [e_i; X softmax(Xᵀ A e_i)])."""
    X = torch.stack([of.block.embeddings[j, tokens[j]] for j in range(i + 1)], dim=1)
    A = of.block.A if A is None else A
    seen = X @ torch.softmax(X.T @ A @ X[:, i], dim=0)
    return of.block.h @ torch.relu(W @ torch.cat((X[:, i], seen)))


def attention_output(of: Instance, tokens: list[int], i: int) -> Float[Tensor, " d"]:
    """Return A(E(b))[i] where A is 0: the plain mean of the embeddings up to i.

    >>> made = instance(n=4, k=2, d=32, m=2)
    >>> torch.equal(attention_output(made, made.tokens[5].tolist(), 0), made.block.embeddings[0, made.tokens[5, 0]])
    True
    """
    total = torch.zeros(of.block.d, dtype=torch.float64)
    for j in range(i + 1):
        total = total + of.block.embeddings[j, tokens[j]]
    return total / (i + 1)


@torch.no_grad()
def slope_of_loss(of: Instance, r: int, direction: Float[Tensor, " twice_d"], A: Tensor | None = None) -> float:
    """Return the slope of the batch's linear loss along a direction of neuron r's weights, by central differences."""
    step, n = 1e-4, of.task.n
    losses = []
    for side in (1, -1):
        W = of.block.W.detach().clone()
        W[r] += side * step * direction
        losses.append(
            sum(
                (-1) ** tokens[i + 1] * float(output(W, of, tokens, i, A))
                for tokens in of.tokens.tolist()
                for i in range(n, n + of.task.k)
            )
        )
    return (losses[0] - losses[1]) / (2 * step * len(of.tokens))
