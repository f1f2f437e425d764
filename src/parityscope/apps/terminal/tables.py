"""The laboratory's tables: figures, ratios; and how a sweep ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from parityscope.apps.benchmarking import COLUMNS, Measurement, table_rows
from parityscope.papers.figure import SCALES, PaperFigure
from parityscope.runs import Summary


def figures_table(figures: Sequence[PaperFigure]) -> Table:
    """Return the list of figures with what each costs.

    >>> from parityscope.papers.registry import load_figure
    >>> table = figures_table([load_figure("H1-figure-1")])
    >>> [column.header for column in table.columns]
    ['id', 'title', 'smoke, s', 'demo, s', 'reference, s']
    """
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("id")
    table.add_column("title")
    for scale in SCALES:
        table.add_column(f"{scale}, s", justify="right")
    for figure in figures:
        table.add_row(figure.ID, figure.TITLE, *(f"{figure.COST[scale]:g}" for scale in SCALES))
    return table


def bench_table(results: Sequence[tuple[str, Measurement]]) -> Table:
    """Return all ratios in one table, with both times.

    >>> table = bench_table([("risk", Measurement("n=20", 32.1, 0.0012, 0.0385, "enumeration", {}))])
    >>> [next(column.cells).plain for column in table.columns]
    ['risk', 'n=20', '32×', '1.2 ms', '38 ms, enumeration', '']
    """
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in COLUMNS:
        table.add_column(title, justify="right" if title in ("ratio", "ours") else "left")
    for row in table_rows(results):
        table.add_row(*map(Text, row))
    return table


def sweep_sentence(summary: Summary, store: Path, tracebacks: Sequence[str]) -> str:
    """Return how a sweep ended, and for failures the last line of the first and how to go on.

    >>> sweep_sentence(Summary(done=8, failed=0, run_now=3), Path("out/store"), [])
    '8 done, 0 failed, 3 of them now: out/store'
    """
    sentence = f"{summary.done} done, {summary.failed} failed, {summary.run_now} of them now: {store}"
    if tracebacks:
        reason = tracebacks[0].strip().splitlines()[-1]
        sentence += (
            f"\nfirst failure: {reason}\n"
            f"parityscope rows {store} --failed shows every traceback; --retry-failed runs them again"
        )
    return sentence
