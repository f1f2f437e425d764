"""Tables whose interacting columns are known: what finders of interactions are compared on."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float64, Int8, Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.reading import read_table
from parityscope.problems import seeded_generator
from parityscope.records import Config

DATA_VARIABLE = "PARITYSCOPE_DATA"
_FILES = {"parity5+5": "parity5+5.tsv.gz", "GAMETES": "gametes-2way-20.tsv.gz"}
# What the two files are known to hide: Bits 2, 3, 4, 6, 8 (their parity is the class in every row), and P1, P2.
_KNOWN = {"parity5+5": ("Bit 2", "Bit 3", "Bit 4", "Bit 6", "Bit 8"), "GAMETES": ("P1", "P2")}
_FREQUENCIES = (0.3, 0.5)  # of the interacting loci
_DRAWS = 5_000  # of a penetrance table, until one has every risk between 0 and 1


@dataclass(frozen=True)
class Penetrance:
    """The risk of every combination of genotypes at k loci, `risk[g₁, …, g_k]`, and the loci's allele frequencies."""

    risk: Float64[ndarray, "*genotypes"]
    frequencies: tuple[float, ...]

    @property
    def prevalence(self) -> float:
        """The risk of a person drawn at random."""
        return float((self._shares() * self.risk).sum())

    @property
    def heritability(self) -> float:
        """The variance of the risk over that of the class."""
        variance = float((self._shares() * (self.risk - self.prevalence) ** 2).sum())
        return variance / (self.prevalence * (1 - self.prevalence))

    def marginal(self, *loci: int) -> Float64[ndarray, "*genotypes"]:
        """Return the risk given the genotypes of some loci alone: the prevalence, where they have no effect."""
        others = tuple(axis for axis in range(len(self.frequencies)) if axis not in loci)
        shares = self._shares()
        return np.asarray((shares * self.risk).sum(axis=others) / shares.sum(axis=others))

    def _shares(self) -> ndarray:
        """Return the probability of every combination, in Hardy-Weinberg equilibrium at independent loci."""
        shares = np.ones(())
        for q in self.frequencies:
            shares = np.multiply.outer(shares, np.array([(1 - q) ** 2, 2 * q * (1 - q), q * q]))
        return shares


def draw_penetrance(
    frequencies: Sequence[float], *, heritability: float, prevalence: float = 0.5, generator: torch.Generator
) -> Penetrance:
    """Draw a penetrance table in which only all the loci together have an effect, of the given heritability exactly.

    At one locus the functions without a mean are spanned by an additive and a dominance contrast, orthonormal in
    Hardy-Weinberg equilibrium. The effect is a combination of their products over the loci, one contrast from each: so
    no proper subset of the loci has an effect, and the variance is the sum of the squared coefficients. Directions are
    drawn evenly until one keeps every risk between 0 and 1.
    """
    if not frequencies or not all(0 < q < 1 for q in frequencies):
        raise InvalidInput(f"allele frequencies must lie between 0 and 1, got {tuple(frequencies)}")
    if not 0 < prevalence < 1 or not 0 <= heritability <= 1:
        raise InvalidInput(
            f"needs a prevalence between 0 and 1 and a heritability from 0 to 1, got {prevalence} and {heritability}"
        )
    contrasts = np.ones((1, 1))
    for q in frequencies:
        contrasts = np.kron(contrasts, _contrasts(q))
    size = math.sqrt(heritability * prevalence * (1 - prevalence))
    directions = torch.randn(_DRAWS, len(contrasts), generator=generator, dtype=torch.float64).numpy()
    effects = size * directions / np.linalg.norm(directions, axis=1, keepdims=True) @ contrasts
    possible = np.flatnonzero((effects.min(axis=1) >= -prevalence) & (effects.max(axis=1) <= 1 - prevalence))
    if not len(possible):
        raise InvalidInput(
            f"no table of heritability {heritability} at allele frequencies {tuple(frequencies)} in {_DRAWS} draws: "
            "lower the heritability or move the frequencies towards 0.5"
        )
    risk = prevalence + effects[possible[0]]
    return Penetrance(risk.reshape((3,) * len(frequencies)).clip(0, 1), tuple(map(float, frequencies)))


def draw_cases(
    loci: int, rows: int, tables: Sequence[Penetrance], *, generator: torch.Generator
) -> tuple[Int8[ndarray, "rows loci"], Int64[ndarray, " rows"], tuple[tuple[int, ...], ...]]:
    """Draw genotypes 0/1/2, a class 0/1 and the loci of every table, which are ascending and different.

    Each row's risk is that of one of the tables, drawn evenly: with more than one the trait is heterogeneous, half of
    the rows owe it to two loci and the other half to two others. Other loci have frequencies from 0.1 to 0.5.
    """
    if rows < 1 or loci < sum(len(table.frequencies) for table in tables) or not tables:
        raise InvalidInput(f"needs at least 1 row, a table and as many loci as the tables have, got {loci} loci")
    free = torch.randperm(loci, generator=generator).tolist()
    frequency = 0.1 + 0.4 * torch.rand(loci, generator=generator)
    chosen = []
    for table in tables:
        some = sorted(free.pop() for _ in table.frequencies)
        frequency[some] = torch.tensor(table.frequencies)
        chosen.append(tuple(some))
    genotypes = (torch.rand(2, rows, loci, generator=generator) < frequency).sum(0).numpy()
    risks = np.stack([table.risk[tuple(genotypes[:, some].T)] for table, some in zip(tables, chosen, strict=True)])
    cause = torch.randint(len(tables), (rows,), generator=generator).numpy()
    affected = torch.rand(rows, generator=generator).numpy() < risks[cause, np.arange(rows)]
    return genotypes.astype(np.int8), affected.astype(np.int64), tuple(chosen)


def _contrasts(q: float) -> Float64[ndarray, "two three"]:
    """Return the additive and the dominance contrast of one locus, by genotype."""
    p = 1 - q
    additive = (np.arange(3) - 2 * q) / math.sqrt(2 * p * q)
    return np.stack([additive, np.array([q / p, -1.0, p / q])])


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


# The kinds of tables that public files give: all rows of each, then fewer.
PUBLIC_FILES = (
    TableKind(kind="parity5+5", n=10, k=5, rows=1124),
    TableKind(kind="parity5+5", n=10, k=5, rows=150),
    TableKind(kind="GAMETES", rows=1600),
    TableKind(kind="GAMETES", rows=400),
)


def public_files() -> list[TableKind]:
    """Return the kinds of the public files that a data folder holds."""
    folder = os.environ.get(DATA_VARIABLE)
    return [shape for shape in PUBLIC_FILES if folder and (Path(folder) / _FILES[shape.kind]).is_file()]
