"""PLINK's genotypes: a file written bit by bit as its format says, and everything that can be wrong beside it."""

import builtins

import numpy as np
import pytest

from parityscope.core.errors import InvalidInput, MissingExtra
from parityscope.fit.tables.reading import read_table
from parityscope.fit.tables.table import MISSING

# Two bits per person, the first person lowest: 00 two copies of the first allele, 10 one, 11 none, 01 missing.
CODES = {2: 0b00, 1: 0b10, 0: 0b11, None: 0b01}


def write_bed(path, genotypes, phenotypes=("1", "2", "2", "1", "-9"), names=None):
    """Write genotypes, a list of persons per variant, by the published format and without the library."""
    content = bytearray([0x6C, 0x1B, 0x01])
    for variant in genotypes:
        codes = [CODES[copies] for copies in variant]
        for start in range(0, len(codes), 4):
            content.append(sum(code << (2 * place) for place, code in enumerate(codes[start : start + 4])))
    path.write_bytes(content)
    names = names or [f"rs{index}" for index in range(len(genotypes))]
    bim = [f"1\t{name}\t0\t{100 + index}\tA\tG" for index, name in enumerate(names)]
    path.with_suffix(".bim").write_text("\n".join(bim) + "\n")
    fam = [f"f{person} i{person} 0 0 1 {phenotype}" for person, phenotype in enumerate(phenotypes)]
    path.with_suffix(".fam").write_text("\n".join(fam) + "\n")


GENOTYPES = [[0, 1, 2, None, 1], [2, 2, 0, 1, 0]]


@pytest.fixture
def study(tmp_path):
    pytest.importorskip("bed_reader", reason="bed-reader is not installed")
    write_bed(tmp_path / "study.bed", GENOTYPES)
    return tmp_path / "study.bed"


def test_genotypes_alleles_and_phenotypes(study):
    table = read_table(study)
    assert table.names == ("rs0", "rs1", "phenotype")
    assert table.numbers.dtype == np.int8
    assert table.numbers.T.tolist() == [[0, 1, 2, MISSING, 1], [2, 2, 0, 1, 0]]
    assert table.texts[2].tolist() == ["1", "2", "2", "1", None]
    assert table.words[1] == ("G/G", "A/G", "A/A")
    assert 2 not in table.words
    assert table.missing() == {0: 1, 2: 1}


def test_phenotypes_of_other_names(study):
    write_bed(study, GENOTYPES, ("high", "low", "high", "low", "NA"))
    assert read_table(study).texts[2].tolist() == ["high", "low", "high", "low", None]


def test_variants_without_a_name_of_their_own(study):
    write_bed(study, [*GENOTYPES, GENOTYPES[0]], names=[".", "rs1", "rs1"])
    assert read_table(study).names == ("1:100", "rs1", "rs1 (1:102, variant 3)", "phenotype")


def test_files_that_are_not_there_or_damaged(study):
    study.with_suffix(".fam").unlink()
    with pytest.raises(InvalidInput, match=r"needs study\.fam beside it"):
        read_table(study)
    write_bed(study, GENOTYPES)
    study.write_bytes(b"half a file")
    with pytest.raises(InvalidInput, match=r"cannot be read as PLINK's \.bed"):
        read_table(study)


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    write_bed(tmp_path / "study.bed", GENOTYPES)
    real = builtins.__import__

    def without(name, *rest):
        if name == "bed_reader":
            raise ModuleNotFoundError(name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install 'parityscope\[plink\]'"):
        read_table(tmp_path / "study.bed")
