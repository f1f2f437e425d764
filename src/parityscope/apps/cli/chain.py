"""`chain`: its arguments."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from parityscope.apps.cli.application import QUIET, app, errors, interruptible, positions_of


@app.command()
def chain(
    n: Annotated[int, typer.Option("--n", min=2, help="Number of bits.")] = 20,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Number of hidden bits.  [default: 6]")] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="Hidden positions from 0 in the order of the chain, like 1,5,7; otherwise drawn."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs: seeds S … S+R−1.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed S.")] = 0,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the decoder.")] = 1,
    heads: Annotated[int, typer.Option(min=1, help="Heads of each layer.")] = 8,
    width: Annotated[int, typer.Option(min=1, help="Numbers per token.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="Adam's rate.")] = 1e-3,
    batch: Annotated[int, typer.Option(min=1, help="Fresh examples at every step.")] = 256,
    steps: Annotated[int, typer.Option(min=1, help="Steps at most, of both; it stops when all is right.")] = 600,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Learn one parity twice with a small GPT-2: with a chain of thought, and at once (W, Section 4).

    Bits and a 0 are read; then either the answer is written, or the chain of partial parities that ends with it. Shown
    are the share of held-out answers that are right, when the decoder writes from what it wrote itself; the examples it
    had seen when everything was right for the first time; and where every written token looked.
    """
    from parityscope.apps.chain_of_thought import settings_of, train_pair
    from parityscope.apps.terminal.chains import show_chains
    from parityscope.apps.terminal.progress import Progress

    hidden = None if secret is None else positions_of("--secret", secret)
    decoder: dict[str, Any] = {"layers": layers, "heads": heads, "width": width, "learning_rate": learning_rate}
    given = {**decoder, "batch": batch, "steps": steps}
    most = 6 if k is None and hidden is None else k
    settings = [settings_of(n, most, hidden, one, **given) for one in range(seed, seed + runs)]
    advice = "nothing was stored; fewer --steps or a smaller --width take less time"
    with interruptible(advice), Progress(errors(quiet)) as progress:

        def on_evaluation(name: str, step: int, accuracy: float) -> None:
            progress.show(name, step, steps, f"steps · accuracy {accuracy:.3f}")

        pairs = [train_pair(one, on_evaluation) for one in settings]
    if as_json:
        told = {"n": n, "k": settings[0].k, "decoder": given, "runs": [pair.to_json() for pair in pairs]}
        typer.echo(json.dumps(told))
        return
    show_chains(Console(), pairs)
