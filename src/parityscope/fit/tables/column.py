"""One column of numbers that is searched: what its numbers stand for, and how a question about it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy import ndarray

from parityscope.fit.bits.bits import Bit
from parityscope.fit.tables.table import is_missing
from parityscope.fit.tables.target import spelled

UNSEEN = -1.0  # the code of text that has none of its own

Kind = Literal["number", "text", "genotype", "missing"]


@dataclass(frozen=True)
class SearchedColumn:
    """What a column of numbers that is searched says about a column of the table.

    >>> shift = SearchedColumn("shift", 0, "text", {0.0: "day", 1.0: "night"})
    >>> shift.numbers(np.array(["night", "day", "noon"], dtype=object)).tolist()  # noon was never seen
    [1.0, 0.0, -1.0]
    >>> shift.describe(Bit(0, levels=(1.0,))), shift.describe(Bit(0, levels=(1.0,)), yes=False)
    ('shift = night', 'shift ≠ night')
    >>> SearchedColumn("heat", 1).describe(Bit(1, threshold=53.0), yes=False)
    'heat ≤ 53'
    """

    name: str
    place: int  # among the table's columns without the target
    kind: Kind = "number"
    words: dict[float, str] | None = None  # what numbers stand for
    fill: float | None = None  # what a missing value becomes, if it may

    def numbers(self, values: ndarray) -> ndarray:
        """Return the column as numbers, from floats with NaN or text with None; NaN stays where nothing was chosen."""
        if self.kind == "missing":
            return is_missing(values).astype(float)
        if self.kind == "text":
            codes = {word: code for code, word in (self.words or {}).items()}
            fill = np.nan if self.fill is None else self.fill
            return np.array([fill if value is None else codes.get(value, UNSEEN) for value in values], dtype=float)
        return values if self.fill is None else np.where(np.isnan(values), self.fill, values)

    def spelled(self, value: float) -> str:
        """Return a value as it stands in the file."""
        return (self.words or {}).get(float(value)) or spelled(value)

    def describe(self, bit: Bit, *, yes: bool = True) -> str:
        """Return the question of a bit about this column as text, answered with yes or no."""
        if self.kind == "missing":
            return f"{self.name} is {'missing' if yes else 'known'}"
        words = bit.describe if yes else bit.deny
        return words(self.name, self.spelled) + self._inheritance(bit)

    def _inheritance(self, bit: Bit) -> str:
        """Say how an allele would have to act for a split of genotypes to matter."""
        if self.kind != "genotype" or self.words is None:
            return ""
        allele = self.words[2.0].partition("/")[0]
        names = {(1.0,): "heterozygous", (2.0,): f"{allele} recessive", (1.0, 2.0): f"{allele} dominant"}
        return f" ({names[bit.levels]})" if bit.levels in names else ""
