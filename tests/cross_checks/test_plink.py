"""P-values of pairs against PLINK 1.9, the usual program for epistasis in genetics."""

import itertools
import math
import shutil
import subprocess

import numpy as np
import pytest

from parityscope import SparseParityClassifier
from parityscope.fit.evidence.evidence import exact_log_p

PLINK = shutil.which("plink1.9") or shutil.which("plink")
pytestmark = pytest.mark.skipif(PLINK is None, reason="needs PLINK 1.9: apt-get install plink1.9")

COLUMNS, ROWS = 12, 400  # as many cases as controls: the two usual two-sided exact p-values are then equal
PRINTED = 1e-3  # PLINK prints four digits
PAIRS = list(itertools.combinations(range(COLUMNS), 2))


def study(seed, noise):
    """Return bits and labels of which a pair decides, half of them cases."""
    random = np.random.RandomState(seed)
    X = random.randint(0, 2, (20 * ROWS, COLUMNS))
    pair = PAIRS[random.randint(len(PAIRS))]
    y = np.where(random.rand(len(X)) < noise, random.randint(0, 2, len(X)), X[:, pair].sum(1) % 2)
    rows = random.permutation(np.concatenate([np.flatnonzero(y == label)[: ROWS // 2] for label in (0, 1)]))
    return pair, X[rows], y[rows]


def plink(folder, variants, y, *arguments):
    """Run PLINK on 0/1 columns, each a variant of two homozygotes; return its report's lines as dictionaries."""
    genotypes = {0: "C C", 1: "A A"}
    lines = (f"1 {name} 0 {place} " + " ".join(genotypes[bit] for bit in bits) for place, (name, bits) in variants)
    (folder / "study.tped").write_text("\n".join(lines) + "\n")
    (folder / "study.tfam").write_text("".join(f"{i} {i} 0 0 1 {label + 1}\n" for i, label in enumerate(y, 1)))
    command = [PLINK, "--tfile", "study", "--out", "told", "--threads", "1", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    (report,) = (path for path in folder.glob("told.*") if path.suffix in (".model", ".cc"))
    header, *rows = (line.split() for line in report.read_text().splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def log_p(X, y, pair):
    signs = (1 - 2 * (X[:, pair].sum(1) % 2)).astype(np.int8)
    return exact_log_p(signs, (1 - 2 * y).astype(np.int8))


@pytest.mark.parametrize("noise", [0.3, 0.8, 1.0])
def test_p_values_of_parities_are_plinks_exact_test(tmp_path, noise):
    _, X, y = study(0, noise)
    parities = enumerate(((f"{i}-{j}", X[:, i] ^ X[:, j]) for i, j in PAIRS), 1)
    told = plink(tmp_path, parities, y, "--model", "fisher", "--cell", "0")
    theirs = {row["SNP"]: float(row["P"]) for row in told if row["TEST"] == "DOM"}
    assert len(theirs) == len(PAIRS)
    for i, j in PAIRS:
        assert math.exp(log_p(X, y, (i, j))) == pytest.approx(theirs[f"{i}-{j}"], rel=PRINTED)


@pytest.mark.parametrize("test", [("--epistasis",), ("--fast-epistasis",), ("--fast-epistasis", "boost")])
@pytest.mark.parametrize("seed", range(3))
def test_plinks_epistasis_names_the_same_pair_with_a_p_value_like_ours(tmp_path, test, seed):
    """PLINK asks whether two columns interact, this project whether labels follow their parity.

    These are different tests, by regression and by counting. Where the effect is a parity they lie close together;
    where it is strong, regression's (Wald's) is known to fall behind.
    """
    pair, X, y = study(seed, 0.7)
    told = plink(tmp_path, enumerate(((str(j), X[:, j]) for j in range(COLUMNS)), 1), y, *test, "--epi1", "1")
    theirs = {(int(row["SNP1"]), int(row["SNP2"])): float(row["P"]) for row in told if row["P"] not in ("NA", "nan")}
    best = min(theirs, key=theirs.get)
    assert best == pair == tuple(SparseParityClassifier(k=2).fit(X, y).support_)
    assert math.log(theirs[best]) == pytest.approx(log_p(X, y, best), rel=0.1)
