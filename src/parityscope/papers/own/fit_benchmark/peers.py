"""Finders of interactions from other packages (extra `peers`), and PLINK: each refuses, with a reason, where it cannot.

None of them is needed by the estimator. `benchmarks/peers.py` compares them with it.
"""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.papers.own.fit_benchmark.methods import Asked, Method, Refused, best_columns, columns_of, grid

_Test = Literal["allelic", "boost", "joint-effects", "no-ueki"]
# Two bits a genotype, by the number of A1 alleles; 01 is a missing one.
_CODES = np.array([0b11, 0b10, 0b00], dtype=np.uint8)
_ALL_PAIRS = 20_000
_DISTANCES = 1e9
_GAME_COLUMNS = 20


class PairTest(NamedTuple):
    """Two columns and the statistic of their interaction.

    >>> PairTest((3, 7), 41.5).pair
    (3, 7)
    """

    pair: tuple[int, int]
    statistic: float


def plink_path() -> str | None:
    """Return the path of PLINK 1.9, which Debian names plink1.9, or None."""
    found = shutil.which("plink1.9")
    if found is None and (other := shutil.which("plink")):
        # PuTTY has a program of that name too.
        said = subprocess.run([other, "--version"], capture_output=True, text=True, check=False).stdout
        found = other if said.startswith("PLINK v1.9") else None
    return found


def fast_epistasis(genotypes: ndarray, y: Int64[ndarray, " rows"], test: _Test = "allelic") -> list[PairTest]:
    """Return the pairs that PLINK reports, the strongest first; genotypes are 0, 1 or 2.

    Up to 20 000 pairs all are reported, of more only those below p = 0.001.
    """
    program = plink_path()
    if program is None:
        raise InvalidInput("PLINK 1.9 is not installed: apt-get install plink1.9, or put its plink on the PATH")
    pairs = genotypes.shape[1] * (genotypes.shape[1] - 1) // 2
    threshold = "1" if pairs <= _ALL_PAIRS else "0.001"
    modifier = [] if test == "allelic" else [test]
    with TemporaryDirectory() as folder:
        _write_bed(Path(folder) / "table", genotypes, y)
        command = [program, "--bfile", "table", "--allow-no-sex", "--threads", "1", "--out", "found"]
        command += ["--fast-epistasis", *modifier, "--epi1", threshold]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        report = Path(folder) / "found.epi.cc"
        if not report.is_file():
            raise InvalidInput(f"PLINK wrote no report: {(done.stderr or done.stdout).strip()[-200:]}")
        return _read(report)


def _write_bed(stem: Path, genotypes: ndarray, y: Int64[ndarray, " rows"]) -> None:
    """Write PLINK's three files: one variant a column, one person a row, cases where y is 1.

    >>> with TemporaryDirectory() as folder:
    ...     _write_bed(Path(folder) / "small", np.array([[0], [1], [2]]), np.array([0, 1, 1]))
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


@contextmanager
def _installed() -> Iterator[None]:
    """Import a peer under this: a missing one refuses."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        raise Refused(f"{missing} is not installed: pip install 'parityscope[peers]'") from None


def _pairs_only(who: str, asked: Asked) -> None:
    if asked.k != 2:
        raise Refused(f"{who} ranks pairs, not sets of {asked.k}")


def _relief(X: ndarray, y: ndarray, asked: Asked, *, variant: str) -> tuple[int, ...]:
    """Return the columns of largest Relief weight (skrebate); the number is that of ReliefF's neighbours."""
    with _installed():
        import skrebate
    if (distances := float(len(X)) ** 2 * X.shape[1]) > _DISTANCES:
        raise Refused(f"{distances:.1g} differences between rows: minutes a table")
    if variant.startswith("ReliefF"):
        neighbours = min(int(variant.split()[1]), int(np.bincount(y).min()) - 1)
        model = skrebate.ReliefF(n_neighbors=neighbours)
    else:
        model = getattr(skrebate, variant)()
    return best_columns(model.fit(X.astype(float), y).feature_importances_, asked)


def _plink(X: ndarray, y: ndarray, asked: Asked, *, test: _Test) -> tuple[int, ...]:
    """Return the pairs of largest statistic in PLINK 1.9's fast epistasis; bits are written as homozygotes."""
    _pairs_only("PLINK", asked)
    if plink_path() is None:
        raise Refused("PLINK 1.9 is not installed: apt-get install plink1.9, or put its plink on the PATH")
    genotypes = 2 * X if X.max() <= 1 else X
    try:
        found = fast_epistasis(genotypes, y, test)
    except InvalidInput:  # such as the joint-effects test on bits, which have no heterozygotes
        return ()
    return columns_of([one.pair for one in found], asked)


