"""The project's own: a chain of concave heads, each of which finds the pair whose product is its intermediate label.

Kim and Suzuki's link function may be −cos πt, and then a node is one head with our readout for k = 2. Its tokens are
bits and products of bits, so that the correlation is no single product, but one pass over the tree gives it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from parityscope.papers.attack import Attack, maximise, tried_by
from parityscope.papers.claim import Again, Claim, Context, Measurement
from parityscope.papers.criterion import Clause, above, at_least, at_most, below
from parityscope.papers.own.domain import SEED
from parityscope.papers.own.exponential import CONCAVE, CONCAVE_PROOFS

Children = dict[int, tuple[int, int]]


class Node(NamedTuple):
    """A node of the chain: the tokens it sees, all of lower levels, the children of each, and the pair it looks for."""

    visible: tuple[int, ...]
    children: Children
    pair: tuple[int, int]

    @property
    def places(self) -> list[int]:
        """Where the pair stands among the visible tokens."""
        return [self.visible.index(token) for token in self.pair]


def first_node(d: int, k: int, level: int) -> Node:
    """Return the first node of a level of the tree over bits 0 … k − 1 of d, k a power of 2.

    >>> first_node(5, 4, 2)
    Node(visible=(0, 1, 2, 3, 4, 5, 6), children={5: (0, 1), 6: (2, 3)}, pair=(5, 6))
    """
    children, below_it, visible = Children(), list(range(k)), list(range(d))
    for _ in range(level - 1):
        above_it = list(range(len(visible), len(visible) + len(below_it) // 2))
        children.update(zip(above_it, zip(below_it[::2], below_it[1::2], strict=True), strict=True))
        visible, below_it = visible + above_it, above_it
    return Node(tuple(visible), children, (below_it[0], below_it[1]))


def characteristic(node: Node, angles: Float[Tensor, "points tokens"]) -> Complex[Tensor, " points"]:
    """Return E[exp(i·Σ_j y_j χ_j)] over fair bits, χ_j = ±1 the visible tokens: one pass over the tree.

    Of every subtree two sums are enough, over the sets of its tokens whose product is 1 and those where it is χ_v.

    >>> node = first_node(2, 2, 1)
    >>> round(characteristic(node, torch.tensor([[0.3, 0.4]], dtype=torch.float64)).real.item(), 6)  # cos 0.3·cos 0.4
    0.879923
    """
    even, odd = angles.cos() + 0j, 1j * angles.sin()
    sums: dict[int, tuple[Tensor, Tensor]] = {}
    for place, token in enumerate(node.visible):
        one, own = even[:, place], odd[:, place]
        if token in node.children:
            (l_even, l_odd), (r_even, r_odd) = (sums.pop(child) for child in node.children[token])
            without, both = l_even * r_even, l_odd * r_odd
            one, own = one * without + own * both, one * both + own * without
        sums[token] = one, own
    return torch.stack([one for one, _ in sums.values()]).prod(0)


def node_correlation(node: Node, c: Float[Tensor, "points tokens"]) -> Float[Tensor, " points"]:
    """Return E[χ·cos πS], χ the product of the pair: E cos Σ_j y_j χ_j with y = (π/2)(1_pair − c), where Σc = 2."""
    return characteristic(node, math.pi / 2 * (_ideal(node) - c)).real


def node_square(node: Node, c: Float[Tensor, "points tokens"]) -> Float[Tensor, " points"]:
    """Return E[cos² πS], with which the squared loss of a node is exact too."""
    return (1 + characteristic(node, math.pi * (_ideal(node) - c)).real) / 2


def _ideal(node: Node) -> Float[Tensor, " tokens"]:
    ideal = torch.zeros(len(node.visible), dtype=torch.float64)
    ideal[node.places] = 1
    return ideal


def _with_slope(node: Node, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return −log C, infinite where C ≤ 0, and ∇_c log C."""
    with torch.enable_grad():
        c = c if c.requires_grad else c.detach().requires_grad_()
        loss = -node_correlation(node, c).clamp(min=1e-300).log()
        (slope,) = torch.autograd.grad(-loss.sum(), c, create_graph=True)
    return torch.where(loss < 600, loss, torch.inf), slope


