"""Rows that repeat others: counted, named, and taken as one piece of evidence each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy import ndarray

_COLUMNS = 1000  # that tell rows apart: of more, as many spread over the table
_OFTEN = 10.0  # times what independent columns would repeat by chance
_FEWEST = 0.01  # of the rows
_AGREE = 0.99  # copies of a row have its target


@dataclass(frozen=True)
class Repetition:
    """How many rows repeat another one, and which rows are the same."""

    rows: int
    repeated: int
    copies: Int[ndarray, " rows"]

    @property
    def sentence(self) -> str:
        """Say it."""
        return (
            f"{self.repeated} of {self.rows} rows repeat another row exactly, target included: equal rows count as one "
            "observation in every p-value (give groups to say which rows belong together)"
        )


def repetition(X: ndarray, y: ndarray) -> Repetition | None:
    """Return the repetition of a table whose rows repeat others more than chance allows; None for other tables.

    By chance two rows agree in independent columns with the product of the columns' own probabilities. Columns that
    depend on each other repeat more often; but then equal rows do not always have the same target, and copies do.

    >>> random = np.random.RandomState(0)
    >>> X, y = random.randn(100, 3), random.randint(2, size=100).astype(float)
    >>> repetition(X, y) is None, repetition(np.repeat(X, 2, axis=0), np.repeat(y, 2)).repeated
    (True, 100)
    """
    rows, columns = X.shape
    chosen = np.unique(np.linspace(0, columns - 1, min(columns, _COLUMNS)).astype(int))
    mark = np.zeros(rows)
    for column, factor in zip(chosen.tolist(), np.random.RandomState(0).randn(len(chosen)), strict=True):
        mark += factor * X[:, column]
    _, codes, counts = np.unique(mark, return_inverse=True, return_counts=True)
    repeated = rows - len(counts)
    if repeated < _FEWEST * rows:
        return None
    same = np.unique(mark + 1j * y, return_counts=True)[1]
    pairs, agreeing = (float((some * (some - 1.0)).sum()) / 2 for some in (counts, same))
    if agreeing < _AGREE * pairs:
        return None
    chance = 1.0
    for column in chosen.tolist():
        shares = np.unique(X[:, column], return_counts=True)[1] / rows
        chance *= float((shares**2).sum())
    return Repetition(rows, repeated, codes) if pairs > _OFTEN * (1 + chance * rows * (rows - 1) / 2) else None
