"""`learn` and `chain`: their arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    ERRORS,
    QUIET,
    app,
    assignments_of,
    completing,
    errors,
    interruptible,
    positions_of,
)
from parityscope.core.errors import InvalidInput
from parityscope.risk.cards import ENGINE_NAMES, engine_help
from parityscope.training.formulas import FORMULAS
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, named_recipe

if TYPE_CHECKING:
    from parityscope.problems import Parity


_LEARN_HELP = """Train attention heads on a hidden parity and show which support they recover.

\b
Recipes:
""" + "\n".join(
    f"  {recipe.name:<11} {recipe.summary}{' (default)' if recipe.name == DEFAULT_RECIPE else ''}"
    for recipe in RECIPES.values()
)
_SET_HELP = "Override a recipe field; repeatable. Formulas: " + "; ".join(
    f"{field}={', '.join(formula.name for formula in formulas)}" for field, formulas in FORMULAS.items()
)


@app.command(help=_LEARN_HELP)
def learn(
    n: Annotated[int, typer.Option("--n", help="Number of bits.")] = 20,
    k: Annotated[int | None, typer.Option("--k", help="Number of hidden bits.  [default: 3]")] = None,
    support: Annotated[
        str | None, typer.Option(help="Hidden positions from 0, like 7,10,17; otherwise drawn from each seed.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="A recipe from the list above.", autocompletion=completing(lambda: RECIPES))
    ] = DEFAULT_RECIPE,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs: seeds S … S+R−1.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed S.")] = 0,
    steps: Annotated[int | None, typer.Option(min=0, help="Maximum number of steps; otherwise the recipe's.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Train on so many drawn examples instead of the population.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Train on so many fresh examples at every step instead of the population.")
    ] = None,
    k_at_most: Annotated[
        int | None, typer.Option(min=1, help="Largest possible k, if k is unknown to the training (recipe concave).")
    ] = None,
    noise: Annotated[float, typer.Option(help="Probability that a label is flipped.")] = 0.0,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help=_SET_HELP)] = None,
    engine: Annotated[
        str, typer.Option(help=f"Risk engine. {engine_help()}.", autocompletion=completing(lambda: ENGINE_NAMES))
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for run.json, weights and figures.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Parse the arguments of `learn` (its help text is `_LEARN_HELP`)."""
    from parityscope.apps.run_folder import RunFolder
    from parityscope.apps.terminal.progress import Progress
    from parityscope.apps.terminal.tables import show_run
    from parityscope.problems import Parity, draw_problems
    from parityscope.training.learning import learn as run_learn

    overrides: dict[str, Any] = dict(assignments_of("--set", set_ or []))
    if steps is not None:
        overrides["steps"] = str(steps)
    seeds = range(seed, seed + runs)
    named_recipe(recipe).overridden(**overrides)  # bad settings are refused before anything is written
    if support is None:
        problem: Parity | list[Parity] = draw_problems(n, 3 if k is None else k, seeds, noise=noise)
    else:
        problem = Parity(n, positions_of("--support", support), noise=noise)
        if k is not None and k != problem.k:
            raise InvalidInput(f"--k {k} disagrees with --support {support}, which has {problem.k} positions")
    folder = RunFolder.prepare(out, resume)
    console = Console()
    advice = (
        "add --resume to continue from the last checkpoint"
        if folder
        else "nothing was stored, since there was no --out"
    )
    with interruptible(advice), Progress(ERRORS) as progress:
        run = run_learn(
            problem,
            recipe,
            seeds,
            samples=samples,
            batch=batch,
            k_at_most=k_at_most,
            engine=engine,
            on_progress=progress.training,
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
def chain(
    n: Annotated[int, typer.Option("--n", min=2, help="Number of bits.")] = 20,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Number of hidden bits.  [default: 6]")] = None,
    secret: Annotated[
        str | None, typer.Option(help="Hidden positions from 0 in the order of the chain, like 1,5,7; otherwise drawn.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs: seeds S … S+R−1.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed S.")] = 0,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the decoder.")] = 1,
    heads: Annotated[int, typer.Option(min=1, help="Heads of each layer.")] = 8,
    width: Annotated[int, typer.Option(min=1, help="Embedding dimension.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="Adam's rate.")] = 1e-3,
    batch: Annotated[int, typer.Option(min=1, help="Fresh examples at every step.")] = 256,
    steps: Annotated[
        int,
        typer.Option(
            min=1, help="Maximum number of steps for each training; it stops when all held-out answers are correct."
        ),
    ] = 600,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Learn one parity twice with a small GPT-2: with a chain of thought, and at once (W, Section 4).

    Bits and a 0 are read; then either the answer is written, or the chain of partial parities that ends with it. Shown
    are the accuracy on held-out inputs, when the decoder continues from its own tokens; the number of examples seen
    when all held-out answers were correct for the first time; and the attention of every written token.
    """
    from parityscope.apps.chain_of_thought import settings_of, train_pair
    from parityscope.apps.terminal.progress import Progress
    from parityscope.apps.terminal.tables import show_chains

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
