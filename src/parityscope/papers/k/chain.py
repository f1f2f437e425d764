"""K's problem and model: a parity through a binary tree of 2-parities, and one attention head that generates its nodes.

Tokens are signs. Positions 0 … d − 1 are the input bits (K's 1 … d), then come the tree's inner nodes, level by level
from below and left to right; the last one is the parity itself. K's d is the number of bits, its n our N.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int8, Num
from torch import Tensor, nn

from parityscope.core.errors import InvalidInput
from parityscope.problems import Parity, seeded_generator


class Link(NamedTuple):
    """K's feed-forward layer: φ with φ(0) = −1, φ(±1) = 1 and slope 0 there, so that φ((a + b)/2) = ab for signs.

    Parameters
    ----------
    name : str
        What figures call it.
    value, slope : callable
        φ and φ′, elementwise on [−1, 1].
    curvature : float
        c in φ(t) = −1 + ct² + O(t⁴).
    steepest : float
        ‖φ′‖_∞.
    frequencies, sizes : tuple of float
        φ(t) = Σ_l size_l·cos(π·frequency_l·t), as far as it is listed.
    tail : float
        A bound on what is left out of that series.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    curvature: float
    steepest: float
    frequencies: tuple[float, ...]
    sizes: tuple[float, ...]
    tail: float


def _quadratic(t: Tensor) -> Tensor:
    size = t.abs()
    return torch.where(size < 0.5, 4 * t * t - 1, 1 - 4 * (1 - size) ** 2)


def _quadratic_slope(t: Tensor) -> Tensor:
    return torch.where(t.abs() < 0.5, 8 * t, 8 * (t.sign() - t))


_TERMS = 201
# φ″ is ±8, so that two integrations by parts give the coefficients; beyond l the rest is below 8/(π³l²).
_ODD = tuple(float(2 * i + 1) for i in range(_TERMS))
# K, Appendix D: the link of the experiments, as the even function of period 2 that it is.
QUADRATIC = Link(
    "piecewise quadratic",
    _quadratic,
    _quadratic_slope,
    curvature=4.0,
    steepest=4.0,
    frequencies=_ODD,
    sizes=tuple(-32 * math.sin(math.pi * one / 2) / (math.pi * one) ** 3 for one in _ODD),
    tail=8 / (math.pi**3 * _ODD[-1] ** 2),
)
# With S = 1 − t it is the bounded readout cos(πS) for pairs.
COSINE = Link(
    "−cos πt",
    lambda t: -(math.pi * t).cos(),
    lambda t: math.pi * (math.pi * t).sin(),
    curvature=math.pi**2 / 2,
    steepest=math.pi,
    frequencies=(1.0,),
    sizes=(-1.0,),
    tail=0.0,
)
LINKS = {link.name: link for link in (QUADRATIC, COSINE)}


@dataclass(frozen=True)
class ParityTree:
    """A parity of k = 2^v hidden bits, decomposed as a complete binary tree of 2-parities.

    >>> tree = ParityTree(Parity(6, (0, 2, 3, 5)))
    >>> tree.children, tree.ends
    (((0, 2), (3, 5), (6, 7)), (6, 8, 9))
    """

    problem: Parity

    def __post_init__(self) -> None:
        if self.k < 2 or self.k & (self.k - 1):
            raise InvalidInput(f"a complete binary tree needs k = 2, 4, 8, …, got k = {self.k}")

    @classmethod
    def random(cls, d: int, k: int, seed: int) -> ParityTree:
        """Draw the hidden bits of one seed."""
        return cls(Parity.random(d, k, seeded_generator(seed, "support")))

    @property
    def d(self) -> int:
        """The number of input bits."""
        return self.problem.n

    @property
    def k(self) -> int:
        """The number of hidden bits."""
        return self.problem.k

    @property
    def height(self) -> int:
        """v = log₂ k."""
        return self.k.bit_length() - 1

    @property
    def tokens(self) -> int:
        """d + k − 1."""
        return self.d + self.k - 1

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """d_ℓ for ℓ = 0 … v: how many tokens there are up to level ℓ."""
        return tuple(self.d + self.k - (self.k >> level) for level in range(self.height + 1))

    @cached_property
    def children(self) -> tuple[tuple[int, int], ...]:
        """The two children of every inner node, in the order of the nodes."""
        level, found = list(self.problem.support), list[tuple[int, int]]()
        while len(level) > 1:
            pairs = list(zip(level[::2], level[1::2], strict=True))
            level = [self.d + len(found) + place for place in range(len(pairs))]
            found += pairs
        return tuple(found)

    def level(self, token: int) -> int:
        """Return h[m]: 0 for an input bit."""
        return next(level for level, end in enumerate(self.ends) if token < end)

    def nodes(self, level: int) -> slice:
        """Return the inner nodes of a level, counted from 0."""
        return slice(self.ends[level - 1] - self.d, self.ends[level] - self.d)

    def chain(self, x: Num[Tensor, "N d"]) -> Num[Tensor, "N tokens"]:
        """Return input signs followed by the true value of every node."""
        whole = torch.cat([x, x.new_empty(len(x), self.k - 1)], -1)
        for node, (a, b) in enumerate(self.children):
            whole[:, self.d + node] = whole[:, a] * whole[:, b]
        return whole

    def draw(
        self, count: int, generator: torch.Generator, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "count d"]:
        """Draw input signs."""
        bits: Int8[Tensor, "count d"] = torch.randint(0, 2, (count, self.d), generator=generator, dtype=torch.int8)
        return 1 - 2 * bits.to(dtype)

    def visible(self, *, block: bool) -> Bool[Tensor, "nodes tokens"]:
        """Return what each node may attend to: all tokens before it, or with K's block mask those of lower levels."""
        ends = [self.ends[self.level(self.d + node) - 1] if block else self.d + node for node in range(self.k - 1)]
        return torch.arange(self.tokens) < torch.tensor(ends)[:, None]

    def is_child(self) -> Bool[Tensor, "nodes tokens"]:
        """Return 1{p[j] = m}."""
        found = torch.zeros(self.k - 1, self.tokens, dtype=torch.bool)
        return found.scatter(1, torch.tensor(self.children), True)


