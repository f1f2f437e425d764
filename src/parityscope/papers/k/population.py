"""K's chain on the population, exactly: a node's loss at any attention, and the gradient at W = 0.

Values of nodes are products of bits, so tokens are dependent, but only within a subtree. For a subtree with root v the
two sums over its tokens whose product is 1, and whose product is x_v, obey a recursion; different subtrees multiply.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.papers.k.chain import Link, ParityTree

_Law = Float[np.ndarray, " _"]


class NodeMoments(NamedTuple):
    """E[x_m x̂_m] and E[x̂_m²] of one node under teacher forcing, and a bound on what the link's series leaves out."""

    correlation: Tensor
    square: Tensor
    error: float

    @property
    def loss(self) -> Tensor:
        """K's ½E[(x̂_m − x_m)²]."""
        return 0.5 * (1 + self.square) - self.correlation


def visible_roots(tree: ParityTree, node: int, *, block: bool) -> list[int]:
    """Return the visible tokens that are no child of a visible one: their subtrees are independent."""
    seen = tree.visible(block=block)[node]
    below = {child for one, pair in enumerate(tree.children) if seen[tree.d + one] for child in pair}
    return [token for token in range(tree.tokens) if seen[token] and token not in below]


def node_moments(
    tree: ParityTree, node: int, attention: Float[Tensor, " tokens"], link: Link, *, block: bool
) -> NodeMoments:
    """Return a node's exact moments at any attention, differentiable in it: one pass over the tree for any d and k.

    E_v = α_v E_l E_r + β_v O_l O_r and O_v = α_v O_l O_r + β_v E_l E_r with α = cos(θσ), β = i·sin(θσ) at θ = πl; then
    E[cos θẑ] = Re Π E over all roots, and E[x_m cos θẑ] has O in place of E at the two children of m.
    """
    tops = max(link.frequencies)
    # The square of a sum of cosines is one of cosines at sums and differences; l and −l are the same.
    frequencies = torch.arange(2 * tops + 1, dtype=torch.float64)
    sizes = torch.zeros_like(frequencies)
    sizes[torch.tensor(link.frequencies).long()] = torch.tensor(link.sizes, dtype=torch.float64)
    two_sided = torch.cat([sizes.flip(0)[:-1], sizes]).numpy()
    squared = torch.from_numpy(np.convolve(two_sided, two_sided))[len(two_sided) - 1 :][: len(frequencies)] / 2
    squared[0] /= 2

    angle = math.pi * frequencies[:, None] * attention.double()
    alpha, beta = angle.cos().to(torch.complex128), 1j * angle.sin()

    def classes(token: int) -> tuple[Tensor, Tensor]:
        if token < tree.d:
            return alpha[:, token], beta[:, token]
        (left, left_odd), (right, right_odd) = map(classes, tree.children[token - tree.d])
        even, odd = left * right, left_odd * right_odd
        return alpha[:, token] * even + beta[:, token] * odd, alpha[:, token] * odd + beta[:, token] * even

    a, b = tree.children[node]
    others = torch.stack([classes(token)[0] for token in visible_roots(tree, node, block=block) if token not in (a, b)])
    rest = others.prod(0)
    left, right = classes(a), classes(b)
    correlation = (sizes * (rest * left[1] * right[1]).real).sum()
    square = (squared * (rest * left[0] * right[0]).real).sum()
    return NodeMoments(correlation, square, link.tail * (2 + link.tail))


class _Subtree(NamedTuple):
    """The law of the sum of a full subtree's tokens, where its root is 1 and −1, and the same with a token's sign.

    `marked[depth]` has E[x_j; sum] for a token at that depth below the root. Index s + size is the sum s.
    """

    plus: _Law
    minus: _Law
    marked: tuple[tuple[_Law, _Law], ...]

    @property
    def total(self) -> _Law:
        return self.plus + self.minus

    @property
    def signed(self) -> _Law:
        return self.plus - self.minus


@cache
def _subtree(height: int) -> _Subtree:
    """Return the laws of a subtree of a height; sums step by 2, so index i is the sum 2i − size."""
    if height == 0:
        plus, minus = np.array([0.0, 0.5]), np.array([0.5, 0.0])
        return _Subtree(plus, minus, ((plus, -minus),))
    below = _subtree(height - 1)

    def joined(first: tuple[_Law, _Law], second: tuple[_Law, _Law]) -> tuple[_Law, _Law]:
        equal = np.convolve(first[0], second[0]) + np.convolve(first[1], second[1])
        differ = np.convolve(first[0], second[1]) + np.convolve(first[1], second[0])
        return np.concatenate([[0.0], equal]), np.concatenate([differ, [0.0]])

    plus, minus = joined((below.plus, below.minus), (below.plus, below.minus))
    marked = tuple(joined(one, (below.plus, below.minus)) for one in below.marked)
    return _Subtree(plus, minus, ((plus, -minus), *marked))