def _by_inputs(node: Node, c: Sequence[float]) -> tuple[float, float]:
    """Return both moments by summing over all inputs."""
    bits = sum(token not in node.children for token in node.visible)
    signs = dict(enumerate(np.array(list(product((1.0, -1.0), repeat=bits))).T))
    for token, (left, right) in node.children.items():
        signs[token] = signs[left] * signs[right]
    score = sum(weight * (1 - signs[token]) / 2 for weight, token in zip(c, node.visible, strict=True))
    output = np.cos(np.pi * score)
    return float(np.mean(signs[node.pair[0]] * signs[node.pair[1]] * output)), float(np.mean(output**2))


Region = Literal["below 1", "near", "leading"]
_NEAR_ENOUGH = 0.4  # ‖x‖₁


def _weights(node: Node, points: Tensor, region: Region) -> Float[Tensor, "points tokens"]:
    """Return weights of mass 2: any, at most 0.4 away from the pair's, or none above those of the pair ("leading")."""
    z, ideal = 2 * points, _ideal(node)
    if region == "leading":
        second = node.places[1]
        pair = torch.where(torch.arange(len(ideal)) == second, z[:, second : second + 1], 0.0)
        rest = pair.sum(-1, keepdim=True).clamp(max=0) - torch.nn.functional.softplus(z)
        return 2 * torch.softmax(torch.where(ideal > 0, pair, rest), -1)
    c = 2 * torch.softmax(z, -1)
    if region == "near":
        away = c - ideal
        share = torch.sigmoid(z.sum(-1, keepdim=True)) * _NEAR_ENOUGH / away.abs().sum(-1, keepdim=True)
        c = ideal + share.clamp(max=1) * away
    return c


def _ratio(node: Node, points: Tensor, region: Region) -> Float[Tensor, " points"]:
    """Return −⟨x, g⟩/V, in the first region where all weights are below 1."""
    c = _weights(node, points, region)
    loss, slope = _with_slope(node, c)
    falls = ((_ideal(node) - c) * slope).sum(-1)
    allowed = (loss > 1e-4) & (loss < 30) & ((c < 1).all(-1) | (region != "below 1"))
    return torch.where(allowed, -falls / loss, torch.nan)


def _attack(
    trees: Sequence[tuple[int, int, int]], context: Context, region: Region
) -> tuple[list[Attack], dict[str, Any]]:
    """Attack the inequality on some trees; return also the worst weights, for a replay."""
    generator, attacks, count = (
        torch.Generator().manual_seed(SEED + 2),
        [],
        context.at(smoke=60, demo=200, reference=1000),
    )
    for tree in trees:
        node = first_node(*tree)
        starts = torch.randn(count, len(node.visible), generator=generator, dtype=torch.float64)
        starts = starts * torch.rand(count, 1, generator=generator, dtype=torch.float64) * 2
        steps = context.at(smoke=15, reference=60)

        def ratio(points: Tensor, index: Tensor, node: Node = node) -> Tensor:
            return _ratio(node, points, region)

        attacks.append(maximise(ratio, starts, keep=16, steps=steps))
    worst = max(range(len(trees)), key=lambda one: attacks[one].value)
    weights = _weights(first_node(*trees[worst]), attacks[worst].point[None], region)[0].tolist()
    at = dict(zip(("d", "k", "level"), trees[worst], strict=True))
    return attacks, {**at, "weights": weights, "seed": SEED + 2}


