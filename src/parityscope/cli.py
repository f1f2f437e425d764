"""The command line: argument parsing only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import parityscope
from parityscope.errors import InvalidInput
from parityscope.experiments.contract import named_scale
from parityscope.learning import learn as run_learn
from parityscope.problems import Parity, draw_problems
from parityscope.run_folder import RunFolder
from parityscope.terminal import (
    claims_progress,
    claims_table,
    entropy_progress,
    experiments_table,
    measurement_line,
    reproduction_progress,
    show_fit,
    show_run,
    show_study,
    sweep_progress,
    sweep_sentence,
    training_progress,
)
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, named_recipe

if TYPE_CHECKING:
    from parityscope.sweep import Launcher

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How does attention learn which few bits matter?",
)
_errors = Console(stderr=True)
DEFAULT_OUT = Path("parityscope-output")
_GO_ON = "what was finished is stored, and the same command goes on from there"
_WORKERS = typer.Option(min=1, help="Worker processes, one thread each; with --slurm, jobs.")
_SCHEDULER = typer.Option(
    metavar="ADDRESS", help="A Dask scheduler such as tcp://host:8786, or `local` for one on this machine."
)

_LEARN_HELP = """Find a hidden parity with attention and show what each head found.

\b
Recipes:
""" + "\n".join(
    f"  {recipe.name:<11} {recipe.summary}{' (default)' if recipe.name == DEFAULT_RECIPE else ''}"
    for recipe in RECIPES.values()
)


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(parityscope.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = None,
) -> None:
    """Keep `--version` beside the commands."""


@app.command(help=_LEARN_HELP)
def learn(
    n: Annotated[int, typer.Option("--n", help="Number of bits.")] = 20,
    k: Annotated[int | None, typer.Option("--k", help="Number of hidden bits.  [default: 3]")] = None,
    support: Annotated[
        str | None,
        typer.Option(help="Hidden positions from 0, like 7,10,17; otherwise drawn from each seed."),
    ] = None,
    recipe: Annotated[str, typer.Option(help="A recipe from the list above.")] = DEFAULT_RECIPE,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs: seeds S … S+R−1.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed S.")] = 0,
    steps: Annotated[int | None, typer.Option(min=0, help="Steps at most; otherwise the recipe's.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Train on so many drawn examples instead of the population.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Train on so many fresh examples at every step instead of the population.")
    ] = None,
    noise: Annotated[float, typer.Option(help="Probability that a label is flipped.")] = 0.0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Override a recipe field; repeatable."),
    ] = None,
    engine: Annotated[str, typer.Option(help="Risk engine: auto, enumerate, split or closed-form.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for run.json, weights and figures.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Parse the arguments of `learn` (its help text is `_LEARN_HELP`)."""
    overrides: dict[str, Any] = dict(_assignments("--set", set_ or []))
    if steps is not None:
        overrides["steps"] = str(steps)
    seeds = range(seed, seed + runs)
    named_recipe(recipe).overridden(**overrides)  # bad settings are refused before anything is written
    if support is None:
        problem: Parity | list[Parity] = draw_problems(n, 3 if k is None else k, seeds, noise=noise)
    else:
        problem = Parity(n, _positions(support), noise=noise)
        if k is not None and k != problem.k:
            raise InvalidInput(f"--k {k} disagrees with --support {support}, which has {problem.k} positions")
    folder = RunFolder.prepare(out, resume)
    console = Console()
    advice = (
        "add --resume to go on from the last checkpoint" if folder else "nothing was stored, since there was no --out"
    )
    with _interruptible(advice), training_progress(_errors) as on_progress:
        run = run_learn(
            problem,
            recipe,
            seeds,
            samples=samples,
            batch=batch,
            engine=engine,
            on_progress=on_progress,
            checkpoint=folder.checkpoint if folder else None,
            resume=resume,
            **overrides,
        )
    if folder is not None:
        folder.write(run)
    if as_json:
        typer.echo(json.dumps(run.to_json()))
        return
    show_run(console, run)
    if folder is not None:
        console.print(f"written to {folder.path}: {', '.join(folder.contents())}", highlight=False)


