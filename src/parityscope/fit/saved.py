"""Models in files, and their predictions for new files."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy import ndarray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

import parityscope
from parityscope.core.cells import as_cell, as_text
from parityscope.core.errors import InvalidInput
from parityscope.core.files import write_atomically
from parityscope.fit.bits.bits import Bit
from parityscope.fit.interactions.interaction import Feature, Ramp
from parityscope.fit.model import FittedModel, quality
from parityscope.fit.tables.column import Kind, SearchedColumn
from parityscope.fit.tables.prepared import usable_place
from parityscope.fit.tables.reading import read_table
from parityscope.fit.tables.table import DataTable, is_missing, listed
from parityscope.fit.tables.target import spelled

VERSION = 2
_NO_CHECKSUM = "0" * 64


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


class SavedColumn(_Saved):
    """A column that the model looks at: what its numbers stand for, and what a missing value becomes.

    >>> column = SavedColumn.of(SearchedColumn("shift", 4, "text", {0.0: "day", 1.0: "night"}))
    >>> column.words, column.column().spelled(1.0)
    (((0.0, 'day'), (1.0, 'night')), 'night')
    """

    name: str
    kind: Kind
    words: tuple[tuple[float, str], ...] | None = None
    missing_becomes: float | None = None

    @model_validator(mode="after")
    def _check_words(self) -> SavedColumn:
        codes = {code for code, _ in self.words or ()}
        if len(codes) < len(self.words or ()):
            raise ValueError("a number stands for two words")
        if (self.kind == "text" and not codes) or (self.kind == "genotype" and not codes >= {0.0, 1.0, 2.0}):
            raise ValueError(f"a column of kind {self.kind} needs its words")
        return self

    @classmethod
    def of(cls, column: SearchedColumn) -> SavedColumn:
        """Return what is kept of a column."""
        words = None if column.words is None else tuple(sorted(column.words.items()))
        return cls(name=column.name, kind=column.kind, words=words, missing_becomes=column.fill)

    def column(self) -> SearchedColumn:
        """Return the column as it was."""
        return SearchedColumn(
            self.name, 0, self.kind, None if self.words is None else dict(self.words), self.missing_becomes
        )


class SavedFactor(_Saved):
    """A sign from a question about one of the model's columns (above a threshold, or one of some levels), or a ramp."""

    column: int = Field(ge=0)
    threshold: float | None = None
    levels: tuple[float, ...] | None = Field(None, min_length=1)
    ramp: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _check_question(self) -> SavedFactor:
        if sum(one is not None for one in (self.threshold, self.levels, self.ramp)) != 1:
            raise ValueError("a factor has one of threshold, levels and ramp")
        if self.ramp is not None and self.ramp[0] >= self.ramp[1]:
            raise ValueError("a ramp rises")
        return self

    @classmethod
    def of(cls, factor: Bit | Ramp, places: dict[int, int]) -> SavedFactor:
        """Return what is kept of a factor."""
        if isinstance(factor, Ramp):
            return cls(column=places[factor.column], ramp=(factor.low, factor.high))
        return cls(column=places[factor.column], threshold=factor.threshold, levels=factor.levels or None)

    def factor(self) -> Bit | Ramp:
        """Return the factor."""
        if self.ramp is not None:
            return Ramp(self.column, *self.ramp)
        return Bit(self.column, self.threshold, self.levels or ())


class SavedFeature(_Saved):
    """A product of factors and its coefficient: what it adds to the log-odds, or to a measured target."""

    factors: tuple[SavedFactor, ...] = Field(min_length=1)
    coefficient: float


