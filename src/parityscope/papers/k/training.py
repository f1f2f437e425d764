"""How K's chain is trained: one step, its log₂ k steps end to end, its four experiments; and with our objective.

All draw examples from the seed's own streams. A learning rate is given by a rule that knows d, k and the link only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.ties import predicts_plus
from parityscope.papers.k.chain import QUADRATIC, ChainTransformer, Link, ParityTree
from parityscope.papers.k.population import uniform_gradient
from parityscope.problems import seeded_generator

_BLOCK = 2**14  # examples at a time
_HELD_OUT = 2000


def summed_gradient(
    tree: ParityTree, chain: Float[Tensor, "N tokens"], link: Link, *, block: bool = False, correlation: bool = False
) -> Float[Tensor, "nodes tokens"]:
    """Return N·∂L/∂w_jm at W = 0 on examples with teacher forcing (K, Eq. (6)).

    With `correlation` the loss is −(1/N)Σ x_m x̂_m instead of K's ½(x̂_m − x_m)².
    """
    seen = tree.visible(block=block).to(chain.dtype)
    M = seen.sum(1, keepdim=True)
    z = chain @ (seen / M).T
    true = chain[:, tree.d :]
    weight = (-true if correlation else link.value(z) - true) * link.slope(z)
    return (seen * (weight.T @ chain - (weight * z).sum(0)[:, None]) / M).double()


def streamed_gradients(
    tree: ParityTree, counts: Sequence[int], seed: int, link: Link, *, correlation: bool = False
) -> Iterator[Float[Tensor, "nodes tokens"]]:
    """Yield the mean gradient at W = 0 of the first N examples, for every N of an ascending sequence."""
    generator, done = seeded_generator(seed, "data"), 0
    total = torch.zeros(tree.k - 1, tree.tokens, dtype=torch.float64)
    for count in counts:
        while done < count:
            rows = min(_BLOCK, count - done)
            total += summed_gradient(tree, tree.chain(tree.draw(rows, generator)), link, correlation=correlation)
            done += rows
        yield total / count


_EXTRA = 3.0


def one_step_rate(tree: ParityTree, link: Link) -> float:
    """Return η with which the population's step adds log M + 3 to the top node's children, M tokens being in sight.

    Then they outweigh the M others by e³. K has η = Θ(d^{2+ε/16}); this is d² up to constants and the logarithm.

    >>> tree = ParityTree.random(64, 32, seed=0)
    >>> round(one_step_rate(tree, QUADRATIC) / 64**2, 2)
    2.03
    """
    M = tree.tokens - 1
    return (math.log(M) + _EXTRA) * M**2 / (2 * link.curvature)


def rounded_rate(tree: ParityTree, link: Link) -> float:
    """Return η for rounded steps end to end: the top node's children gain about 2.5·log M.

    The steps of later levels must not undo the earlier ones, so weights are larger than for one step. As K asks, no
    level's weight lands near a half-integer, where rounding would part the two children: of 501 rates the best is taken
    by the population's exact gradient.
    """
    gradient = -uniform_gradient(tree, link, block=True)
    firsts = [tree.nodes(level).start for level in range(1, tree.height + 1)]
    signals = torch.stack([gradient[node, tree.children[node][0]] for node in firsts])
    rates = torch.linspace(2.25, 2.75, 501, dtype=torch.float64) * math.log(tree.ends[-2]) / signals[-1]
    weights = rates[:, None] * signals
    return float(rates[int((weights - weights.round()).abs().amax(1).argmin())])


def stepped(
    tree: ParityTree, link: Link, step: Float[Tensor, "nodes tokens"], *, block: bool = False
) -> ChainTransformer:
    """Return the model after one step from W = 0."""
    model = ChainTransformer(tree, link, block=block)
    with torch.no_grad():
        model.weights.add_(step)
    return model


class FreshAnswers(NamedTuple):
    """How a chain answers fresh inputs: share right, largest |ŷ − y|, and a bound on it over all 2^d inputs."""

    accuracy: float
    largest_error: float
    certified_error: float


def fresh_answers(model: ChainTransformer, seed: int) -> FreshAnswers:
    """Let the model generate its own chain on fresh inputs."""
    x = model.tree.draw(_HELD_OUT, seeded_generator(seed, "held-out"))
    y = model.tree.chain(x)[:, -1]
    with torch.no_grad():
        answer = model(x)[:, -1]
    right = predicts_plus(answer) == (y > 0)
    return FreshAnswers(float(right.float().mean()), float((answer - y).abs().max()), model.certified_error())


def learn_end_to_end(tree: ParityTree, count: int, seed: int, *, threshold: float = 1.5) -> ChainTransformer:
    """Return the model after the log₂ k steps of K's Theorem 7: block mask, filter and rounding.

    `threshold` is ε₀, which K leaves open: level ℓ is 0 while a node below it is within ε₀ of −1 on all d augmented
    strings. A filtered node is 0, at distance 1 from −1, so for ε₀ ≤ 1 the level after it passes.
    """
    model, rate = ChainTransformer(tree, QUADRATIC, block=True), rounded_rate(tree, QUADRATIC)
    x = tree.draw(count, seeded_generator(seed, "data"))
    u = tree.draw(tree.d, seeded_generator(seed, "data", 1))
    true = tree.chain(x)[:, tree.d :]
    for _ in range(tree.height):
        with torch.no_grad():
            passing = filter_passes(model, u, threshold)
        total = torch.zeros_like(model.weights)
        for rows in range(0, count, _BLOCK):
            part = slice(rows, rows + _BLOCK)
            missed = (_filtered(model, x[part], passing) - true[part]).square().sum() / (2 * count)
            total += torch.autograd.grad(missed, model.weights)[0]
        with torch.no_grad():
            model.weights.sub_(rate * total).round_()
    return model


def _filtered(model: ChainTransformer, x: Tensor, passing: Sequence[bool]) -> Tensor:
    """Generate the chain with the levels that do not pass the filter set to 0."""
    tree, attention = model.tree, model.attention()
    tokens = x
    for level, passes in enumerate(passing, 1):
        nodes = tree.nodes(level)
        made = model.link.value(tokens @ attention[nodes, : tokens.shape[-1]].T)
        tokens = torch.cat([tokens, made if passes else torch.zeros_like(made)], -1)
    return tokens[:, tree.d :]


def filter_passes(model: ChainTransformer, u: Tensor, threshold: float) -> list[bool]:
    """Say of every level whether K's filter lets it pass: no node of the level below is near −1 on all strings."""
    passing: list[bool] = []
    below = u
    for level in range(1, model.tree.height + 1):
        passing.append(bool(((below + 1).abs().amax(0) >= threshold).all()))
        below = _filtered(model, u, passing)[:, model.tree.nodes(level)]
    return passing


