"""`compare`: its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    DEFAULT_OUT,
    ERRORS,
    GO_ON,
    QUIET,
    WORKERS,
    app,
    completing,
    errors,
    interruptible,
    launcher_of,
    named_path,
    nothing_left_in,
    scale_option,
)
from parityscope.core.cells import as_text
from parityscope.core.errors import InvalidInput
from parityscope.core.strict_json import strict_json

if TYPE_CHECKING:
    from parityscope.papers.figure import Scale
    from parityscope.papers.own.compare.method import Supervision
    from parityscope.runs import Work
    from parityscope.training.parts import OwnPart


_WIDTH = 120  # of the table: in a narrower window lines are broken, and no number is cut off


def _method_names() -> Iterable[str]:
    from parityscope.papers.own.compare.methods import METHODS

    return METHODS


@app.command()
def compare(
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METHOD ...]",
            help="Methods of the table, such as 'MLP, SGD'; otherwise all.",
            autocompletion=completing(_method_names),
        ),
    ] = None,
    own: Annotated[
        list[Path] | None,
        typer.Option(
            parser=named_path,
            metavar="FILE.py",
            help="A file with `solve(x, y, task)`: your method, on the table; one at a time.",
        ),
    ] = None,
    scale: Annotated[str, scale_option("How much to run")] = "demo",
    out: Annotated[
        Path, typer.Option(parser=named_path, metavar="<path>", help="Folder for rows and the figure.")
    ] = DEFAULT_OUT,
    workers: Annotated[int | None, WORKERS] = None,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Compare what methods need to learn a parity: supervision, examples, steps, parameters, operations, seconds.

    \b
    FILE.py is a method of your own, as a function of about twenty lines:
      from parityscope.papers.own.compare.method import Answer
      def solve(x, y, task): ...; return Answer(predict, gradient_steps, parameters, multiply_adds)
    SUPERVISION = "labels and a chain" or "labels and a tree" in it asks for intermediate values, in task.steps.

    Rows in --out are never computed twice.
    """
    from parityscope.apps.terminal.progress import sweep_progress
    from parityscope.apps.terminal.tables import compare_table
    from parityscope.core.drawing import drawn, write_pictures
    from parityscope.papers.figure import named_scale
    from parityscope.papers.own.figures import compare as figure
    from parityscope.records import Store
    from parityscope.runs import run_sweep

    if len(own or ()) > 1:
        raise InvalidInput("--own takes one file at a time: compare the next one with the same --out")
    work = _work(methods or (), own[0] if own else None, named_scale(scale))
    with nothing_left_in(out), interruptible(GO_ON), sweep_progress(errors(quiet), work.name) as on_progress:
        store = Store(out / "store")
        run_sweep(work, store, launcher_of(workers, None), retry_failed=True, on_progress=on_progress)
    if failures := store.failures(work.configs):
        reason = failures[-1].strip().splitlines()[-1]
        lines = re.findall(rf'{re.escape(own[0].name)}", line (\d+)', failures[-1]) if own else []
        where = f" in line {lines[-1]} of {own[0]}" if own and lines else ""
        failed = f"parityscope: a method failed{where}, {reason} (`parityscope rows {out} --failed` shows more)"
        ERRORS.print(as_text(failed), highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(1)
    rows = [row for row in store.row_of_each(list(work.configs)) if row is not None]
    write_pictures(drawn(figure.plot, rows), out / "figures", figure.ID)
    if as_json:
        typer.echo(strict_json([{**row.config.model_dump(mode="json"), **row.numbers.model_dump()} for row in rows]))
    else:
        console = Console()
        console.width = max(console.width, _WIDTH)
        console.print(compare_table(figure.table(rows)), highlight=False)
        console.print(f"figure: {out / 'figures' / figure.ID}.png", highlight=False, soft_wrap=True)


def _work(methods: Iterable[str], own: Path | None, scale: Scale) -> Work:
    """Return the cells of the named methods, or of all, and of one's own."""
    from parityscope.papers.own.compare.methods import named_method
    from parityscope.papers.own.figures.compare import CONFIGS, cells
    from parityscope.runs import Work

    chosen = {name: named_method(name) for name in methods}
    configs = [cell for name, method in chosen.items() for cell in cells(scale, name, method.supervision)]
    if own is None:
        return Work("comparison", tuple(configs or CONFIGS[scale]))
    if own.stem in _method_names():
        raise InvalidInput(f"{own.stem} is a method of the table already: give {own} another name")
    source, part, supervision = _own_method(own)
    return Work("comparison", (*(configs or CONFIGS[scale]), *cells(scale, own.stem, supervision, part)), source)


def _own_method(path: Path) -> tuple[str, OwnPart, Supervision]:
    """Return the text of a file with a method, its `solve`, and which supervision it asks for."""
    from parityscope.papers.own.compare.method import SUPERVISIONS
    from parityscope.runs.spec import read_spec
    from parityscope.training.parts import OwnPart

    source, module = read_spec(path)
    if not callable(solve := getattr(module, "solve", None)):
        raise InvalidInput(f"{path} needs a function solve(x, y, task) that returns an Answer")
    supervision = getattr(module, "SUPERVISION", SUPERVISIONS[0])
    if supervision not in SUPERVISIONS:
        raise InvalidInput(f"SUPERVISION in {path} is {supervision!r}: choose one of {', '.join(SUPERVISIONS)}")
    return source, OwnPart.of(solve), supervision
