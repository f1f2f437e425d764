"""Who finds the interacting columns: our solvers against what a user would pick instead, on the same tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from matplotlib.figure import Figure

from parityscope.core.drawing import colour, new_figure
from parityscope.core.statistics import Share, wilson_share
from parityscope.core.threads import single_threaded
from parityscope.papers.cells import draw_heat_map, ink_on
from parityscope.papers.figure import Finding, Scale, TableColumn, table_of
from parityscope.papers.own.fit_benchmark.comparison import MethodScore, compare_on
from parityscope.papers.own.fit_benchmark.methods import METHODS, OURS, Refused
from parityscope.papers.own.fit_benchmark.peers import PEERS
from parityscope.papers.own.fit_benchmark.planted import PUBLIC_FILES, TableKind, public_files
from parityscope.records import Config, Numbers, Result, Row

ID = "estimator-benchmark"
TITLE = "Find the hidden interaction in a table"
TEXT = (
    "Tables in which exactly the planted columns were selected, by SparseParityClassifier (first rows: its default, "
    "given k or not, and single solvers) and by what a user would pick instead. Everyone sees the same fresh tables, "
    "as many of them, and all but 'k open' are given k and the number of sets; methods that rank columns select their "
    "best. A rival's setting is chosen for each kind of table on other tables of that kind, ours is the default. "
    "Genotypes are 0/1/2 with a random penetrance table of two loci and no main effects. Two sets: every row owes its "
    "class to one of them. Seconds are CPU time on one core, mean over tables. A dash: the method refused, for the "
    "reason in the table. The page 'How fit compares' has the peers that need packages of their own."
)
COST: dict[Scale, float] = {"smoke": 1, "demo": 10, "reference": 230}
_COMPARED = {**METHODS, "Relief family": PEERS["Relief family"]}
_QUICK = ("auto", "auto, k open", "exhaustive", "elimination", "MDR", "L1 on products", "mutual information")


class BenchmarkNumbers(Numbers):
    """The score of every method, or why it did not run."""

    scores: dict[str, MethodScore]
    refused: dict[str, str]


class Comparison(Config):
    """Some methods on fresh tables of one kind; `others` is how many other tables a rival's setting is chosen on."""

    ROWS: ClassVar[str] = ID
    VERSION: ClassVar[int] = 2
    NUMBERS: ClassVar[type[Numbers]] = BenchmarkNumbers

    table: TableKind = TableKind()
    tables: int = 10
    others: int = 3
    methods: tuple[str, ...] = tuple(_COMPARED)

    def run(self) -> Result:
        """Give every method the same tables; count exact answers and CPU seconds."""
        scores: dict[str, MethodScore] = {}
        refused: dict[str, str] = {}
        with single_threaded():
            for name in self.methods:
                try:
                    scores[name] = compare_on(self.table, _COMPARED[name], tables=self.tables, others=self.others)
                except Refused as reason:
                    refused[name] = str(reason)
        return Result(BenchmarkNumbers(scores=scores, refused=refused))


def _kinds() -> list[TableKind]:
    """Return the kinds of tables: one change at a time from the first, then other families."""
    base, genotypes = TableKind(), TableKind(kind="genotypes", heritability=0.2)
    changes: list[dict[str, object]] = [{}, {"n": 60}, {"k": 1, "noise": 0.3}, {"k": 3}, {"rows": 100}, {"noise": 0.3}]
    return [
        *(base.model_copy(update=change) for change in changes),
        TableKind(n=10, k=5, noise=0.0),
        TableKind(n=200, k=10, rows=400, noise=0.0),
        genotypes,
        TableKind(interactions=2, rows=800),
        genotypes.model_copy(update={"interactions": 2, "heritability": 0.4, "rows": 800}),
        TableKind(k=1, interactions=3),
        TableKind(kind="conjunction"),
    ]


def _demo() -> list[Comparison]:
    """Return what takes seconds: few tables, and only one slow rival."""
    chosen = [kind for kind in _kinds() if kind.n in (20, 200) and kind.rows < 800]
    methods = (*_QUICK, "random forest")
    return [Comparison(table=kind, tables=2, others=1, methods=methods) for kind in chosen]


def _of_files(kinds: Sequence[TableKind]) -> list[Comparison]:
    return [Comparison(table=kind) for kind in kinds if kind.rows < 500]


def _reference() -> list[Comparison]:
    # Where no ranking of columns has a chance, the slow rivals are left out.
    return [
        *(Comparison(table=kind, methods=_QUICK if kind.n == 200 else tuple(_COMPARED)) for kind in _kinds()),
        *_of_files(public_files()),
    ]


_Row = Row[Comparison, BenchmarkNumbers]

_TINY = TableKind(n=8, rows=150)
_SMOKE = Comparison(table=_TINY, tables=2, others=1, methods=("auto", "MDR", "L1 on products", "mutual information"))
CONFIGS: dict[Scale, list[Comparison]] = {
    "smoke": [_SMOKE, _SMOKE.model_copy(update={"table": _TINY.model_copy(update={"k": 1})})],
    "demo": _demo(),
    "reference": _reference(),
}
MEASURED_ELSEWHERE = _of_files(PUBLIC_FILES)


