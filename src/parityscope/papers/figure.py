"""What a figure is: its configs per scale, `plot`, a table, findings, its cost and a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from parityscope.core.errors import InvalidInput

if TYPE_CHECKING:  # the names of the scales are completed without waiting for torch
    from matplotlib.figure import Figure

    from parityscope.papers.claim import ClaimNumbers
    from parityscope.records import Config, Row

Scale = Literal["smoke", "demo", "reference"]
SCALES: tuple[Scale, ...] = get_args(Scale)


def named_scale(name: str) -> Scale:
    """Return the scale called `name`.

    >>> named_scale("demo")
    'demo'
    """
    for scale in SCALES:
        if scale == name:
            return scale
    raise InvalidInput(f"unknown scale {name!r}: choose one of {', '.join(SCALES)}")


def fresh(count: int) -> range:
    """Return seeds on which no setting was chosen: what a figure counts is counted on these."""
    return range(1000, 1000 + count)


def own_size_of(figure: PaperFigure) -> Sequence[Config]:
    """Return a figure's configs of the paper's own size: they take hours, and a command of their own computes them.

    >>> from parityscope.papers.registry import load_figure
    >>> len(own_size_of(load_figure("W-figure-8"))), len(own_size_of(load_figure("H1-success")))
    (5, 0)
    """
    configs: Sequence[Config] = getattr(figure, "OWN_SIZE", ())
    return configs


class ResultTable(NamedTuple):
    """The numbers a figure shows, as text."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class TableColumn(NamedTuple):
    """A column of a table: its header, what it shows of a line, and in which format."""

    header: str
    value: Callable[[Any], object]
    format: str = ""

    def cell(self, line: Any) -> str:
        """Return the text of one cell; a dash where there is no value."""
        value = self.value(line)
        return "–" if value is None else format(value, self.format)


def table_of(
    *columns: TableColumn, lines: Callable[[Sequence[Any]], Iterable[Any]] = iter
) -> Callable[[Sequence[Any]], ResultTable]:
    """Return the `table` of a figure: a line per row, or those that `lines` makes of all rows."""

    def table(rows: Sequence[Any]) -> ResultTable:
        return ResultTable(
            [column.header for column in columns], [[column.cell(line) for column in columns] for line in lines(rows)]
        )

    return table


class Finding(NamedTuple):
    """What the paper says, and what was computed here."""

    paper: str
    here: str


@runtime_checkable
class PaperFigure(Protocol):
    """The contract of a figure in a paper's `figures/`. Configs compute their rows; `plot` never trains.

    The rows that `plot`, `table` and `findings` get are typed by the configs: `Row[TheConfig, ItsNumbers]`. More names
    are looked for: TIMED (rows are timings, never measured beside other work), and for figures whose rows another
    command stores, COMMAND, that command, and STORED, the class of its configs. Of a figure whose rows at the paper's
    own size take hours, OWN_SIZE has their configs and OWN_COMMAND what computes them; as many as are stored are shown
    and judged at every scale. MEASURED_ELSEWHERE has the configs whose data not every machine has: those that have not
    ship the rows on. A file with several figures lists them as `FIGURES`, each a `FigureSpec`.
    """

    ID: str
    TITLE: str
    TEXT: str
    COST: Mapping[Scale, float]  # seconds on two idle cores
    CONFIGS: Mapping[Scale, Sequence[Config]]  # none at any scale: another command stores the rows

    def plot(self, rows: Sequence[Row[Any, Any]]) -> Figure:
        """Draw the figure from stored rows."""
        ...

    def table(self, rows: Sequence[Row[Any, Any]]) -> ResultTable:
        """Return the numbers the figure shows."""
        ...

    def findings(self, rows: Sequence[Row[Any, Any]]) -> Sequence[Finding]:
        """Set the paper beside what was computed, as far as no claim about the figure does."""
        ...


def claims_say_it(rows: Sequence[Row[Any, Any]]) -> Sequence[Finding]:
    """Return the findings of a figure whose claims say all there is to say: none.

    >>> claims_say_it([])
    ()
    """
    return ()


@dataclass
class FigureSpec:
    """One of several figures in a file; see `PaperFigure`.

    >>> from parityscope.papers.registry import load_figure
    >>> figure = load_figure("W-figure-5")
    >>> isinstance(figure, FigureSpec), isinstance(figure, PaperFigure)
    (True, True)
    """

    ID: str
    TITLE: str
    TEXT: str
    COST: Mapping[Scale, float]
    CONFIGS: Mapping[Scale, Sequence[Config]]
    plot: Callable[[Sequence[Row[Any, Any]]], Figure]
    table: Callable[[Sequence[Row[Any, Any]]], ResultTable]
    findings: Callable[[Sequence[Row[Any, Any]]], Sequence[Finding]] = claims_say_it
    OWN_SIZE: Sequence[Config] = ()
    OWN_COMMAND: str = ""


def verdicts_on(figure_id: str, claims: Iterable[ClaimNumbers]) -> list[Finding]:
    """Return the verdicts of the claims that a figure shows, as findings.

    >>> from types import SimpleNamespace
    >>> said = {"statement": "It falls.", "printed": "", "verdict": "holds", "qualifier": "", "number": "3 of 3"}
    >>> verdicts_on("X", [SimpleNamespace(figure="X", id="X-1", **said)])
    [Finding(paper='It falls. (X-1)', here='holds: 3 of 3')]
    """
    return [
        Finding(
            f"{claim.printed or claim.statement} ({claim.id})",
            f"{claim.verdict}{f', {claim.qualifier}' if claim.qualifier else ''}: {claim.number}",
        )
        for claim in claims
        if claim.figure == figure_id
    ]


@dataclass(frozen=True)
class Stage:
    """Where a reproduction stands, for a progress display; `name` is what has just been finished, if anything has.

    >>> stage = Stage("H1-sgd", done=9, total=36, seconds_left=12.0)
    >>> f"{stage.name}: {stage.done / stage.total:.0%}"
    'H1-sgd: 25%'
    """

    name: str | None
    done: int
    total: int
    seconds_left: float
    configs_done: int | None = None
    configs_total: int | None = None
