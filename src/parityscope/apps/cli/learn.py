"""`learn` and `chain`: their arguments."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from parityscope.apps.cli.application import (
    ERRORS,
    MOST,
    QUIET,
    app,
    assignments_of,
    completing,
    errors,
    interruptible,
    named_path,
    nothing_left_in,
    positions_of,
    refuse_beyond_reach,
)
from parityscope.core.errors import InvalidInput
from parityscope.core.strict_json import strict_json
from parityscope.risk.cards import ENGINE_NAMES, engine_help
from parityscope.training.formulas import FORMULAS
from parityscope.training.recipes import DEFAULT_RECIPE, RECIPES, Recipe, named_recipe, refuse_impossible

if TYPE_CHECKING:
    from parityscope.problems import Parity

_OPERATIONS_PER_SECOND = 5e10  # of a core, when decoders are wide

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
    n: Annotated[int, typer.Option("--n", max=MOST, help="Number of bits.")] = 20,
    k: Annotated[int | None, typer.Option("--k", help="Number of hidden bits.  [default: 3]")] = None,
    support: Annotated[
        str | None, typer.Option(help="Hidden positions from 0, like 7,10,17; otherwise drawn from each seed.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="A recipe from the list above.", autocompletion=completing(lambda: RECIPES))
    ] = DEFAULT_RECIPE,
    runs: Annotated[int, typer.Option(min=1, max=MOST, help="Number of runs: seeds S … S+R−1.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed S.")] = 0,
    steps: Annotated[int | None, typer.Option(min=0, help="Maximum number of steps; otherwise the recipe's.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Train on so many drawn examples instead of the population.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Train on so many fresh examples at every step instead of the population."),
    ] = None,
    k_at_most: Annotated[
        int | None, typer.Option(min=1, help="Largest possible k, if k is unknown to the training (recipe concave).")
    ] = None,
    noise: Annotated[float, typer.Option(help="Probability that a label is flipped.")] = 0.0,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help=_SET_HELP)] = None,
    engine: Annotated[
        str, typer.Option(help=f"Risk engine. {engine_help()}.", autocompletion=completing(lambda: ENGINE_NAMES))
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option(parser=named_path, metavar="<path>", help="Folder for run.json, weights and figures.")
    ] = None,
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
    # Bad settings are refused before anything is drawn or written.
    seeds = range(seed, seed + runs)
    hidden = None if support is None else positions_of("--support", support)
    told = k_at_most or k or (3 if hidden is None else len(hidden))
    if k_at_most is not None and k_at_most > n:
        raise InvalidInput(f"--k-at-most {k_at_most} is more than the bits there are, {n}")
    if engine not in ENGINE_NAMES:
        raise InvalidInput(f"unknown engine {engine!r}: choose one of {', '.join(ENGINE_NAMES)}")
    kind = {"from_examples": bool(samples or batch), "from_batches": bool(batch)}
    settings = named_recipe(recipe).adapted(told, **kind, **overrides).resolved(max(n, 1), told)
    refuse_impossible(settings)
    _refuse_too_large(settings, n, runs, samples or batch or 0)
    if hidden is None:
        problem: Parity | list[Parity] = draw_problems(n, 3 if k is None else k, seeds, noise=noise)
    else:
        problem = Parity(n, hidden, noise=noise)
        if k is not None and k != problem.k:
            raise InvalidInput(f"--k {k} disagrees with --support {support}, which has {problem.k} positions")
    console = Console()
    advice = (
        "add --resume to continue from the last checkpoint" if out else "nothing was stored, since there was no --out"
    )
    with nothing_left_in(out), interruptible(advice), Progress(ERRORS) as progress:
        folder = RunFolder.prepare(out, resume)
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
        typer.echo(strict_json(run.to_json()))
        return
    show_run(console, run)
    if folder is not None:
        console.print(f"written to {folder.path}: {', '.join(folder.contents())}", highlight=False)


def _refuse_too_large(settings: Recipe, n: int, runs: int, examples: int) -> None:
    """Refuse a training that is beyond this machine; bytes and seconds as they were measured for large sizes."""
    heads, numbers = int(settings.heads or 1), int(settings.numbers_per_head or n)
    if max(heads, numbers) > MOST:
        raise InvalidInput(f"heads and numbers_per_head must be at most {MOST}, got {heads} and {numbers}")
    signs = settings.positions == "random-signs"  # a byte each, where there are many, and three while they are drawn
    # Parameters, gradients, moments and copies of them; examples with what is computed from them.
    width = n * numbers * (0.375 if signs else 1.0) + heads * (n + 8.0 * numbers) + 2.0 * n * examples
    seconds = 3e-9 * heads * n * (numbers + examples) * int(settings.steps)
    many = f"{runs} run{'s' * (runs > 1)}, {settings.steps} steps, {heads} heads × {numbers} parameters"
    what = f"a training at n = {n} ({many})"
    refuse_beyond_reach(what, runs * width, runs * seconds)


@app.command()
def chain(
    n: Annotated[int, typer.Option("--n", min=2, max=10_000, help="Number of bits.")] = 20,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Number of hidden bits.  [default: 6]")] = None,
    secret: Annotated[
        str | None, typer.Option(help="Hidden positions from 0 in the order of the chain, like 1,5,7; otherwise drawn.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=MOST, help="Number of runs: seeds S … S+R−1.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="First seed S.")] = 0,
    layers: Annotated[int, typer.Option(min=1, max=1000, help="Layers of the decoder.")] = 1,
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
    if not 0 < learning_rate < math.inf:
        raise InvalidInput(f"--learning-rate must be positive and finite, got {learning_rate:g}")
    most = 6 if k is None and hidden is None else k
    links = len(hidden) if hidden is not None else most or 1
    length, dimensions = n + 2 + links, float(width)
    weights = layers * 12 * dimensions**2 + length * dimensions
    activations = batch * length * (layers * (20 * dimensions + heads * length) + 1)
    # Six operations for every weight and token, forwards and backwards, in two trainings.
    seconds = 2 * 6 * weights * batch * length * steps * runs / _OPERATIONS_PER_SECOND
    what = f"a decoder of width {width} on {batch} sequences of {length} tokens for {steps} steps"
    refuse_beyond_reach(what, 4 * weights + activations, seconds)
    settings = [settings_of(n, most, hidden, one, **given) for one in range(seed, seed + runs)]
    advice = "nothing was stored; fewer --steps or a smaller --width take less time"
    with interruptible(advice), Progress(errors(quiet)) as progress:

        def on_evaluation(name: str, step: int, accuracy: float) -> None:
            progress.show(name, step, steps, f"steps · accuracy {accuracy:.3f}")

        pairs = [train_pair(one, on_evaluation) for one in settings]
    if as_json:
        told = {"n": n, "k": settings[0].k, "decoder": given, "runs": [pair.to_json() for pair in pairs]}
        typer.echo(strict_json(told))
        return
    show_chains(Console(), pairs)
