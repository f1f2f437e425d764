"""All 2^n inputs in chunks, and the mean loss of a general model, which goes through `forward` on them.

The graph of the model is kept, as plain torch keeps it, where it fits into memory. Where it does not, every chunk's
gradient is taken at once and only the sum stays, so that nothing is computed twice; a model with a run axis computes
its chunks again in the backward pass, since how the runs are weighted is known only then. Chunks that fit into a
processor's cache make this faster than one large tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from parityscope.core.errors import InvalidInput
from parityscope.problems import bits_of
from parityscope.risk.law import Law
from parityscope.risk.losses import Loss
from parityscope.risk.means import Mean
from parityscope.risk.pieces.rounding import UNIT, chain

CHUNK_BITS = 11  # inputs per chunk; independent of the number of runs, so that a run's sums are too
_MOST_BITS, _FEWEST_BITS = 13, 4  # of a chunk that goes through `forward`: measured, and for the largest models
_CHUNK_BYTES, _KEPT_BYTES = 2**28, 2**30  # of the graph of a chunk, and of all chunks
_TRIED = 64  # inputs on which the size of the graph is measured
_ULPS = 8  # by which a prediction through `forward` is taken to be rounded
_GRAPH_BYTES: WeakKeyDictionary[nn.Module, dict[int, int]] = WeakKeyDictionary()


class _Part(NamedTuple):
    """What a chunk adds to the mean, to the mean of the loss in modulus, and to the estimated rounding."""

    mean: Tensor
    size: Tensor
    rounding: Tensor

    def plus(self, other: _Part) -> _Part:
        return _Part(*(a + b for a, b in zip(self, other, strict=True)))


def forward_mean(model: nn.Module, law: Law, loss: Loss) -> Mean:
    """Return the mean through `forward`; how that rounds is its own affair, so that the bound is an estimate."""
    each = _graph_bytes(model, law.n)
    bits = max(_FEWEST_BITS, min(_MOST_BITS, int(math.log2(_CHUNK_BYTES / (each + 1)))))
    chunk_mean = partial(_chunk_mean, model, law, loss)
    if not torch.is_grad_enabled() or each * 2**law.n <= _KEPT_BYTES:
        parts = (chunk_mean(*chunk) for chunk in inputs(law, bits))
        total = next(parts)
        for part in parts:
            total = total.plus(part)
    elif predictions(model, bits_of(torch.arange(1), law.n)).dim() == 1:
        total = _with_gradients_at_once(chunk_mean, law, bits)
    else:
        total = _again_on_the_way_back(chunk_mean, law, bits)
    bound = sum_rounding(law.n, bits) * total.size + total.rounding
    return Mean(total.mean, None, None, bound, "estimated")


def sum_rounding(n: int, bits: int) -> float:
    """Bound the rounding of the sum, relative to the sum of its terms in modulus: a chunk, and a chain of chunks."""
    return UNIT * (chain(2.0 ** min(n, bits)) + n + 8 + 2.0 ** max(0, n - bits))


def _chunk_mean(model: nn.Module, law: Law, loss: Loss, x: Tensor, labels: Tensor, probability: Tensor) -> _Part:
    predicted = predictions(model, x)
    margin = labels * predicted
    losses, slope = loss.of_margin(margin), loss.slope(margin.detach())
    if law.noise:
        losses = (1 - law.noise) * losses + law.noise * loss.of_margin(-margin)
        slope = (1 - law.noise) * slope - law.noise * loss.slope(-margin.detach())
    mean = losses @ probability
    with torch.no_grad():
        size = losses.abs() @ probability if loss.signed else mean.detach()
        moved = slope.mul_(margin).abs_() @ probability
        return _Part(mean, size, _ULPS * torch.finfo(predicted.dtype).eps * moved)


def predictions(model: nn.Module, x: Tensor) -> Tensor:
    """Return what the model's `forward` says of a batch, or say in one sentence that it does not take it."""
    try:
        predicted: Tensor = model(x)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInput(f"the model does not take a batch of {x.shape[-1]} bits: {reason}") from error
    if predicted.shape[-1:] != x.shape[:1]:
        raise InvalidInput(
            f"the model maps a batch of {len(x)} inputs to the shape {tuple(predicted.shape)}: return one number each"
        )
    return predicted


