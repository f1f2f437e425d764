"""`claims`: its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    DEFAULT_OUT,
    QUIET,
    app,
    completing,
    errors,
    interruptible,
    scale_option,
)
from parityscope.papers.registry import claim_names


@app.command()
def claims(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID ...]",
            help="Claims, or papers such as H1; otherwise all.",
            autocompletion=completing(claim_names),
        ),
    ] = None,
    scale: Annotated[str, scale_option("How hard to try")] = "demo",
    out: Annotated[Path, typer.Option(help="A folder of `reproduce`, whose rows a check may use.")] = DEFAULT_OUT,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Check the papers' statements by computation and say which hold.

    Verdicts: holds, holds in part, fails (with a counterexample), not testable here.
    """
    from parityscope.apps.terminal.progress import claims_progress
    from parityscope.apps.terminal.tables import claims_table
    from parityscope.papers.claim import check
    from parityscope.papers.figure import named_scale
    from parityscope.papers.registry import named_claims
    from parityscope.papers.results import claims_context

    chosen = named_claims(ids or ())
    context = claims_context(named_scale(scale), out)
    with interruptible("nothing is stored by this command"), claims_progress(errors(quiet), chosen) as on_claim:
        checked = []
        for claim in chosen:
            on_claim(claim)
            checked.append(check(claim, context))
    if as_json:
        typer.echo(json.dumps([one.model_dump() for one in checked]))
        return
    Console().print(claims_table(checked), highlight=False)
