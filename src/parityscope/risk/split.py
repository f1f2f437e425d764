"""Exact risk and gradient in about 2^(n/2) steps by cutting the positions in two.

The *table* side holds only positions outside the support, lightest first; its 2^mt sums are
sorted and their power sums accumulated.  The *query* side holds everything else; its sums are
grouped by label.  A query at sum t needs, for each polynomial piece, the moments of the table
sums s with cut_j <= s + t < cut_{j+1}: two look-ups.  The table side's gradient is the adjoint
(scatter-add at the looked-up places, then a cumulative sum), so it needs no second search.

Shapes: R runs, n positions, T = 2^mt table sums, Q queries per label, J cuts, degree d.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.core.threads import single_threaded
from parityscope.risk.pieces import Pieces
from parityscope.risk.runs import Mean
from parityscope.risk.subsets import subset_products, subset_sums, sums_by_position

_Result = TypeVar("_Result")
_CHUNK = 1 << 17  # runs x labels x pieces x queries worked on at a time
_RUN_SUMS = 1 << 17  # runs x table sums worked on at a time
_MEMORY_LIMIT = 8e9
_WORKERS = 2  # threads for large tables


def _in_parallel(tasks: list[Callable[[], _Result]]) -> list[_Result]:
    """Run long tasks on threads of their own (numpy and torch release the interpreter lock)."""
    if len(tasks) == 1:
        return [tasks[0]()]
    with ThreadPoolExecutor(len(tasks), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return [f.result() for f in [pool.submit(task) for task in tasks]]


def _argsort(x: Tensor) -> Tensor:
    """Along the last axis; numpy's vectorised sort is about four times torch's."""
    return torch.from_numpy(np.argsort(x.numpy(), axis=-1))


@dataclass(frozen=True)
class Tables:
    """Everything that depends on c but not on the loss.

    >>> c, hidden = torch.tensor([[0.5, 0.25, 0.125]]).double(), torch.tensor([[True, False, False]])
    >>> tables = prepare(c, torch.zeros(1).double(), hidden)
    >>> tables.mt, tables.sums.tolist()  # sums of positions 2 and 1 about their middle, sorted
    (2, [[-0.1875, -0.0625, 0.0625, 0.1875]])
    """

    order: Tensor  # (R, n) positions: table side, query side, pivot last
    mt: int  # positions on the table side
    sums: Tensor  # (R, T) sorted table sums, relative to origin
    place: Tensor  # (R, T) subset index of each sorted sum
    weight: Tensor | None  # (R, T) probabilities in sorted order; None: uniform bits
    query: Tensor  # (R, 2, Q) query sums per label plus origin, descending
    query_place: Tensor  # (R, 2, Q)
    query_weight: Tensor | None  # (R, 2, Q)
    pivot_bit: Tensor  # (R, Q) pivot's bit for label +1, by subset index


def _table_size(n: int, k: int) -> int:
    """Positions on the table side: sorting a sum is cheaper than looking one up."""
    return max(0, min(n - k, n // 2 + 1))


def prepare(c: Tensor, offset: Tensor, mask: Tensor, p: Tensor | None = None) -> Tables:
    """Tabulate both sides; c (R, n) float64, mask (R, n) bool with at least one True per row.

    >>> c, hidden = torch.tensor([[0.5, 0.25, 0.125]]).double(), torch.tensor([[True, False, False]])
    >>> tables = prepare(c, torch.zeros(1).double(), hidden)
    >>> tables.query.tolist()  # the hidden bit is 0 for label +1 and 1 for label -1
    [[[0.1875], [0.6875]]]
    """
    mt = _table_size(c.shape[1], int(mask.sum(1).max()))
    order = (c.abs() + torch.where(mask, torch.inf, 0.0)).argsort(1)
    cs = c.gather(1, order)
    sums = subset_sums(cs[:, :mt])
    place = _argsort(sums)
    sums = sums.gather(1, place)
    origin = 0.5 * (sums[:, :1] + sums[:, -1:])
    odd = subset_sums(mask.gather(1, order)[:, mt:-1].double()).remainder_(2)
    flag = torch.stack([odd, 1 - odd], 1)  # pivot's bit for label +1, -1
    negated = -torch.addcmul((subset_sums(cs[:, mt:-1]) + origin + offset[:, None])[:, None], flag, cs[:, -1:, None])
    query_place = _argsort(negated)
    query = negated.gather(2, query_place).neg_()
    weight = query_weight = None
    if p is not None:
        ps = p.gather(1, order)
        weight = subset_products(1 - ps[:, :mt], ps[:, :mt]).gather(1, place)
        last = ps[:, -1:, None]
        base = subset_products(1 - ps[:, mt:-1], ps[:, mt:-1])[:, None]
        query_weight = (torch.lerp(1 - last, last, flag) * base).gather(2, query_place)
    return Tables(order, mt, sums - origin, place, weight, query, query_place, query_weight, odd)


@dataclass(frozen=True)
class _Stack:
    """Both labels' polynomials padded to one shape."""

    cuts: Tensor  # (2, J), padded with +inf
    centres: Tensor  # (2, J+1)
    coefs: Tensor  # (2, d+1, J+1)
    mixer: Tensor  # (2, 2, (d+1)(J+1)): moments -> value, slope

    @staticmethod
    @lru_cache(maxsize=64)
    def of(pieces: Pieces) -> _Stack:
        """Stack the two sides of `pieces`."""
        j = max(len(f.cuts) for f in pieces.sides())
        d = max(f.degree for f in pieces.sides())
        cuts = torch.full((2, j), torch.inf, dtype=torch.float64)
        centres, coefs = cuts.new_zeros(2, j + 1), cuts.new_zeros(2, d + 1, j + 1)
        for i, f in enumerate(pieces.sides()):
            m = len(f.cuts)
            cuts[i, :m], centres[i, : m + 1] = f.cuts, f.centres
            coefs[i, : f.degree + 1, : m + 1] = f.coefs.T
        rate = torch.zeros_like(coefs)
        rate[:, :-1] = coefs[:, 1:] * torch.arange(1.0, d + 1, dtype=torch.float64)[:, None]
        return _Stack(cuts, centres, coefs, torch.stack([coefs.flatten(1), rate.flatten(1)], 1))

    @property
    def degree(self) -> int:
        """The common degree."""
        return self.coefs.shape[1] - 1