def _graph_bytes(model: nn.Module, n: int) -> int:
    """Return how much memory the graph of one more input takes; a model is measured once."""
    known = _GRAPH_BYTES.setdefault(model, {})
    if n <= CHUNK_BITS:
        return 0  # so few inputs are one chunk whatever they take
    if n not in known:
        known[n] = (_saved_bytes(model, n, 2 * _TRIED) - _saved_bytes(model, n, _TRIED)) // _TRIED
    return known[n]


def _saved_bytes(model: nn.Module, n: int, count: int) -> int:
    sizes: list[int] = []

    def seen(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(seen, lambda tensor: tensor):
        predictions(model, bits_of(torch.arange(count), n))
    return sum(sizes)


def _with_gradients_at_once(chunk_mean: Any, law: Law, bits: int) -> _Part:
    """Return the sum of all chunks, which knows its gradient already; no chunk's graph outlives it."""
    total: _Part | None = None
    leaves: list[Tensor] = []
    gradients: list[Tensor] = []
    for chunk in inputs(law, bits):
        part = chunk_mean(*chunk)
        if total is None:
            leaves = _leaves(part.mean)
            gradients = [torch.zeros_like(leaf) for leaf in leaves]
        if leaves:
            # Where weights are themselves computed, that part of the graph belongs to every chunk: it is retained.
            found = torch.autograd.grad(part.mean, leaves, retain_graph=True)
            gradients = [a + b for a, b in zip(gradients, found, strict=True)]
        part = part._replace(mean=part.mean.detach())
        total = part if total is None else total.plus(part)
    assert total is not None
    return total._replace(mean=_Known.apply(total.mean, *leaves, *gradients)) if leaves else total


def _leaves(value: Tensor) -> list[Tensor]:
    """Return the tensors that the value's gradient ends at."""
    found: list[Tensor] = []
    todo, seen = [value.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            found.append(leaf)
        todo += [parent for parent, _ in node.next_functions]
    return found


class _Known(torch.autograd.Function):
    """A value with a gradient that is known: apply it to the value, the leaves and their gradients."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, *leaves_and_gradients: Tensor) -> Tensor:
        ctx.gradients = leaves_and_gradients[len(leaves_and_gradients) // 2 :]
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(outer * gradient for gradient in ctx.gradients), *(None for _ in ctx.gradients)


def _again_on_the_way_back(chunk_mean: Any, law: Law, bits: int) -> _Part:
    """Return the sum of all chunks, each computed again for its gradient."""
    parts = (checkpoint(chunk_mean, *chunk, use_reentrant=False) for chunk in inputs(law, bits))
    total: _Part = next(parts)
    for part in parts:
        total = total.plus(part)
    return total


def inputs(law: Law, bits: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield all inputs (chunk, n), their labels (*runs, chunk) and probabilities (chunk,), 2^bits at a time.

    The first bits of a chunk's inputs are the same in every chunk, and the others are the same in all of its inputs.
    """
    first = min(bits, law.n)
    low = _all_bits(first)
    signs, probability = _signs_and_probability(law, low, slice(0, first)) if law.mask.dim() > 1 else _known(law, first)
    if first == law.n:
        yield low.clone(), signs, probability
        return
    high = bits_of(torch.arange(2 ** (law.n - first)), law.n - first)
    high_signs, high_probability = _signs_and_probability(law, high, slice(first, law.n))
    for index, rest in enumerate(high):
        x = torch.cat([low, rest.expand(len(low), -1)], -1)
        yield x, high_signs[..., index, None] * signs, high_probability[index] * probability


@lru_cache(maxsize=32)
def _all_bits(n: int) -> Tensor:
    return bits_of(torch.arange(2**n), n)


def _known(law: Law, bits: int) -> tuple[Tensor, Tensor]:
    return _signs_once(tuple(law.mask.tolist()[:bits]), law.bias)


@lru_cache(maxsize=32)
def _signs_once(mask: tuple[bool, ...], bias: float) -> tuple[Tensor, Tensor]:
    """Return what every step of a training needs of the first bits of one problem."""
    return _signs_and_probability(Law(torch.tensor(mask), bias, 0.0), _all_bits(len(mask)), slice(None))


def _signs_and_probability(law: Law, x: Tensor, part: slice) -> tuple[Tensor, Tensor]:
    """Return the parity of the hidden bits among a part of them, and the probability of that part."""
    bits = x.to(torch.float64)
    signs = 1 - 2 * ((law.mask[..., part].to(torch.float64) @ bits.T) % 2)
    ones = bits.sum(-1)
    return signs, law.bias**ones * (1 - law.bias) ** (x.shape[-1] - ones)
