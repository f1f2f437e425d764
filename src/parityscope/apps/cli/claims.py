"""`claims`: its arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    DEFAULT_OUT,
    QUIET,
    app,
    completing,
    errors,
    interruptible,
    scale_option,
)
from parityscope.core.errors import InvalidInput
from parityscope.papers.registry import claim_names, short_claim_names

if TYPE_CHECKING:
    from parityscope.papers.claim import Replayed
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
    scale: Annotated[str, scale_option("How hard to try")] = "demo",
    out: Annotated[
        Path,
        typer.Option(help="A folder of `reproduce`, whose rows a check and whose counterexamples --replay may use."),
    ] = DEFAULT_OUT,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Compute counterexamples again by a second route; all stored ones without ID."),
    ] = False,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead.")] = False,
) -> None:
    """Check the papers' statements by computation and say which hold; of one statement everything that was found.

    Verdicts: proved (a proof is named), holds (attacked and not broken), holds in part, fails (with a counterexample),
    not testable here. A misprinted statement is judged as printed, and beside it as meant. What would refute a
    statement is listed; where nothing computed here could, it says so and is counted apart.
    """
    from parityscope.apps.terminal.claims import show_claim, show_claims
    from parityscope.apps.terminal.progress import claims_progress
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
    with interruptible("nothing is stored by this command"), claims_progress(errors(quiet), chosen) as on_claim:
        checked = []
        for claim in chosen:
            on_claim(claim)
            checked.append(check(claim, context))
    if as_json:
        typer.echo(json.dumps([one.model_dump() for one in checked]))
    elif len(chosen) == 1:
        show_claim(Console(), chosen[0], checked[0], wanted)
    else:
        show_claims(Console(), checked)


def _replay(ids: Sequence[str], scale: Scale, out: Path, quiet: bool, as_json: bool) -> None:
    """Replay and print; exit code 1 if a second route does not refute what the first did."""
    from parityscope.apps.terminal.claims import show_replays

    replayed = _replayed(ids, scale, out, quiet)
    if len(replayed) == 1 and replayed[0].missing is not None:
        raise InvalidInput(replayed[0].missing)
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in replayed]))
    else:
        show_replays(Console(), replayed)
    if not all(one.confirms for one in replayed):
        raise typer.Exit(1)


def _replayed(ids: Sequence[str], scale: Scale, out: Path, quiet: bool) -> list[Replayed]:
    from parityscope.apps.terminal.progress import claims_progress
    from parityscope.papers.claim import replay
    from parityscope.papers.registry import named_claims
    from parityscope.papers.results import claims_context, stored_verdicts
    from parityscope.papers.wording import counterexample_of
    from parityscope.records import Store

    stored = stored_verdicts(scale, Store(out / "store")) if (out / "store").is_dir() else {}
    refuted = [name for name, (_, found) in stored.items() if counterexample_of(found) is not None]
    if not ids and not refuted:
        raise InvalidInput(f"no counterexample is stored in {out}: name a claim, or the --out of a reproduction")
    chosen, context = named_claims(ids or refuted), claims_context(scale, out)
    with interruptible("nothing is stored by this command"), claims_progress(errors(quiet), chosen) as on_claim:
        replayed = []
        for claim in chosen:
            on_claim(claim)
            at, found = stored.get(claim.id, (scale, None))
            replayed.append(replay(claim, found, at, context))
    return replayed
