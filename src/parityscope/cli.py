"""The command line: argument parsing only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

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
    experiments_table,
    measurement_line,
    reproduction_progress,
    show_run,
    training_progress,
)
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, named_recipe

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How does attention learn which few bits matter?",
)
_errors = Console(stderr=True)
DEFAULT_OUT = Path("parityscope-output")

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
    overrides: dict[str, Any] = dict(_overrides(set_ or []))
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
    advice = "what was finished is stored, and the same command goes on from there"
    with _interruptible(advice), reproduction_progress(_errors, len(chosen) + bool(claims)) as on_stage:
        report = run_reproduce(chosen, named_scale(scale), out, claims=claims, on_stage=on_stage)
    console.print(f"report: {report}", highlight=False, soft_wrap=True)


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


@app.command()
def explore(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8321,
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own opens it to others.")] = (
        "127.0.0.1"
    ),
    store: Annotated[Path | None, typer.Option(help="A folder of `reproduce` or `sweep` to browse.")] = None,
) -> None:
    """Watch heads find the hidden bits, in a browser. Nothing is fetched from elsewhere; Ctrl-C ends it."""
    from parityscope.explorer.app import serve

    Console().print(f"explorer: http://{host}:{port}/", highlight=False, soft_wrap=True)
    serve(host, port, store)


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


def _overrides(assignments: list[str]) -> dict[str, str]:
    for assignment in assignments:
        if "=" not in assignment:
            raise InvalidInput(f"--set {assignment!r} is not of the form FIELD=VALUE")
    return dict(assignment.split("=", 1) for assignment in assignments)


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
