"""`claims` and `reproduce`: their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    DEFAULT_OUT,
    GO_ON,
    QUIET,
    SCHEDULER,
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
from parityscope.apps.terminal.progress import Progress
from parityscope.core.errors import InvalidInput
from parityscope.core.strict_json import strict_json
from parityscope.papers.registry import claim_names, reproducible_names, short_claim_names

if TYPE_CHECKING:
    from parityscope.papers.claim import Claim, Replayed
    from parityscope.papers.figure import Scale


@app.command()
def claims(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID ...]",
            help="Claims such as H1-theorem-5 or theorem-5, or papers such as H1; otherwise all.",
            autocompletion=completing(claim_names, short_claim_names),
        ),
    ] = None,
    scale: Annotated[str, scale_option("How much to compute")] = "demo",
    out: Annotated[
        Path,
        typer.Option(
            parser=named_path,
            metavar="<path>",
            help="A folder of `reproduce`, whose rows a check and whose counterexamples --replay may use.",
        ),
    ] = DEFAULT_OUT,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Compute counterexamples again by a second method; without ID, all stored ones."),
    ] = False,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead.")] = False,
) -> None:
    """Check the papers' statements by computation and say which hold; for a single statement, print all the evidence.

    Verdicts: proved (with a written proof), holds (we tried to refute it and did not succeed), misprint (false as
    printed, true as the authors meant it), in part (one clause holds and another fails), fails (with a counterexample
    that a second method confirms), open. Each statement is shown as printed, beside what was tested and what is ours.
    What would refute a statement is listed; statements that nothing computed here could refute are counted apart.
    """
    from parityscope.apps.terminal.tables import show_claim, show_claims
    from parityscope.papers.claim import check
    from parityscope.papers.figure import named_scale
    from parityscope.papers.registry import named_claims
    from parityscope.papers.results import claims_context

    wanted = named_scale(scale)
    if replay:
        _replay(ids or (), wanted, out, quiet, as_json)
        return
    chosen = named_claims(ids or ())
    context = claims_context(wanted, out)
    with interruptible("nothing is stored by this command"), Progress(errors(quiet)) as progress:
        checked = [check(claim, context) for claim in _shown(progress, chosen)]
    if as_json:
        typer.echo(strict_json([one.model_dump() for one in checked]))
    elif len(chosen) == 1:
        show_claim(Console(), checked[0], wanted)
    else:
        show_claims(Console(), checked)


def _replay(ids: Sequence[str], scale: Scale, out: Path, quiet: bool, as_json: bool) -> None:
    """Replay and print; exit code 1 if the second method does not refute what the first did."""
    from parityscope.apps.terminal.tables import show_replays

    replayed = _replayed(ids, scale, out, quiet)
    if len(replayed) == 1 and replayed[0].missing is not None:
        raise InvalidInput(replayed[0].missing)
    if as_json:
        typer.echo(strict_json([one.to_json() for one in replayed]))
    else:
        show_replays(Console(), replayed)
    if not all(one.confirms for one in replayed):
        raise typer.Exit(1)


def _replayed(ids: Sequence[str], scale: Scale, out: Path, quiet: bool) -> list[Replayed]:
    from parityscope.papers.claim import replay
    from parityscope.papers.registry import named_claims
    from parityscope.papers.rendering import counterexample_of
    from parityscope.papers.results import claims_context, stored_verdicts
    from parityscope.records import Store

    stored = stored_verdicts(scale, Store(out / "store")) if (out / "store").is_dir() else {}
    refuted = [name for name, (_, found) in stored.items() if counterexample_of(found) is not None]
    if not ids and not refuted:
        raise InvalidInput(f"no counterexample is stored in {out}: name a claim, or the --out of a reproduction")
    chosen, context = named_claims(ids or refuted), claims_context(scale, out)
    with interruptible("nothing is stored by this command"), Progress(errors(quiet)) as progress:
        known = ((claim, *stored.get(claim.id, (scale, None))) for claim in _shown(progress, chosen))
        return [replay(claim, found, at, context) for claim, at, found in known]


def _shown(progress: Progress, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yield claims, showing which one is under way; the time left follows from what each is declared to take."""
    for done, claim in enumerate(claims):
        left = sum(one.seconds for one in claims[done:])
        progress.show("claims", done, len(claims), f"checked · now {claim.id}", seconds_left=left)
        yield claim


@app.command()
def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID ...]",
            help="Figures, each with the claims it shows; claims, each with its figure; papers such as H1.",
            autocompletion=completing(reproducible_names),
        ),
    ] = None,
    scale: Annotated[str, scale_option("How much to run")] = "demo",
    out: Annotated[
        Path, typer.Option(parser=named_path, metavar="<path>", help="Folder for rows, figures and report.html.")
    ] = DEFAULT_OUT,
    workers: Annotated[int | None, WORKERS] = None,
    scheduler: Annotated[str | None, SCHEDULER] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures and their cost.")] = False,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Run whatever has no stored row, check the claims, draw the figures, write one report.

    Without an ID everything is reproduced. A figure comes with the claims that refer to it, a claim with the figure it
    refers to. The report is there from the first figure on. Rows in --out are never computed twice: an interrupted
    reproduction continues where it stopped, and deleted figures are redrawn without training. A row made by code that
    has changed since is computed again.
    """
    from parityscope.apps.reproduce import reproduce as run_reproduce
    from parityscope.apps.terminal.progress import Progress
    from parityscope.apps.terminal.tables import figures_table
    from parityscope.papers.figure import named_scale
    from parityscope.papers.registry import figures_and_claims, load_figure

    figures, claims = figures_and_claims(ids or ())
    console = Console()
    if list_:
        console.print(figures_table([load_figure(name) for name in figures]))
        return
    wanted = named_scale(scale)
    launcher = launcher_of(workers, scheduler) if workers or scheduler else None
    with nothing_left_in(out), interruptible(GO_ON), Progress(errors(quiet)) as progress:
        report = run_reproduce(figures, wanted, out, claims=claims, launcher=launcher, on_stage=progress.reproduction)
    console.print(f"report: {report}", highlight=False, soft_wrap=True)
