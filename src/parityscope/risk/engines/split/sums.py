"""Exact risk and gradient in about 2^(n/2) steps by cutting the positions in two.

The *table* side holds only positions outside the support, lightest first; its 2^mt sums are sorted and their power
sums accumulated. The *query* side holds everything else; its sums are grouped by label. A query at sum t needs, for
each polynomial piece, the moments of the table sums s with cut_j <= s + t < cut_{j+1}: two look-ups. The gradient of
the table side is the adjoint (scatter-add at the looked-up places, then a cumulative sum), so it needs no second
search. Where so few scores are left that cutting does not pay, all of them are visited.

Shapes: R runs, n positions, T = 2^mt table sums, Q queries per label, J cuts, degree d.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from parityscope.core.threads import single_threaded
from parityscope.risk.engines.subsets import Floats, subset_count, subset_products, subset_sums, sums_by_position
from parityscope.risk.means import Mean
from parityscope.risk.pieces.pieces import Pieces
from parityscope.risk.pieces.rounding import UNIT, chain, derivative, extent, score_rounding

Ranks = npt.NDArray[np.int64]
_Result = TypeVar("_Result")
MOST_SCORES = 1 << 13  # runs x scores up to which visiting each takes less time than sorting half of them
_SCORES_AT_ONCE = 1 << 14  # runs x scores, small enough to stay in the cache
_CHUNK = 1 << 16  # runs x labels x pieces x queries worked on at a time
_RUN_SUMS = 1 << 16  # runs x table sums worked on at a time
MEMORY_LIMIT = 8e9
_WORKERS = 2  # threads for large tables
_BLOCK = 1 << 6  # entries cumulated in one go


def split_mean(
    weights: Tensor, offset: Tensor, mask: Tensor, pieces: Pieces, *, bias: float = 0.5, want_gradient: bool = True
) -> Mean:
    """Return the exact E[L(y f(S))], S = offset + Σ_j weights_j x_j, for R runs: weights (R, n), offset (R,).

    For f(S) = 1 − S and 0 ≤ S ≤ 2 the hinge never clips: the mean is 1 + E[yS], its gradient E[y x_j].
    """
    pieces.check_domain(weights, offset)
    if len(weights) << weights.shape[1] <= MOST_SCORES:
        return _all_scores_mean(weights, offset, mask, pieces, bias)
    n, most = weights.shape[1], int(mask.sum(1).max())
    group = max(1, _RUN_SUMS >> table_size(n, most))
    probability = None if bias == 0.5 else torch.full_like(weights, bias)
    parts = []
    with single_threaded():
        for start in range(0, weights.shape[0], group):
            rows = slice(start, start + group)
            p = None if probability is None else probability[rows]
            parts.append(look_up(prepare(weights[rows], offset[rows], mask[rows], p), pieces, want_gradient))
    by_weight = [part.by_weight for part in parts if part.by_weight is not None]
    by_offset = [part.by_offset for part in parts if part.by_offset is not None]
    value = torch.cat([part.value for part in parts])
    return Mean(value, torch.cat(by_weight), torch.cat(by_offset)) if want_gradient else Mean(value, None, None)


@dataclass(frozen=True)
class SumTables:
    """Everything that depends on c but not on the loss."""

    order: Ranks  # (R, n) positions: table side, query side, pivot last
    mt: int  # positions on the table side
    sums: Floats  # (R, T) sorted table sums, relative to origin
    place: Ranks  # (R, T) subset index of each sorted sum
    weight: Floats | None  # (R, T) probabilities in sorted order; None: uniform bits
    query: Floats  # (R, 2, Q) query sums per label plus origin, descending
    query_place: Ranks  # (R, 2, Q)
    query_weight: Floats | None  # (R, 2, Q)
    pivot_bit: Floats  # (R, Q) pivot's bit for label +1, by subset index


def table_size(n: int, k: int) -> int:
    """Return how many positions stand on the table side: sorting a sum is cheaper than looking one up.

    >>> [table_size(20, k) for k in (3, 15)]
    [11, 5]
    """
    return max(0, min(n - k, n // 2 + 1))


def _pick(x: Floats, index: Ranks) -> Floats:
    """Return x[r, index[r, …]] for every run r.

    >>> _pick(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 1, 0], [0, 1, 0]])).tolist()
    [[2.0, 2.0, 1.0], [3.0, 4.0, 3.0]]
    """
    return x.reshape(-1).take(_flat(index, x.shape[1]))


def _put_back(x: Floats, index: Ranks) -> Floats:
    """Undo `_pick` by a permutation of the last axis.

    >>> order = np.array([[2, 0, 1]])
    >>> _put_back(_pick(np.array([[5.0, 6.0, 7.0]]), order), order).tolist()
    [[5.0, 6.0, 7.0]]
    """
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty(rows.size)
    out[_flat(index.reshape(rows.shape), rows.shape[1])] = rows
    return out.reshape(x.shape)


def _flat(index: Ranks, width: int) -> Ranks:
    if len(index) == 1:
        return index
    return index + width * np.arange(len(index)).reshape(-1, *(1,) * (index.ndim - 1))


def prepare(c: Tensor, offset: Tensor, mask: Tensor, p: Tensor | None = None) -> SumTables:
    """Tabulate both sides; c (R, n) float64, mask (R, n) bool with at least one True per row."""
    weights, hidden = c.numpy(), mask.numpy()
    mt = table_size(weights.shape[1], int(hidden.sum(1).max()))
    # Lightest first and hidden ones last: the table side carries no sign, and the last position, the pivot, is
    # hidden.
    order = np.where(hidden, np.inf, np.abs(weights)).argsort(1, kind="stable")
    cs = _pick(weights, order)
    sums = subset_sums(cs[:, :mt])
    place = sums.argsort(1)
    sums = _pick(sums, place)
    # Table sums about their middle have the smallest powers, and so the least rounding.
    origin = 0.5 * (sums[:, :1] + sums[:, -1:])
    odd = subset_sums(_pick(hidden.astype(np.float64), order)[:, mt:-1]) % 2
    # The label and the other hidden bits of a query settle the pivot's bit.
    flag = np.stack([odd, 1 - odd], 1)  # pivot's bit for label +1, -1
    base = subset_sums(cs[:, mt:-1]) + (origin + offset.numpy()[:, None])
    negated = flag * -cs[:, -1:, None]
    negated -= base[:, None]
    # Queries fall, so that the cuts seen from them rise: neighbouring look-ups stay in the cache.
    query_place = negated.argsort(2)
    query = -_pick(negated.reshape(-1, negated.shape[2]), query_place.reshape(-1, negated.shape[2]))
    weight = query_weight = None
    if p is not None:
        ps = _pick(p.numpy(), order)
        weight = _pick(subset_products(1 - ps[:, :mt], ps[:, :mt]), place)
        last = ps[:, -1:, None]
        both = (1 - last + flag * (2 * last - 1)) * subset_products(1 - ps[:, mt:-1], ps[:, mt:-1])[:, None]
        query_weight = _pick(both.reshape(-1, both.shape[2]), query_place.reshape(-1, both.shape[2])).reshape(
            both.shape
        )
    return SumTables(
        order, mt, sums - origin, place, weight, query.reshape(negated.shape), query_place, query_weight, odd
    )


@dataclass(frozen=True)
class _Stack:
    """Both labels' polynomials padded to one shape."""

    cuts: Floats  # (2, J), padded with +inf
    centres: Floats  # (2, J+1)
    coefs: Floats  # (2, d+1, J+1)
    mixer: Floats  # (2, 2, (d+1)(J+1)): moments -> value, slope

    @staticmethod
    @lru_cache(maxsize=64)
    def of(pieces: Pieces) -> _Stack:
        """Stack the two sides of `pieces`."""
        j = max(len(f.cuts) for f in pieces.sides())
        d = max(f.degree for f in pieces.sides())
        cuts, centres, coefs = np.full((2, j), np.inf), np.zeros((2, j + 1)), np.zeros((2, d + 1, j + 1))
        for i, f in enumerate(pieces.sides()):
            m = len(f.cuts)
            cuts[i, :m], centres[i, : m + 1] = f.cuts.numpy(), f.centres.numpy()
            coefs[i, : f.degree + 1, : m + 1] = f.coefs.numpy().T
        rate = np.zeros_like(coefs)
        rate[:, :-1] = coefs[:, 1:] * np.arange(1.0, d + 1)[:, None]
        return _Stack(cuts, centres, coefs, np.stack([coefs.reshape(2, -1), rate.reshape(2, -1)], 1))

    @property
    def degree(self) -> int:
        """The common degree."""
        return self.coefs.shape[1] - 1