class SavedModel(_Saved):
    """Everything that a prediction needs, and what was known about it when it was fitted.

    >>> SavedModel.read(Path("nowhere.json"))
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: there is no file nowhere.json
    """

    format: Literal["parityscope model"] = "parityscope model"
    version: int = VERSION
    made_by: str
    data: str
    rows: int = Field(ge=1)
    target: str
    classes: tuple[str, str] | None = None  # None for a measured target
    share: float  # of the second class, or the mean
    held_out_accuracy: float = Field(le=1)  # R² of a measured target
    guarantee: str
    terms: tuple[str, ...]  # in words
    columns: tuple[SavedColumn, ...]
    constant: float
    features: tuple[SavedFeature, ...]
    checksum: str = ""  # of the file without it

    @model_validator(mode="after")
    def _check_whole(self) -> SavedModel:
        if any(factor.column >= len(self.columns) for feature in self.features for factor in feature.factors):
            raise ValueError(f"a factor is of a column beyond the {len(self.columns)} that there are")
        if len({(column.name, column.kind) for column in self.columns}) < len(self.columns):
            raise ValueError("a column is there twice")
        if self.classes is not None:
            if self.classes[0] == self.classes[1]:
                raise ValueError("the two classes are one")
            if not (0 <= self.share <= 1 and self.held_out_accuracy >= 0):
                raise ValueError("shares and accuracies lie between 0 and 1")
        return self

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Return the model in a file."""
        if not path.is_file():
            raise InvalidInput(f"there is no file {path}")
        content = path.read_bytes()
        try:
            model = cls.model_validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidInput(
                f"{path} is no model of `fit --save`: {where + ': ' if where else ''}{first['msg']}"
            ) from None
        if model.version != VERSION:
            raise InvalidInput(
                f"{path} is a model of version {model.version}: this parityscope reads version {VERSION}"
            )
        if model.checksum != _checksum(content, model.checksum):
            raise InvalidInput(f"{path} is not as `fit --save` wrote it, its checksum does not fit: fit once more")
        return model.model_copy(update={"checksum": ""})

    def write(self, path: Path) -> None:
        """Write the model, whole or not at all."""
        marked = self.model_copy(update={"checksum": _NO_CHECKSUM})
        text = marked.model_dump_json(indent=2, exclude_none=True)
        # A list of numbers or words is one line; no string has a line break of its own in JSON.
        text = re.sub(r"\[\n\s+([^\[\]{}]*?)\n\s+\]", lambda found: "[" + re.sub(r"\n\s+", " ", found[1]) + "]", text)
        content = text.encode() + b"\n"
        checksum = _checksum(content, _NO_CHECKSUM)
        write_atomically(path, content.replace(_NO_CHECKSUM.encode(), checksum.encode()))

    def expected(self, columns: Sequence[ndarray], rows: int) -> ndarray:
        """Return P(second class), or the expected target, of every row, from the numbers of the model's columns."""
        features: list[Feature] = [tuple(factor.factor() for factor in one.factors) for one in self.features]
        coefficients = np.array([self.constant, *(one.coefficient for one in self.features)])
        model = FittedModel(tuple(features), coefficients, self.classes is None)
        return model.expected(dict(enumerate(columns)), rows)


def _checksum(content: bytes, checksum: str) -> str:
    """Return a hash of a file in which zeros stand for its checksum."""
    blank = content.replace(checksum.encode(), _NO_CHECKSUM.encode()) if checksum else content
    return hashlib.sha256(blank).hexdigest()


def saved_model(model: FittedModel, columns: Sequence[SearchedColumn], **known: Any) -> SavedModel:
    """Return what is kept of a model; `columns` are all that were searched, of which it keeps those it needs."""
    places = {column: index for index, column in enumerate(model.columns)}
    features = tuple(
        SavedFeature(factors=tuple(SavedFactor.of(factor, places) for factor in feature), coefficient=coefficient)
        for feature, coefficient in zip(model.features, model.coefficients[1:].tolist(), strict=True)
    )
    return SavedModel(
        made_by=f"parityscope {parityscope.__version__}",
        columns=tuple(SavedColumn.of(columns[column]) for column in model.columns),
        constant=float(model.coefficients[0]),
        features=features,
        **known,
    )


@dataclass(frozen=True)
class Predictions:
    """What a model says of every row of a file; None where a row lacks a value that it needs."""

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
        writer.writerow(["prediction", f"P({as_text(self.model.target)} = {as_text(self.model.classes[1])})"])
        for name, share in zip(self.classes, self.probability.tolist(), strict=True):
            writer.writerow(["", ""] if name is None else [as_cell(as_text(name)), f"{share:.6g}"])
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


def _numbers(column: SearchedColumn, table: DataTable, path: Path) -> ndarray:
    """Return a column of a new file in the model's numbers."""
    place = usable_place(table, column.name, path)
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


def _accuracy(model: SavedModel, table: DataTable, probability: ndarray, threshold: float) -> float | None:
    """Return how often the prediction is right, of the rows that have both it and a class."""
    if model.target not in table.names or model.target in table.left_out:
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
