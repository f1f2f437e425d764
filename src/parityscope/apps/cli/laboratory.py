"""`reproduce`, `sweep`, `rows`, `claims` and `bench`: their arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from parityscope.apps.cli.application import DEFAULT_OUT, QUIET, app, assignments_of, completing, errors, interruptible
from parityscope.core.benchmarking import benchmark_names
from parityscope.core.errors import InvalidInput
from parityscope.papers.registry import FIGURE_IDS

if TYPE_CHECKING:
    from parityscope.runs import Launcher

_GO_ON = "what was finished is stored, and the same command goes on from there"
_WORKERS = typer.Option(min=1, help="Worker processes, one thread each; with --slurm, jobs.")
_SCHEDULER = typer.Option(
    metavar="ADDRESS", help="A Dask scheduler such as tcp://host:8786, or `local` for one on this machine."
)


def _scales() -> Sequence[str]:
    from parityscope.papers.figure import SCALES

    return SCALES


def _claim_names() -> Sequence[str]:
    from parityscope.papers.registry import claim_names

    return claim_names()


@app.command()
def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID ...]",
            help="Experiments; otherwise all.",
            autocompletion=completing(lambda: FIGURE_IDS),
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="smoke, demo, reference or paper.", autocompletion=completing(_scales))
    ] = "demo",
    out: Annotated[Path, typer.Option(help="Folder for rows, figures and report.html.")] = DEFAULT_OUT,
    workers: Annotated[int | None, _WORKERS] = None,
    scheduler: Annotated[str | None, _SCHEDULER] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments and their cost.")] = False,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Run every experiment that has no stored row, check the claims, draw the figures, write one report.

    The report is there from the first figure on. Rows in --out are never computed twice: an interrupted reproduction
    goes on where it stopped, and deleted figures are redrawn without training.
    """
    from parityscope.apps.reproduce import reproduce as run_reproduce
    from parityscope.apps.terminal.progress import reproduction_progress
    from parityscope.apps.terminal.tables import experiments_table
    from parityscope.papers.figure import named_scale
    from parityscope.papers.registry import all_claims, load_figure

    chosen = tuple(ids or FIGURE_IDS)
    claims = [] if ids else all_claims()
    console = Console()
    if list_:
        console.print(experiments_table([load_figure(name) for name in chosen]))
        return
    launcher = _launcher(workers, scheduler) if workers or scheduler else None
    with interruptible(_GO_ON), reproduction_progress(errors(quiet)) as on_stage:
        report = run_reproduce(chosen, named_scale(scale), out, claims=claims, launcher=launcher, on_stage=on_stage)
    console.print(f"report: {report}", highlight=False, soft_wrap=True)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.py", help="A Python file with CONFIGS and what runs them.")],
    workers: Annotated[int | None, _WORKERS] = None,
    scheduler: Annotated[str | None, _SCHEDULER] = None,
    slurm: Annotated[bool, typer.Option("--slurm", help="Run in Slurm jobs, as many as --workers says.")] = False,
    slurm_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What a job asks for: queue, memory, walltime, …; repeatable."),
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
    SPEC.py has a list CONFIGS and either EXPERIMENT = "the name of one" or an ID and a run(config) of its own:
      from parityscope.runs.training import Training, batch_shape, run, run_batch
      ID = "rates"
      CONFIGS = [Training(n=16, k=3, seed=s, settings={"learning_rate": r}) for r in (0.02, 0.05) for s in range(64)]

    What is in --out is not run again, also when several machines share the folder. A failing config becomes a failed
    row and stops nothing else. Exit code 1 when rows have failed.
    """
    from parityscope.apps.terminal.progress import sweep_progress
    from parityscope.apps.terminal.tables import sweep_sentence
    from parityscope.records import Store
    from parityscope.runs import load_spec, run_sweep

    work = load_spec(spec, pack)
    launcher = _launcher(workers, scheduler, slurm, assignments_of("--slurm-option", slurm_option or []))
    store = Store(out / "store")
    with interruptible(_GO_ON), sweep_progress(errors(quiet), work.experiment.ID) as on_progress:
        summary = run_sweep(work, store, launcher, retry_failed=retry_failed, on_progress=on_progress)
    failed = [row.traceback for row in store.rows(work.experiment.ID, failed=True)] if summary.failed else []
    if as_json:
        typer.echo(json.dumps({**asdict(summary), "store": str(store.path)}))
    else:
        Console().print(sweep_sentence(summary, store.path, failed), highlight=False, soft_wrap=True, markup=False)
    if summary.failed:
        raise typer.Exit(1)


@app.command()
def rows(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What was --out of a sweep or a reproduction.")],
    experiment: Annotated[
        str | None,
        typer.Option(help="Rows of this experiment only.", autocompletion=completing(lambda: FIGURE_IDS)),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE", help="Rows with this config value; repeatable.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Failed rows, with their tracebacks.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Write to FILE.csv, FILE.parquet, or a folder of TensorBoard events.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Delete rows that are damaged.")] = False,
) -> None:
    """Show, check or export stored rows: JSON lines unless --export is given."""
    from parityscope.records import Store
    from parityscope.records.export import export_rows, flat

    place = folder / "store" if (folder / "store").is_dir() else folder
    if not (place / "store.sqlite").exists():
        raise InvalidInput(f"{folder} holds no rows: it has no store.sqlite")
    store = Store(place)
    if repair:
        damaged = store.damaged()
        store.forget(damaged)
        typer.echo(f"{len(damaged)} damaged rows deleted")
        return
    wanted = {name: _value(text) for name, text in assignments_of("--where", where or []).items()}
    found = store.rows(experiment, wanted, failed=failed)
    if export is None:
        for row in found:
            typer.echo(json.dumps(flat(row)))
        return
    export_rows(found, export)
    typer.echo(f"{len(found)} rows written to {export}")


@app.command()
def claims(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID ...]",
            help="Claims, or papers such as H1; otherwise all.",
            autocompletion=completing(_claim_names),
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(help="How hard to try: smoke, demo, reference or paper.", autocompletion=completing(_scales)),
    ] = "demo",
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
        typer.echo(json.dumps([one.to_json() for one in checked]))
        return
    Console().print(claims_table(checked), highlight=False)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME ...]", help="Questions; otherwise all.", autocompletion=completing(benchmark_names)
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Also keep the measurements, with machine and versions.")
    ] = None,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Measure speed as ratios: ours against another way, interleaved in one run on this machine."""
    from parityscope.apps.terminal.progress import bench_progress
    from parityscope.apps.terminal.tables import bench_table
    from parityscope.core.atomic_files import write_atomically
    from parityscope.core.benchmarking import measured_alone, run_benchmark, stored_text

    chosen = names or benchmark_names()
    measure = run_benchmark if len(chosen) == 1 else measured_alone
    results = []
    with interruptible("nothing is stored before the last measurement"), bench_progress(errors(quiet), chosen) as show:
        for name in chosen:
            show(name, None)
            for one in measure(name):
                results.append((name, one))
                show(name, one.name)
    if out is not None:
        write_atomically(out, stored_text(results).encode())
    if as_json:
        typer.echo(json.dumps([{"question": name, **one.to_json()} for name, one in results]))
    else:
        Console().print(bench_table(results), highlight=False)


def _value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _launcher(
    workers: int | None, scheduler: str | None, slurm: bool = False, slurm_options: dict[str, str] | None = None
) -> Launcher:
    from parityscope.runs import DaskCluster, InProcess, Processes, SlurmJobs

    if slurm and scheduler:
        raise InvalidInput("--slurm and --scheduler are two places to run: give one of them")
    if slurm:
        return SlurmJobs(workers or 1, slurm_options)
    if scheduler == "local":
        return DaskCluster(workers=workers)
    if scheduler:
        if workers:
            raise InvalidInput(f"the workers are those of the scheduler at {scheduler}: leave --workers out")
        return DaskCluster(scheduler)
    return Processes(workers) if workers else InProcess()