def _boosted(X: ndarray, y: ndarray, asked: Asked, *, leaves: int, trees: int, rate: float) -> Any:
    with _installed():
        import lightgbm
    model = lightgbm.LGBMClassifier(
        num_leaves=leaves,
        n_estimators=trees,
        learning_rate=rate,
        importance_type="gain",
        random_state=asked.seed,
        n_jobs=1,
        verbose=-1,
    )
    return model.fit(X.astype(float), y)


def _lightgbm(X: ndarray, y: ndarray, asked: Asked, **setting: Any) -> tuple[int, ...]:
    """Return the columns of largest gain in LightGBM's trees."""
    return best_columns(_boosted(X, y, asked, **setting).feature_importances_, asked)


def _ebm(X: ndarray, y: ndarray, asked: Asked, *, leaf: int) -> tuple[int, ...]:
    """Return the strongest pairs of the FAST ranking by which explainable boosting machines choose their interactions.

    A single column is the strongest main effect of a machine without interactions.
    """
    with _installed():
        from interpret.glassbox import ExplainableBoostingClassifier
        from interpret.utils import measure_interactions
    if asked.k > 2:
        _pairs_only("an explainable boosting machine", asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if asked.k == 2:
            ranked = measure_interactions(X.astype(float), y, interactions=asked.sets, min_samples_leaf=leaf)
            return columns_of([pair for pair, _ in ranked], asked)
        model = ExplainableBoostingClassifier(
            interactions=0, min_samples_leaf=leaf, n_jobs=1, outer_bags=4, random_state=asked.seed
        )
        importance = model.fit(X.astype(float), y).term_importances()
    return best_columns(importance, asked)


def _shapiq(X: ndarray, y: ndarray, asked: Asked, *, how: str, explained: int) -> tuple[int, ...]:
    """Return the sets of largest interaction index in a boosted model, summed over some explained rows (shapiq).

    `tree` is TreeSHAP-IQ, `SPEX` and `ProxySPEX` sample the model between the row and one in which every column has
    another value: for a parity all of the model's Fourier weight then lies on the planted set.
    """
    with _installed():
        import shapiq
    if X.shape[1] > _GAME_COLUMNS:
        raise Refused(f"games of {X.shape[1]} players: minutes a table")
    model = _boosted(X, y, asked, leaves=31, trees=100, rate=0.1)
    summed: Counter[tuple[int, ...]] = Counter()
    rows = np.random.default_rng(asked.seed).choice(len(X), explained, replace=False)
    for row in rows:
        x = X[row].astype(float)
        if how == "tree":
            explainer = shapiq.TreeExplainer(model, max_order=asked.k, min_order=asked.k, index="k-SII")
            values = explainer.explain(x)
        else:
            options = {"decoder_type": "hard", "degree_parameter": 3} if how == "SPEX" else {}
            sampler = getattr(shapiq, how)(
                n=X.shape[1], index="FBII", max_order=asked.k, random_state=asked.seed, **options
            )
            values = sampler.approximate(1000, _between(model, x, _other_values(X, x, asked.seed)))
        for some, value in values.dict_values.items():
            if len(some) == asked.k:
                summed[tuple(int(column) for column in some)] += abs(value)
    return columns_of([some for some, _ in summed.most_common(asked.sets)], asked)


def _between(model: Any, x: ndarray, other: ndarray) -> Any:
    """Return the game of SPEX: the log-odds of the row where a coalition's columns are x's and the others are not."""

    def value(coalitions: ndarray) -> ndarray:
        return model.predict(np.where(coalitions, x, other), raw_score=True)

    return value


def _other_values(X: ndarray, x: ndarray, seed: int) -> ndarray:
    """Return a row that differs from x in every column, with values that the columns have."""
    random = np.random.default_rng(seed)
    other = []
    for column, value in zip(X.T, x, strict=True):
        values = np.unique(column)
        different = values[values != value]
        other.append(random.choice(different) if len(different) else value)
    return np.array(other, dtype=float)


PEERS: dict[str, Method] = {
    "Relief family": Method(_relief, grid(variant=("MultiSURF", "ReliefF 10", "ReliefF 100"))),
    "PLINK 1.9": Method(_plink, grid(test=("boost", "allelic", "joint-effects"))),
    "LightGBM": Method(_lightgbm, grid(leaves=(31, 7, 63), trees=(100, 400), rate=(0.1, 0.3))),
    "EBM": Method(_ebm, grid(leaf=(4, 20))),
    "shapiq": Method(
        _shapiq,
        ({"how": "SPEX", "explained": 1}, {"how": "ProxySPEX", "explained": 1}, {"how": "tree", "explained": 4}),
    ),
}
