"""From examples to hidden bits: attention grows position by position along the gradient of the empirical correlation.

Weight 1 on some named positions A and an even rest of total λ turn the bounded readout into
ŷ = Π_{a∈A} s_a · cos(π(k−|A|)/2 − εR), with signs s = 1 − 2·bit, R their sum over the n − |A| others and
ε = πλ/(2(n−|A|)). The gradient of (1/N) Σ yŷ is, up to π/2, the mean of y·Π_A s_a·sin(π(k−|A|)/2 − εR)·s_l. In the
population its largest entries are the hidden bits that A misses, whenever A is hidden, and it is 0 elsewhere when A is
not. At first that takes n^{k−1} log n examples. So n paths are followed instead of one: the n best sets of every size.
A set that starts with a hidden bit needs n^{k−2} log n, and the last gradient, whose entries are correlations, decides.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int8, Int64
from torch import Tensor

from parityscope.core.ties import ranked
from parityscope.theory import wide_phase

_BLOCK = 2**22  # numbers


class NamedSet(NamedTuple):
    """What examples say the hidden bits are, and how sure that is.

    >>> one = NamedSet.of((1, 3), 0.5, examples=400, n=10)
    >>> one.z, round(one.log_chance, 6)  # log 45 − 50
    (10.0, -46.193338)
    """

    support: tuple[int, ...]  # ascending
    correlation: float  # mean over the examples of the label times the parity of these bits
    z: float  # that in standard errors of pure chance, 1/√N
    # Of a bound on the chance that any set of this size does as well when labels are coin flips: C(n, k)·exp(−z²/2), by
    # Hoeffding.
    log_chance: float

    @classmethod
    def of(cls, support: tuple[int, ...], correlation: float, examples: int, n: int) -> NamedSet:
        """Judge a set by its correlation on some examples."""
        z = math.sqrt(examples) * correlation
        return cls(support, correlation, z, math.log(math.comb(n, len(support))) - max(0.0, z) ** 2 / 2)


def named_set(x: Int8[Tensor, "count n"], y: Int8[Tensor, " count"], k: int) -> NamedSet:
    """Return the k positions whose parity the examples support best, among the ends of n paths."""
    count, n = x.shape
    named = torch.zeros(1, 0, dtype=torch.int64)
    while named.shape[1] < k:
        gradients = path_gradients(x, y, named, k)
        last = named.shape[1] == k - 1
        # A set of m bits is reached from up to m others.
        best = ranked(gradients.flatten())[: (1 if last else n) * (named.shape[1] + 1)]
        best = best[gradients.flatten()[best].isfinite()]  # no set takes a position twice
        grown = torch.cat([named[best // n], (best % n)[:, None]], dim=1)
        distinct = dict.fromkeys(tuple(sorted(positions)) for positions in grown.tolist())
        named = torch.tensor(list(distinct)[: 1 if last else n])
    return NamedSet.of(tuple(named[0].tolist()), float(gradients.max()), count, n)


def path_gradients(
    x: Int8[Tensor, "count n"], y: Int8[Tensor, " count"], named: Int64[Tensor, "paths m"], k: int
) -> Float[Tensor, "paths n"]:
    """Return the gradient of the empirical correlation where attention has named some positions, −∞ at those."""
    (count, n), (paths, m) = x.shape, named.shape
    left = k - m
    # ε = πλ/(2(n − |A|)) with the λ of the strongest signal; the last gradient is the correlation itself.
    turn = math.pi * wide_phase(n - m, left) / (2 * (n - m)) if left > 1 else 0.0
    total = torch.zeros(paths, n, dtype=torch.float64)
    rows = max(1, _BLOCK // max(paths, n))
    for bits, labels in zip(x.split(rows), y.split(rows), strict=True):
        signs = 1 - 2 * bits.float()
        parity, rest = labels.float()[:, None].expand(-1, paths), signs.sum(-1, keepdim=True)
        for some in named.T:
            parity, rest = parity * signs[:, some], rest - signs[:, some]
        # Single precision for the sum over a block: its rounding is far below the noise of the examples.
        total += ((parity * (math.pi * left / 2 - turn * rest).sin()).T @ signs).double()
    return (total / count).scatter_(1, named, -torch.inf).float()


class Evidence(NamedTuple):
    """How sure it is that the named bits are the hidden ones, one entry per run."""

    k: Int64[Tensor, " runs"]  # how many bits were named
    z: Float[Tensor, " runs"]  # their parity's correlation with the labels, in standard errors; infinite if exact
    chance: Float[Tensor, " runs"]  # at most, that some candidate does as well on labels that are coin flips

    @classmethod
    def certain(cls, k: Int64[Tensor, " runs"]) -> Evidence:
        """Return the evidence of a population."""
        return cls(k, torch.full_like(k, torch.inf, dtype=torch.float64), torch.zeros_like(k, dtype=torch.float64))

    def sentences(self) -> tuple[str, ...]:
        """Say it in words, run by run."""
        rows = zip(self.k.tolist(), self.z.tolist(), self.chance.tolist(), strict=True)
        return tuple(
            f"k = {k}, z = {z:.1f}, chance ≤ {chance:.1g}" if math.isfinite(z) else f"k = {k}" for k, z, chance in rows
        )


def evidence_of(named: list[NamedSet], sizes: int) -> Evidence:
    """Return the evidence of every run's set, chosen among so many sizes.

    >>> evidence_of([NamedSet.of((1, 3), 0.0, examples=400, n=10)], sizes=3).chance.tolist()
    [1.0]
    """
    chance = torch.tensor([one.log_chance for one in named], dtype=torch.float64) + math.log(sizes)
    return Evidence(
        torch.tensor([len(one.support) for one in named]),
        torch.tensor([one.z for one in named], dtype=torch.float64),
        chance.clamp(max=0.0).exp(),
    )