def _prefix_moments(t: Tables, degree: int) -> list[Tensor | None]:
    """out[l][:, i] = sum of weight * s^l over the i smallest sums; None stands for i itself."""
    out: list[Tensor | None] = []
    power = t.weight
    for order in range(degree + 1):
        if order:
            power = t.sums if power is None else power * t.sums
        acc = None
        if power is not None:
            acc = t.sums.new_zeros(t.sums.shape[0], t.sums.shape[1] + 1)
            torch.cumsum(power, 1, out=acc[:, 1:])
        out.append(acc)
    return out


def _look_up(sums: Tensor, cuts: Tensor, query: Tensor) -> Tensor:
    """(R, 2, J+2, q) table ranks of the cuts seen from each query, with both ends."""
    targets = (cuts[:, :, None] - query[:, :, None]).numpy()
    runs, q = query.shape[0], query.shape[2]
    ranks = torch.empty(runs, 2, cuts.shape[1] + 2, q, dtype=torch.int64)
    ranks[:, :, 0], ranks[:, :, -1] = 0, sums.shape[1]
    table, inner = sums.numpy(), ranks[:, :, 1:-1].numpy()
    for r in range(runs):
        inner[r] = np.searchsorted(table[r], targets[r])
    return ranks


def _range_moments(moments: list[Tensor | None], ranks: Tensor, u: Tensor) -> Tensor:
    """(R, 2, d+1, J+1, q): moments of s + u over the table sums of each piece."""
    runs, _, ends, q = ranks.shape
    mu = u.new_empty(runs, 2, len(moments), ends - 1, q)
    for order, m in enumerate(moments):
        at = ranks if m is None else m.gather(1, ranks.view(runs, -1)).view_as(ranks)
        torch.sub(at[:, :, 1:], at[:, :, :-1], out=mu[:, :, order])
    for low in range(1, len(moments)):
        for order in range(len(moments) - 1, low - 1, -1):
            mu[:, :, order].addcmul_(mu[:, :, order - 1], u)
    return mu


