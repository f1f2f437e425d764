"""`sweep`: its arguments."""

from __future__ import annotations

import json
from dataclasses import asdict
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
    assignments_of,
    errors,
    interruptible,
    launcher_of,
)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.py", help="A Python file with a list CONFIGS.")],
    workers: Annotated[int | None, WORKERS] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="Run in Slurm jobs, as many as --workers says.")] = False,
    slurm_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Resources of a job: queue, memory, walltime, …; repeatable."),
    ] = None,
    pack: Annotated[
        int | None, typer.Option(min=1, help="Most configs per pack: a tensor program, a task, a commit.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the rows.")] = DEFAULT_OUT,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed configs again.")] = False,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a sentence.")] = False,
) -> None:
    """Run many configs, in this process or on many workers, and store every result once.

    \b
    SPEC.py has a list CONFIGS, of trainings or of configs of a class of its own:
      from parityscope.runs import training
      CONFIGS = [training("bounded", 16, 3, seeds=[s], learning_rate=r) for r in (0.02, 0.05) for s in range(64)]

    What is in --out is not run again, also when several machines share the folder. A failing config becomes a failed
    row and stops nothing else. Exit code 1 when rows have failed.
    """
    from parityscope.apps.terminal.progress import sweep_progress
    from parityscope.apps.terminal.tables import sweep_sentence
    from parityscope.records import Store
    from parityscope.runs import load_spec, run_sweep

    work = load_spec(spec, pack)
    launcher = launcher_of(workers, scheduler, slurm, assignments_of("--slurm-option", slurm_option or []))
    store = Store(out / "store")
    with interruptible(GO_ON), sweep_progress(errors(quiet), work.name) as on_progress:
        summary = run_sweep(work, store, launcher, retry_failed=retry_failed, on_progress=on_progress)
    failed = store.failures(work.configs) if summary.failed else []
    if as_json:
        typer.echo(json.dumps({**asdict(summary), "store": str(store.path)}))
    else:
        Console().print(sweep_sentence(summary, store.path, failed), highlight=False, soft_wrap=True, markup=False)
    if summary.failed:
        raise typer.Exit(1)
