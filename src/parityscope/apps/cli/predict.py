"""`predict`: its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from parityscope.apps.cli.application import ERRORS, app


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `fit --save` kept.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table with the columns that the model looks at.")],
    out: Annotated[
        Path | None, typer.Option(help="A .csv file for the predictions; otherwise they are printed.")
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
    from parityscope.core.errors import InvalidInput
    from parityscope.core.files import write_atomically
    from parityscope.fit.predicting import predict_file
    from parityscope.fit.saved import SavedModel

    if missing not in ("refuse", "drop"):
        raise InvalidInput(f"unknown choice {missing!r} for missing values: use refuse or drop")
    said = predict_file(SavedModel.read(model), data, skip_missing=missing == "drop", threshold=threshold)
    if out is not None:
        write_atomically(out, said.to_csv().encode())
    if as_json:
        typer.echo(json.dumps(said.to_json()))
        return
    if out is None:
        typer.echo(said.to_csv(), nl=False)
    show_predictions(ERRORS, said)
