"""`reproduce`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    DEFAULT_OUT,
    GO_ON,
    QUIET,
    SCHEDULER,
    WORKERS,
    app,
    completing,
    errors,
    interruptible,
    launcher_of,
    scale_option,
)
from parityscope.papers.registry import reproducible_names


@app.command()
def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID ...]",
            help="Figures, each with the claims it shows; claims, each with its figure; papers such as H1.",
            autocompletion=completing(reproducible_names),
        ),
    ] = None,
    scale: Annotated[str, scale_option("How much to run")] = "demo",
    out: Annotated[Path, typer.Option(help="Folder for rows, figures and report.html.")] = DEFAULT_OUT,
    workers: Annotated[int | None, WORKERS] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures and their cost.")] = False,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Run whatever has no stored row, check the claims, draw the figures, write one report.

    Without an ID everything is reproduced. A figure comes with the claims that refer to it, a claim with the figure it
    refers to. The report is there from the first figure on. Rows in --out are never computed twice: an interrupted
    reproduction goes on where it stopped, and deleted figures are redrawn without training. A row that was made by code
    that has changed since is computed anew.
    """
    from parityscope.apps.reproduce import reproduce as run_reproduce
    from parityscope.apps.terminal.progress import Progress
    from parityscope.apps.terminal.tables import figures_table
    from parityscope.papers.figure import named_scale
    from parityscope.papers.registry import figures_and_claims, load_figure

    figures, claims = figures_and_claims(ids or ())
    console = Console()
    if list_:
        console.print(figures_table([load_figure(name) for name in figures]))
        return
    launcher = launcher_of(workers, scheduler) if workers or scheduler else None
    with interruptible(GO_ON), Progress(errors(quiet)) as progress:
        report = run_reproduce(
            figures, named_scale(scale), out, claims=claims, launcher=launcher, on_stage=progress.reproduction
        )
    console.print(f"report: {report}", highlight=False, soft_wrap=True)