_LOG_STEPS, _LOG_RATE = 60, 0.5
_LEAST_CORRELATION = 1e-2


def learn_log_correlation(
    tree: ParityTree, count: int, seed: int, link: Link, *, forced: bool = True
) -> ChainTransformer:
    """Return the model after ascent of every node's log-correlation with its label, level by level.

    A first step along the gradient of the correlation is as long as log(d + k) − 1 scores, since from few examples
    log C is not defined at uniform attention; 60 steps of rate ½ on log C follow. With `forced` nodes see the true
    values below them, and else what the model generates.
    """
    model = ChainTransformer(tree, link, block=True)
    x = tree.draw(count, seeded_generator(seed, "data"))
    true = tree.chain(x)
    first = -summed_gradient(tree, true, link, block=True, correlation=True)
    for level in range(1, tree.height + 1):
        nodes, end = tree.nodes(level), tree.ends[level - 1]
        with torch.no_grad():
            seen = true if forced else torch.cat([x, model(x, levels=level - 1)], -1)
        if not forced:
            first = -summed_gradient(
                tree, torch.cat([seen[:, :end], true[:, end:]], -1), link, block=True, correlation=True
            )
        strongest = first[nodes].topk(2, -1).values.mean(-1, keepdim=True)
        weights = ((math.log(tree.tokens) - 1) * first[nodes] / strongest)[:, :end].to(x.dtype).requires_grad_()
        for _ in range(_LOG_STEPS):
            made = link.value(seen[:, :end] @ weights.softmax(-1).T)
            correlation = (made * true[:, tree.d :][:, nodes]).mean(0)
            gradient = torch.autograd.grad(correlation.clamp(min=_LEAST_CORRELATION).log().sum(), weights)[0]
            weights = (weights + _LOG_RATE * gradient).detach().requires_grad_()
        with torch.no_grad():
            model.weights[nodes, :end] = weights
    return model


