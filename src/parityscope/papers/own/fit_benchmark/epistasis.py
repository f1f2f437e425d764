"""Genotypes with pure epistasis: some loci decide together, and no smaller set of them shows anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int8, Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

_DRAWS = 5_000


@dataclass(frozen=True)
class Penetrance:
    """The risk of every combination of genotypes at k loci, `risk[g₁, …, g_k]`, and the loci's allele frequencies.

    >>> table = Penetrance(np.array([[0.2, 0.8, 0.2], [0.8, 0.2, 0.8], [0.2, 0.8, 0.2]]), (0.5, 0.5))
    >>> table.prevalence, table.marginal(0).tolist(), round(table.heritability, 6)
    (0.5, [0.5, 0.5, 0.5], 0.36)
    """

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

    >>> import torch
    >>> table = draw_penetrance((0.3, 0.4), heritability=0.1, generator=torch.Generator().manual_seed(0))
    >>> round(table.heritability, 9), table.marginal(0).round(9).tolist(), table.marginal(1).round(9).tolist()
    (0.1, [0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    """
    import torch

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

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> tables = [draw_penetrance((0.4, 0.4), heritability=0.2, generator=generator) for _ in range(2)]
    >>> X, y, pairs = draw_cases(20, 100, tables, generator=generator)
    >>> X.shape, y.shape, len(pairs), len(set(pairs[0] + pairs[1]))
    ((100, 20), (100,), 2, 4)
    """
    import torch

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


def draw_epistasis(
    loci: int, rows: int, *, heritability: float, generator: torch.Generator
) -> tuple[Int8[ndarray, "rows loci"], Int64[ndarray, " rows"], tuple[int, int]]:
    """Draw genotypes 0/1/2, a class 0/1 and the two loci whose interaction is the class's only cause.

    Genotypes are in Hardy-Weinberg equilibrium (allele frequency 1/2 at the two loci, 0.1 to 0.5 elsewhere). The risk
    is 1/2 ± δ, plus when exactly one of the two loci is heterozygous: a heterozygote has probability 1/2, so neither
    locus has a marginal effect. Heritability is the variance of the risk over that of the class, (2δ)².

    >>> import torch
    >>> X, y, support = draw_epistasis(20, 100, heritability=0.4, generator=torch.Generator().manual_seed(0))
    >>> X.shape, sorted(set(X.ravel().tolist())), len(support)
    ((100, 20), [0, 1, 2], 2)
    """
    import torch

    if loci < 2 or rows < 1 or not 0 <= heritability <= 1:
        raise InvalidInput(
            f"needs at least 2 loci, 1 row and a heritability from 0 to 1, got {loci}, {rows} and {heritability}"
        )
    first, second = sorted(torch.randperm(loci, generator=generator)[:2].tolist())
    frequency = 0.1 + 0.4 * torch.rand(loci, generator=generator)
    frequency[[first, second]] = 0.5
    alleles = torch.rand(2, rows, loci, generator=generator) < frequency
    genotypes = alleles.sum(0)
    one_heterozygous = (genotypes[:, first] == 1) ^ (genotypes[:, second] == 1)
    risk = 0.5 + heritability**0.5 / 2 * torch.where(one_heterozygous, 1.0, -1.0)
    affected = torch.rand(rows, generator=generator) < risk
    return genotypes.numpy().astype(np.int8), affected.long().numpy(), (first, second)


def _contrasts(q: float) -> Float64[ndarray, "two three"]:
    """Return the additive and the dominance contrast of one locus, by genotype."""
    p = 1 - q
    additive = (np.arange(3) - 2 * q) / math.sqrt(2 * p * q)
    return np.stack([additive, np.array([q / p, -1.0, p / q])])
