"""What a table is asked, and everything that is answered: the estimator without scikit-learn around it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.estimator.bits import encode
from parityscope.estimator.evidence import p_text, rows_needed
from parityscope.estimator.rules import Cell, Interaction, Rule, fit_rule, held_out_accuracy, prefers_table, truth_table
from parityscope.estimator.search import SOLVERS, Attempt, Candidate, Search, Solver

_HELD_OUT = 0.3
_OPEN_BUDGET, _GIVEN_BUDGET = 2e10, 1e12


@dataclass(frozen=True)
class Question:
    """How many columns to look for, by whom, and what to believe; `SparseParityClassifier` explains each.

    >>> Question(k=7).refuse_if_bad(columns=6)
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: k must lie between 1 and the number of columns 6, got 7
    """

    # Any: whatever was given to the scikit-learn estimator arrives here, and is refused here.
    k: Any = None
    max_k: Any = 10
    solver: Any = "auto"
    alpha: Any = 0.01
    budget: Any = None

    def refuse_if_bad(self, columns: int) -> None:
        """Raise a sentence about the first value that cannot be used on so many columns."""
        if self.solver not in SOLVERS:
            raise InvalidInput(f"unknown solver {self.solver!r}: choose one of {', '.join(SOLVERS)}")
        if self.k is not None and not 1 <= self.k <= columns:
            raise InvalidInput(f"k must lie between 1 and the number of columns {columns}, got {self.k}")
        if self.max_k < 1:
            raise InvalidInput(f"max_k must be at least 1, got {self.max_k}")
        if not 0 < self.alpha < 1:
            raise InvalidInput(f"alpha must lie strictly between 0 and 1, got {self.alpha}")

    @property
    def multiplications(self) -> float:
        """The budget of an exhaustive search of one size."""
        if self.budget is not None:
            return float(self.budget)
        return _OPEN_BUDGET if self.k is None else _GIVEN_BUDGET


@dataclass(frozen=True)
class Answer:
    """What was found in a table, and how sure that is; without an interaction, why there is none.

    >>> X = np.random.RandomState(0).randint(2, size=(200, 5))
    >>> answer = ask(Question(), X, (1 - 2 * (X[:, 0] ^ X[:, 3])).astype(np.int8), np.random.RandomState(0))
    >>> answer.support, answer.bits, answer.held_out_accuracy
    ((0, 3), ('column 0 = 1', 'column 3 = 1'), 1.0)
    """

    interaction: Interaction | None
    fitted: Rule | None
    share: float  # of the second class
    solver: Solver | None
    log_p: float
    noise_rate: float
    held_out_accuracy: float
    bits: tuple[str, ...]
    rule: Literal["parity", "table", "majority"]
    truth_table: list[Cell]
    attention: ndarray | None
    ties: dict[int, tuple[int, ...]]
    constant: tuple[int, ...]
    attempts: list[Attempt]
    reason: str

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending; empty when nothing was found."""
        return () if self.interaction is None else tuple(bit.column for bit in self.interaction.bits)

    @property
    def p_value(self) -> float:
        """The corrected p-value, 0.0 when it is too small for a float."""
        return math.exp(self.log_p)

    def probability(self, X: ndarray) -> ndarray:
        """Return P(second class) of every row."""
        if self.interaction is None or self.fitted is None:
            return np.full(len(X), self.share)
        return self.fitted.probability(self.interaction, {column: X[:, column] for column in self.support})

    @property
    def nothing_sentence(self) -> str:
        """What to say when nothing was found."""
        return f"{self.reason}; predict gives the majority class"

    def tie_sentences(self, name: Callable[[int], str]) -> list[str]:
        """Return a sentence for every found column that has copies."""
        return [
            f"{', '.join(map(name, others))} and {name(column)} agree (or disagree) on every row: "
            "these data cannot tell them apart"
            for column, others in self.ties.items()
        ]


def numbered(column: int) -> str:
    """Return what a column without a name is called.

    >>> numbered(3)
    'column 3'
    """
    return f"column {column}"


