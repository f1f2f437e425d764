"""`sweep` and `rows`, which fill a store and show what is in it: their arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    DEFAULT_OUT,
    ERRORS,
    GO_ON,
    QUIET,
    SCHEDULER,
    WORKERS,
    app,
    assignments_of,
    completing,
    errors,
    interruptible,
    launcher_of,
    named_path,
    nothing_left_in,
)
from parityscope.core.cells import as_text
from parityscope.core.errors import InvalidInput
from parityscope.core.strict_json import strict_json
from parityscope.papers.registry import FIGURE_IDS

if TYPE_CHECKING:
    from parityscope.records import Store, StoredRow


@app.command()
def sweep(
    spec: Annotated[
        Path, typer.Argument(parser=named_path, metavar="SPEC.py", help="A Python file with a list CONFIGS.")
    ],
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
    out: Annotated[Path, typer.Option(parser=named_path, metavar="<path>", help="Folder for the rows.")] = DEFAULT_OUT,
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
    with (
        nothing_left_in(out),
        interruptible(GO_ON),
        sweep_progress(errors(quiet), work.name) as on_progress,
    ):
        store = Store(out / "store")
        summary = run_sweep(work, store, launcher, retry_failed=retry_failed, on_progress=on_progress)
    failed = store.failures(work.configs) if summary.failed else []
    if as_json:
        typer.echo(strict_json({**asdict(summary), "store": str(store.path)}))
    else:
        Console().print(sweep_sentence(summary, store.path, failed), highlight=False, soft_wrap=True, markup=False)
    if summary.failed:
        raise typer.Exit(1)


@app.command()
def rows(
    folder: Annotated[
        Path, typer.Argument(parser=named_path, metavar="DIR", help="What was --out of a sweep or a reproduction.")
    ],
    experiment: Annotated[
        str | None,
        typer.Option(help="Rows stored under this name only.", autocompletion=completing(lambda: FIGURE_IDS)),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Rows with this config value; a field within a field is recipe.learning_rate; repeatable.",
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Failed rows, with their tracebacks.")] = False,
    stale: Annotated[bool, typer.Option("--stale", help="Rows that today's code would compute again.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            parser=named_path,
            metavar="<path>",
            help="Write to FILE.csv, FILE.parquet, or a folder of TensorBoard events.",
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Copy the sound rows of a damaged store into a new file; the old one is kept."),
    ] = False,
) -> None:
    """Show, check or export stored rows: JSON lines unless --export is given.

    `code` is a hash of the source that computed a row; `stale` says whether today's source is another one (null: not
    known, as for the configs of a spec).
    """
    from parityscope.papers.results import is_stale
    from parityscope.records import Store
    from parityscope.records.export import export_rows, flat

    place = _store_in(folder)
    if repair:
        typer.echo(_repaired(place))
        return
    store = Store(place)
    wanted = {name: _value(text) for name, text in assignments_of("--where", where or []).items()}
    found = [(row, is_stale(row, store)) for row in _rows(store, experiment, wanted, failed)]
    shown = [(row, mark) for row, mark in found if mark or not stale]
    if not shown:
        nothing = "no row has failed" if failed else "no row is stored"
        ERRORS.print(f"parityscope: {f'none of {len(found)} rows is stale' if found else nothing}", highlight=False)
    elif export is None:
        for row, mark in shown:
            typer.echo(strict_json({**flat(row), "stale": mark}))
    else:
        export_rows([row for row, _ in shown], export, {"stale": [mark for _, mark in shown]})
        typer.echo(f"{len(shown)} rows written to {as_text(str(export))}")


def _store_in(folder: Path) -> Path:
    place = folder / "store" if (folder / "store").is_dir() else folder
    if not (place / "store.sqlite").exists():
        raise InvalidInput(f"{folder} holds no rows: it has no store.sqlite")
    return place


def _repaired(place: Path) -> str:
    from parityscope.records.repair import repair

    count, old = repair(place)
    if old is None:
        return f"all {count} rows are sound: nothing was changed"
    return f"{count} sound rows copied into a new {place / 'store.sqlite'}; the damaged file is kept as {old}"


def _rows(store: Store, experiment: str | None, wanted: Mapping[str, Any], failed: bool) -> list[StoredRow]:
    """Return the rows that are asked for; what fits no row at all, done or failed, is not an empty answer."""
    where = {name: [value] for name, value in wanted.items()}
    found = store.rows(experiment, where, failed=failed)
    if not found and (experiment or where) and not store.rows(experiment, where, failed=not failed, most=1):
        values = " and ".join(f"{name} = {json.dumps(value)}" for name, value in wanted.items())
        raise InvalidInput(f"no row{f' of {experiment}' if experiment else ''}{f' has {values}' if values else ''}")
    return found


def _value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also of more digits than Python makes a number of
        return text