class ChainTransformer(nn.Module):
    """One layer, one head, positions only: x̂_m = φ(ẑ_m) with ẑ_m = Σ_j σ_j(w_m) x_j (K, Eq. (1)).

    Parameters
    ----------
    tree : ParityTree
        Only its sizes and levels are used, which K takes to be known.
    link : Link
        φ.
    block : bool
        Whether a node sees the levels below its own only (K, Figure 3, right) instead of all tokens before it.

    >>> model = ChainTransformer(ParityTree.random(64, 32, seed=0), QUADRATIC)
    >>> model.trained_parameters()
    2449
    """

    def __init__(
        self, tree: ParityTree, link: Link, *, block: bool = False, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__()
        self.tree, self.link, self.block = tree, link, block
        self.seen = tree.visible(block=block)
        self.weights = nn.Parameter(torch.zeros(tree.k - 1, tree.tokens, dtype=dtype))

    def trained_parameters(self) -> int:
        """Return how many entries of W are not masked."""
        return int(self.seen.sum())

    def attention(self) -> Float[Tensor, "nodes tokens"]:
        """Return σ, a row for every node."""
        return self.weights.masked_fill(~self.seen, -torch.inf).softmax(-1)

    def forced(self, chain: Float[Tensor, "N tokens"]) -> Float[Tensor, "N nodes"]:
        """Return every node's prediction from the true values before it: teacher forcing."""
        return self.link.value(chain @ self.attention().T)

    def forward(self, x: Float[Tensor, "N d"], *, levels: int | None = None) -> Float[Tensor, "N nodes"]:
        """Generate the chain from the model's own outputs; nodes above the first `levels` are 0, as filtered."""
        attention, tree = self.attention(), self.tree
        from_bits = x @ attention[:, : tree.d].T
        generated = x.new_zeros(len(x), 0)
        for nodes in self._waves(tree.height if levels is None else levels):
            z = from_bits[:, nodes] + generated @ attention[nodes, tree.d : tree.d + nodes.start].T
            generated = torch.cat([generated, self.link.value(z)], -1)
        return nn.functional.pad(generated, (0, tree.k - 1 - generated.shape[-1]))

    def _waves(self, levels: int) -> list[slice]:
        """Return which nodes can be computed together."""
        tree = self.tree
        if self.block:
            return [tree.nodes(level) for level in range(1, levels + 1)]
        return [slice(node, node + 1) for node in range(tree.ends[levels] - tree.d)]

    def certified_error(self) -> float:
        """Return a bound on |ŷ − y| over all 2^d inputs, by carrying each node's largest error up the tree.

        With σ_a, σ_b on the children and R = 1 − σ_a − σ_b elsewhere, ẑ misses its value by at most δ =
        max(2R, R + |σ_a − σ_b|) plus the attended errors. While δ ≤ ½ K's link misses by 4δ² and −cos πt by (π²/2)δ²
        or less.
        """
        with torch.no_grad():
            attention = self.attention().double()
        errors = torch.zeros(self.tree.tokens, dtype=torch.float64)
        for node, (a, b) in enumerate(self.tree.children):
            row = attention[node]
            rest = max(0.0, float(1 - row[a] - row[b]))
            miss = max(2 * rest, rest + float((row[a] - row[b]).abs())) + float(row @ errors)
            errors[self.tree.d + node] = min(2.0, max(4.0, self.link.curvature) * miss**2) if miss <= 0.5 else 2.0
        return float(errors[-1])