def uniform_gradient(
    tree: ParityTree, link: Link, *, block: bool = False, correlation: bool = False
) -> Float[Tensor, "nodes tokens"]:
    """Return ∂L/∂w_jm on the population at W = 0, exactly for every link: a count over the law of the tokens' sum.

    (1/M)·E[(φ(ẑ) − x_m)·φ′(ẑ)·(x_j − ẑ)] with M tokens in sight (K, Eq. (6)); with `correlation` that of −E[x_m x̂_m].
    """
    gradient = torch.zeros(tree.k - 1, tree.tokens, dtype=torch.float64)
    kinds: dict[tuple[tuple[int, ...], int, int, bool], float] = {}
    parents = {child: tree.d + node for node, pair in enumerate(tree.children) for child in pair}
    for node in range(tree.k - 1):
        roots = set(visible_roots(tree, node, block=block))
        heights = tuple(sorted(tree.level(token) for token in roots if token not in tree.children[node]))
        for token in map(int, tree.visible(block=block)[node].nonzero()):
            root, depth = token, 0
            while root not in roots:
                root, depth = parents[root], depth + 1
            kind = (heights, tree.level(root), depth, root in tree.children[node])
            if kind not in kinds:
                own = tree.level(tree.d + node) - 1
                kinds[kind] = _entry(link, heights, kind[1], depth, kind[3], own=own, alone=correlation)
            gradient[node, token] = kinds[kind]
    return gradient


def _entry(
    link: Link, heights: tuple[int, ...], height: int, depth: int, of_child: bool, *, own: int, alone: bool
) -> float:
    """Return one entry: x_j lies `depth` below a root of a `height`, which is a child of the node or not.

    `heights` are those of the roots that are no children of the node, `own` that of its children.
    """
    child = _subtree(own)
    others = list(heights)
    plus, minus = _subtree(height).marked[depth]
    marked = plus + minus
    if of_child:
        with_sign, with_both = np.convolve(marked, child.total), np.convolve(plus - minus, child.signed)
    else:
        others.remove(height)
        pair, signed = np.convolve(child.total, child.total), np.convolve(child.signed, child.signed)
        with_sign, with_both = np.convolve(marked, pair), np.convolve(marked, signed)
    rest = _joint_law(tuple(others))
    with_sign, with_both = np.convolve(with_sign, rest), np.convolve(with_both, rest)
    everything = rest if of_child else np.convolve(rest, _subtree(height).total)
    law = np.convolve(np.convolve(child.total, child.total), everything)
    law_signed = np.convolve(np.convolve(child.signed, child.signed), everything)

    size = len(law) - 1
    z = torch.from_numpy((2 * np.arange(size + 1) - size) / size)
    value, slope = (part(z).numpy() for part in (link.value, link.slope))
    toward_label = slope @ (with_both - z.numpy() * law_signed)
    away = 0.0 if alone else (value * slope) @ (with_sign - z.numpy() * law)
    return float(away - toward_label) / size


@cache
def _joint_law(heights: tuple[int, ...]) -> _Law:
    """Return the law of the sum of independent subtrees."""
    if not heights:
        return np.ones(1)
    half = len(heights) // 2
    return np.convolve(_joint_law(heights[:half]), _joint_law(heights[half:])) if half else _subtree(heights[0]).total


def counted_gradient(tree: ParityTree, curvature: float, *, block: bool = False) -> Float[Tensor, "nodes tokens"]:
    """Return the same for φ(t) = −1 + ct² in closed form: every trivial parity of K's (7) and (8) counted.

    −(2c/M²)(1{p[j] = m} − 2/M) + (2c²/M)(t_j/M³ − T/M⁴). Of four tokens in sight T products are trivial: 3M² − 2M
    because they are equal in pairs, and 24 for each set of a node, one child and the other child's two children;
    t_j = 3M − 2 and 6 for each such set with j count those with x_j in one place. The terms of second order cancel.
    """
    sets = []
    for node, pair in enumerate(tree.children):
        for one, other in (pair, pair[::-1]):
            if other >= tree.d:
                sets.append({tree.d + node, one, *tree.children[other - tree.d]})
    seen = tree.visible(block=block)
    gradient = torch.zeros(tree.k - 1, tree.tokens, dtype=torch.float64)
    for node, child in enumerate(tree.is_child()):
        M = int(seen[node].sum())
        inside = [one for one in sets if all(bool(seen[node, token]) for token in one)]
        trivial = 3 * M**2 - 2 * M + 24 * len(inside)
        with_token = torch.tensor([3 * M - 2 + 6 * sum(token in one for one in inside) for token in range(tree.tokens)])
        signal = -(2 * curvature / M**2) * (child.double() - 2 / M)
        fourth = (2 * curvature**2 / M) * (with_token.double() / M**3 - trivial / M**4)
        gradient[node] = torch.where(seen[node], signal + fourth, 0.0)
    return gradient