def two_classes(y: ndarray, name: str = "y") -> tuple[ndarray, Int8[ndarray, " rows"]]:
    """Return the two classes, and every row's as a sign: −1 for the first, 1 for the second.

    >>> classes, signs = two_classes(np.array(["yes", "no", "yes"]))
    >>> classes.tolist(), signs.tolist()
    (['no', 'yes'], [1, -1, 1])
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        raise InvalidInput(f"{name} has one class only, {classes[0]!r}: two classes are needed")
    if len(classes) > 2:
        raise InvalidInput(f"{name} has {len(classes)} classes: two classes are needed")
    return classes, (2 * codes - 1).astype(np.int8)


def ask(
    question: Question,
    X: ndarray,
    labels: Int8[ndarray, " rows"],
    random: np.random.RandomState,
    name: Callable[[int], str] = numbered,
) -> Answer:
    """Search the table for the interaction; `name` says what a column is called.

    >>> random = np.random.RandomState(0)
    >>> X, labels = random.randint(2, size=(90, 4)), random.choice(np.array([-1, 1], dtype=np.int8), size=90)
    >>> print(ask(Question(max_k=2), X, labels, random).reason.partition(" (")[0])
    nothing found: no parity of 1, 2 of 4 columns stands out in 90 rows
    """
    question.refuse_if_bad(X.shape[1])
    order, train = _split(labels, random)
    table = encode(X, order)
    sizes = range(1, min(question.max_k, table.columns) + 1) if question.k is None else (question.k,)
    search = Search(
        X,
        order,
        table,
        labels[order],
        train,
        [k for k in sizes if k <= table.columns],
        question.k is not None,
        question.alpha,
        question.multiplications,
        random,
    )
    found = search.run(question.solver)
    return _nothing(search) if found is None else _something(found, search, name)


def _something(found: Candidate, search: Search, name: Callable[[int], str]) -> Answer:
    interaction, table = found.interaction, search.table
    values, labels, train = search.values(found.support), search.labels, search.train
    use_table = prefers_table(interaction, values, labels, train)
    agreement = float((interaction.chi(values) == labels).mean())
    names = {column: name(column) for column in found.support}
    return Answer(
        interaction,
        fit_rule(interaction, values, labels, table=use_table),
        share=float((labels > 0).mean()),
        solver=found.solver,
        log_p=found.log_p,
        noise_rate=min(agreement, 1 - agreement),
        held_out_accuracy=held_out_accuracy(interaction, values, labels, train, table=use_table),
        bits=tuple(bit.describe(names[bit.column]) for bit in interaction.bits),
        rule="table" if use_table else "parity",
        truth_table=truth_table(interaction, values, labels, names),
        attention=found.attention,
        ties={column: table.copies[column] for column in found.support if column in table.copies},
        constant=table.constant,
        attempts=search.attempts,
        reason=(
            f"{found.solver} proposed {', '.join(names.values())} from {train} rows; {len(labels) - train} held-out "
            f"rows confirm it, and {p_text(found.log_p)} after paying for the search"
        ),
    )


def _nothing(search: Search) -> Answer:
    share = float((search.labels > 0).mean())
    held_out = search.labels[search.train :] > 0
    return Answer(
        None,
        None,
        share=share,
        solver=None,
        log_p=min((one.log_p for one in search.judged), default=0.0),
        noise_rate=min(share, 1 - share),
        held_out_accuracy=float((held_out == (share > 0.5)).mean()),
        bits=(),
        rule="majority",
        truth_table=[],
        attention=None,
        ties={},
        constant=search.table.constant,
        attempts=search.attempts,
        reason=_why_nothing(search),
    )


def _split(labels: ndarray, random: np.random.RandomState) -> tuple[ndarray, int]:
    """Return an order of the rows whose first part is for training, both classes in proportion, and its length."""
    first, rest = [], []
    for sign in (-1, 1):
        rows = random.permutation(np.flatnonzero(labels == sign))
        held_out = round(_HELD_OUT * len(rows))
        rest.append(rows[:held_out])
        first.append(rows[held_out:])
    train = random.permutation(np.concatenate(first))
    return np.concatenate([train, *rest]), len(train)


def _why_nothing(search: Search) -> str:
    table, rows = search.table, len(search.labels)
    if not table.bits:
        return "nothing found: every column is constant"
    if not search.sizes:
        return f"nothing found: only {table.columns} different columns that vary"
    smallest = min(search.sizes)
    needed = rows_needed(table.choices, smallest, search.alpha, k_is_known=search.k_is_known)
    if rows < needed:
        return (
            f"nothing found: {rows} rows are too few: even a noiseless parity of {smallest} of {table.columns} columns "
            f"takes {needed}"
        )
    if not search.searched:
        return f"nothing found: {search.attempts[-1].outcome}"
    best = math.exp(min(one.log_p for one in search.judged))
    sizes = ", ".join(map(str, search.searched))
    return (
        f"nothing found: no parity of {sizes} of {table.columns} columns stands out in {rows} rows "
        f"(best corrected p-value {best:.2g})"
    )
