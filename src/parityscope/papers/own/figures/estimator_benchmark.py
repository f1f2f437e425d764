"""Who finds the interacting columns: our solvers against what a user would pick instead, on the same tables."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray

from parityscope.core.drawing import colour, new_figure
from parityscope.core.errors import InvalidInput
from parityscope.core.statistics import Share, median, wilson_share
from parityscope.core.threads import single_threaded
from parityscope.estimator.baselines import METHODS, OURS, SLOW, TooLarge
from parityscope.estimator.epistasis import draw_epistasis
from parityscope.estimator.files import read_table
from parityscope.papers.cells import draw_heat_map, ink_on
from parityscope.papers.figure import Finding, Scale, Table
from parityscope.problems import draw_problems, seeded_generator
from parityscope.records import Config, Numbers, Result, Row

ID = "estimator-benchmark"
TITLE = "Find the hidden interaction in a table"
TEXT = (
    "Tables in which exactly the named columns were found, by the four solvers of SparseParityClassifier (first rows) "
    "and by what a user would pick instead. Everyone sees the same tables and is told k; methods that rank columns "
    "name their k best. Quick methods get more tables than slow ones, which see the first of them. Changes are from "
    "the first point, one at a time. Genotypes are 0/1/2 with an interaction of two loci and no main effects "
    "(heritability 0.4). Seconds are CPU time on one core, median over tables. A dash: more products than "
    "affordable."
)
COST: dict[Scale, float] = {"smoke": 2, "demo": 14, "reference": 95, "paper": 1500}
_DATA_VARIABLE = "PARITYSCOPE_DATA"
_FILES = {"parity5+5": "parity5+5.tsv.gz", "GAMETES": "gametes-2way-20.tsv.gz"}
# What the two files are known to hide: Bits 2, 3, 4, 6, 8 (their parity is the class in every row), and P1, P2.
_KNOWN = {"parity5+5": ("Bit 2", "Bit 3", "Bit 4", "Bit 6", "Bit 8"), "GAMETES": ("P1", "P2")}


class MethodScore(Numbers):
    """How one method did: tables with exactly the hidden columns found, of how many, CPU seconds per table."""

    found: int
    tables: int
    seconds: float


class BenchmarkNumbers(Numbers):
    """The score of every method, or why it did not run."""

    scores: dict[str, MethodScore]
    refused: dict[str, str]


class TableKind(Config):
    """One kind of table; `slow_tables` is how many of them slow methods get."""

    ROWS: ClassVar[str] = ID
    NUMBERS: ClassVar[type[Numbers]] = BenchmarkNumbers

    kind: Literal["bits", "genotypes", "parity5+5", "GAMETES"] = "bits"
    n: int = 20
    k: int = 2
    rows: int = 500
    noise: float = 0.1
    tables: int = 8
    slow_tables: int = 2
    methods: tuple[str, ...] = tuple(METHODS)

    def run(self) -> Result:
        """Give every method the same tables, in turn; count exact answers and CPU seconds."""
        found = dict.fromkeys(self.methods, 0)
        seconds: dict[str, list[float]] = {name: [] for name in self.methods}
        refused: dict[str, str] = {}
        with single_threaded():
            for seed in range(self.tables):
                X, y, support = draw_table(self, seed)
                for name in self.methods:
                    if name in refused or (name in SLOW and seed >= self.slow_tables):
                        continue
                    started = time.process_time()
                    try:
                        answer = METHODS[name](X, y, self.k, seed)
                    except TooLarge as reason:
                        refused[name] = str(reason)
                        continue
                    seconds[name].append(time.process_time() - started)
                    found[name] += answer == tuple(support)
        scores = {
            name: MethodScore(found=found[name], tables=len(seconds[name]), seconds=median(seconds[name]))
            for name in self.methods
            if name not in refused
        }
        return Result(BenchmarkNumbers(scores=scores, refused=refused))


def _kinds(tables: int, slow_tables: int) -> list[TableKind]:
    base = TableKind(tables=tables, slow_tables=slow_tables)
    changes: list[dict[str, object]] = [
        {},
        {"n": 100, "tables": max(2, tables // 2)},
        {"k": 1},
        {"k": 3},
        {"rows": 100},
        {"rows": 1500, "slow_tables": max(1, slow_tables // 2)},
        {"noise": 0.3},
        {"n": 10, "k": 5, "noise": 0.0},
        {"kind": "genotypes"},
        {"n": 200, "k": 10, "rows": 400, "noise": 0.0, "slow_tables": max(1, slow_tables // 4)},
    ]
    return [base.model_copy(update=change) for change in changes]


def _demo_kinds() -> list[TableKind]:
    """Return those that take seconds; where no rival has a chance, the slow ones are left out."""
    quick = ("auto", "exhaustive", "elimination", "L1 on products", "random forest", "mutual information")
    kinds = [kind for kind in _kinds(2, 1) if kind.k > 1 and 100 < kind.rows < 1000]
    return [kind.model_copy(update={"methods": quick}) if kind.n == 200 else kind for kind in kinds]


def _files() -> list[TableKind]:
    """Return the real files, where a data folder is given."""
    folder = os.environ.get(_DATA_VARIABLE)
    known = [kind for kind, name in _FILES.items() if folder and (Path(folder) / name).is_file()]
    shape = {"parity5+5": {"n": 10, "k": 5, "rows": 1124}, "GAMETES": {"n": 20, "k": 2, "rows": 1600}}
    return [TableKind.model_validate({"kind": kind, **shape[kind], "tables": 1, "slow_tables": 1}) for kind in known]


_Row = Row[TableKind, BenchmarkNumbers]

_SMOKE = TableKind(n=8, rows=150, tables=2, slow_tables=1, methods=("auto", "L1 on products", "mutual information"))
CONFIGS: dict[Scale, list[TableKind]] = {
    "smoke": [_SMOKE, _SMOKE.model_copy(update={"k": 1})],
    "demo": [*_demo_kinds(), *_files()],
    "reference": [*_kinds(8, 2), *_files()],
    "paper": [*_kinds(40, 40), *_files()],
}


def draw_table(which: TableKind, seed: int) -> tuple[ndarray, ndarray, tuple[int, ...]]:
    """Return the columns, the classes 0/1 and the columns that interact.

    >>> X, y, support = draw_table(TableKind(n=8, k=2, rows=5, noise=0.0), seed=0)
    >>> X.shape, bool((X[:, support].sum(axis=1) % 2 == y).all())
    ((5, 8), True)
    """
    if which.kind in _FILES:
        folder = os.environ.get(_DATA_VARIABLE)
        if not folder:
            raise InvalidInput(f"{_FILES[which.kind]} is needed: set {_DATA_VARIABLE} to the folder that holds it")
        frame = read_table(Path(folder) / _FILES[which.kind])
        columns = frame.drop(columns="class")
        support = tuple(columns.columns.get_loc(name) for name in _KNOWN[which.kind])
        return columns.to_numpy(), frame["class"].to_numpy(), support
    if which.kind == "genotypes":
        generator = seeded_generator(seed, "data")
        return draw_epistasis(which.n, which.rows, heritability=0.4, generator=generator)
    problem = draw_problems(which.n, which.k, [seed], noise=which.noise)[0]
    x, y = problem.sample(which.rows, seeded_generator(seed, "data"))
    return x.numpy(), (y.numpy() < 0).astype(np.int64), problem.support


def _methods(rows: Sequence[_Row]) -> list[str]:
    return [name for name in METHODS if any(name in row.config.methods for row in rows)]


def label_of(kind: TableKind) -> str:
    """Return what stands below the column of these tables.

    >>> label_of(TableKind(kind="genotypes", rows=1600)).split()
    ['genotypes', 'n=20', 'N=1600']
    """
    if kind.kind in _FILES:
        return f"{kind.kind}\n(file)"
    if kind.kind == "genotypes":
        return f"genotypes\nn={kind.n}\nN={kind.rows}"
    return f"n={kind.n}\nk={kind.k}\nN={kind.rows}\n{kind.noise:.0%} noise"


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw methods × kinds of tables as a heat map of exact answers, and the seconds of every method."""
    methods = _methods(rows)
    figure, (axes, times) = new_figure(
        5.5 + 0.95 * len(rows), 2.2 + 0.42 * len(methods), 1, 2, width_ratios=(max(2, len(rows)), 3.2), sharey=True
    )
    grid = [[float("nan")] * len(rows) for _ in methods]
    for x, row in enumerate(rows):
        for y, name in enumerate(methods):
            score = row.numbers.scores.get(name)
            if score is None:
                axes.text(x, y, "–", ha="center", va="center")
                continue
            grid[y][x] = score.found / score.tables
            count, ink = f"{score.found}/{score.tables}", ink_on(grid[y][x])
            axes.text(x, y, count, ha="center", va="center", color=ink, fontsize=10)
            times.plot(score.seconds, y, "o", color=colour(0 if name in OURS else 1), alpha=0.6, markersize=5)
    draw_heat_map(axes, grid, [label_of(row.config) for row in rows], methods, column_size=9)
    axes.set_title("tables with exactly the hidden columns found")
    if "auto" in methods and len(methods) > len(OURS):
        axes.axhline(sum(name in OURS for name in methods) - 0.5, color=axes.get_facecolor(), linewidth=3)
    times.set(xscale="log", xlabel="CPU seconds per table", title="time, a dot per column")
    times.grid(True, axis="x", linewidth=0.5)
    times.tick_params(axis="y", length=0)
    return figure


