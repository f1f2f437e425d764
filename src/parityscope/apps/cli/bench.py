"""`bench`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.benchmarking import benchmark_names
from parityscope.apps.cli.application import QUIET, app, completing, errors, interruptible, named_path
from parityscope.core.strict_json import strict_json


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME ...]", help="Benchmarks; otherwise all.", autocompletion=completing(benchmark_names)
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="FILE.json", help="Also keep the measurements, with machine and versions."
        ),
    ] = None,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Measure speed ratios between ours and an alternative, timed in turn in one run on this machine."""
    from parityscope.apps.benchmarking import measured_alone, run_benchmark, stored_text
    from parityscope.apps.terminal.progress import Progress
    from parityscope.apps.terminal.tables import bench_table
    from parityscope.core.files import write_atomically

    chosen = names or benchmark_names()
    measure = run_benchmark if len(chosen) == 1 else measured_alone
    results = []
    with interruptible("nothing is stored before the last measurement"), Progress(errors(quiet)) as progress:
        for place, name in enumerate(chosen):
            progress.show("measuring", place, len(chosen), name)
            for one in measure(name):
                results.append((name, one))
                progress.say(f"{place + 1}/{len(chosen)} {name}: {one.name} measured")
    if out is not None:
        write_atomically(out, stored_text(results).encode())
    if as_json:
        typer.echo(strict_json([{"question": name, **one.to_json()} for name, one in results]))
    else:
        Console().print(bench_table(results), highlight=False)
