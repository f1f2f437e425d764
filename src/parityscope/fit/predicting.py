"""From a saved model and a new file to predictions."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.model import quality
from parityscope.fit.saved import SavedModel
from parityscope.fit.tables.column import Column
from parityscope.fit.tables.reading import read_table
from parityscope.fit.tables.table import Table, is_missing, listed
from parityscope.fit.tables.target import spelled


@dataclass(frozen=True)
class Predictions:
    """What a model says of every row of a file; None where a row lacks a value that it needs.

    >>> known = dict(made_by="parityscope", data="", rows=4, target="fault", classes=("no", "yes"), share=0.2)
    >>> model = SavedModel(**known, held_out_accuracy=0.8, guarantee="", terms=(), columns=(), constant=0, features=())
    >>> said = Predictions(model, np.array([0.2, np.nan]), None)
    >>> said.classes, said.to_csv()
    (['no', None], 'prediction,P(fault = yes)\\nno,0.2\\n,\\n')
    """

    model: SavedModel
    probability: ndarray  # of the second class, or the expected target; NaN where nothing can be said
    accuracy: float | None  # where the file has the target too; R² of a measured one
    threshold: float = 0.5  # a probability above it is the second class

    @property
    def classes(self) -> list[str | None]:
        """The class of every row, or the expected target as text."""
        if self.model.classes is None:
            return [None if math.isnan(one) else f"{one:.6g}" for one in self.probability.tolist()]
        first, second = self.model.classes
        chosen = self.probability > self.threshold
        return [
            None if math.isnan(one) else second if up else first
            for one, up in zip(self.probability.tolist(), chosen.tolist(), strict=True)
        ]

    def to_csv(self) -> str:
        """Return a line per row."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        if self.model.classes is None:
            writer.writerow(["prediction"])
            writer.writerows([[one or ""] for one in self.classes])
            return written.getvalue()
        writer.writerow(["prediction", f"P({self.model.target} = {self.model.classes[1]})"])
        for name, share in zip(self.classes, self.probability.tolist(), strict=True):
            writer.writerow(["", ""] if name is None else [name, f"{share:.6g}"])
        return written.getvalue()

    def to_json(self) -> dict[str, Any]:
        """Return the object that `predict --json` prints."""
        return {
            "target": self.model.target,
            "classes": None if self.model.classes is None else list(self.model.classes),
            "rows": len(self.probability),
            "prediction": self.classes,
            "probability": [
                None if name is None else p for name, p in zip(self.classes, self.probability.tolist(), strict=True)
            ],
            "accuracy": self.accuracy,
        }


def predict_file(
    model: SavedModel, path: Path, *, skip_missing: bool = False, threshold: float | None = None
) -> Predictions:
    """Return what a model says of a file, which needs the columns that the model looks at, and no others.

    A missing value becomes what it became when the model was fitted; where nothing was chosen then, it is refused, or
    with `skip_missing` the row stays without a prediction. `threshold` is the probability above which a row is of the
    second class: 0.5 unless told, for rare classes rather their share.

    >>> import tempfile
    >>> from parityscope.fit.files import fit_file
    >>> folder = Path(tempfile.mkdtemp())
    >>> written = (folder / "faults.csv").write_text("shift,fault\\n" + "day,0\\nnight,1\\n" * 20)
    >>> written = (folder / "new.csv").write_text("heat,shift\\n1.5,night\\n0.5,day\\n")
    >>> predict_file(fit_file(folder / "faults.csv", "fault").model(), folder / "new.csv").classes
    ['1', '0']
    """
    table = read_table(path)
    wanted = [column.column() for column in model.columns]
    absent = [column.name for column in wanted if column.name not in table.names]
    if absent:
        raise InvalidInput(f"{path} lacks {listed(absent)}, which the model needs")
    numbers = [_numbers(column, table, path) for column in wanted]
    complete = ~np.any([np.isnan(values) for values in numbers], axis=0) if numbers else np.ones(table.rows, dtype=bool)
    if not complete.all() and not skip_missing:
        lacking = listed(column.name for column, values in zip(wanted, numbers, strict=True) if np.isnan(values).any())
        raise InvalidInput(
            f"{path} has missing values in {lacking}, and none were seen when the model was fitted: "
            "add --missing drop to leave these rows without a prediction"
        )
    probability = np.full(table.rows, np.nan)
    known = [values[complete] for values in numbers]
    probability[complete] = model.expected(known, int(complete.sum()))
    cut = 0.5 if threshold is None else threshold
    return Predictions(model, probability, _accuracy(model, table, probability, cut), cut)


def _numbers(column: Column, table: Table, path: Path) -> ndarray:
    """Return a column of a new file in the model's numbers."""
    place = table.names.index(column.name)
    values = table.column(place)
    if column.kind == "missing":
        return column.numbers(values)
    if column.kind == "text" and place not in table.texts:
        texts = np.array([spelled(value, table.words.get(place)) for value in values.tolist()], dtype=object)
        texts[is_missing(values)] = None
        values = texts
    if column.kind != "text" and place in table.texts:
        example = next(value for value in values if value is not None)
        raise InvalidInput(f"{path} has text in {column.name}, such as {example!r}: the model knows it as numbers")
    return np.asarray(column.numbers(values), dtype=float)


def _accuracy(model: SavedModel, table: Table, probability: ndarray, threshold: float) -> float | None:
    """Return how often the prediction is right, of the rows that have both it and a class."""
    if model.target not in table.names:
        return None
    place = table.names.index(model.target)
    values = table.column(place)
    told = ~is_missing(values) & ~np.isnan(probability)
    if not told.any():
        return None
    if model.classes is None:
        return quality(values[told].astype(float), probability[told], measured=True).r_squared
    second = np.array([spelled(value, table.words.get(place)) == model.classes[1] for value in values[told].tolist()])
    return float(((probability[told] > threshold) == second).mean())