Variant = Literal["direct", "CoT", "CoT + teacher forcing", "CoT + self-consistency"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
RATES = {8: 15.0, 16: 50.0, 32: 100.0}  # K, Appendix D


def experiment_rate(tree: ParityTree) -> float:
    """Return η for an experiment of any size: K's 50 at (64, 16), with k − 1 and d² as in the population's first step.

    >>> experiment_rate(ParityTree.random(64, 16, seed=0))
    50.0
    """
    return 50 / 15 * (tree.k - 1) * (tree.d / 64) ** 2


_DIRECT_RATE = 0.01
_ANSWER_SHARE = 0.1
_SCORE = 0.4


class Curves(NamedTuple):
    """Both losses before every step, and the step from which each level from the second on was not filtered."""

    chain_loss: list[float]
    answer_loss: list[float]
    opened: list[int | None]


def experiment(variant: Variant, model: ChainTransformer, x: Tensor, rate: float, steps: int) -> Curves:
    """Train by one of the four methods of K's Section 4 and Appendix D, on the whole batch; W starts at 0.

    The filter of self-consistency is K's weight-based one; that every node of a level needs a score above 0.4 before
    the next level opens is our reading of it. Losses are those of the generated chain (teacher forcing: of the forced
    one) and of the generated answer.
    """
    tree = model.tree
    chain = tree.chain(x)
    opened: list[int | None] = [None] * (tree.height - 1)
    curves = Curves([], [], opened)
    for step in range(steps):
        levels = _open_levels(model) if variant == "CoT + self-consistency" else tree.height
        for level in range(2, levels + 1):
            opened[level - 2] = step if opened[level - 2] is None else opened[level - 2]
        losses, gradient = torch.zeros(2, dtype=torch.float64), torch.zeros_like(model.weights)
        for part in chain.split(_BLOCK):
            found = _losses(variant, model, part, levels)
            descended = _descended(variant, found, answered=levels == tree.height)
            gradient += torch.autograd.grad(descended, model.weights)[0] * (len(part) / len(x))
            losses += torch.stack(found).detach() * (len(part) / len(x))
        curves.chain_loss.append(float(losses[0]))
        curves.answer_loss.append(float(losses[1]))
        with torch.no_grad():
            model.weights.sub_((_DIRECT_RATE if variant == "direct" else 1.0) * rate * gradient)
    return curves


def _losses(variant: Variant, model: ChainTransformer, chain: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    """Return (2) divided by k − 1, and ½(ŷ − y)², as means over examples."""
    x, true = chain[:, : model.tree.d], chain[:, model.tree.d :]
    if variant == "CoT + teacher forcing":
        made = model.forced(chain)
        with torch.no_grad():
            answer = model(x)[:, -1]
    else:
        made = model(x, levels=levels)
        answer = made[:, -1]
    return (made - true).square().mean() / 2, (answer - true[:, -1]).square().mean() / 2


def _descended(variant: Variant, losses: tuple[Tensor, Tensor], *, answered: bool) -> Tensor:
    """Return what a method descends on; a filtered answer has no gradient."""
    if variant == "direct":
        return losses[1]
    return losses[0] + _ANSWER_SHARE * losses[1] if variant == "CoT + self-consistency" and answered else losses[0]


def _open_levels(model: ChainTransformer) -> int:
    """Return how many levels are computed: up to the first one with a node below that has no score above 0.4."""
    with torch.no_grad():
        top = model.attention().amax(-1)
    levels = 1
    while levels < model.tree.height and bool((top[model.tree.nodes(levels)] > _SCORE).all()):
        levels += 1
    return levels
