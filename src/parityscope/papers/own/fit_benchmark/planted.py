"""Tables whose interacting columns are known: what finders of interactions are compared on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.reading import read_table
from parityscope.papers.own.fit_benchmark.epistasis import draw_cases, draw_penetrance
from parityscope.problems import seeded_generator
from parityscope.records import Config

DATA_VARIABLE = "PARITYSCOPE_DATA"
_FILES = {"parity5+5": "parity5+5.tsv.gz", "GAMETES": "gametes-2way-20.tsv.gz"}
# What the two files are known to hide: Bits 2, 3, 4, 6, 8 (their parity is the class in every row), and P1, P2.
_KNOWN = {"parity5+5": ("Bit 2", "Bit 3", "Bit 4", "Bit 6", "Bit 8"), "GAMETES": ("P1", "P2")}
_FREQUENCIES = (0.3, 0.5)  # of the interacting loci


@dataclass(frozen=True)
class PlantedTable:
    """Columns, classes 0/1 and the sets of columns that were planted.

    >>> PlantedTable(np.zeros((4, 9)), np.zeros(4, dtype=np.int64), ((3, 7), (0, 5))).columns
    (0, 3, 5, 7)
    """

    X: ndarray
    y: Int64[ndarray, " rows"]
    interactions: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """All planted columns, ascending."""
        return tuple(sorted({column for some in self.interactions for column in some}))


class TableKind(Config):
    """One kind of table; a seed draws one of them.

    Parameters
    ----------
    kind : "bits", "genotypes", "conjunction", "parity5+5" or "GAMETES"
        *bits*: the class is the parity of k of n fair bits, flipped with probability `noise`. *genotypes*: a random
        penetrance table of k of n loci without effects of fewer, of the given heritability. *conjunction*: the class
        is whether all k bits are 1, flipped with probability `noise`; main effects and interaction together. The two
        files: their rows and columns in another order, as many rows as asked for.
    interactions : int
        With more than one each row owes its class to one of so many disjoint sets, drawn evenly. For k = 1 that is a
        sum of main effects.

    >>> table = TableKind(n=8, k=2, rows=5, noise=0.0).draw(seed=0)
    >>> table.X.shape, bool((table.X[:, table.columns].sum(axis=1) % 2 == table.y).all())
    ((5, 8), True)
    >>> print(TableKind(interactions=2))
    2 sets of k=2 of n=20, N=500, 10% noise
    """

    kind: Literal["bits", "genotypes", "conjunction", "parity5+5", "GAMETES"] = "bits"
    n: int = 20
    k: int = 2
    rows: int = 500
    noise: float = 0.1
    heritability: float = 0.4
    interactions: int = 1

    def __str__(self) -> str:
        sets = f"{self.interactions} sets of " if self.interactions > 1 else ""
        size = f"{sets}k={self.k} of n={self.n}, N={self.rows}"
        if self.kind in _FILES:
            return f"{self.kind} (file), {size}"
        if self.kind == "genotypes":
            return f"genotypes, {size}, h²={self.heritability:g}"
        return f"{'' if self.kind == 'bits' else self.kind + ', '}{size}, {self.noise:.0%} noise"

    def draw(self, seed: int) -> PlantedTable:
        """Draw the table of one seed."""
        if self.kind in _FILES:
            return self._from_file(seed)
        if self.n < self.k * self.interactions or self.k < 1:
            raise InvalidInput(f"{self.interactions} disjoint sets of {self.k} columns do not fit into {self.n}")
        return self._genotypes(seed) if self.kind == "genotypes" else self._bits(seed)

    def twin(self) -> TableKind:
        """Return the generated kind nearest to this one: what settings for a file are chosen on."""
        if self.kind == "parity5+5":
            return self.model_copy(update={"kind": "bits", "noise": 0.0})
        return self.model_copy(update={"kind": "genotypes"}) if self.kind == "GAMETES" else self

    def _bits(self, seed: int) -> PlantedTable:
        import torch

        generator = seeded_generator(seed, "data")
        order = torch.randperm(self.n, generator=seeded_generator(seed, "support"))
        sets = order[: self.k * self.interactions].view(self.interactions, self.k).sort(dim=1).values
        X = torch.randint(2, (self.rows, self.n), generator=generator)
        ones = X[:, sets].sum(dim=2)
        labels = ones % 2 if self.kind == "bits" else (ones == self.k).long()
        cause = torch.randint(self.interactions, (self.rows, 1), generator=generator)
        flipped = torch.rand(self.rows, generator=generator) < self.noise
        y = labels.gather(1, cause)[:, 0] ^ flipped.long()
        return PlantedTable(X.to(torch.int8).numpy(), y.numpy(), tuple(map(tuple, sets.tolist())))

    def _genotypes(self, seed: int) -> PlantedTable:
        import torch

        generator, tables = seeded_generator(seed, "data"), []
        low, high = _FREQUENCIES
        for _ in range(self.interactions):
            frequencies = low + (high - low) * torch.rand(self.k, generator=generator)
            tables.append(
                draw_penetrance(frequencies.tolist(), heritability=self.heritability, generator=generator),
            )
        return PlantedTable(*draw_cases(self.n, self.rows, tables, generator=generator))

    def _from_file(self, seed: int) -> PlantedTable:
        folder = os.environ.get(DATA_VARIABLE)
        if not folder:
            raise InvalidInput(f"{_FILES[self.kind]} is needed: set {DATA_VARIABLE} to the folder that holds it")
        table = read_table(Path(folder) / _FILES[self.kind])
        random = np.random.default_rng(seed)
        rows = random.permutation(table.rows)[: self.rows]
        columns = random.permutation([name for name in table.names if name != "class"])
        values = {name: table.column(place)[rows] for place, name in enumerate(table.names)}
        X, y = np.column_stack([values[name] for name in columns]).astype(np.int64), values["class"]
        known = sorted(int(np.flatnonzero(columns == name)[0]) for name in _KNOWN[self.kind])
        return PlantedTable(X, y.astype(np.int64), (tuple(known),))


def public_files() -> list[TableKind]:
    """Return the kinds of the public files that a data folder holds: all rows of each, then fewer.

    >>> all(kind.kind in ("parity5+5", "GAMETES") for kind in public_files())
    True
    """
    folder = os.environ.get(DATA_VARIABLE)
    shapes = [
        TableKind(kind="parity5+5", n=10, k=5, rows=1124),
        TableKind(kind="parity5+5", n=10, k=5, rows=150),
        TableKind(kind="GAMETES", rows=1600),
        TableKind(kind="GAMETES", rows=400),
    ]
    return [shape for shape in shapes if folder and (Path(folder) / _FILES[shape.kind]).is_file()]
