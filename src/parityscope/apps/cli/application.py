"""The application that commands register with, and what they share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

import parityscope
from parityscope.core.errors import InvalidInput

if TYPE_CHECKING:
    from parityscope.runs import Launcher

FILES = ("learn", "fit", "papers", "compare", "sweep", "entropy", "explore", "bench")  # that register commands
# In the order in which a newcomer meets them.
COMMANDS = (
    "learn",
    "fit",
    "predict",
    "chain",
    "claims",
    "reproduce",
    "compare",
    "sweep",
    "rows",
    "entropy",
    "explore",
    "bench",
)


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
WORKERS = typer.Option(min=1, max=10_000, help="Worker processes, one thread each; with --slurm, jobs.")
SCHEDULER = typer.Option(
    metavar="ADDRESS", help="A Dask scheduler such as tcp://host:8786, or `local` for one on this machine."
)
DEFAULT_OUT = Path("parityscope-output")
MOST = 2**31 - 1  # of whole numbers that count things: beyond, torch's own errors begin
_MOST_HOURS = 24  # if all steps are taken; what takes longer is for a sweep, which goes on after an interruption
GO_ON = "what was finished is stored, and the same command continues from there"


def named_path(given: str | Path) -> Path:
    """Return the path that was given: Python would take an empty one for the folder one is in.

    >>> named_path("faults.csv").name
    'faults.csv'
    """
    if not str(given):
        raise typer.BadParameter("it is empty: name a file or a folder")
    return Path(given)


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


@contextmanager
def nothing_left_in(out: Path | None) -> Iterator[None]:
    """Remove what a command that is refused has made of its folder, as long as that is nothing but an empty store."""
    places = [] if out is None else [out / "store", out, *out.parents]
    new = [place for place in places if not place.exists()]
    try:
        yield
    except (InvalidInput, OSError):
        if new and new[0].name == "store" and _is_empty(new[0]):
            for file in new[0].iterdir():
                file.unlink()
        for place in new:
            with suppress(OSError):  # there is something in it
                place.rmdir()
        raise


def _is_empty(store: Path) -> bool:
    from parityscope.records import Store

    if not (store / "store.sqlite").is_file():
        return False
    opened = Store(store)
    return not opened.counts() and not opened.counts(failed=True)


def refuse_beyond_reach(what: str, numbers: float, seconds: float) -> None:
    """Refuse what needs more numbers of eight bytes than are free on this machine, or more hours than a day has.

    >>> refuse_beyond_reach("n = 10^30", 1e30, 0)
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: n = 10^30 needs about 8e+21 GB of memory, and there is less: choose smaller \
sizes
    >>> refuse_beyond_reach("a training of 3000 steps", 1e3, 1e5)
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: a training of 3000 steps may take about 27.8 hours, and at most 24 are \
begun: choose smaller sizes or fewer steps
    """
    if 8 * numbers > _free_memory():
        raise InvalidInput(
            f"{what} needs about {8e-9 * numbers:.3g} GB of memory, and there is less: choose smaller sizes"
        )
    if seconds > 3600 * _MOST_HOURS:
        raise InvalidInput(
            f"{what} may take about {seconds / 3600:.3g} hours, and at most {_MOST_HOURS} are begun: choose smaller "
            "sizes or fewer steps"
        )


def _free_memory() -> float:
    """Return the bytes that this process may still have, as far as the system says."""
    limits = []
    with suppress(ImportError, ValueError, OSError):  # on Windows
        import resource

        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        limits += [most for most in resource.getrlimit(resource.RLIMIT_AS)[:1] if most != resource.RLIM_INFINITY]
    with suppress(OSError, KeyError):  # elsewhere than on Linux what others use is not known
        told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(1024 * int(told["MemAvailable"].split()[0]))
    return float(min(limits, default=math.inf))


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
