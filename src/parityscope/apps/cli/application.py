"""The application that commands register with, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

import parityscope
from parityscope.core.errors import InvalidInput

# In the order in which a newcomer meets them.
COMMANDS = ("learn", "fit", "claims", "reproduce", "sweep", "rows", "entropy", "explore", "bench")


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)


app = typer.Typer(
    cls=_InOrder,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How does attention learn which few bits matter?",
)
ERRORS = Console(stderr=True)
QUIET = typer.Option("--quiet", help="No progress on standard error.")
DEFAULT_OUT = Path("parityscope-output")


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


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell completes with: those of the names that begin with what was typed.

    >>> completing(lambda: ["bounded", "repaired"])("bo")
    ['bounded']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def errors(quiet: bool) -> Console:
    """Return where progress goes: standard error, or nowhere.

    >>> errors(True).quiet, errors(False) is ERRORS
    (True, True)
    """
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
