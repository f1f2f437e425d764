"""W's simplified transformer block (Definitions 3–6), and Theorem 1's hand-set weights for it.

Every embedded token is one of the 2T frozen vectors e_{i,b}, so each product with an embedding is computed once per
(position, bit) and looked up per sequence: the cost of a batch does not depend on the width d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput


class CotBlock(nn.Module):
    """T(b)[i] = hᵀ ReLU(W [e_{i,b[i]}; Σ_j γ_ji e_{j,b[j]}]) with γ_·i = softmax_{j ≤ i}(e_jᵀ A e_i).

    `embeddings` is (T, 2, d); A is d × d, W is 2m × 2d and h has 2m numbers. A and W train; h stays as it is.

    >>> block = CotBlock.at_start(n=5, k=2, d=64, m=8, epsilon=0.1, generator=torch.Generator().manual_seed(0))
    >>> tuple(block(torch.zeros(3, 7, dtype=torch.int64)).shape)  # outputs at the positions that predict
    (3, 2)
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
    """Return e_{i,b}, uniform on the corners ±1/√d (W, Definition 3).

    >>> random_embeddings(3, 16, torch.Generator().manual_seed(0)).norm(dim=-1).unique().tolist()
    [1.0]
    """
    signs = torch.randint(2, (length, 2, d), generator=generator).double() * 2 - 1
    return signs / math.sqrt(d)


@dataclass(frozen=True)
class HandSet:
    """Theorem 1's weights with the vectors of its proof.

    >>> hand_set = hand_set_block(6, (1, 4), 64, torch.Generator().manual_seed(0))
    >>> [(hand_set.M @ vector).round(decimals=9).abs().tolist() for vector in (hand_set.U, hand_set.V)]
    [[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """

    block: CotBlock
    M: Float[Tensor, "pairs d"]  # the secret's embeddings
    U: Float[Tensor, " d"]  # ⟨U, e_{j,b}⟩ = 1(b = 1) on the secret
    V: Float[Tensor, " d"]  # ⟨V, e_{j,b}⟩ = 1 on the secret


def hand_set_block(n: int, secret: tuple[int, ...], d: int, generator: torch.Generator) -> HandSet:
    """Return a block without chain of thought that computes the parity of `secret`: Theorem 1's proof, step by step.

    >>> hand_set = hand_set_block(6, (1, 4), 256, torch.Generator().manual_seed(0))
    >>> hand_set.block(torch.tensor([[0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 1, 0, 0]])).round().tolist()
    [[1.0], [-1.0]]
    """
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