@app.command()
def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID ...]", help="Experiments; otherwise all.")] = None,
    scale: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "laptop",
    out: Annotated[Path, typer.Option(help="Folder for rows, figures and report.html.")] = DEFAULT_OUT,
    workers: Annotated[int | None, _WORKERS] = None,
    scheduler: Annotated[str | None, _SCHEDULER] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments and their cost.")] = False,
) -> None:
    """Run every experiment that has no stored row, check the claims, draw the figures, write one report.

    Rows in --out are never computed twice: an interrupted reproduction goes on where it stopped, and deleted figures
    are redrawn without training.
    """
    from parityscope.claims import all_claims
    from parityscope.experiments import EXPERIMENT_IDS, load_experiment
    from parityscope.reproduce import reproduce as run_reproduce

    chosen = tuple(ids or EXPERIMENT_IDS)
    claims = [] if ids else all_claims()
    console = Console()
    if list_:
        console.print(experiments_table([load_experiment(name) for name in chosen]))
        return
    launcher = _launcher(workers, scheduler) if workers or scheduler else None
    with _interruptible(_GO_ON), reproduction_progress(_errors, len(chosen) + bool(claims)) as on_stage:
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a sentence.")] = False,
) -> None:
    """Run many configs, in this process or on many workers, and store every result once.

    \b
    SPEC.py has a list CONFIGS and either EXPERIMENT = "the name of one" or an ID and a run(config) of its own:
      from parityscope.experiments.training_runs import Training, batch_shape, run, run_batch
      ID = "rates"
      CONFIGS = [Training(n=16, k=3, seed=s, settings={"learning_rate": r}) for r in (0.02, 0.05) for s in range(64)]

    What is in --out is not run again, also when several machines share the folder. A failing config becomes a failed
    row and stops nothing else. Exit code 1 when rows have failed.
    """
    from parityscope.store import Store
    from parityscope.sweep import load_spec, run_sweep

    work = load_spec(spec, pack)
    launcher = _launcher(workers, scheduler, slurm, _assignments("--slurm-option", slurm_option or []))
    store = Store(out / "store")
    with _interruptible(_GO_ON), sweep_progress(_errors, work.experiment.ID) as on_progress:
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
    experiment: Annotated[str | None, typer.Option(help="Rows of this experiment only.")] = None,
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
    from parityscope.store import Store
    from parityscope.store.export import export_rows, flat

    place = folder / "store" if (folder / "store").is_dir() else folder
    if not (place / "store.sqlite").exists():
        raise InvalidInput(f"{folder} holds no rows: it has no store.sqlite")
    store = Store(place)
    if repair:
        damaged = store.damaged()
        store.forget(damaged)
        typer.echo(f"{len(damaged)} damaged rows deleted")
        return
    wanted = {name: _value(text) for name, text in _assignments("--where", where or []).items()}
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
        list[str] | None, typer.Argument(metavar="[ID ...]", help="Claims, or papers such as H1; otherwise all.")
    ] = None,
    scale: Annotated[str, typer.Option(help="How hard to try: smoke, laptop or paper.")] = "laptop",
    out: Annotated[Path, typer.Option(help="A folder of `reproduce`, whose rows a check may use.")] = DEFAULT_OUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Check the papers' statements by computation and say which hold.

    Verdicts: holds, holds in part, fails (with a counterexample), not testable here.
    """
    from parityscope.claims import check, named_claims
    from parityscope.reproduce import claims_context

    chosen = named_claims(ids or ())
    context = claims_context(named_scale(scale), out)
    with _interruptible("nothing is stored by this command"), claims_progress(_errors, chosen) as on_claim:
        checked = []
        for claim in chosen:
            on_claim(claim)
            checked.append(check(claim, context))
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in checked]))
        return
    Console().print(claims_table(checked), highlight=False)


@app.command()
def entropy(
    model: Annotated[str, typer.Option(help="A model folder, a .gguf file, or a name on the Hugging Face hub.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Problems with solutions: .parquet, .jsonl or .csv; otherwise ten written for this project."),
    ] = None,
    second_model: Annotated[
        str | None, typer.Option(help="A model fine-tuned from the first, to compare on the same solutions.")
    ] = None,
    question: Annotated[str, typer.Option(help="The column with the questions.")] = "question",
    solution: Annotated[str, typer.Option(help="The column with the solutions.")] = "answer",
    answer: Annotated[
        str | None, typer.Option(help="The column with the final answers; otherwise what follows #### in a solution.")
    ] = None,
    separator: Annotated[
        str, typer.Option(help="What stands between a question and what follows it.", show_default="a space")
    ] = " ",
    limit: Annotated[int | None, typer.Option(min=1, help="Read so many problems at most.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Problems read at once; numbers stay the same.")] = 1,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the shuffled words.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for rows and figures; a folder of `reproduce` will do.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Compare how sparsely a language model attends with and without chain of thought (W, Section 4.3).

    For every head: the paper's minimum over positions, the mean, the solution or answer alone, the same number of
    positions of each, all with the attention sink kept and removed, and the solution's words shuffled as a control.
    With --out every problem is stored as it is read: the same command goes on after an interruption.
    """
    from parityscope.entropy_study import draw_study, run_study, study_json
    from parityscope.language_models.loading import load_language_model
    from parityscope.language_models.word_problems import OWN_PROBLEMS, read_word_problems
    from parityscope.store import Store

    path = data or OWN_PROBLEMS
    problems = list(
        read_word_problems(path, question=question, solution=solution, answer=answer, separator=separator, limit=limit)
    )
    store = None if out is None else Store(out / "store")
    advice = "the same command goes on from the last problem" if out else "nothing was stored, since there was no --out"
    with _interruptible(advice), entropy_progress(_errors) as on_progress:
        study = run_study(
            [model, *([second_model] if second_model else [])],
            problems,
            partial(load_language_model, dtype=dtype, device=device),
            data=path.name if separator == " " else f"{path.name} joined by {separator!r}",
            seed=seed,
            batch=batch,
            store=store,
            on_progress=on_progress,
        )
    drawn = [] if out is None else draw_study(out)
    if as_json:
        typer.echo(json.dumps(study_json(study)))
        return
    console = Console()
    show_study(console, study)
    if drawn:
        console.print(f"figures: {', '.join(map(str, drawn))}", highlight=False, soft_wrap=True)
        console.print(f"in the report: parityscope reproduce --out {out}", highlight=False, soft_wrap=True)


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
    from parityscope.estimator.files import fit_file, write_fit

    with _interruptible("nothing is stored by this command"):
        fitted = fit_file(data, target, k=k, max_k=max_k, seed=seed)
    written = None if out is None else write_fit(fitted, out)
    if as_json:
        typer.echo(json.dumps(fitted.to_json()))
        return
    console = Console()
    show_fit(console, fitted)
    if written is not None:
        console.print(f"written to {out}: {', '.join(written)}", highlight=False, soft_wrap=True)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME ...]", help="Questions; otherwise all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Measure speed as ratios: ours against another way, interleaved in one run on this machine."""
    from parityscope.benchmarking import benchmark_names, run_benchmark

    results = []
    for name in names or benchmark_names():
        for result in run_benchmark(name):
            results.append(result.to_json())
            if not as_json:
                Console().print(measurement_line(result), highlight=False)
    if as_json:
        typer.echo(json.dumps(results))


@contextmanager
def _interruptible(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into one sentence that says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        _errors.print(f"parityscope: stopped; {advice}", highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None


def _positions(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"--support {text!r} is not a list of positions like 7,10,17") from None


def _assignments(option: str, assignments: list[str]) -> dict[str, str]:
    for assignment in assignments:
        if "=" not in assignment:
            raise InvalidInput(f"{option} {assignment!r} is not of the form FIELD=VALUE")
    return dict(assignment.split("=", 1) for assignment in assignments)


def _value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _launcher(
    workers: int | None, scheduler: str | None, slurm: bool = False, slurm_options: dict[str, str] | None = None
) -> Launcher:
    from parityscope.sweep import DaskCluster, InProcess, Processes, SlurmJobs

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


def main() -> None:
    """Run the command line; bad input is one sentence and exit code 2, never a traceback."""
    try:
        app()
    except InvalidInput as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


def _stop(sentence: str) -> None:
    _errors.print(f"parityscope: {sentence}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(2)