def _cumulated(x: Floats) -> Floats:
    """Return the sums of the first 0, 1, …, all of the 2^m entries of every row; torch's loop is the faster one.

    Long rows are cumulated in blocks, and what the blocks add up to in the same way, so that no chain is long.
    """
    runs, size = x.shape
    out = np.zeros((runs, size + 1))
    if size <= _BLOCK:
        torch.cumsum(torch.from_numpy(x), 1, out=torch.from_numpy(out)[:, 1:])
        return out
    inner = torch.from_numpy(x.reshape(runs, -1, _BLOCK)).cumsum(2).numpy()
    inner += _cumulated(np.ascontiguousarray(inner[:, :, -1]))[:, :-1, None]
    out[:, 1:] = inner.reshape(runs, size)
    return out


def _longest_chain(size: int) -> int:
    """Return how many additions stand behind one another in a row that is cumulated so."""
    return size if size <= _BLOCK else _BLOCK + _longest_chain(size // _BLOCK)


def _in_parallel(tasks: list[Callable[[], _Result]]) -> list[_Result]:
    """Run long tasks on threads of their own (numpy and torch release the interpreter lock)."""
    if len(tasks) == 1:
        return [tasks[0]()]
    with ThreadPoolExecutor(len(tasks), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return [f.result() for f in [pool.submit(task) for task in tasks]]


def _ranks(sums: Floats, cuts: Floats, query: Floats) -> Ranks:
    """(R, 2, J+2, q) table ranks of the cuts seen from each query, with both ends; run r counts from r (T+1)."""
    targets = cuts[:, :, None] - query[:, :, None]
    ranks = np.empty((len(query), 2, cuts.shape[1] + 2, query.shape[2]), dtype=np.int64)
    ranks[:, :, 0], ranks[:, :, -1] = 0, sums.shape[1]
    for row, table, target in zip(ranks, sums, targets, strict=True):
        row[:, 1:-1] = table.searchsorted(target)
    if len(ranks) > 1:
        ranks += (sums.shape[1] + 1) * np.arange(len(ranks)).reshape(-1, 1, 1, 1)
    return ranks


def _range_moments(moments: list[Floats | None], ranks: Ranks, u: Floats) -> Floats:
    """(R, 2, d+1, J+1, q): moments of s + u over the table sums of each piece."""
    runs, _, ends, q = ranks.shape
    mu = np.empty((runs, 2, len(moments), ends - 1, q))
    for order, m in enumerate(moments):
        at = ranks if m is None else m.reshape(-1).take(ranks)
        np.subtract(at[:, :, 1:], at[:, :, :-1], out=mu[:, :, order])
    # Σ(s + u)^r from Σs^l, l ≤ r, by the binomial theorem, as repeated additions (a Taylor shift).
    for low in range(1, len(moments)):
        for order in range(len(moments) - 1, low - 1, -1):
            mu[:, :, order] += mu[:, :, order - 1] * u
    return mu


def _scatter(jumps: list[Floats], ranks: Ranks, coefs: Floats, u: Floats, weight: Floats) -> None:
    """Add the table-side slope polynomials P'(s + u), as coefficients of s, at piece ends.

    ``weight`` is zero for pieces holding no table sum, which must leave no rounding behind.
    """
    degree = coefs.shape[1] - 1
    a = [coefs[:, r, :, None] * float(r) for r in range(1, degree + 1)]
    # The same shift of the derivative's coefficients, from powers of s + u to powers of s.
    for low in range(degree - 1):
        for r in range(degree - 2, low - 1, -1):
            a[r] = a[r] + u * a[r + 1]
    # A table sum lies on the piece whose range holds its rank: steps at the ends of ranges, cumulated later.
    inner = torch.from_numpy(ranks[:, :, 1:-1].reshape(-1))
    for into, raw in zip(jumps, a, strict=True):
        slope = raw * weight
        into[:, 0] += slope[:, :, 0].sum((1, 2))
        steps = slope[:, :, 1:] - slope[:, :, :-1]
        torch.from_numpy(into.reshape(-1)).scatter_add_(0, inner, torch.from_numpy(steps.reshape(-1)))


def _gradient(t: SumTables, jumps: list[Floats], slope: Floats) -> tuple[Floats, Floats]:
    """Collect the gradient by weight (R, n) and by offset (R,) from the slopes at table sums and at queries."""
    at = np.zeros_like(t.sums)
    # Horner: each cumulated jump is a coefficient of the slope as a polynomial of s.
    for jump in reversed(jumps):
        at *= t.sums
        at += torch.from_numpy(jump[:, :-1]).cumsum(1).numpy()
    if t.weight is not None and t.query_weight is not None:
        at *= t.weight
        slope = slope * t.query_weight
    table = sums_by_position(_put_back(at, t.place), t.mt)
    slope = _put_back(slope, t.query_place)
    rest = sums_by_position(slope.sum(1), t.order.shape[1] - t.mt - 1)
    pivot = (slope[:, 1] + (slope[:, 0] - slope[:, 1]) * t.pivot_bit).sum(1, keepdims=True)
    return _put_back(np.concatenate([table, rest, pivot], 1), t.order), slope.sum((1, 2))


@dataclass
class _Totals:
    """What a sweep over queries accumulates."""

    value: Floats  # (R,)
    jumps: list[Floats]  # per power of s, (R, T+1)


def _sweep(t: SumTables, f: _Stack, moments: list[Floats | None], spans: list[slice], slope: Floats | None) -> _Totals:
    """Queries of the given spans; their own slopes go into ``slope`` (None: no gradient)."""
    runs, size = t.sums.shape
    degree = f.degree if slope is not None else 0
    out = _Totals(np.zeros(runs), [np.zeros((runs, size + 1)) for _ in range(degree)])
    for span in spans:
        query = t.query[:, :, span]
        ranks = _ranks(t.sums, f.cuts, query)
        u = query[:, :, None] - f.centres[:, :, None]
        both = f.mixer @ _range_moments(moments, ranks, u).reshape(runs, 2, -1, query.shape[2])  # (R, 2, 2, q)
        w = None if t.query_weight is None else t.query_weight[:, :, span]
        out.value += (both[:, :, 0] if w is None else both[:, :, 0] * w).sum((1, 2))
        if slope is not None:
            slope[:, :, span] = both[:, :, 1]
            filled = (ranks[:, :, 1:] > ranks[:, :, :-1]).astype(np.float64)
            _scatter(out.jumps, ranks, f.coefs, u, filled if w is None else filled * w[:, :, None])
    return out


def look_up(t: SumTables, pieces: Pieces, want_gradient: bool = True) -> Mean:
    """Return the mean loss from prepared tables."""
    f, (runs, _, count) = _Stack.of(pieces), t.query.shape
    step = max(1, _CHUNK // (runs * 2 * f.centres.shape[1]))
    spans = [slice(i, i + step) for i in range(0, count, step)]
    moments = _prefix_moments(t, f.degree)
    slope = np.empty_like(t.query) if want_gradient else None
    share = _WORKERS if len(spans) >= 8 * _WORKERS else 1
    parts = _in_parallel([partial(_sweep, t, f, moments, spans[i::share], slope) for i in range(share)])
    total = parts[0]
    for other in parts[1:]:
        total.value += other.value
        for power, jump in enumerate(other.jumps):
            total.jumps[power] += jump
    scale = 0.5 ** t.order.shape[1] if t.weight is None else 1.0
    value = torch.from_numpy(total.value * scale)
    if slope is None:
        return Mean(value, None, None)
    by_weight, by_offset = _gradient(t, total.jumps, slope)
    return Mean(value, torch.from_numpy(by_weight * scale), torch.from_numpy(by_offset * scale))


def rounding_of_look_ups(pieces: Pieces, n: int, k: int, reach: tuple[float, float]) -> float:
    """Bound the rounding of `look_up` for scores within `reach`; docs/explanation/engines.md derives it.

    >>> from parityscope.models import ZigZag
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> [rounding_of_look_ups(hinge(ZigZag(3).piecewise_linear(), 2), n, 3, (0, 3)) < 1e-9 for n in (10, 20, 40)]
    [True, True, True]
    """
    size = extent(pieces, *reach)
    degree, count = max(side.degree for side in pieces.sides()), max(len(side.centres) for side in pieces.sides())
    prefix = _longest_chain(1 << table_size(n, k))
    # 2Hu·W for differences of prefix sums, ((d + 1)·pieces + 2d)u·W for shifting and mixing (engines.md, "Split").
    of_moments = UNIT * (2 * prefix + (degree + 1) * count + 2 * degree) * size.total
    return of_moments + UNIT * chain(subset_count(n)) * size.peak + score_rounding(n, *reach) * size.steepest


def rounding_of_gradient(pieces: Pieces, n: int, k: int, reach: tuple[float, float]) -> float:
    """Bound the rounding of any entry of the gradient: that of the mean slope, and of the adjoint sums.

    >>> from parityscope.models import ZigZag
    >>> from parityscope.risk.pieces.pieces import hinge
    >>> [rounding_of_gradient(hinge(ZigZag(3).piecewise_linear(), 2), n, 3, (0, 3)) < 1e-5 for n in (10, 20, 40)]
    [True, True, True]
    """
    slopes = derivative(pieces)
    size, count = extent(slopes, *reach), max(len(side.centres) for side in slopes.sides())
    # The steps of all queries may meet at one table sum, one after another, and are cumulated along the table
    # (engines.md, "Split").
    table = table_size(n, k)
    adjoint = 2 * UNIT * (subset_count(table) + 4 * count * subset_count(n - table)) * size.total
    return adjoint + rounding_of_look_ups(slopes, n, k, reach)


def _prefix_moments(t: SumTables, degree: int) -> list[Floats | None]:
    """out[l][:, i] = sum of weight * s^l over the i smallest sums; None stands for i itself."""
    power, out = t.weight, [None if t.weight is None else _cumulated(t.weight)]
    for _ in range(degree):
        power = t.sums if power is None else power * t.sums
        out.append(_cumulated(power))
    return out


def _all_scores_mean(weights: Tensor, offset: Tensor, mask: Tensor, pieces: Pieces, bias: float) -> Mean:
    """Return E[L(y f(S))] and its gradient for R runs: weights (R, n), offset (R,), mask (R, n)."""
    c, b, hidden = weights.numpy(), offset.numpy(), mask.numpy()
    runs, n = c.shape
    value, by_weight, by_offset = np.empty(runs), np.empty((runs, n)), np.empty(runs)
    share = np.array([0.5**n]) if bias == 0.5 else _probabilities(n, bias)
    step = max(1, _SCORES_AT_ONCE >> n)
    for start in range(0, runs, step):
        rows = slice(start, start + step)
        odd = subset_sums(hidden[rows].astype(np.float64)) % 2
        losses, slopes = _losses(subset_sums(c[rows]) + b[rows, None], odd, pieces)
        slopes *= share
        value[rows] = (losses * share).sum(1)
        by_weight[rows], by_offset[rows] = sums_by_position(slopes, n), slopes.sum(1)
    return Mean(torch.from_numpy(value), torch.from_numpy(by_weight), torch.from_numpy(by_offset))


@lru_cache(maxsize=16)
def _probabilities(n: int, bias: float) -> Floats:
    return subset_products(np.full((1, n), 1 - bias), np.full((1, n), bias))


def _losses(S: Floats, odd: Floats, pieces: Pieces) -> tuple[Floats, Floats]:
    """Return the polynomial of the label at every score, and its derivative."""
    cuts, table = _stacked(pieces)
    piece = cuts.searchsorted(S, side="right")
    piece += (odd * (len(cuts) + 1)).astype(np.int64)
    centre, *coefs = table
    u = S - centre.take(piece)
    value = coefs[-1].take(piece)
    slope = np.zeros_like(u)
    for row in coefs[-2::-1]:
        slope *= u
        slope += value
        value *= u
        value += row.take(piece)
    return value, slope


@lru_cache(maxsize=64)
def _stacked(pieces: Pieces) -> tuple[Floats, Floats]:
    """Return the cuts of both labels, and rows (centre, coefficients…) of the pieces between them, label +1 first."""
    cuts = np.unique(np.concatenate([side.cuts.numpy() for side in pieces.sides()]))
    degree = max(side.degree for side in pieces.sides())
    table = np.zeros((degree + 2, 2 * (len(cuts) + 1)))
    for label, side in enumerate(pieces.sides()):
        # The piece to the right of each cut; to the left of them all, the first.
        at = np.concatenate([[0], side.cuts.numpy().searchsorted(cuts, side="right")])
        columns = slice(label * len(at), (label + 1) * len(at))
        table[0, columns] = side.centres.numpy()[at]
        table[1 : side.degree + 2, columns] = side.coefs.numpy()[at].T
    return cuts, table


def required_bytes(n: int, k: int) -> float:
    """Return about how much memory one run needs: a dozen numbers per table entry, two dozen per pair of queries.

    >>> [f"{required_bytes(n, 3):.0e}" for n in (20, 40, 60)]
    ['2e+05', '3e+08', '3e+11']
    """
    table = table_size(n, k)
    return 8.0 * (12 * subset_count(table) + 24 * subset_count(max(0, n - table - 1)))
