"""PLINK 1.9's fast epistasis on a table: genotypes are written as .bed, .bim and .fam, the report is read back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput

Test = Literal["allelic", "boost", "joint-effects", "no-ueki"]
# Two bits a genotype, by the number of A1 alleles; 01 is a missing one.
_CODES = np.array([0b11, 0b10, 0b00], dtype=np.uint8)
_ALL_PAIRS = 20_000


class PairTest(NamedTuple):
    """Two columns and the statistic of their interaction.

    >>> PairTest((3, 7), 41.5).pair
    (3, 7)
    """

    pair: tuple[int, int]
    statistic: float


def installed() -> str | None:
    """Return the path of PLINK 1.9, which Debian names plink1.9, or None.

    >>> path = installed()
    >>> path is None or "plink" in path
    True
    """
    found = shutil.which("plink1.9")
    if found is None and (other := shutil.which("plink")):
        # PuTTY has a program of that name too.
        said = subprocess.run([other, "--version"], capture_output=True, text=True, check=False).stdout
        found = other if said.startswith("PLINK v1.9") else None
    return found


def fast_epistasis(genotypes: ndarray, y: Int64[ndarray, " rows"], test: Test = "allelic") -> list[PairTest]:
    """Return the pairs that PLINK reports, the strongest first; genotypes are 0, 1 or 2.

    Up to 20 000 pairs all are reported, of more only those below p = 0.001.

    >>> X = np.random.default_rng(0).integers(3, size=(300, 5))
    >>> y = (X[:, 1] == 1).astype(np.int64) ^ (X[:, 3] == 1)
    >>> fast_epistasis(X, y, "boost")[0].pair if installed() else (1, 3)
    (1, 3)
    """
    program = installed()
    if program is None:
        raise InvalidInput("PLINK 1.9 is not installed: apt-get install plink1.9, or put its plink on the PATH")
    pairs = genotypes.shape[1] * (genotypes.shape[1] - 1) // 2
    threshold = "1" if pairs <= _ALL_PAIRS else "0.001"
    modifier = [] if test == "allelic" else [test]
    with TemporaryDirectory() as folder:
        write_bed(Path(folder) / "table", genotypes, y)
        command = [program, "--bfile", "table", "--allow-no-sex", "--threads", "1", "--out", "found"]
        command += ["--fast-epistasis", *modifier, "--epi1", threshold]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        report = Path(folder) / "found.epi.cc"
        if not report.is_file():
            raise InvalidInput(f"PLINK wrote no report: {(done.stderr or done.stdout).strip()[-200:]}")
        return _read(report)


def write_bed(stem: Path, genotypes: ndarray, y: Int64[ndarray, " rows"]) -> None:
    """Write PLINK's three files: one variant a column, one person a row, cases where y is 1.

    >>> with TemporaryDirectory() as folder:
    ...     write_bed(Path(folder) / "small", np.array([[0], [1], [2]]), np.array([0, 1, 1]))
    ...     [format(byte, "08b") for byte in (Path(folder) / "small.bed").read_bytes()]
    ['01101100', '00011011', '00000001', '00001011']
    """
    rows, columns = genotypes.shape
    codes = np.zeros((columns, -(-rows // 4) * 4), dtype=np.uint8)
    codes[:, :rows] = _CODES[genotypes.astype(np.int64).T]
    packed = (codes.reshape(columns, -1, 4) << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=2, dtype=np.uint8)
    stem.with_suffix(".bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    stem.with_suffix(".bim").write_text("".join(f"1\t{c}\t0\t{c + 1}\tA\tC\n" for c in range(columns)))
    stem.with_suffix(".fam").write_text("".join(f"{row} {row} 0 0 0 {1 + label}\n" for row, label in enumerate(y, 1)))


def _read(report: Path) -> list[PairTest]:
    found = []
    with report.open() as lines:
        places = next(lines).split()
        first, second, statistic = (places.index(name) for name in ("SNP1", "SNP2", "STAT"))
        for line in lines:
            words = line.split()
            value = float(words[statistic]) if words[statistic] not in ("NA", "nan") else 0.0
            found.append(PairTest((int(words[first]), int(words[second])), value))
    return sorted(found, key=lambda one: -one.statistic)
