"""Parity as token sequences, with and without a chain of thought: formats, labels, a held-out set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int8, Int64
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.problems import Parity, seeded_generator

Format = Literal["text", "code"]
_EXACT_BITS = 62  # inputs up to here have a number of their own in an int64


@dataclass(frozen=True)
class ParitySequences:
    """The sequences of W for one secret, in the order in which the chain visits it.

    With a chain of thought, in both formats (W, Definition 2): b_1 … b_n, 0, then the k partial XORs
    b_{i_1}, b_{i_1} ⊕ b_{i_2}, …; n + k + 1 tokens. The text predicts the k partial XORs; the published code also
    predicts the 0 before them, k + 1 labels. Without (Definition 1): b_1 … b_n, 0, parity in the text; the code leaves
    the 0 out. The secret is 0-based and keeps its order.
    """

    n: int
    secret: tuple[int, ...]
    chain_of_thought: bool = True
    format: Format = "text"

    def __post_init__(self) -> None:
        Parity(self.n, self.secret)  # refuses what is not a support
        if self.format == "code" and list(self.secret) != sorted(self.secret):
            raise InvalidInput(f"the code's format visits the secret in ascending order, got {self.secret}")

    @classmethod
    def of(
        cls, problem: Parity, *, order: tuple[int, ...] | None = None, chain_of_thought: bool = True
    ) -> ParitySequences:
        """Return a problem's sequences in the text's format; `order` permutes the ascending support."""
        order = tuple(range(problem.k)) if order is None else order
        if sorted(order) != list(range(problem.k)):
            raise InvalidInput(f"order must be a permutation of 0 to {problem.k - 1}, got {order}")
        return cls(problem.n, tuple(problem.support[i] for i in order), chain_of_thought)

    @property
    def k(self) -> int:
        """The number of hidden bits."""
        return len(self.secret)

    @property
    def prompt_length(self) -> int:
        """The number of tokens before the first generated one."""
        return self.n + (1 if self.chain_of_thought or self.format == "text" else 0)

    @property
    def length(self) -> int:
        """The number of tokens of a sequence, answer included."""
        return self.prompt_length + (self.k if self.chain_of_thought else 1)

    @property
    def label_positions(self) -> Int64[Tensor, " labels"]:
        """The positions whose next token is supervised."""
        code_chain = self.chain_of_thought and self.format == "code"
        first = self.n - 1 if code_chain else self.prompt_length - 1
        return torch.arange(first, self.length - 1)

    def tokens(self, bits: Tensor) -> Int64[Tensor, "batch length"]:
        """Return the sequences of bits of shape (batch, n)."""
        bits = bits.long()
        partial = bits[:, list(self.secret)].cumsum(1) % 2
        gap = bits.new_zeros(len(bits), self.prompt_length - self.n)
        return torch.cat((bits, gap, partial if self.chain_of_thought else partial[:, -1:]), 1)

    def targets(self, tokens: Int64[Tensor, "batch length"]) -> Int64[Tensor, "batch labels"]:
        """Return the tokens that follow the label positions."""
        return tokens[:, self.label_positions + 1]

    def attended_secret(self) -> Int64[Tensor, " links"]:
        """Return, for every chain position n, n+1, …, the secret position its next token depends on: W's S[i]."""
        return torch.tensor(self.secret if self.chain_of_thought else (), dtype=torch.int64)


def draw_secret(n: int, k: int, seed: int) -> tuple[int, ...]:
    """Return the ascending secret of one seed."""
    return Parity.random(n, k, seeded_generator(seed, "support")).support


class HeldOut:
    """Inputs that training never draws, and a source of inputs that are never among them.

    Every input has a fingerprint, a sum of weights of its one-bits: the input's own number for n ≤ 62, a random linear
    form modulo 2^64 above. Equal inputs have equal fingerprints, so refusing every drawn input whose fingerprint is
    held out makes the two sets disjoint with certainty (an unequal input is refused with probability about
    count/2^64, and only for n > 62).
    """

    def __init__(self, n: int, count: int, seed: int) -> None:
        if count < 1 or (n <= _EXACT_BITS and count > 2**n // 2):
            raise InvalidInput(f"the held-out set must have 1 to {2**n // 2} of the 2^{n} inputs, got {count}")
        generator = seeded_generator(seed, "held-out")
        weights = torch.randint(-(2**63), 2**63 - 1, (n,), generator=generator, dtype=torch.int64)
        self._weights = 2 ** torch.arange(n) if n <= _EXACT_BITS else weights | 1
        self.n = n
        self.bits = self._distinct(count, generator)
        self._fingerprints = self.fingerprint(self.bits).sort().values

    def fingerprint(self, bits: Tensor) -> Int64[Tensor, " batch"]:
        """Return a number per input that equal inputs share."""
        return (bits.long() * self._weights).sum(1)

    def contains(self, bits: Tensor) -> Bool[Tensor, " batch"]:
        """Return which inputs are held out."""
        prints = self.fingerprint(bits)
        place = torch.searchsorted(self._fingerprints, prints).clamp(max=len(self._fingerprints) - 1)
        return self._fingerprints[place] == prints

    def draw(self, count: int, generator: torch.Generator) -> Int8[Tensor, "count n"]:
        """Draw inputs uniformly from all that are not held out."""
        bits = _uniform_bits(count, self.n, generator)
        refused = self.contains(bits).nonzero().flatten()
        while len(refused):
            bits[refused] = _uniform_bits(len(refused), self.n, generator)
            refused = refused[self.contains(bits[refused])]
        return bits

    def _distinct(self, count: int, generator: torch.Generator) -> Int8[Tensor, "count n"]:
        bits = _uniform_bits(count, self.n, generator)
        while True:
            _, group = torch.unique(self.fingerprint(bits), return_inverse=True)
            first = torch.full((count,), count).scatter_reduce_(0, group, torch.arange(count), "amin")
            repeated = (first[group] != torch.arange(count)).nonzero().flatten()
            if not len(repeated):
                return bits
            bits[repeated] = _uniform_bits(len(repeated), self.n, generator)


def _uniform_bits(count: int, n: int, generator: torch.Generator) -> Int8[Tensor, "count n"]:
    return torch.randint(2, (count, n), generator=generator, dtype=torch.int8)