def _scatter(jumps: list[Tensor], ranks: Tensor, coefs: Tensor, u: Tensor, weight: Tensor) -> None:
    """Add the table-side slope polynomials P'(s + u), as coefficients of s, at piece ends.

    ``weight`` is zero for pieces holding no table sum, which must leave no rounding behind.
    """
    runs, degree = ranks.shape[0], coefs.shape[1] - 1
    a = [coefs[:, r, :, None] * float(r) for r in range(1, degree + 1)]
    for low in range(degree - 1):
        for r in range(degree - 2, low - 1, -1):
            a[r] = torch.addcmul(a[r], u, a[r + 1])
    inner = ranks[:, :, 1:-1].reshape(runs, -1)
    for into, raw in zip(jumps, a, strict=True):
        slope = raw * weight
        into[:, 0] += slope[:, :, 0].sum((1, 2))
        into.scatter_add_(1, inner, (slope[:, :, 1:] - slope[:, :, :-1]).view(runs, -1))


def _gradient(t: Tables, jumps: list[Tensor], slope: Tensor) -> tuple[Tensor, Tensor]:
    """Collect the gradient by weight (R, n) and by offset (R,) from the slopes at table sums and at queries."""
    at = torch.zeros_like(t.sums)
    for jump in reversed(jumps):
        at = at.mul_(t.sums).add_(jump.cumsum(1)[:, :-1])
    if t.weight is not None and t.query_weight is not None:
        at *= t.weight
        slope = slope * t.query_weight
    table = sums_by_position(torch.empty_like(at).scatter_(1, t.place, at), t.mt)
    slope = torch.empty_like(slope).scatter_(2, t.query_place, slope)
    rest = sums_by_position(slope.sum(1), t.order.shape[1] - t.mt - 1)
    pivot = torch.lerp(slope[:, 1], slope[:, 0], t.pivot_bit).sum(1, keepdim=True)
    grad = torch.cat([table, rest, pivot], 1)
    return torch.empty_like(grad).scatter_(1, t.order, grad), slope.sum((1, 2))


@dataclass
class _Totals:
    """What a sweep over queries accumulates."""

    value: Tensor  # (R,)
    jumps: list[Tensor]  # per power of s, (R, T+1)


def _sweep(t: Tables, f: _Stack, moments: list[Tensor | None], spans: list[slice], slope: Tensor | None) -> _Totals:
    """Queries of the given spans; their own slopes go into ``slope`` (None: no gradient)."""
    runs, size = t.sums.shape
    degree = f.degree if slope is not None else 0
    out = _Totals(t.sums.new_zeros(runs), [t.sums.new_zeros(runs, size + 1) for _ in range(degree)])
    for span in spans:
        query = t.query[:, :, span]
        ranks = _look_up(t.sums, f.cuts, query)
        u = query[:, :, None] - f.centres[:, :, None]
        both = f.mixer @ _range_moments(moments, ranks, u).flatten(2, 3)  # (R, 2, 2, q)
        w = None if t.query_weight is None else t.query_weight[:, :, span]
        out.value += (both[:, :, 0] if w is None else both[:, :, 0] * w).sum((1, 2))
        if slope is not None:
            slope[:, :, span] = both[:, :, 1]
            filled = (ranks[:, :, 1:] > ranks[:, :, :-1]).double()
            _scatter(out.jumps, ranks, f.coefs, u, filled if w is None else filled * w[:, :, None])
    return out