def _methods(rows: Sequence[_Row]) -> list[str]:
    return [name for name in _COMPARED if any(name in row.config.methods for row in rows)]


def _label_of(kind: TableKind) -> str:
    """Return what stands below the column of these tables.

    >>> _label_of(TableKind(kind="genotypes", rows=1600)).split()
    ['genotypes', 'k=2', 'of', 'n=20', 'N=1600', 'h²=0.4']
    """
    lines = str(kind).split(", ")
    return "\n".join(lines).replace(" sets of ", " sets,\n").replace(" (file)", "\n(file)")


def plot(rows: Sequence[_Row]) -> Figure:
    """Draw methods × kinds of tables as a heat map of exact answers, and the seconds of every method."""
    methods = _methods(rows)
    figure, (axes, times) = new_figure(
        6.2 + 0.95 * len(rows), 2.2 + 0.42 * len(methods), 1, 2, width_ratios=(max(2, len(rows)), 3.2), sharey=True
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
            # The clock of short runs is coarse: some take no time that it sees.
            seconds = max(score.seconds, 1e-4)
            times.plot(seconds, y, "o", color=colour(0 if name in OURS else 1), alpha=0.6, markersize=5)
    draw_heat_map(axes, grid, [_label_of(row.config.table) for row in rows], methods, column_size=9)
    axes.set_title("tables with exactly the planted columns selected")
    if "auto" in methods and len(methods) > len(OURS):
        axes.axhline(sum(name in OURS for name in methods) - 0.5, color=axes.get_facecolor(), linewidth=3)
    times.set(xscale="log", xlabel="CPU seconds per table", title="time, a dot per column")
    times.grid(True, axis="x", linewidth=0.5)
    times.tick_params(axis="y", length=0)
    return figure


class _Line(NamedTuple):
    row: _Row
    method: str

    @property
    def score(self) -> MethodScore | None:
        return self.row.numbers.scores.get(self.method)

    @property
    def interval(self) -> str:
        """The interval of the share, or why there is none."""
        if self.score is None:
            return self.row.numbers.refused.get(self.method, "not tried")
        share = wilson_share(self.score.found, self.score.tables)
        return f"{share.low:.2f} to {share.high:.2f}"

    @property
    def setting(self) -> str | None:
        if self.score is None:
            return None
        return ", ".join(f"{key} {value}" for key, value in self.score.setting.items()) or "default"


table = table_of(
    TableColumn("table", lambda line: line.row.config.table),
    TableColumn("method", lambda line: line.method),
    TableColumn("recovered", lambda line: line.score and f"{line.score.found} of {line.score.tables}"),
    TableColumn("95 % interval", lambda line: line.interval),
    TableColumn("seconds", lambda line: line.score and line.score.seconds, ".2g"),
    TableColumn("setting", lambda line: line.setting),
    lines=lambda rows: [_Line(row, name) for row in rows for name in _methods([row])],
)


def _total(rows: Sequence[_Row], name: str) -> Share | None:
    scores = [row.numbers.scores[name] for row in rows if name in row.numbers.scores]
    if not scores:
        return None
    return wilson_share(sum(score.found for score in scores), sum(score.tables for score in scores))


def together_in(rows: Sequence[_Row]) -> list[_Row]:
    """Return the kinds of tables whose columns say nothing one by one.

    >>> together_in([])
    []
    """
    return [row for row in rows if row.config.table.k > 1 and row.config.table.kind != "conjunction"]


def findings(rows: Sequence[_Row]) -> list[Finding]:
    """Say who finds interactions, who finds main effects, and where another method is as good or better."""
    together = together_in(rows)
    alone = [row for row in rows if row not in together]

    def totals(some: Sequence[_Row], names: Sequence[str]) -> str:
        counted = [(name, _total(some, name)) for name in names]
        return ", ".join(f"{name} {share}" for name, share in counted if share is not None)

    ours = [name for name in _methods(rows) if name in OURS]
    others = [name for name in _methods(rows) if name not in OURS]
    result = [
        Finding(
            "(Not in the papers: interactions of two or more columns without main effects.)",
            f"Ours: {totals(together, ours)}. Others, on what they take: {totals(together, others)}.",
        )
    ]
    if alone:
        result.append(
            Finding(
                "(Columns that matter by themselves need none of this.)",
                f"Main effects and conjunctions: {totals(alone, others)}; auto {_total(alone, 'auto')}.",
            )
        )
    better = [f"{name} on {row.config.table}" for row in rows for name in others if _beats_auto(row, name)]
    result.append(
        Finding("(When does another method find more?)", f"More answers than auto: {'; '.join(better) or 'nobody'}.")
    )
    equal = [name for name in others if all(_matches_auto(row, name) for row in together)]
    result.append(
        Finding(
            "(When is another method as good?)",
            f"As many answers as auto on every kind without main effects: {', '.join(equal) or 'none of them'}.",
        )
    )
    return result


def _beats_auto(row: _Row, name: str) -> bool:
    scores = row.numbers.scores
    return name in scores and scores[name].found > scores["auto"].found


def _matches_auto(row: _Row, name: str) -> bool:
    scores = row.numbers.scores
    return name in scores and scores[name].found >= scores["auto"].found