def climbed(node: Node, steps: int) -> tuple[float, float]:
    """Return C after steps of the attention gradient from uniform attention, and the largest share of log(n/2)/t."""
    n = len(node.visible)
    s, time, share = torch.zeros(1, n, dtype=torch.float64), 0.0, 0.0
    for _ in range(steps):
        c = 2 * torch.softmax(s, -1)
        loss, slope = (one.detach() for one in _with_slope(node, c))
        share = max(share, time * float(loss) / math.log(n / 2))
        if float(loss) < 1e-3:
            break
        step = 0.2 / float((c * (slope.square() + math.pi**2 / 4)).max())
        s, time = s + step * slope, time + step
    return float(node_correlation(node, 2 * torch.softmax(s, -1))), share


_TREES = ((8, 8, 2), (8, 8, 3), (12, 8, 3), (16, 16, 4), (20, 16, 3))  # d, k, level
_RECURSION = "largest difference of C and E[cos²] from sums over all inputs"
_TWO = "smallest ⟨x, g⟩/(−log C), k = 4, second level, C > 0, all weights below 1"
_NEAR = "smallest ⟨x, g⟩/(−log C), any level, ‖x‖₁ ≤ 0.4"
_SHARE = "largest −log C over log(n/2)/t, second level of k = 4 from uniform attention"
_CHAIN_CLAUSES = (
    Clause("one pass over the tree gives both moments", _RECURSION, at_most(1e-12), "rounding", above(1e-6)),
    Clause("⟨x, g⟩ ≥ −2·log C on the second level of k = 4", _TWO, at_least(2 - 1e-6), "the theorem; rounding"),
    Clause("and near the pair on every level", _NEAR, at_least(2 - 1e-6), "the theorem; rounding"),
    Clause(
        "so −log C ≤ log(n/2)/t on the second", _SHARE, at_most(1), "the theorem's constant; steps of a fifth of 1/ω"
    ),
)


def _chain(context: Context) -> Measurement:
    """Compare the recursion with all inputs, attack the inequality, and follow the attention gradient."""
    generator, off = torch.Generator().manual_seed(SEED + 2), 0.0
    for d, k, level in ((5, 2, 1), (6, 4, 2), (8, 8, 2), (9, 8, 3)):
        node = first_node(d, k, level)
        for spread in (0.1, 1.0, 3.0):
            z = spread * torch.randn(1, len(node.visible), generator=generator, dtype=torch.float64)
            c = 2 * torch.softmax(z, -1)
            found = float(node_correlation(node, c)), float(node_square(node, c))
            by_inputs = _by_inputs(node, c[0].tolist())
            off = max(off, *(abs(a - b) for a, b in zip(found, by_inputs, strict=True)))
    attacks, worst = _attack([(d, 4, 2) for d in (4, 6, 9)], context, "below 1")
    nearby, nearest = _attack(_TREES[: context.at(smoke=2, demo=3, reference=5)], context, "near")
    shares = [climbed(first_node(d, 4, 2), 400)[1] for d in (6, 20, 100)[: context.at(smoke=2, reference=3)]]
    least = [-max(one.value for one in found) for found in (attacks, nearby)]
    measured = {_RECURSION: off, _TWO: least[0], _NEAR: least[1], _SHARE: max(shares)}
    return Measurement(
        measured,
        f"⟨x, g⟩ ≥ {min(least):.4f}·(−log C) on the second level and near the pair; −log C ≤"
        f" {max(shares):.2f}·log(n/2)/t",
        f"12 settings against all inputs; {tried_by([*attacks, *nearby])}; steps from uniform attention",
        {"seed": SEED + 2, "measured": measured},
        "The correlation and the mean square of a node's output by one pass over the tree, and input by input; the"
        " inequality by draws and ascent; explicit steps of the attention gradient.",
        {_TWO: worst, _NEAR: nearest},
    )