def evaluate(t: Tables, pieces: Pieces, want_gradient: bool = True) -> Mean:
    """Return the mean loss from prepared tables.

    >>> from parityscope.models.piecewise_linear import PiecewiseLinear
    >>> from parityscope.risk.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))  # f(S) = 1 - S
    >>> c, hidden = torch.tensor([[0.5, 0.25, 0.125]]).double(), torch.tensor([[True, False, False]])
    >>> tables = prepare(c, torch.zeros(1).double(), hidden)
    >>> round(evaluate(tables, line).value.item(), 9)  # 1 + E[yS] = 1 - 0.5/2
    0.75
    """
    f, (runs, _, count) = _Stack.of(pieces), t.query.shape
    step = max(1, _CHUNK // (runs * 2 * f.centres.shape[1]))
    spans = [slice(i, i + step) for i in range(0, count, step)]
    moments = _prefix_moments(t, f.degree)
    slope = torch.empty_like(t.query) if want_gradient else None
    share = _WORKERS if len(spans) >= 8 * _WORKERS else 1
    parts = _in_parallel([partial(_sweep, t, f, moments, spans[i::share], slope) for i in range(share)])
    total = parts[0]
    for other in parts[1:]:
        total.value += other.value
        for mine, theirs in zip(total.jumps, other.jumps, strict=True):
            mine.add_(theirs)
    scale = 0.5 ** t.order.shape[1] if t.weight is None else 1.0
    if slope is None:
        return Mean(total.value * scale, None, None)
    by_weight, by_offset = _gradient(t, total.jumps, slope)
    return Mean(total.value * scale, by_weight * scale, by_offset * scale)


def split_mean(
    weights: Tensor, offset: Tensor, mask: Tensor, pieces: Pieces, *, bias: float = 0.5, want_gradient: bool = True
) -> Mean:
    """Return the exact E[L(y f(S))], S = offset + Σ_j weights_j x_j, for R runs: weights (R, n), offset (R,).

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips: the mean is 1 + E[yS], its gradient E[y x_j].

    >>> from parityscope.models.piecewise_linear import PiecewiseLinear
    >>> from parityscope.risk.pieces import hinge
    >>> line = hinge(PiecewiseLinear(knots=(0.0,), values=(1.0,), left=-1.0, right=-1.0))
    >>> c, hidden = torch.full((1, 20), 0.05, dtype=torch.float64), torch.arange(20)[None] == 3
    >>> mean = split_mean(c, torch.zeros(1).double(), hidden, line)
    >>> round(mean.value.item(), 9), mean.by_weight[0, 3:5].round(decimals=9).abs().tolist()
    (0.975, [0.5, 0.0])
    """
    n, most = weights.shape[1], int(mask.sum(1).max())
    _check_memory(n, most)
    pieces.check_domain(weights, offset)
    group = max(1, _RUN_SUMS >> _table_size(n, most))
    probability = None if bias == 0.5 else torch.full_like(weights, bias)
    parts = []
    with single_threaded():
        for start in range(0, weights.shape[0], group):
            rows = slice(start, start + group)
            p = None if probability is None else probability[rows]
            parts.append(evaluate(prepare(weights[rows], offset[rows], mask[rows], p), pieces, want_gradient))
    by_weight = [part.by_weight for part in parts if part.by_weight is not None]
    by_offset = [part.by_offset for part in parts if part.by_offset is not None]
    value = torch.cat([part.value for part in parts])
    return Mean(value, torch.cat(by_weight), torch.cat(by_offset)) if want_gradient else Mean(value, None, None)


def required_bytes(n: int, k: int) -> float:
    """Return about how much memory one run needs: a dozen numbers per table entry, two dozen per pair of queries.

    >>> [f"{required_bytes(n, 3):.0e}" for n in (20, 40, 60)]
    ['2e+05', '3e+08', '3e+11']
    """
    table = _table_size(n, k)
    return 8.0 * (12 * 2**table + 24 * 2 ** max(0, n - table - 1))


def fits(n: int, k: int) -> bool:
    """Say whether the split engine takes a problem of this size.

    >>> [fits(n, 3) for n in (40, 60)]
    [True, False]
    """
    return required_bytes(n, k) <= _MEMORY_LIMIT


def _check_memory(n: int, k: int) -> None:
    if not fits(n, k):
        raise InvalidInput(
            f"the split engine needs about {required_bytes(n, k) / 1e9:.0f} GB at n = {n}, k = {k} and stops at"
            f" {_MEMORY_LIMIT / 1e9:.0f} GB"
        )
