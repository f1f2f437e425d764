"""Every support: all pairs as one matrix product, triples and more in blocks, all sizes at once for few bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray

from parityscope.core.errors import naming_the_extra
from parityscope.estimator.evidence import phi
from parityscope.estimator.ranking import strongest

with naming_the_extra():
    from threadpoolctl import ThreadpoolController

WALSH_BITS = 20  # 2^20 characters take a tenth of a second
_KEPT = 4
_GROUP_NUMBERS = 2**22
_BLOCK_NUMBERS = 2**23  # 32 MB of floats at a time
_BLOCK_ROWS = 2**13  # longer rows leave the cache
_WORTH_A_THREAD = 4e9  # multiplications of one product: half a second of a core


class BitSet(NamedTuple):
    """Indices of the bits of a parity, and its correlation with the labels.

    >>> max([BitSet((0,), 0.3), BitSet((1, 2), -0.8)], key=lambda one: abs(one.strength)).bits  # either sign will do
    (1, 2)
    """

    bits: tuple[int, ...]
    strength: float


def cost(bits: int, k: int, rows: int) -> float:
    """Return the work of a search over all k-sets in multiplications, of which a core does about 7e9 a second.

    What each set costs beyond its rows is worth about 600 of them.

    >>> cost(100, 3, 5000) == math.comb(100, 3) * 5600
    True
    """
    return math.comb(bits, k) * (rows + 600.0)


def spectrum_cost(bits: int) -> float:
    """Return the work of the whole Walsh spectrum in the same unit: two transforms and a sort, by memory's speed.

    >>> spectrum_cost(20) / spectrum_cost(10) == 2 * 2**10
    True
    """
    return 60.0 * bits * 2.0**bits


def all_sizes(signs: Int8[ndarray, "bits rows"], labels: Int8[ndarray, " rows"], max_k: int) -> dict[int, list[BitSet]]:
    """Return the strongest parities of every size up to max_k, from the whole Walsh spectrum of the labels.

    The 2^n characters cost n·2^n additions, however large k is.

    >>> signs = np.random.RandomState(0).choice(np.array([-1, 1], dtype=np.int8), size=(6, 200))
    >>> all_sizes(signs, -signs[0] * signs[3] * signs[4], 5)[3][0]
    BitSet(bits=(0, 3, 4), strength=-1.0)
    """
    bits, rows = signs.shape
    index = np.zeros(rows, dtype=np.int64)
    for position, column in enumerate(signs):
        # The first bit is the highest, so that among sets of one size earlier bits make larger numbers.
        index |= (column < 0).astype(np.int64) << (bits - 1 - position)
    agreement = walsh(np.bincount(index, weights=labels, minlength=2**bits))
    signs_sum = walsh(np.bincount(index, minlength=2**bits).astype(float))
    strength = phi(agreement, signs_sum, float(labels.sum(dtype=np.int64)), rows)
    size = np.bitwise_count(np.arange(2**bits, dtype=np.uint64))
    found = {}
    for k in range(1, min(max_k, bits) + 1):
        members = np.flatnonzero(size == k)[::-1]  # in the order of their bits
        best = members[strongest(strength[members], _KEPT)].tolist()
        found[k] = [BitSet(tuple(j for j in range(bits) if s >> (bits - 1 - j) & 1), float(strength[s])) for s in best]
    return found


def walsh(values: Float[ndarray, " size"]) -> Float[ndarray, " size"]:
    """Return Σ_x values[x]·(−1)^{|x ∧ s|} for every s.

    >>> walsh(np.array([1.0, 0.0, 0.0, -1.0])).tolist()
    [0.0, 2.0, 2.0, 0.0]
    """
    spectrum = values.copy()
    half = 1
    while half < len(spectrum):
        pairs = spectrum.reshape(-1, 2, half)
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        half *= 2
    return spectrum


def of_size(signs: Int8[ndarray, "bits rows"], labels: Int8[ndarray, " rows"], k: int, owner: ndarray) -> list[BitSet]:
    """Return the strongest parities of k bits that belong to k different columns.

    For every set of k − 2 bits the correlations of all pairs above it are one product of matrices; sets with the same
    last bit share one. Sums of ±1 are exact in single precision up to 2^24 rows.

    >>> signs = np.random.RandomState(0).choice(np.array([-1, 1], dtype=np.int8), size=(30, 200))
    >>> of_size(signs, signs[5] * signs[11] * signs[28], 3, owner=np.arange(30))[0]
    BitSet(bits=(5, 11, 28), strength=1.0)
    """
    labels_sum, rows = float(labels.sum(dtype=np.int64)), len(labels)
    if k == 1:
        agreement = np.array([(column * labels).sum(dtype=np.int64) for column in signs], dtype=float)
        strength = phi(agreement, signs.sum(axis=1, dtype=np.int64).astype(float), labels_sum, rows)
        return _merge([], strength, np.empty((1, 0), dtype=int), 0)
    best: list[BitSet] = []
    different = np.triu(owner[:, None] != owner[None, :], 1)
    with _threads_for(len(signs) ** 2 * min(rows, _BLOCK_ROWS)):
        for prefixes, start in _prefixes(len(signs), rows, k, owner):
            products = np.ones((len(prefixes), rows), dtype=np.int8)
            for position in prefixes.T:
                products *= signs[position]
            above = signs[start:]
            agreement, signs_sum = _weighted_pairs(above, products * labels), _weighted_pairs(above, products)
            strength = phi(agreement, signs_sum, labels_sum, rows)  # (prefixes, above, above)
            free = (owner[start:, None] != owner[prefixes][:, None, :]).all(-1)  # (prefixes, above)
            strength *= different[start:, start:] & free[:, :, None] & free[:, None, :]
            best = _merge(best, strength, prefixes, start)
    return best


def _prefixes(bits: int, rows: int, k: int, owner: ndarray) -> Iterator[tuple[ndarray, int]]:
    """Yield sets of k − 2 bits of different columns with one last bit, and the first bit above it."""
    if k == 2:
        yield np.empty((1, 0), dtype=int), 0
        return
    for last in range(k - 3, bits - 2):
        above = bits - last - 1
        together = max(1, _GROUP_NUMBERS // (above * max(above, rows)))
        lower = combinations(range(last), k - 3)
        while some := list(islice(lower, together)):
            prefixes = np.column_stack([np.array(some, dtype=int).reshape(len(some), k - 3), np.full(len(some), last)])
            ordered = np.sort(owner[prefixes], axis=1)
            prefixes = prefixes[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]
            if len(prefixes):
                yield prefixes, last + 1


def _threads_for(multiplications: float) -> AbstractContextManager[Any]:
    """Keep small products on the calling thread: on a busy machine a team of threads mostly waits for its members."""
    return _blas().limit(limits=1 if multiplications < _WORTH_A_THREAD else None, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


def _weighted_pairs(signs: ndarray, weights: ndarray) -> Float[ndarray, "weightings bits bits"]:
    """Return Σ_r w_r z_ar z_br for all pairs (a, b) and every row of weights, a block of rows at a time."""
    (bits, rows), many = signs.shape, len(weights)
    total = np.zeros((many * bits, bits))
    step = min(_BLOCK_ROWS, max(1, _BLOCK_NUMBERS // (many * bits)))
    for start in range(0, rows, step):
        block = signs[:, start : start + step]
        left = (weights[:, None, start : start + step] * block).reshape(many * bits, -1)
        total += left.astype(np.float32) @ block.astype(np.float32).T
    return total.reshape(many, bits, bits)


def _merge(best: list[BitSet], strength: ndarray, prefixes: ndarray, start: int) -> list[BitSet]:
    """Return the best of both; the first axis of `strength` counts prefixes, the others bits from `start` on."""
    strength = strength.reshape(len(prefixes), -1) if strength.ndim == 1 else strength
    flat = np.abs(strength).ravel()
    # Not only the stronger ones: an equal one may come first in the order of bits.
    floor = abs(best[-1].strength) if len(best) == _KEPT else 0.0
    promising = np.flatnonzero((flat >= floor) & (flat > 0))
    promising = promising[strongest(flat[promising], _KEPT)]
    if not len(promising):
        return best
    new = []
    for which, *place in zip(*np.unravel_index(promising, strength.shape), strict=True):
        chosen = (*prefixes[which].tolist(), *(int(i) + start for i in place))
        new.append(BitSet(chosen, float(strength[(which, *place)])))
    return sorted([*best, *new], key=lambda one: (-abs(one.strength), one.bits))[:_KEPT]
