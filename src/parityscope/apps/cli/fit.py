"""`fit` and `predict`: their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from parityscope.apps.cli.application import ERRORS, QUIET, app, errors, interruptible, named_path
from parityscope.core.errors import InvalidInput
from parityscope.core.strict_json import strict_json


@app.command()
def fit(
    data: Annotated[
        Path,
        typer.Argument(
            parser=named_path,
            metavar="DATA",
            help="A table: .csv, .tsv or .txt, plain or .gz, .parquet, or PLINK's .bed.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(help="The column to explain: two classes, or measured numbers; of a .bed its phenotype."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="CLASS", help="The class to explain, against all others together.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Where values are missing: refuse, drop (those rows), median, or category (their own).")
    ] = "refuse",
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Rows with the same value here may depend on each other.")
    ] = None,
    adjust: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Take the effect of this column out, and do not search it; repeatable."),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many columns interact; otherwise chosen.")] = None,
    max_k: Annotated[int, typer.Option("--max-k", min=1, help="At most so many, when --k is not given.")] = 10,
    solver: Annotated[
        str, typer.Option(help="auto, or one alone: exhaustive, collision, elimination, attention.")
    ] = "auto",
    alpha: Annotated[float, typer.Option(help="The probability of any false term that is allowed.")] = 0.01,
    budget: Annotated[str, typer.Option(help="The work that the search may do: 30s, 5m, 2h.")] = "30s",
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Which rows are held out, and how solvers start.")
    ] = 0,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Say whether a random forest, or LightGBM, does better: five more searches."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=named_path, metavar="<path>", help="Folder for fit.json, interaction.png and report.html."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(parser=named_path, metavar="FILE", help="Keep the model in this file, for `predict`.")
    ] = None,
    quiet: Annotated[bool, QUIET] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Find the few columns of a table whose interaction is the target, and say how sure that is.

    Finding nothing is an answer too: the guarantee says what would have been found, and what was not searched.
    """
    from parityscope.apps.terminal.interactions import show_fit
    from parityscope.apps.terminal.progress import Progress
    from parityscope.core.files import remove_leftovers
    from parityscope.fit.files import fit_file, write_fit

    if save is not None and save.is_dir():
        raise InvalidInput(f"--save {save} is a folder: name a file")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidInput(f"--out {out} is a file, not a folder")
    if out is not None:
        remove_leftovers(out)
    with interruptible("nothing is stored by this command"), Progress(errors(quiet)) as progress:

        def searching(share: float, doing: str) -> None:
            progress.show("searching", round(100 * share), 100, f"of the budget · {doing}", unit=" %")

        fitted = fit_file(
            data,
            target,
            k=k,
            max_k=max_k,
            budget=budget,
            seed=seed,
            solver=solver,
            alpha=alpha,
            missing=missing,
            positive=positive,
            group=group,
            adjust=adjust or (),
            compare=compare,
            progress=searching,
        )
    if save is not None:
        fitted.model().write(save)
    written = None if out is None else write_fit(fitted, out)
    if as_json:
        typer.echo(strict_json(fitted.to_json()))
        return
    console = Console()
    show_fit(console, fitted)
    if written is not None:
        console.print(f"written to {out}: {', '.join(written)}", highlight=False, soft_wrap=True)
    if save is not None:
        console.print(f"model: {save}", highlight=False, soft_wrap=True)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(parser=named_path, metavar="MODEL", help="A model that `fit --save` kept.")],
    data: Annotated[
        Path,
        typer.Argument(parser=named_path, metavar="DATA", help="A table with the columns that the model looks at."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="<path>", help="A .csv file for the predictions; otherwise they are printed."
        ),
    ] = None,
    missing: Annotated[
        str, typer.Option(help="A value is missing, and none was when fitting: refuse, or drop (no prediction).")
    ] = "refuse",
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="The second class is named above this probability (0.5).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Predict the classes of a table by a model that `fit --save` kept.

    A line per row: the more probable class, and the probability of the second one. Where the table has the target
    too, standard error says how often the prediction is right.
    """
    from parityscope.apps.terminal.interactions import show_predictions
    from parityscope.core.files import write_atomically
    from parityscope.fit.saved import SavedModel, predict_file

    if missing not in ("refuse", "drop"):
        raise InvalidInput(f"unknown choice {missing!r} for missing values: use refuse or drop")
    said = predict_file(SavedModel.read(model), data, skip_missing=missing == "drop", threshold=threshold)
    if out is not None:
        write_atomically(out, said.to_csv().encode())
    if as_json:
        typer.echo(strict_json(said.to_json()))
        return
    if out is None:
        typer.echo(said.to_csv(), nl=False)
    show_predictions(ERRORS, said)
