"""All 2ⁿ parities of a few columns at once: the Walsh transform of the residuals, in single precision."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from parityscope.fit.bits.encoding import BitTable
from parityscope.fit.bits.packed import unpack
from parityscope.fit.solvers.scan import KEPT, BitSet, strongest

MOST_BITS = 28
_FACTOR = 6  # 2^6 characters are one product of matrices
_CHUNK = 2**20
_SECONDS = 1.2e-9  # per number and factor


def seconds(bits: int, rows: int) -> float:
    """Return roughly how long two transforms of 2^bits numbers take, and reading the rows.

    >>> seconds(10, 1000) < 0.01 < seconds(20, 1000) < 1 < seconds(27, 1000)
    True
    """
    return 2.0**bits * (2 * bits * _SECONDS + 30e-9) + rows * bits * 4e-9


def memory(bits: int) -> float:
    """Return how many bytes the spectrum takes: the labels', that of the rows, and one of them once more.

    >>> memory(26) / 2**20  # megabytes
    768.0
    """
    return 12.0 * 2**bits


def all_sizes(table: BitTable, residuals: ndarray, variance: ndarray, max_k: int) -> dict[int, list[BitSet]]:
    """Return the strongest parities of every size up to max_k, from the whole spectrum of the residuals.

    The 2^n characters cost n·2^n additions, however large k is.

    >>> from parityscope.fit.bits.encoding import encode
    >>> X = np.random.RandomState(0).randint(2, size=(200, 6))
    >>> odd = X[:, [0, 3, 4]].sum(axis=1) % 2
    >>> all_sizes(encode(X, np.arange(200)), odd - 0.5, np.full(200, 0.25), 5)[3][0].bits
    (0, 3, 4)
    """
    bits, index = len(table.bits), _indices(table)
    score = walsh(np.bincount(index, weights=residuals, minlength=2**bits).astype(np.float32))
    mean = walsh(np.bincount(index, weights=variance, minlength=2**bits).astype(np.float32))
    total = float(variance.sum())
    best: dict[int, list[BitSet]] = {k: [] for k in range(1, min(max_k, bits) + 1)}
    for start in range(0, 2**bits, _CHUNK):
        some = slice(start, min(2**bits, start + _CHUNK))
        left = 1 - (mean[some] / total) ** 2
        strength = np.where(left > 1e-6, score[some] / np.sqrt(np.maximum(left, 1e-6) * total), 0.0)
        size = np.bitwise_count(np.arange(some.start, some.stop, dtype=np.uint64))
        for k, known in best.items():
            floor = abs(known[-1].strength) if len(known) == KEPT else 0.0
            members = np.flatnonzero((size == k) & (np.abs(strength) >= floor) & (strength != 0))[::-1]
            chosen = members[strongest(strength[members], KEPT)].tolist()
            new = [BitSet(_members(start + s, bits), float(strength[s])) for s in chosen]
            best[k] = sorted([*known, *new], key=lambda one: (-abs(one.strength), one.bits))[:KEPT]
    return best


def walsh(values: Float32[ndarray, " size"]) -> Float32[ndarray, " size"]:
    """Return Σ_x values[x]·(−1)^{|x ∧ s|} for every s: a product with a small Hadamard matrix per six bits.

    >>> walsh(np.array([1.0, 0.0, 0.0, -1.0], dtype=np.float32)).tolist()
    [0.0, 2.0, 2.0, 0.0]
    """
    bits = int(math.log2(len(values)))
    spectrum = values
    done = 0
    while done < bits:
        factor = min(_FACTOR, bits - done)
        inner = 2**done
        if inner == 1:
            spectrum = (spectrum.reshape(-1, 2**factor) @ _hadamard(factor)).reshape(-1)
        else:
            spectrum = np.matmul(_hadamard(factor), spectrum.reshape(-1, 2**factor, inner)).reshape(-1)
        done += factor
    return spectrum


@cache
def _hadamard(bits: int) -> Float32[ndarray, "size size"]:
    index = np.arange(2**bits, dtype=np.uint64)
    return (1 - 2 * (np.bitwise_count(index[:, None] & index) % 2).astype(np.float32)).astype(np.float32)


def _indices(table: BitTable) -> ndarray:
    """Return every row's answers as a number; the first question is the highest bit.

    So among sets of one size earlier questions make larger numbers.
    """
    index = np.zeros(sum(table.lengths), dtype=np.int64)
    for position in range(len(table.bits)):
        ones = unpack(table.words[:, position : position + 1], table.lengths)[0] < 0
        index |= ones.astype(np.int64) << (len(table.bits) - 1 - position)
    return index


def _members(number: int, bits: int) -> tuple[int, ...]:
    return tuple(j for j in range(bits) if number >> (bits - 1 - j) & 1)
