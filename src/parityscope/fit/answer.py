"""What a table is asked, and everything that is answered: the estimator without scikit-learn around it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.clock import Clock, Progress, seconds_of
from parityscope.fit.evidence import pair_tables
from parityscope.fit.evidence.evidence import p_text, rows_needed
from parityscope.fit.evidence.promise import sentence
from parityscope.fit.evidence.sentences import counted, explanation, sizes_text, skipped_sentence
from parityscope.fit.interactions import conjunctions
from parityscope.fit.interactions.candidates import SOLVERS, Attempt, Solver
from parityscope.fit.interactions.interactions import Chosen, FoundInteraction, described, select
from parityscope.fit.interactions.joint import JointRule, fit_joint, held_out_probability, prefers_whole_table
from parityscope.fit.interactions.rules import Cell, Interaction, Rule
from parityscope.fit.schedule import run, run_smaller
from parityscope.fit.search import Search


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
        for name, value in (("k", self.k), ("max_k", self.max_k)):
            if not isinstance(value, Integral) and not (name == "k" and value is None):
                raise InvalidInput(f"{name} must be a whole number, got {value!r}")
        if self.k is not None and not 1 <= self.k <= columns:
            raise InvalidInput(f"k must lie between 1 and the number of columns {columns}, got {self.k}")
        if self.max_k < 1:
            raise InvalidInput(f"max_k must be at least 1, got {self.max_k}")
        if not isinstance(self.alpha, float | int) or not 0 < self.alpha < 1:
            raise InvalidInput(f"alpha must lie strictly between 0 and 1, got {self.alpha!r}")
        seconds_of(self.budget)


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
    held_out_accuracy: float  # not a number where there are too few rows to hold any out
    bits: tuple[str, ...]
    rule: Literal["parity", "table", "majority"]
    truth_table: list[Cell]
    attention: ndarray | None
    ties: dict[int, tuple[int, ...]]
    constant: tuple[int, ...]
    attempts: list[Attempt]
    reason: str
    interactions: tuple[FoundInteraction, ...]  # all of them, the strongest evidence first
    joint: JointRule | None  # the rule of all interactions together
    guarantee: str  # what would have been found, and how surely
    skipped: str  # what was not searched and what that would cost; empty when everything was
    explanation: str  # what explains the label: a main effect, a table, a parity, several of them, or nothing
    candidate: tuple[int, ...] | None = None  # when nothing was found: the columns nearest to it, which log_p is of
    strongest: float = 0.0  # the largest correlation with the labels, on the searched rows, that any candidate had

    @property
    def support(self) -> tuple[int, ...]:
        """The columns, ascending; empty when nothing was found."""
        return () if self.interaction is None else tuple(sorted({bit.column for bit in self.interaction.bits}))

    @property
    def p_value(self) -> float:
        """The corrected p-value, 0.0 when it is too small for a float."""
        return math.exp(self.log_p)

    def probability(self, X: ndarray) -> ndarray:
        """Return P(second class) of every row."""
        if self.joint is None:
            return np.full(len(X), self.share)
        return self.joint.probability({column: X[:, column] for column in self.joint.columns})

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
        raise InvalidInput(f"{name} has one class only, {classes.tolist()[0]!r}: two classes are needed")
    if len(classes) > 2:
        raise InvalidInput(f"{name} has {len(classes)} classes: two classes are needed")
    return classes, (2 * codes - 1).astype(np.int8)


def ask(
    question: Question,
    X: ndarray,
    labels: Int8[ndarray, " rows"],
    random: np.random.RandomState,
    name: Callable[[int], str] = numbered,
    progress: Progress | None = None,
    unordered: frozenset[int] = frozenset(),
) -> Answer:
    """Search the table for interactions; `name` says what a column is called.

    `progress` is called now and then with the share of the time budget that is used (0 to 1) and a few words that say
    what is being searched. The numbers of `unordered` columns are mere names: each is asked for against all others.

    >>> random = np.random.RandomState(0)
    >>> X, labels = random.randint(2, size=(90, 4)), random.choice(np.array([-1, 1], dtype=np.int8), size=90)
    >>> print(ask(Question(max_k=2), X, labels, random).reason.partition(" (")[0])
    nothing found: no parity of 1 to 2 of 4 columns stands out in 90 rows
    """
    question.refuse_if_bad(X.shape[1])
    clock = Clock(seconds_of(question.budget), progress)
    sizes = range(1, min(question.max_k, X.shape[1]) + 1) if question.k is None else (question.k,)
    search = Search.of(X, labels, sizes, question.k is not None, question.alpha, clock, random, unordered)
    chosen = _chosen(search, question.solver)
    answer = _something(chosen, search, name) if chosen else _nothing(search, name)
    return replace(answer, strongest=max((abs(one.strength) for one in search.judged), default=0.0))


def _chosen(search: Search, solver: Solver) -> tuple[Chosen, ...]:
    """Search, and return what is established: parities, conjunctions, else a pair table, else by fewer columns."""
    found = run(search, solver)
    if solver == "auto" and search.sizes and not search.settled:
        conjunctions.propose(search)
        if search.found is None:
            pair_tables.propose(search)
        found = search.found
    if found is not None:
        return select(search, found)
    smaller = run_smaller(search) if solver == "auto" and search.smaller and search.table.bits else None
    if smaller is None:
        return ()
    return tuple(one for one in select(search, smaller) if len(one.support) == search.sizes[0])


def _something(chosen: tuple[Chosen, ...], search: Search, name: Callable[[int], str]) -> Answer:
    interactions = described(search, chosen, name)
    found, first, labels, train = chosen[0], interactions[0], search.labels, search.train
    parts = [one.part for one in chosen]
    values = search.values({column for one in interactions for column in one.support})
    whole = prefers_whole_table(parts, values, labels, train)
    second = held_out_probability(parts, values, labels, train, table=whole)
    skipped = _skipped(search)
    return Answer(
        first.interaction,
        first.rule,
        share=float((labels > 0).mean()),
        solver=first.solver,
        log_p=found.log_p,
        noise_rate=_noise_rate(found, first, values, labels),
        held_out_accuracy=float(((second > 0.5) == (labels[train:] > 0)).mean()),
        bits=first.bits,
        rule="table" if parts[0].table else "parity",
        truth_table=first.truth_table,
        attention=found.candidate.attention,
        ties={column: search.table.copies[column] for column in found.support if column in search.table.copies},
        constant=search.table.constant,
        attempts=search.attempts,
        reason=_why_found(found, search, name) + (f"; {skipped}" if skipped else ""),
        interactions=interactions,
        joint=fit_joint(parts, values, labels, table=whole),
        guarantee=_guarantee(search),
        skipped=skipped,
        explanation=explanation(interactions, whole, name, skipped=bool(skipped)),
    )


def _noise_rate(found: Chosen, first: FoundInteraction, values: dict[int, ndarray], labels: ndarray) -> float:
    """Return the share of rows that differ from the parity, or from the more frequent class of their cell."""
    interaction, rule = found.part.interaction, first.rule
    if rule is None or not (found.members or found.candidate.table):
        agreement = float((interaction.chi(values) == labels).mean())
        return min(agreement, 1 - agreement)
    return float(((rule.probability(interaction, values) > 0.5) != (labels > 0)).mean())


def _why_found(found: Chosen, search: Search, name: Callable[[int], str]) -> str:
    names, rows = ", ".join(map(name, found.support)), len(search.labels)
    members = [one.candidate for one in found.members] or [found.candidate]
    proposed = f"{found.candidate.solver} proposed {names} from {search.train} rows"
    held_out = f"{rows - search.train} held-out rows confirm it"
    if found.candidate.table:
        proposed = f"{found.candidate.solver} proposed the table of {names} from {rows} rows"
    if not all(one.replicated for one in members):
        held_out = f"the {rows - search.train} held-out rows are too few to confirm it alone, all {rows} do"
    return f"{proposed}; {held_out}, and {p_text(found.log_p)} after paying for the search"


def _nothing(search: Search, name: Callable[[int], str]) -> Answer:
    share = float((search.labels > 0).mean())
    held_out = search.labels[search.train :] > 0
    return Answer(
        None,
        None,
        share=share,
        solver=None,
        log_p=0.0 if (best := search.nearest) is None else best.log_p,
        noise_rate=min(share, 1 - share),
        held_out_accuracy=float((held_out == (share > 0.5)).mean()) if len(held_out) else math.nan,
        bits=(),
        rule="majority",
        truth_table=[],
        attention=None,
        ties={},
        constant=search.table.constant,
        attempts=search.attempts,
        reason=_why_nothing(search, name),
        interactions=(),
        joint=None,
        guarantee=_guarantee(search),
        skipped=_skipped(search),
        explanation="no interaction stands out: nothing here explains the label better than its class shares",
        candidate=None if best is None else best.support,
    )


def _guarantee(search: Search) -> str:
    return sentence(search.promised(), k_is_known=search.k_is_known, uneven=search.uneven())


def _skipped(search: Search) -> str:
    """Say which sizes were not searched to the end: from which correlation on they were, and the seconds left."""
    unfinished = {k: (search.met(k), seconds) for k, seconds in search.left_out.items()}
    return skipped_sentence(unfinished, cut_short=search.cut_short)


def _why_nothing(search: Search, name: Callable[[int], str]) -> str:
    table, rows = search.table, len(search.labels)
    if not table.bits:
        return "nothing found: every column is constant"
    if not search.sizes:
        return f"nothing found: only {table.columns} different columns that vary"
    smallest = min(search.sizes)
    needed = rows_needed(search.price(smallest), search.alpha)
    if rows < needed:
        return (
            f"nothing found: {rows} rows are too few: even a noiseless parity of {smallest} of "
            f"{counted(table.columns, 'column')} takes {needed}"
        )
    searched = [k for k in search.sizes if search.met(k) <= 1]
    skipped = _skipped(search)
    if not searched:
        tried = (
            search.attempts[-1].outcome
            if search.attempts
            else skipped or "this solver has no way to search these sizes"
        )
        return f"nothing found: {tried}"
    return (
        f"nothing found: no parity of {sizes_text(searched)} of {counted(table.columns, 'column')} stands out in "
        f"{rows} rows" + _nearest_text(search, name) + (f"; {skipped}" if skipped else "")
    )


def _nearest_text(search: Search, name: Callable[[int], str]) -> str:
    """Name the candidate that came nearest, and what was found of fewer columns than were asked for."""
    text, best = "", search.nearest
    if best is not None:
        what = "the table of " if best.table else ""
        text = f" (strongest candidate, not significant: {what}{', '.join(map(name, best.support))}, "
        text += f"corrected {p_text(best.log_p)})"
    fewer = search.answer_among(search.smaller)
    if fewer is not None:
        text += f"; of fewer columns {', '.join(map(name, fewer.support))} stands out ({p_text(fewer.log_p)})"
        text += ": leave k open"
    return text
