"""Every support: all pairs as one matrix product, triples and more in blocks, all sizes at once for few bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int8
from numpy import ndarray

from parityscope.estimator.evidence import phi
from parityscope.threads import single_threaded

WALSH_BITS = 20  # 2^20 characters take a tenth of a second
_KEPT = 4
_PRODUCT_OVERHEAD = 2e6
_BLOCK_NUMBERS = 2**23  # 32 MB of floats at a time
_WORTH_A_THREAD = 1e9  # multiplications of one product


class Scored(NamedTuple):
    """Indices of the bits of a parity, and its correlation with the labels."""

    bits: tuple[int, ...]
    strength: float


def cost(bits: int, k: int, rows: int) -> float:
    """Return the multiplications of a search over all k-sets: what decides whether it is affordable.

    Each product of matrices takes as long as two million multiplications before it starts.

    >>> cost(100, 3, 5000) == math.comb(100, 3) * 5000 + 100 * 2e6
    True
    """
    return math.comb(bits, k) * float(rows) + math.comb(bits, max(0, k - 2)) * _PRODUCT_OVERHEAD


def all_sizes(signs: Int8[ndarray, "bits rows"], labels: Int8[ndarray, " rows"], max_k: int) -> dict[int, list[Scored]]:
    """Return the strongest parities of every size up to max_k, from the whole Walsh spectrum of the labels.

    The 2^n characters cost n·2^n additions, however large k is.
    """
    bits, rows = signs.shape
    index = np.zeros(rows, dtype=np.int64)
    for position, column in enumerate(signs):
        index |= (column < 0).astype(np.int64) << position
    agreement = walsh(np.bincount(index, weights=labels, minlength=2**bits))
    signs_sum = walsh(np.bincount(index, minlength=2**bits).astype(float))
    strength = phi(agreement, signs_sum, float(labels.sum(dtype=np.int64)), rows)
    size = np.bitwise_count(np.arange(2**bits, dtype=np.uint64))
    found = {}
    for k in range(1, min(max_k, bits) + 1):
        members = np.flatnonzero(size == k)
        best = members[np.argsort(-np.abs(strength[members]), kind="stable")[:_KEPT]]
        found[k] = [Scored(tuple(j for j in range(bits) if s >> j & 1), float(strength[s])) for s in best.tolist()]
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


def of_size(signs: Int8[ndarray, "bits rows"], labels: Int8[ndarray, " rows"], k: int, owner: ndarray) -> list[Scored]:
    """Return the strongest parities of k bits that belong to k different columns.

    For every set of k − 2 bits the correlations of all pairs above it are one product of matrices. Sums of ±1 are
    exact in single precision up to 2^24 rows.
    """
    best: list[Scored] = []
    different = np.triu(owner[:, None] != owner[None, :], 1)
    with single_threaded(len(signs) ** 2 * len(labels) < _WORTH_A_THREAD):
        for prefix, start, agreement, signs_sum in _moments(signs, labels, k, owner):
            strength = phi(agreement, signs_sum, float(labels.sum(dtype=np.int64)), len(labels))
            if k > 1:
                strength = np.where(different[start:, start:], strength, 0.0)
            if prefix:
                taken = np.isin(owner[start:], owner[list(prefix)])
                strength[taken] = 0.0
                strength[:, taken] = 0.0
            best = _merge(best, strength, prefix, start)
    return best


def _moments(
    signs: ndarray, labels: ndarray, k: int, owner: ndarray
) -> Iterator[tuple[tuple[int, ...], int, ndarray, ndarray]]:
    """Yield (prefix, first bit after it, Σχy, Σχ) for every prefix of k − 2 bits."""
    bits = len(signs)
    if k == 1:
        agreement = np.array([(column * labels).sum(dtype=np.int64) for column in signs], dtype=float)
        yield (), 0, agreement, signs.sum(axis=1, dtype=np.int64).astype(float)
        return
    for prefix in combinations(range(bits), k - 2):
        start = prefix[-1] + 1 if prefix else 0
        if bits - start < 2 or len(set(owner[list(prefix)].tolist())) < len(prefix):
            continue
        product = np.prod(signs[list(prefix)], axis=0, dtype=np.int8) if prefix else np.ones_like(labels)
        above = signs[start:]
        yield prefix, start, _weighted_pairs(above, product * labels), _weighted_pairs(above, product)


def _weighted_pairs(signs: ndarray, weights: ndarray) -> Float[ndarray, "bits bits"]:
    """Return Σ_r w_r z_ar z_br for all pairs (a, b), a block of rows at a time."""
    bits, rows = signs.shape
    total = torch.zeros(bits, bits, dtype=torch.float64)
    step = max(1, _BLOCK_NUMBERS // bits)
    for start in range(0, rows, step):
        block = torch.from_numpy(signs[:, start : start + step]).float()
        total += (block * torch.from_numpy(weights[start : start + step])) @ block.T
    return total.numpy()


def _merge(best: list[Scored], strength: ndarray, prefix: tuple[int, ...], start: int) -> list[Scored]:
    flat = np.abs(strength).ravel()
    floor = best[-1].strength if len(best) == _KEPT else 0.0
    if flat.max(initial=0.0) <= abs(floor):
        return best
    top = np.argpartition(-flat, min(_KEPT, flat.size) - 1)[:_KEPT]
    places = zip(*np.unravel_index(top, strength.shape), strict=True)
    new = [Scored((*prefix, *(int(i) + start for i in place)), float(strength[place])) for place in places]
    ranked = sorted([*best, *(one for one in new if one.strength)], key=lambda one: (-abs(one.strength), one.bits))
    return ranked[:_KEPT]
