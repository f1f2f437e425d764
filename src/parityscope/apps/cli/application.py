"""The application that commands register with, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

import parityscope
from parityscope.core.errors import InvalidInput

if TYPE_CHECKING:
    from parityscope.runs import Launcher

FILES = ("learn", "fit", "papers", "sweep", "entropy", "explore", "bench")  # that register commands
# In the order in which a newcomer meets them.
COMMANDS = ("learn", "fit", "predict", "chain", "claims", "reproduce", "sweep", "rows", "entropy", "explore", "bench")


class _CommandGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)


app = typer.Typer(
    cls=_CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How does attention learn which few bits matter?",
)
ERRORS = Console(stderr=True)
QUIET = typer.Option("--quiet", help="No progress on standard error.")
WORKERS = typer.Option(min=1, help="Worker processes, one thread each; with --slurm, jobs.")
SCHEDULER = typer.Option(
    metavar="ADDRESS", help="A Dask scheduler such as tcp://host:8786, or `local` for one on this machine."
)
DEFAULT_OUT = Path("parityscope-output")
GO_ON = "what was finished is stored, and the same command continues from there"


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


def completing(*lists: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell completes with: the names that begin with what was typed, of the first list that has any.

    >>> completing(lambda: ["bounded", "repaired"])("bo"), completing(lambda: ["H1-lemma-8"], lambda: ["lemma-8"])("l")
    (['bounded'], ['lemma-8'])
    """

    def complete(incomplete: str) -> list[str]:
        found = ([name for name in names() if name.startswith(incomplete)] for names in lists)
        return next(filter(None, found), [])

    return complete


def scale_option(text: str) -> Any:
    """Return the option --scale, which completes the names of the scales.

    >>> scale_option("How much to compute").help
    'How much to compute: smoke, demo or reference.'
    """

    def scales() -> Iterable[str]:
        from parityscope.papers.figure import SCALES

        return SCALES

    return typer.Option(help=f"{text}: smoke, demo or reference.", autocompletion=completing(scales))


def errors(quiet: bool) -> Console:
    """Return where progress goes: standard error, or nowhere."""
    return Console(quiet=True) if quiet else ERRORS


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into one sentence that says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        ERRORS.print(f"parityscope: stopped; {advice}", highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None


def assignments_of(option: str, assignments: list[str]) -> dict[str, str]:
    """Return the pairs of a repeatable option that takes FIELD=VALUE.

    >>> assignments_of("--set", ["steps=3"])
    {'steps': '3'}
    """
    for assignment in assignments:
        if "=" not in assignment:
            raise InvalidInput(f"{option} {assignment!r} is not of the form FIELD=VALUE")
    return dict(assignment.split("=", 1) for assignment in assignments)


def positions_of(option: str, text: str) -> tuple[int, ...]:
    """Return the positions of an option like 7,10,17.

    >>> positions_of("--support", "7,10,17")
    (7, 10, 17)
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidInput(f"{option} {text!r} is not a list of positions like 7,10,17") from None


def launcher_of(
    workers: int | None, scheduler: str | None, slurm: bool = False, slurm_options: dict[str, str] | None = None
) -> Launcher:
    """Return where configs are run, as --workers, --scheduler and --slurm say.

    >>> type(launcher_of(None, None)).__name__, type(launcher_of(2, None)).__name__
    ('InProcess', 'Processes')
    """
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
