"""Which frequencies matter: the characteristic function of S is bounded on whole blocks of them by matrix products.

With G(t) = Σ cos tc_j over N positions, the means of 1 + cos tc_j give Π cos²(tc_j/2) ≤ ((1 + G/N)/2)^N. On a grid
t_a + t_b, G and its derivative are two products of matrices of inner size 2N. docs/explanation/engines.md derives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from parityscope.risk.pieces.rounding import UNIT

_Floats = npt.NDArray[Any]
Envelopes = Callable[[Tensor], tuple[Tensor, Tensor]]  # of frequencies: those of value and slope
_SINGLE = 2.0**-24  # half a unit in the last place of single precision
_ROOM = 2.0  # what a block's half width may add to G by its curvature
_COLUMNS, _ENTRIES = 4096, 1 << 18  # blocks of a row of the grid, and of a chunk of rows
_WORKERS, _BATCH = 2, 4  # threads, and chunks that they get at a time
_MOST_KEPT = 1 << 16  # blocks, of those that may be large because nothing is known of them
_MOST_IN_BLOCK = 1024  # multiples
_LOWEST = -80.0  # smaller powers of e are counted as this one, so that single precision holds them


class Bounds(NamedTuple):
    """What frequencies add at most to plain mass, value and slope: sums of M ≥ |φ| times the envelopes."""

    plain: float = 0.0
    value: float = 0.0
    slope: float = 0.0

    @classmethod
    def of(cls, mass: Tensor, starts: Tensor, envelopes: Envelopes) -> Bounds:
        """Bound groups of blocks that hold so much Σ M each; envelopes fall, so that those at their starts count."""
        value, slope = envelopes(starts)
        return cls(float(mass.sum()), float(mass @ value), float(mass @ slope))

    def plus(self, other: Bounds) -> Bounds:
        """Return the sums."""
        return Bounds(*(mine + more for mine, more in zip(self, other, strict=True)))


_NOTHING = Bounds()


class _Chunk(NamedTuple):
    """What a part of the scan found: Σ M of the rows where M is small, and the blocks where it is not, one by one."""

    starts: Tensor
    mass: Tensor
    block: Tensor
    largest: Tensor  # M of these


@contextmanager
def _true_single_precision() -> Iterator[None]:
    """Let no setting of the caller's shorten the factors of matrix products; autocast ends at a thread's border."""
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


def _product(left: _Floats, right: _Floats) -> _Floats:
    """Multiply on one thread: teams of threads wait for each other on a busy machine."""
    out: _Floats = (torch.from_numpy(left.astype(np.float32)) @ torch.from_numpy(right)).numpy()
    return out


@dataclass
class Scan:
    """Multiples of ``base``, block by block: M is kept where it is not tiny, and added up elsewhere.

    >>> scan = Scan(torch.arange(2.0, 82.0, dtype=torch.float64).sqrt() / 9, 0.1)
    >>> ones = lambda t: (t.new_ones(len(t)), t.new_ones(len(t)))
    >>> scan.extend(500.0, 1e-12, ones)
    >>> kept, rest = scan.select(Bounds(1.0, 1e-5, 1e-5), 1000, ones)  # of about 5000 multiples
    >>> bool(kept.max() < 100), scan.reach >= 500.0, rest.value < 2e-5
    (True, True, True)
    """

    c: Tensor  # of the positions whose cosines bound the characteristic function
    base: float
    reach: float = 0.0  # frequencies up to here are scanned
    rest: Bounds = _NOTHING
    _next: int = 0  # the block after the last one scanned
    _kept: int = 0  # blocks
    _tables: dict[int, tuple[_Floats, _Floats]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._weights = self.c.double().numpy()
        self._blocks, self._largest = [torch.empty(0, dtype=torch.int64)], [self.c.new_empty(0)]
        energy = float(np.square(self._weights).sum())
        # ½s²Σc_j² = _ROOM for a half width s of the block.
        wide = math.sqrt(2 * _ROOM / energy) if energy > 0 else 1.0
        self.per = int(max(1, min(_MOST_IN_BLOCK, 2 * wide / self.base)))  # multiples in a block
        self.half = self.per * self.base / 2
        self._curve = self.half**2 * energy / 2

    @property
    def _others(self) -> int:
        """One position may be left out of the product, as a gradient leaves out its own."""
        return max(1, len(self._weights) - 1)

    def _level(self, small: float) -> float:
        """Return the G beyond which a block is kept: its bound exceeds ``small``, and, after many, it is unusual."""
        level = self._others * (2 * min(1.0, small) ** (2 / self._others) - 1) - 1
        # Over all frequencies G has the variance N/2.
        return level if self._kept < _MOST_KEPT else max(level, 2.5 * math.sqrt(self._others) + 2 * _ROOM)

    @property
    def usual(self) -> float:
        """Return about what the bound on the product of cosines is on most blocks."""
        return 2.0 ** (-self._others / 2) * math.exp(1 + _ROOM / 2)

    def full(self, most: float) -> bool:
        """Say whether more frequencies are kept than these."""
        return self._kept * self.per > most

    def blocks(self, reach: float) -> int:
        """Return how many blocks there are up to a frequency."""
        return math.ceil(reach / self.base / self.per)

    def extend(self, reach: float, small: float, envelopes: Envelopes, most: float = math.inf) -> None:
        """Scan up to ``reach``; blocks where the product of cosines may exceed ``small`` are kept one by one.

        It ends before where more than ``most`` frequencies would be kept: attention recurs, and nobody evaluates them.
        """
        last = self.blocks(reach)
        with (
            _true_single_precision(),
            ThreadPoolExecutor(_WORKERS, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        ):
            while self._next < last and self._kept * self.per <= most:
                # Rows are short against their distance from 0, so that an envelope at their start is none too large.
                columns = 1 << max(0, min(_COLUMNS, self._next // 8, math.isqrt(last)).bit_length() - 1)
                rows = max(1, _ENTRIES // columns)
                until = min(last, self._next + min(max(64, self._next), _BATCH * rows * columns))
                firsts = range(self._next, until, rows * columns)
                counts = [min(rows, -(-(until - first) // columns)) for first in firsts]
                work = partial(self._chunk, self._table(columns), columns, self._level(small))
                for chunk in pool.map(work, firsts, counts):
                    self.rest = self.rest.plus(Bounds.of(chunk.mass, chunk.starts, envelopes))
                    self._blocks.append(chunk.block)
                    self._largest.append(chunk.largest)
                    self._kept += len(chunk.block)
                if self._kept > 4 * _MOST_KEPT:
                    self._forget(envelopes)
                self._next = firsts[-1] + counts[-1] * columns
        self.reach = self._next * self.per * self.base

    def _forget(self, envelopes: Envelopes) -> None:
        """Keep the most telling blocks only, and bound the others."""
        block, largest = torch.cat(self._blocks), torch.cat(self._largest)
        value, slope = envelopes((1 + block * self.per).double() * self.base)
        order = (largest * (value / value.max() + slope / slope.max())).argsort(descending=True)
        out, stay = order[_MOST_KEPT:], order[:_MOST_KEPT]
        self.rest = self.rest.plus(
            Bounds(*(self.per * float(of[out].sum()) for of in (largest, largest * value, largest * slope)))
        )
        self._blocks, self._largest, self._kept = [block[stay]], [largest[stay]], len(stay)

    def select(self, allowed: Bounds, most: int, envelopes: Envelopes) -> tuple[Tensor, Bounds]:
        """Return the multiples to evaluate, at most so many, and what all others hold: as few as the bounds allow."""
        block, largest = torch.cat(self._blocks), torch.cat(self._largest)
        value, slope = envelopes((1 + block * self.per).double() * self.base)
        mass = self.per * largest
        shares = torch.stack([mass / allowed.plain, mass * value / allowed.value, mass * slope / allowed.slope])
        order = shares.amax(0).argsort()
        skipped = int((shares[:, order].cumsum(1).amax(0) <= 1).sum())
        skipped = max(skipped, len(block) - most // self.per)
        out, taken = order[:skipped], block[order[skipped:]].sort().values
        kept = (1 + taken[:, None] * self.per + torch.arange(self.per)).flatten()
        return kept, self.rest.plus(Bounds(*(float(of[out].sum()) for of in (mass, mass * value, mass * slope))))

    def _table(self, columns: int) -> tuple[_Floats, _Floats]:
        if columns not in self._tables:
            angle = np.outer(self._weights, np.arange(columns) * (self.per * self.base))
            cos, sin = np.cos(angle), np.sin(angle)
            of_total, of_tilt = (np.concatenate(pair).astype(np.float32) for pair in ((cos, -sin), (cos, sin)))
            self._tables = {columns: (of_total, of_tilt)}  # a scan goes from few columns to many
        return self._tables[columns]

    def _chunk(self, table: tuple[_Floats, _Floats], columns: int, level: float, start: int, rows: int) -> _Chunk:
        """Scan so many rows of so many blocks."""
        n, c = len(self._weights), self._weights
        first = start + columns * np.arange(rows)
        middle = (1 + first * self.per + (self.per - 1) / 2) * self.base
        angle = np.outer(middle, c)
        cos, sin = np.cos(angle), np.sin(angle)
        total = _product(np.concatenate([cos, sin], 1), table[0])
        tilt = _product(np.concatenate([sin * c, cos * c], 1), table[1])
        np.abs(tilt, out=tilt)
        tilt *= np.float32(self.half)
        total += tilt
        # 2N additions in any order; inputs are rounded once, phases are double (engines.md, "Single precision").
        reach = middle[-1] + columns * 2 * self.half
        single = 1.01 * (2 * n + 8) * _SINGLE * (n + self.half * float(np.abs(c).sum()))
        slack = self._curve + single + 8 * UNIT * reach * float(np.abs(c).sum())
        # Far above the usual the bound is computed as it is, below that with log(1 + g) ≤ g.
        usual = min(level, math.sqrt(8 * self._others))
        cut = np.float32(usual - slack)
        row, column = np.nonzero(total > cut)
        far = total[row, column].astype(np.float64) + slack
        np.minimum(total, cut, out=total)
        total -= cut
        total *= np.float32(0.5)
        np.maximum(total, np.float32(_LOWEST), out=total)
        np.exp(total, out=total)
        total[row, column] = 0.0
        scale = math.exp((usual + 1) / 2 - self._others / 2 * math.log(2))
        mass = 1.001 * scale * total.sum(1, dtype=np.float64)
        live = far > level
        largest = 1.001 * ((1 + np.minimum(1.0, (far + 1) / self._others)) / 2).clip(min=0.0) ** (self._others / 2)
        np.add.at(mass, row[~live], largest[~live])
        return _Chunk(
            torch.from_numpy(middle - self.half + self.base / 2),
            self.per * torch.from_numpy(mass),
            torch.from_numpy(first[row[live]] + column[live]),
            torch.from_numpy(largest[live].clip(max=1.0)),
        )
