"""A fitted model as a file that people can read: no pickle, one version number, and predictions from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy import ndarray
from pydantic import BaseModel, ConfigDict, ValidationError

import parityscope
from parityscope.core.errors import InvalidInput
from parityscope.core.files import write_atomically
from parityscope.fit.bits.bits import Bit
from parityscope.fit.interactions.interaction import Feature, Ramp
from parityscope.fit.model import AdditiveModel
from parityscope.fit.tables.column import Column, Kind

VERSION = 2


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SavedColumn(_Saved):
    """A column that the model looks at: what its numbers stand for, and what a missing value becomes.

    >>> column = SavedColumn.of(Column("shift", 4, "text", {0.0: "day", 1.0: "night"}))
    >>> column.words, column.column().spelled(1.0)
    (((0.0, 'day'), (1.0, 'night')), 'night')
    """

    name: str
    kind: Kind
    words: tuple[tuple[float, str], ...] | None = None
    missing_becomes: float | None = None

    @classmethod
    def of(cls, column: Column) -> SavedColumn:
        """Return what is kept of a column."""
        words = None if column.words is None else tuple(sorted(column.words.items()))
        return cls(name=column.name, kind=column.kind, words=words, missing_becomes=column.fill)

    def column(self) -> Column:
        """Return the column as it was."""
        return Column(self.name, 0, self.kind, None if self.words is None else dict(self.words), self.missing_becomes)


class SavedFactor(_Saved):
    """A sign from a question about one of the model's columns (above a threshold, or one of some levels), or a ramp.

    >>> SavedFactor(column=0, levels=(1.0,)).factor()
    Bit(column=0, threshold=None, levels=(1.0,))
    """

    column: int
    threshold: float | None = None
    levels: tuple[float, ...] | None = None
    ramp: tuple[float, float] | None = None

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
    """A product of factors and its coefficient: what it adds to the log-odds, or to a measured target.

    >>> SavedFeature(factors=(SavedFactor(column=0, threshold=0.5),), coefficient=1.5).coefficient
    1.5
    """

    factors: tuple[SavedFactor, ...]
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
    rows: int
    target: str
    classes: tuple[str, str] | None = None  # None for a measured target
    share: float  # of the second class, or the mean
    held_out_accuracy: float  # R² of a measured target
    guarantee: str
    terms: tuple[str, ...]  # in words
    columns: tuple[SavedColumn, ...]
    constant: float
    features: tuple[SavedFeature, ...]

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Return the model in a file."""
        if not path.is_file():
            raise InvalidInput(f"there is no file {path}")
        try:
            model = cls.model_validate_json(path.read_bytes())
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
        return model

    def write(self, path: Path) -> None:
        """Write the model, whole or not at all."""
        text = self.model_dump_json(indent=2, exclude_none=True)
        # A list of numbers or words is one line; no string has a line break of its own in JSON.
        text = re.sub(r"\[\n\s+([^\[\]{}]*?)\n\s+\]", lambda found: "[" + re.sub(r"\n\s+", " ", found[1]) + "]", text)
        write_atomically(path, text.encode() + b"\n")

    def expected(self, columns: Sequence[ndarray], rows: int) -> ndarray:
        """Return P(second class), or the expected target, of every row, from the numbers of the model's columns."""
        features: list[Feature] = [tuple(factor.factor() for factor in one.factors) for one in self.features]
        coefficients = np.array([self.constant, *(one.coefficient for one in self.features)])
        model = AdditiveModel(tuple(features), coefficients, self.classes is None)
        return model.expected(dict(enumerate(columns)), rows)


def saved_model(model: AdditiveModel, columns: Sequence[Column], **known: Any) -> SavedModel:
    """Return what is kept of a model; `columns` are all that were searched, of which it keeps those it needs.

    >>> model = AdditiveModel(((Bit(1, levels=(1.0,)),),), np.array([0.0, -2.0]), measured=False)
    >>> known = dict(data="faults.csv", rows=4, target="fault", classes=("no", "yes"), share=0.5, terms=("hot = 1",))
    >>> saved = saved_model(model, [Column("cold", 0), Column("hot", 1)], held_out_accuracy=0.9, guarantee="", **known)
    >>> [column.name for column in saved.columns], saved.expected([np.array([0.0, 1.0])], 2).round(2).tolist()
    (['hot'], [0.12, 0.88])
    """
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