def _ratio_again(point: Mapping[str, Any]) -> Again:
    """Sum over the inputs in plain Python: ⟨x, g⟩ = E[Θ sin Θ]/E[cos Θ] with Θ = Σ_j (π/2)(1_pair − c)_j χ_j."""
    node, wave, slope = first_node(point["d"], point["k"], point["level"]), 0.0, 0.0
    for inputs in product((1, -1), repeat=point["d"]):
        signs = dict(enumerate(inputs))
        for token, (left, right) in node.children.items():
            signs[token] = signs[left] * signs[right]
        pairs = zip(point["weights"], node.visible, strict=True)
        turn = math.pi / 2 * sum(((token in node.pair) - weight) * signs[token] for weight, token in pairs)
        wave += math.cos(turn) / 2 ** point["d"]
        slope += turn * math.sin(turn) / 2 ** point["d"]
    again = slope / wave / -math.log(wave) if wave > 0 else math.nan  # C > 0 is a premise
    return Again(again, "plain Python, input by input", judged=again)


_ABOVE = "smallest ⟨x, g⟩/(−log C) where no token has more weight than either of the pair"
_ENDS = "smallest C that the attention gradient reaches from uniform attention, any level"
_ABOVE_CLAUSES = (
    Clause("⟨x, g⟩ ≥ −2·log C above the first level too", _ABOVE, at_least(2 - 1e-6), "rounding", below(1.9)),
    Clause("and uniform attention leads to the pair", _ENDS, at_least(0.99), "learned: C ≥ 0.99", below(0.5)),
)


def _chain_above(context: Context) -> Measurement:
    """Attack the inequality on higher levels, and climb from uniform attention on large trees."""
    cells = _TREES[: context.at(smoke=2, demo=3, reference=5)]
    attacks, worst = _attack(cells, context, "leading")
    large = [(30, 8), (100, 16), (1000, 64)][: context.at(smoke=1, demo=2, reference=3)]
    nodes = [first_node(d, k, level) for d, k in large for level in range(2, k.bit_length())]
    ends = [climbed(node, 400)[0] for node in nodes]
    least = -max(one.value for one in attacks)
    return Measurement(
        {_ABOVE: least, _ENDS: min(ends)},
        f"⟨x, g⟩ ≥ {least:.4f}·(−log C) there; the least C reached from uniform attention is {min(ends):.4f}",
        f"{len(cells)} trees of 8 and 16 bits; {tried_by(attacks)}; {len(nodes)} nodes of trees with up to d ="
        f" {large[-1][0]}",
        {"seed": SEED + 2, "trees": [list(cell) for cell in cells], "ends": ends},
        "The inequality behind every rate, by draws and ascent over weights none of which exceeds those of the pair;"
        " steps of the attention gradient on the population of chains, level by level.",
        {_ABOVE: worst},
    )


CLAIMS = (
    Claim(
        "P-chain",
        "A node of a chain of thought with labels at every node and readout cos πS is a head that looks for a pair; its"
        " correlation E cos Σ(π/2)(1_pair − c)_jχ_j is one pass over the tree. With k = 4, on the second level,"
        " ⟨x, ∇log C⟩ ≥ −2·log C wherever C > 0 and all weights are below 1, so that −log C ≤ log(n/2)/t"
        " along the attention gradient from uniform attention; on every level of every tree the same inequality holds"
        " where ‖1_pair − c‖₁ ≤ 0.4.",
        _CHAIN_CLAUSES,
        _chain,
        f"{CONCAVE}, a chain of concave heads",
        seconds=2,
        proof=CONCAVE_PROOFS,
        replay=dict.fromkeys((_TWO, _NEAR), _ratio_again),
    ),
    Claim(
        "P-chain-above",
        "On every level of a chain ⟨x, ∇log C⟩ ≥ −2·log C where no visible token has more weight than either of the"
        " pair, and the attention gradient leads from uniform attention to the pair.",
        _ABOVE_CLAUSES,
        _chain_above,
        f"{CONCAVE}, a chain of concave heads",
        seconds=3,
        replay={_ABOVE: _ratio_again},
    ),
)
