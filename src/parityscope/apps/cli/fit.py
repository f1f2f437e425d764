"""`fit`: its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import app, interruptible


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: .csv or .tsv, plain or .gz, or .parquet.")],
    target: Annotated[str, typer.Option(help="The column with the two classes.")],
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many columns interact; otherwise chosen.")] = None,
    max_k: Annotated[int, typer.Option("--max-k", min=1, help="At most so many, when --k is not given.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Which rows are held out, and how solvers start.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for fit.json and interaction.png.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Find the few columns of a table whose parity is the target, and say how sure that is.

    Finding nothing is an answer too: then no interaction of that size can be told from chance in these rows.
    """
    from parityscope.apps.terminal.interactions import show_fit
    from parityscope.estimator.files import fit_file, write_fit

    with interruptible("nothing is stored by this command"):
        fitted = fit_file(data, target, k=k, max_k=max_k, seed=seed)
    written = None if out is None else write_fit(fitted, out)
    if as_json:
        typer.echo(json.dumps(fitted.to_json()))
        return
    console = Console()
    show_fit(console, fitted)
    if written is not None:
        console.print(f"written to {out}: {', '.join(written)}", highlight=False, soft_wrap=True)
