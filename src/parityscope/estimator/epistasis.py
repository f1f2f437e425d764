"""Genotypes with pure epistasis: two loci decide together, and neither shows anything alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int8, Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput

if TYPE_CHECKING:
    import torch


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
