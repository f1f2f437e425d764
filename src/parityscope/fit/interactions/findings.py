"""A found interaction in the words of the table: its columns, its questions, its truth table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy import ndarray

from parityscope.fit.interactions.interactions import FoundInteraction
from parityscope.fit.interactions.rules import Interaction
from parityscope.fit.tables.column import Column

_SHOWN_CELLS = 256  # beyond that only the two parities are counted


@dataclass(frozen=True)
class Finding:
    """One interaction, as the file's own names and values say it.

    >>> from parityscope.fit.bits.bits import Bit
    >>> pair = Interaction((Bit(0, levels=(1.0,)), Bit(1, threshold=5.0)), ((0.0, 1.0), None))
    >>> one = FoundInteraction((0, 1), "parity", (), 0.8, -40.0, 0.5, 0.9, {1: (2,)}, "exhaustive", pair, [])
    >>> columns = [Column(name, place) for place, name in enumerate(("hot", "heat", "warmth"))]
    >>> found = Finding.of(one, columns, np.array([[0, 4, 4], [1, 6, 6]]), np.array([1, -1]))
    >>> found.bits, found.block
    (('hot = 1', 'heat > 5'), {'heat': ['warmth']})
    """

    columns: tuple[str, ...]
    support: tuple[int, ...]  # places among the table's columns without the target
    bits: tuple[str, ...]
    found: FoundInteraction
    block: dict[str, list[str]]  # columns that these rows cannot tell from a found one
    truth_table: list[dict[str, Any]]

    @classmethod
    def of(cls, found: FoundInteraction, columns: Sequence[Column], X: ndarray, labels: ndarray) -> Finding:
        """Return an interaction in words."""
        used, interaction = [columns[index] for index in found.support], found.interaction
        bits = interaction.bits if interaction else ()
        return cls(
            tuple(column.name for column in used),
            tuple(column.place for column in used),
            tuple(columns[bit.column].describe(bit) for bit in bits),
            found,
            {columns[own].name: [columns[other].name for other in others] for own, others in found.block.items()},
            [] if interaction is None else truth_table(interaction, columns, X, labels),
        )

    @property
    def asked(self) -> tuple[tuple[str, int], ...]:
        """The column of every question, by name and place: one column may be asked several."""
        interaction, named = self.found.interaction, zip(self.columns, self.support, strict=True)
        by_column = dict(zip(self.found.support, named, strict=True))
        return () if interaction is None else tuple(by_column[bit.column] for bit in interaction.bits)

    def to_json(self) -> dict[str, Any]:
        """Return what `fit --json` lists; `adds` is in bits per held-out row, over those before it."""
        return {
            "support": list(self.support),
            "columns": list(self.columns),
            "kind": self.found.kind,
            "bits": list(self.bits),
            "p_value": self.found.p_value,
            "strength": self.found.strength,
            "adds": self.found.adds,
            "accuracy": self.found.accuracy,
            "block": self.block,
            "solver": self.found.solver,
            "truth_table": self.truth_table,
        }


def truth_table(
    interaction: Interaction, columns: Sequence[Column], X: ndarray, labels: ndarray
) -> list[dict[str, Any]]:
    """Return every combination of values with its rows and the share of the second class (None where there is no row).

    >>> from parityscope.fit.bits.bits import Bit
    >>> pair = Interaction((Bit(0, threshold=53.0), Bit(1, levels=(1.0,))), (None, (0.0, 1.0)))
    >>> columns = [Column("heat", 0), Column("shift", 1, "text", {0.0: "day", 1.0: "night"})]
    >>> table = truth_table(pair, columns, np.array([[50, 0], [60, 0], [60, 1]]), np.array([-1, 1, -1]))
    >>> [(*line["values"].values(), line["rows"], line["share"]) for line in table]
    [('≤ 53', 'day', 1, 0.0), ('≤ 53', 'night', 0, None), ('> 53', 'day', 1, 1.0), ('> 53', 'night', 1, 0.0)]
    """
    used = [columns[bit.column] for bit in interaction.bits]
    values = {bit.column: X[:, bit.column] for bit in interaction.bits}
    if np.prod(interaction.shape) > _SHOWN_CELLS:
        cases: list[dict[str, str]] = [{"parity": "even"}, {"parity": "odd"}]
        codes = (interaction.chi(values) < 0).astype(int)
    else:
        names = _headings(used)
        cases = [dict(zip(names, case, strict=True)) for case in product(*_cases(interaction, used))]
        codes = interaction.cells(values)
    rows = np.bincount(codes, minlength=len(cases)).tolist()
    ups = np.bincount(codes, weights=labels > 0, minlength=len(cases)).tolist()
    return [
        {"values": case, "rows": count, "share": up / count if count else None}
        for case, count, up in zip(cases, rows, ups, strict=True)
    ]


def _headings(used: Sequence[Column]) -> list[str]:
    """Return a heading per column; two questions about one column are told apart."""
    names = [f"{column.name} missing" if column.kind == "missing" else column.name for column in used]
    return [name if names.count(name) == 1 else f"{name} ({index + 1})" for index, name in enumerate(names)]


def _cases(interaction: Interaction, used: Sequence[Column]) -> list[tuple[str, ...]]:
    """Return what to call the cases of each column: its values, or the answers to its question."""
    cases: list[tuple[str, ...]] = []
    for bit, levels, column in zip(interaction.bits, interaction.levels, used, strict=True):
        if column.kind == "missing":
            cases.append(("no", "yes"))
        elif levels is None:
            answers = (column.describe(bit, yes=yes).removeprefix(f"{column.name} ") for yes in (False, True))
            cases.append(tuple(answers))
        else:
            cases.append(tuple(map(column.spelled, levels)))
    return cases
