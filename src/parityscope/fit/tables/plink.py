"""PLINK's genotypes: .bed with its .bim and .fam, read by the library bed-reader (extra `plink`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput, MissingExtra
from parityscope.fit.tables.table import MISSING, DataTable

PHENOTYPE = "phenotype"  # what the last column of .fam is called here
_UNREAD = -127  # what bed-reader writes where a genotype is missing
_NO_PHENOTYPE = ("-9", "0", "NA", "")


class Genotypes(Mapping[int, tuple[str, ...]]):
    """What 0, 1 and 2 mean at every variant: how many copies of the first allele there are.

    >>> Genotypes(np.array(["A"]), np.array(["G"]), variants=1)[0]
    ('G/G', 'A/G', 'A/A')
    """

    def __init__(self, first: ndarray, second: ndarray, variants: int) -> None:
        self._first, self._second, self._variants = first, second, variants

    def __getitem__(self, place: int) -> tuple[str, ...]:
        if not 0 <= place < self._variants:
            raise KeyError(place)
        first, second = str(self._first[place]), str(self._second[place])
        return f"{second}/{second}", f"{first}/{second}", f"{first}/{first}"

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._variants))

    def __len__(self) -> int:
        return self._variants


def read_plink(path: Path) -> DataTable:
    """Return the genotypes of a .bed file, one column per variant, and the phenotype of its .fam as the last column.

    PLINK writes 1 for controls and 2 for cases; 0 and −9 mean that nobody knows.
    """
    try:
        from bed_reader import open_bed
    except ModuleNotFoundError:
        raise MissingExtra("this needs bed_reader, which is not installed: pip install 'parityscope[plink]'") from None
    for suffix in (".bim", ".fam"):
        if not path.with_suffix(suffix).is_file():
            raise InvalidInput(f"{path} needs {path.with_suffix(suffix).name} beside it, which is not there")
    try:
        with open_bed(path) as bed:
            alleles, names = (bed.allele_1, bed.allele_2), _names(bed.sid, bed.chromosome, bed.bp_position)
            phenotypes = [None if value in _NO_PHENOTYPE else value for value in map(str, bed.pheno)]
            numbers = bed.read(dtype=np.int8, order="F", num_threads=1)
    except Exception as error:  # of damaged files the library raises whatever it stumbles upon
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(f"{path} cannot be read as PLINK's .bed: {reason}") from None
    if not numbers.size:
        raise InvalidInput(f"{path} has no rows")
    in_memory = numbers.T.reshape(-1)  # a view in the order of memory: any other order takes a hundred times as long
    in_memory[in_memory == _UNREAD] = MISSING
    words = Genotypes(*alleles, variants=len(names))
    texts = {len(names): np.array(phenotypes, dtype=object)}
    return DataTable((*names, PHENOTYPE), numbers, np.arange(len(names)), texts, words)


def _names(identifiers: ndarray, chromosomes: ndarray, positions: ndarray) -> tuple[str, ...]:
    """Return the variants' names; those without one, or with another's, are told apart by where they are."""
    names, seen = [], {PHENOTYPE}
    for index, given in enumerate(map(str, identifiers)):
        name = given if given not in (".", "0", "") else f"{chromosomes[index]}:{positions[index]}"
        while name in seen:
            name = f"{name} ({chromosomes[index]}:{positions[index]}, variant {index + 1})"
        seen.add(name)
        names.append(name)
    return tuple(names)