def table(rows: Sequence[_Row]) -> Table:
    """Return every method on every kind of table, with interval and time."""
    header = ["table", "n", "k", "rows", "noise", "method", "found", "95 % interval", "seconds"]
    lines = []
    for row in rows:
        kind = row.config
        where = [kind.kind, str(kind.n), str(kind.k), str(kind.rows)]
        where.append(f"{kind.noise:.0%}" if kind.kind == "bits" else "–")
        for name in _methods([row]):
            score = row.numbers.scores.get(name)
            if score is None:
                lines.append([*where, name, "–", row.numbers.refused[name], "–"])
                continue
            share = wilson_share(score.found, score.tables)
            interval = f"{share.low:.2f} to {share.high:.2f}"
            lines.append([*where, name, f"{share.successes} of {share.trials}", interval, f"{score.seconds:.2g}"])
    return Table(header, lines)


def _total(rows: Sequence[_Row], name: str) -> Share:
    scores = [row.numbers.scores[name] for row in rows if name in row.numbers.scores]
    return wilson_share(sum(score.found for score in scores), sum(score.tables for score in scores))


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Say who finds interactions, who finds main effects, and where another method is as good or better."""
    interactions = [row for row in rows if row.config.k > 1]
    main_effects = [row for row in rows if row.config.k == 1]

    def totals(some: Sequence[_Row], names: Sequence[str]) -> str:
        return ", ".join(f"{name} {_total(some, name)}" for name in names)

    ours = [name for name in _methods(rows) if name in OURS]
    others = [name for name in _methods(rows) if name not in OURS]
    result = [
        Finding(
            "(Not in the papers: interactions of two or more columns without main effects.)",
            f"Ours: {totals(interactions, ours)}. Others: {totals(interactions, others)}.",
        )
    ]
    if main_effects:
        result.append(
            Finding(
                "(A single column that matters needs none of this.)",
                f"k = 1: {totals(main_effects, others)}; auto {_total(main_effects, 'auto')}.",
            )
        )
    rivals = [name for name in others if _matches_auto(interactions, name)]
    result.append(
        Finding(
            "(When is another method as good?)",
            f"On every kind of table where it ran, as many answers as auto: {', '.join(rivals) or 'none of them'}.",
        )
    )
    return result


def _matches_auto(rows: Sequence[_Row], name: str) -> bool:
    ran = [row.numbers.scores for row in rows if name in row.numbers.scores]
    return bool(ran) and all(
        scores[name].found / scores[name].tables >= scores["auto"].found / scores["auto"].tables for scores in ran
    )
