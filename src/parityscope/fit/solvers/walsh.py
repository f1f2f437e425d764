"""All 2ⁿ parities of a few columns at once: the Walsh transform of the labels, in single precision."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from parityscope.fit.bits.packed import WORD, TwoClasses
from parityscope.fit.evidence.evidence import phi
from parityscope.fit.evidence.ranking import strongest
from parityscope.fit.solvers.exhaustive import KEPT, BitSet

MOST_BITS = 28
MOST_ROWS = 2**24  # single precision counts exactly up to here
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


def all_sizes(rows: TwoClasses, max_k: int, *, kept: int = KEPT) -> dict[int, list[BitSet]]:
    """Return the strongest parities of every size up to max_k, from the whole spectrum of the labels.

    The 2^n characters cost n·2^n additions, however large k is.

    >>> signs = np.random.RandomState(0).choice(np.array([-1, 1], dtype=np.int8), size=(6, 200))
    >>> all_sizes(TwoClasses.from_signs(signs, -signs[0] * signs[3] * signs[4]), 5)[3][0]
    BitSet(bits=(0, 3, 4), strength=-1.0)
    """
    bits = rows.bits
    first, second = (np.bincount(index, minlength=2**bits).astype(np.float32) for index in _indices(rows))
    signs_sum = walsh(first + second)
    second -= first
    agreement = walsh(second)
    del first, second
    best: dict[int, list[BitSet]] = {k: [] for k in range(1, min(max_k, bits) + 1)}
    labels_sum = float(rows.second - rows.first)
    for start in range(0, 2**bits, _CHUNK):
        some = slice(start, min(2**bits, start + _CHUNK))
        strength = phi(agreement[some].astype(float), signs_sum[some].astype(float), labels_sum, rows.rows)
        size = np.bitwise_count(np.arange(some.start, some.stop, dtype=np.uint64))
        for k, known in best.items():
            floor = abs(known[-1].strength) if len(known) == kept else 0.0
            members = np.flatnonzero((size == k) & (np.abs(strength) >= floor) & (strength != 0))[::-1]
            chosen = members[strongest(strength[members], kept)].tolist()
            new = [BitSet(_members(start + s, bits), float(strength[s])) for s in chosen]
            best[k] = sorted([*known, *new], key=lambda one: (-abs(one.strength), one.bits))[:kept]
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


def _indices(rows: TwoClasses) -> tuple[ndarray, ndarray]:
    """Return every row's bits as a number, class by class; the first bit is the highest.

    So among sets of one size earlier bits make larger numbers.
    """
    found = []
    for words, count in ((rows.words[: rows.boundary], rows.first), (rows.words[rows.boundary :], rows.second)):
        index = np.zeros(WORD * len(words), dtype=np.int64)
        for position in range(rows.bits):
            ones = np.unpackbits(np.ascontiguousarray(words[:, position]).view(np.uint8), bitorder="little")
            index |= ones.astype(np.int64) << (rows.bits - 1 - position)
        found.append(index[:count])
    return found[0], found[1]


def _members(number: int, bits: int) -> tuple[int, ...]:
    return tuple(j for j in range(bits) if number >> (bits - 1 - j) & 1)
