"""W's simplified transformer block (Definitions 3–6), Theorem 1's weights, and its gradient by hand.

Every embedded token is one of the 2T frozen vectors e_{i,b}, so each product with an embedding is computed once per
(position, bit) and looked up per sequence: the cost of a batch does not depend on the width d. For the gradient a batch
is summed up in tables over (position, bit) before any embedding is touched; autograd gives the same numbers several
times slower, and a test compares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.problems.sequences import ParitySequences


class CotBlock(nn.Module):
    """T(b)[i] = hᵀ ReLU(W [e_{i,b[i]}; Σ_j γ_ji e_{j,b[j]}]) with γ_·i = softmax_{j ≤ i}(e_jᵀ A e_i).

    `embeddings` is (T, 2, d); A is d × d, W is 2m × 2d and h has 2m numbers. A and W train; h stays as it is.
    """

    embeddings: Tensor
    h: Tensor

    def __init__(self, n: int, embeddings: Tensor, A: Tensor, W: Tensor, h: Tensor) -> None:
        super().__init__()
        self.n = n
        self.register_buffer("embeddings", embeddings)
        self.register_buffer("h", h)
        self.A, self.W = nn.Parameter(A), nn.Parameter(W)

    @classmethod
    def at_start(
        cls,
        n: int,
        k: int,
        d: int,
        m: int,
        epsilon: float,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float64,
    ) -> CotBlock:
        """Return the block of Assumption 1, for sequences of n + k tokens (the last one predicts the answer)."""
        embeddings = random_embeddings(n + k, d, generator)
        # W, Assumption 1: each neuron starts as a random sign pattern over the (position, bit) pairs that predict.
        signs = torch.randint(2, (2 * m, 2 * k), generator=generator).double() * 2 - 1
        W = torch.zeros(2 * m, 2 * d, dtype=torch.float64)
        W[:, :d] = epsilon * signs @ embeddings[n:].flatten(0, 1)
        h = torch.full((2 * m,), 1 / (2 * m), dtype=torch.float64)
        h[m:] *= -1
        return cls(n, embeddings, torch.zeros(d, d, dtype=torch.float64), W, h).to(dtype)

    @property
    def d(self) -> int:
        """The embedding dimension."""
        return self.embeddings.shape[-1]

    def start_signs(self) -> Float[Tensor, "neurons links 2"]:
        """Return ⟨W_{r,1:d}, e_{i,b}⟩ for the predicting positions i > n: about ν_{r,i,b} at the start."""
        return torch.einsum("rd,ibd->rib", self.W[:, : self.d], self.embeddings[self.n :])

    def scores(self) -> Float[Tensor, "T 2 links 2"]:
        """Return e_{j,b}ᵀ A e_{i,b'} for all j and the predicting positions i."""
        return torch.einsum("jbd,de,ice->jbic", self.embeddings, self.A, self.embeddings[self.n :])

    def attention(self, tokens: Int64[Tensor, "batch length"]) -> Float[Tensor, "batch links T"]:
        """Return where each predicting position looks (W, Definition 4)."""
        tokens = tokens[:, : len(self.embeddings)]
        positions = torch.arange(self.n, tokens.shape[1])
        bit = tokens.to(self.A.dtype)
        here, there = bit[:, positions, None], bit[:, None]
        table = self.scores()[: tokens.shape[1], :, : len(positions)].permute(1, 3, 2, 0)  # (2, 2, links, T)
        by_key = table[1] - table[0]
        score = table[0, 0] + there * by_key[0] + here * (table[0, 1] - table[0, 0] + there * (by_key[1] - by_key[0]))
        hidden = torch.arange(tokens.shape[1]) > positions[:, None]
        return score.masked_fill(hidden, -math.inf).softmax(-1)

    def forward(self, tokens: Int64[Tensor, "batch T"]) -> Float[Tensor, "batch links"]:
        """Return T(b)[i] at the predicting positions i = n + 1, … (the paper's count)."""
        attention = self.attention(tokens)
        length = attention.shape[-1]
        bit = tokens[:, :length].to(self.A.dtype)
        own = self.start_signs()[:, : attention.shape[1]]  # (neurons, links, 2)
        seen = torch.einsum("rd,jbd->jbr", self.W[:, self.d :], self.embeddings[:length])
        ones = attention * bit[:, None]
        mixed = (attention - ones) @ seen[:, 0] + ones @ seen[:, 1]  # (batch, links, neurons)
        here = bit[:, self.n :, None]
        before = torch.lerp(own[..., 0].T, own[..., 1].T, here) + mixed
        return torch.relu(before) @ self.h

    def quantised(self, bits: int) -> CotBlock:
        """Return the block with embeddings, A, W and h rounded to 2^bits − 1 even levels of each one's range."""
        if bits < 2:
            raise InvalidInput(f"weights need at least 2 bits, got {bits}")
        parts = (_rounded(x, bits) for x in (self.embeddings, self.A.detach(), self.W.detach(), self.h))
        return CotBlock(self.n, *parts)


def random_embeddings(length: int, d: int, generator: torch.Generator) -> Float[Tensor, "T 2 d"]:
    """Return e_{i,b}, uniform on the corners ±1/√d (W, Definition 3)."""
    signs = torch.randint(2, (length, 2, d), generator=generator).double() * 2 - 1
    return signs / math.sqrt(d)


@dataclass(frozen=True)
class HandSet:
    """Theorem 1's weights with the vectors of its proof."""

    block: CotBlock
    M: Float[Tensor, "pairs d"]  # the secret's embeddings
    U: Float[Tensor, " d"]  # ⟨U, e_{j,b}⟩ = 1(b = 1) on the secret
    V: Float[Tensor, " d"]  # ⟨V, e_{j,b}⟩ = 1 on the secret


def hand_set_block(n: int, secret: tuple[int, ...], d: int, generator: torch.Generator) -> HandSet:
    """Return a block without chain of thought that computes the parity of `secret`: Theorem 1's proof, step by step."""
    k = len(secret)
    if d < 2 * k:
        raise InvalidInput(f"the proof inverts the Gram matrix of 2k = {2 * k} embeddings, so d must reach it: got {d}")
    embeddings = random_embeddings(n + 1, d, generator)
    M = embeddings[list(secret)].flatten(0, 1)  # (2k, d)
    dual = torch.linalg.solve(M @ M.T, M)  # rows u_{j,b} of Lemma 2
    U, V = dual[1::2].sum(0), dual.sum(0)
    query = embeddings[n, 0]
    A = 40 * math.log(n) * torch.outer(V, query)
    m = k + 1
    a, h = _teeth(m)
    W = torch.cat((torch.outer(a, query), 2 * k * U.expand(2 * m, d)), 1)
    return HandSet(CotBlock(n, embeddings, A, W, h), M, U, V)


def _teeth(m: int) -> tuple[Tensor, Tensor]:
    """Return a_r and h_r of Theorem 1's proof: Σ h_r ReLU(a_r + 2s) is −1 at even s and 1 at odd s ≤ m − 1."""
    r = torch.arange(1, m + 1, dtype=torch.float64)
    rising = -4 * torch.ceil(r / 2) + 4
    falling = torch.cat((torch.ones(1, dtype=torch.float64), -4 * torch.floor(r[1:] / 2) + 2))
    ones = torch.ones(m, dtype=torch.float64)
    return torch.cat((rising, falling)), torch.cat((ones, -ones))


def _rounded(x: Tensor, bits: int) -> Tensor:
    step = x.abs().max() / (2 ** (bits - 1) - 1)
    return x if step == 0 else (x / step).round() * step


_CHUNK = 1024  # sequences whose pre-activations lie in a processor's cache


@dataclass(frozen=True)
class _Tables:
    """Everything of a block that a sequence looks up, or the gradient with respect to it."""

    own: Float[Tensor, "links 2 neurons"]
    seen: Float[Tensor, "T 2 neurons"]
    scores: Float[Tensor, "T 2 links 2"]

    @classmethod
    def of(cls, block: CotBlock) -> _Tables:
        """Return what the weights of a block make of its embeddings."""
        seen = torch.einsum("rd,jbd->jbr", block.W[:, block.d :], block.embeddings)
        return cls(block.start_signs().permute(1, 2, 0).contiguous(), seen, block.scores())

    def zeros(self) -> _Tables:
        """Return tables of the same shapes to add to."""
        return _Tables(torch.zeros_like(self.own), torch.zeros_like(self.seen), torch.zeros_like(self.scores))


@dataclass(frozen=True)
class _Link:
    """One predicting position in a part of the batch."""

    place: int
    bits: Float[Tensor, "sequences t"]  # the tokens it can see, its own last
    here: Float[Tensor, " sequences"]  # its own token
    signs: Float[Tensor, " sequences"]  # (−1)^{b[i+1]}

    @property
    def either(self) -> Float[Tensor, "sequences 2"]:
        """1(b[i] = 0) and 1(b[i] = 1)."""
        return torch.stack((1 - self.here, self.here), 1)


def _parts(block: CotBlock, task: ParitySequences, bits: Tensor) -> Iterator[list[_Link]]:
    """Yield the links of one part of the batch after the other."""
    for part in bits.split(_CHUNK):
        tokens = task.tokens(part)
        signs = (1 - 2 * task.targets(tokens)).to(block.h.dtype)
        x = tokens[:, : len(block.embeddings)].to(block.h.dtype)
        yield [_Link(i, x[:, : block.n + 1 + i], x[:, block.n + i], signs[:, i]) for i in range(task.k)]


@torch.no_grad()
def hinge_gradient(block: CotBlock, task: ParitySequences, bits: Tensor) -> float:
    """Leave the gradient of the batch's mean loss Σ_i max(0, (−1)^{b[i+1]} T[i] + 1) in the block; return max |T|.

    Attention's half of W starts at zero, so the first gradient leaves A alone (W, Lemma 8).
    """
    tables, largest = _Tables.of(block), 0.0
    sums = tables.zeros()
    uniform, blind = not bool(block.A.any()), not bool(tables.seen.any())
    for links in _parts(block, task, bits):
        if uniform and blind:
            outputs = [_blind(link, tables, block.h, sums) for link in links]
        elif uniform:
            outputs = list(_uniform(links, tables, block.h, sums))
        else:
            outputs = [_attending(link, tables, block.h, sums) for link in links]
        largest = max(largest, *(float(output.abs().max()) for output in outputs))
    _leave(block, sums, len(bits))
    return largest


@torch.no_grad()
def right_way(
    block: CotBlock, task: ParitySequences, bits: Tensor
) -> tuple[Float[Tensor, "batch links"], Float[Tensor, "batch links"]]:
    """Return T in the right direction at every link, and how much attention is on its secret bit."""
    tables = _Tables.of(block)
    outputs, attentions = [], []
    for links in _parts(block, task, bits):
        seen = [(link, _read(link, tables)) for link in links]
        outputs.append(torch.stack([-link.signs * (read.pre.relu_() @ block.h) for link, read in seen], 1))
        attentions.append(torch.stack([read.on(task.secret[link.place]) for link, read in seen], 1))
    return torch.cat(outputs), torch.cat(attentions)


def _slope(link: _Link, output: Float[Tensor, " sequences"]) -> Float[Tensor, " sequences"]:
    """Return the derivative of the loss with respect to T[i]: 0 where the hinge has bent."""
    return link.signs * (link.signs * output + 1 > 0)


def _leave(block: CotBlock, sums: _Tables, batch: int) -> None:
    """Turn sums of gradients with respect to tables into mean gradients with respect to W and A."""
    flat, queries = block.embeddings.flatten(0, 1), block.embeddings[block.n :].flatten(0, 1)
    own, seen = ((part * (block.h / batch)).flatten(0, 1).T for part in (sums.own, sums.seen))
    block.W.grad = torch.cat((own @ queries, seen @ flat), 1)
    block.A.grad = flat.T @ ((sums.scores / batch).flatten(2).flatten(0, 1) @ queries)


def _blind(link: _Link, tables: _Tables, h: Tensor, sums: _Tables) -> Float[Tensor, " sequences"]:
    """Add a link of the first step, where no neuron reads the attended half: which fire depends on one token."""
    own, t = tables.own[link.place], link.bits.shape[1]
    output = link.either @ (own.relu() @ h)
    both = link.either * _slope(link, output)[:, None]
    fires = (own > 0).to(h.dtype)
    ones, every = (link.bits.T @ both) @ fires, both.sum(0) @ fires
    sums.own[link.place] += both.sum(0)[:, None] * fires
    sums.seen[:t, 1] += ones / t
    sums.seen[:t, 0] += (every - ones) / t
    return output


def _uniform(links: list[_Link], tables: _Tables, h: Tensor, sums: _Tables) -> Iterator[Float[Tensor, " sequences"]]:
    """Add every link of a step with uniform attention: each sees one token more than the link before it."""
    step = tables.seen[:, 1] - tables.seen[:, 0]
    before = links[0].bits.shape[1] - 1
    total = torch.addmm(tables.seen[:before, 0].sum(0), links[0].bits[:, :before], step[:before])
    for link in links:
        t = link.bits.shape[1]
        total += tables.seen[t - 1, 0]
        total.addr_(link.here, step[t - 1])
        own = tables.own[link.place]
        pre = torch.lerp(own[0], own[1], link.here[:, None]).add_(total, alpha=1 / t)
        fires = (pre > 0).to(h.dtype)
        output = pre.relu_() @ h
        rows = torch.cat((torch.ones_like(link.here)[:, None], link.bits), 1) * _slope(link, output)[:, None]
        chosen = [(link.here == bit).nonzero().flatten() for bit in (0, 1)]  # by the token at the link itself
        counts = torch.stack([rows[which].T @ fires[which] for which in chosen])  # (2, t + 1, neurons)
        sums.own[link.place] += counts[:, 0]
        by_bit = torch.stack((counts[:, :1] - counts[:, 1:], counts[:, 1:]), 2)  # (2, t, 2, neurons)
        sums.seen[:t] += by_bit.sum(0) / t
        # The softmax takes away what all tokens share: the part of T that the attended half made.
        shared = output - (link.either * (fires @ (own * h).T)).sum(1)
        taken = torch.stack([shared[which] @ rows[which] for which in chosen])  # (2, t + 1)
        taken_by_bit = torch.stack((taken[:, :1] - taken[:, 1:], taken[:, 1:]), 2)  # (2, t, 2)
        pulled = torch.einsum("ctbr,tbr->tbc", by_bit, tables.seen[:t] * h)
        sums.scores[:t, :, link.place] += (pulled - taken_by_bit.permute(1, 2, 0)) / t
        yield output


@dataclass(frozen=True)
class _Read:
    """What a link attends to and what its neurons make of it."""

    attention: Float[Tensor, "sequences kept"]
    kept: Int64[Tensor, " kept"]  # the tokens that somebody looks at
    rows: Float[Tensor, "sequences twice"]
    reads: Float[Tensor, "twice neurons"]
    pre: Float[Tensor, "sequences neurons"]  # before the ReLU

    def on(self, token: int) -> Float[Tensor, " sequences"]:
        """Return the attention on one token."""
        return self.attention[:, self.kept == token].sum(1)


def _read(link: _Link, tables: _Tables) -> _Read:
    """Let a link attend, each sequence in its own way; tokens below rounding for every sequence are left out."""
    t, own = link.bits.shape[1], tables.own[link.place]
    table = tables.scores[:t, :, link.place]  # (t, 2, 2)
    step = table[:, 1] - table[:, 0]
    score = torch.addcmul(table[:, 0, 0], link.bits, step[:, 0])
    turn = torch.addcmul(table[:, 0, 1] - table[:, 0, 0], link.bits, step[:, 1] - step[:, 0])
    attention = score.addcmul_(turn, link.here[:, None]).softmax(-1)
    kept = (attention.amax(0) > torch.finfo(attention.dtype).eps / (8 * t)).nonzero().flatten()
    attention = attention[:, kept]
    rows = torch.cat((attention, attention * link.bits[:, kept]), 1)
    reads = torch.cat((tables.seen[kept, 0], tables.seen[kept, 1] - tables.seen[kept, 0]))
    pre = torch.lerp(own[0], own[1], link.here[:, None]).addmm_(rows, reads)
    return _Read(attention, kept, rows, reads, pre)


def _attending(link: _Link, tables: _Tables, h: Tensor, sums: _Tables) -> Float[Tensor, " sequences"]:
    """Add a link whose attention differs from token to token."""
    read = _read(link, tables)
    bits, t = link.bits[:, read.kept], len(read.kept)
    fires = (read.pre > 0).to(h.dtype)
    output = read.pre.relu_() @ h
    slope = _slope(link, output)[:, None]
    sums.own[link.place] += (link.either * slope).T @ fires
    every, ones = ((read.rows * slope).T @ fires).unflatten(0, (2, t))
    sums.seen[read.kept] += torch.stack((every - ones, ones), 1)
    back = fires @ (read.reads * h).T  # (sequences, 2t)
    gain = torch.addcmul(back[:, :t], bits, back[:, t:])
    pulled = read.attention * (gain - (read.attention * gain).sum(1, keepdim=True)) * slope
    on_ones, on_all = (pulled * bits).T @ link.either, pulled.T @ link.either
    sums.scores[read.kept, :, link.place] += torch.stack((on_all - on_ones, on_ones), 1)
    return output
