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
from parityscope.fit.interactions.joint import JointRule, Part
from parityscope.fit.interactions.rules import Interaction, Rule
from parityscope.fit.tables.column import Column, Kind

VERSION = 1


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SavedColumn(_Saved):
    """A column that the rule looks at: what its numbers stand for, and what a missing value becomes.

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


class SavedBit(_Saved):
    """A question about one of the model's columns: is it above a threshold, or one of some values?

    >>> SavedBit(column=0, levels=(1.0,)).bit()
    Bit(column=0, threshold=None, levels=(1.0,))
    """

    column: int
    threshold: float | None = None
    levels: tuple[float, ...] = ()
    values: tuple[float, ...] | None = None  # all of the column's, where they are few

    def bit(self) -> Bit:
        """Return the question."""
        return Bit(self.column, self.threshold, self.levels)


class SavedPart(_Saved):
    """One interaction: its questions in words and in numbers, and how often each case had the second class.

    >>> part = SavedPart(words=("hot = 1",), bits=(SavedBit(column=0, levels=(1.0,)),), by_parity=(0.1, 0.9))
    >>> part.interaction().shape
    (2,)
    """

    words: tuple[str, ...]
    bits: tuple[SavedBit, ...]
    by_parity: tuple[float, float]
    by_cell: tuple[float, ...] | None = None

    def interaction(self) -> Interaction:
        """Return the interaction."""
        return _interaction(self.bits)

    def rule(self) -> Rule:
        """Return the frequencies."""
        return Rule(np.array(self.by_parity), None if self.by_cell is None else np.array(self.by_cell))


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
    classes: tuple[str, str]
    share: float  # of the second class
    held_out_accuracy: float
    guarantee: str
    columns: tuple[SavedColumn, ...]
    parts: tuple[SavedPart, ...]
    weights: tuple[float, ...]  # of a constant and of every part's log-odds
    whole_table: tuple[SavedBit, ...] | None = None  # all columns as one table, where that predicts better
    by_cell: tuple[float, ...] | None = None

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

    def probability(self, columns: Sequence[ndarray]) -> ndarray:
        """Return P(second class) of every row, from the numbers of the model's columns."""
        if not self.parts:
            return np.full(len(columns[0]) if columns else 0, self.share)
        return self._rule().probability(dict(enumerate(columns)))

    def _rule(self) -> JointRule:
        parts = tuple(Part(part.interaction(), part.by_cell is not None) for part in self.parts)
        everything = None if self.whole_table is None else _interaction(self.whole_table)
        cells = None if self.by_cell is None else np.array(self.by_cell)
        return JointRule(parts, tuple(part.rule() for part in self.parts), np.array(self.weights), everything, cells)


def saved_model(
    rule: JointRule | None, columns: Sequence[Column], *, words: Sequence[Sequence[str]], **known: Any
) -> SavedModel:
    """Return the model of a rule; `columns` are all that were searched, of which it keeps those it needs.

    >>> single = Interaction((Bit(1, levels=(1.0,)),), ((0.0, 1.0),))
    >>> rule = JointRule((Part(single, False),), (Rule(np.array([0.1, 0.9])),), np.array([0.0, 1.0]))
    >>> known = dict(data="faults.csv", rows=4, target="fault", classes=("no", "yes"), share=0.5)
    >>> columns = [Column("cold", 0), Column("hot", 1)]
    >>> model = saved_model(rule, columns, words=[["hot = 1"]], held_out_accuracy=0.9, guarantee="", **known)
    >>> [column.name for column in model.columns], model.probability([np.array([0.0, 1.0])]).tolist()
    (['hot'], [0.1, 0.9])
    """
    made_by = f"parityscope {parityscope.__version__}"
    if rule is None:
        return SavedModel(made_by=made_by, columns=(), parts=(), weights=(), **known)
    places = {column: index for index, column in enumerate(rule.columns)}
    parts = tuple(
        SavedPart(
            words=tuple(questions),
            bits=_bits(part.interaction, places),
            by_parity=tuple(one.by_parity.tolist()),
            by_cell=None if one.by_cell is None else tuple(one.by_cell.tolist()),
        )
        for part, one, questions in zip(rule.parts, rule.rules, words, strict=True)
    )
    return SavedModel(
        made_by=made_by,
        columns=tuple(SavedColumn.of(columns[column]) for column in rule.columns),
        parts=parts,
        weights=tuple(rule.weights.tolist()),
        whole_table=None if rule.everything is None else _bits(rule.everything, places),
        by_cell=None if rule.by_cell is None else tuple(rule.by_cell.tolist()),
        **known,
    )


def _bits(interaction: Interaction, places: dict[int, int]) -> tuple[SavedBit, ...]:
    return tuple(
        SavedBit(column=places[bit.column], threshold=bit.threshold, levels=bit.levels, values=values)
        for bit, values in zip(interaction.bits, interaction.levels, strict=True)
    )


def _interaction(bits: Sequence[SavedBit]) -> Interaction:
    return Interaction(tuple(bit.bit() for bit in bits), tuple(bit.values for bit in bits))
