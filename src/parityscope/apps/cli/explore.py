"""`explore`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import ERRORS, app, named_path


@app.command()
def explore(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8321,
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own opens it to others.")] = (
        "127.0.0.1"
    ),
    store: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="<path>", help="A folder of `reproduce` or `sweep`; without, shipped results."
        ),
    ] = None,
) -> None:
    """Watch attention heads train, in a browser. Nothing is loaded from other servers; Ctrl-C ends it."""
    from parityscope.apps.explorer.app import is_open, serve

    def say(address: str) -> None:  # once the port is there: an address that is refused opens nothing
        if is_open(host):
            ERRORS.print(
                f"parityscope: --host {host} opens the explorer to every machine that reaches this one: it has no"
                " password, and whoever opens it can see your results and use your processor",
                style="yellow",
                highlight=False,
                soft_wrap=True,
            )
        Console().print(f"explorer: {address}", highlight=False, soft_wrap=True)

    serve(host, port, store, on_ready=say)
