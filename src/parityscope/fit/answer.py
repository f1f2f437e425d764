"""What a table is asked, and everything that is answered: the estimator without scikit-learn around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from jaxtyping import Int8
from numpy import ndarray

from parityscope.core.errors import InvalidInput
from parityscope.fit.bits.blocks import indistinguishable
from parityscope.fit.clock import Attempt, Budget, Diary, Progress, seconds_of
from parityscope.fit.evidence import promise
from parityscope.fit.evidence.evidence import Repetition, p_text, repetition
from parityscope.fit.evidence.score import Target, covariance, regression
from parityscope.fit.interactions.interaction import SOLVERS, Candidate, Solver
from parityscope.fit.interactions.terms import Combination, Term, kind_of, told_together, truth_table
from parityscope.fit.known import Known
from parityscope.fit.loop import run
from parityscope.fit.model import FittedModel, Quality, fit_model, gain, quality, split
from parityscope.fit.tables.column import SearchedColumn

_Z = 1.96
_EVEN = 0.2
# Nominal: to turn a number into bits, to sort one of a column of many, and of a row that is read and told of.
_READ_SECONDS, _SORT_SECONDS, _ROW_SECONDS = 11e-9, 12e-8, 4e-7


@dataclass(frozen=True)
class Question:
    """How many columns to look for, by whom, and at which level; `SparseParityClassifier` explains each.

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
    """What was found in a table, and how sure that is; without a term, why there is none.

    >>> X = np.random.RandomState(0).randint(2, size=(200, 5))
    >>> answer = ask(Question(), X, (1 - 2 * (X[:, 0] ^ X[:, 3])).astype(np.int8), np.random.RandomState(0))
    >>> answer.support, answer.bits, answer.held_out_accuracy
    ((0, 3), ('column 0 = 1', 'column 3 = 1'), 1.0)
    """

    interactions: tuple[Term, ...]  # all of them, the largest share of explained deviance first
    model: FittedModel
    share: float  # of the second class, or the mean of a measured target
    log_p: float
    noise_rate: float
    quality: Quality  # on held-out rows
    rule: Literal["parity", "table", "majority"]
    attention: ndarray | None
    ties: dict[int, tuple[int, ...]]
    constant: tuple[int, ...]
    attempts: list[Attempt]
    reason: str
    guarantee: str  # what would have been found, and how surely
    skipped: str  # what was not searched and what that would cost; empty when everything was
    explanation: str  # what explains the target
    repeated: str = ""  # a sentence about rows that repeat others, if they do
    candidate: tuple[int, ...] | None = None  # when nothing was found: the columns nearest to it, which log_p is of
    strongest: float = 0.0  # the largest correlation with the target that any proposed parity had
    work: float = 0.0  # nominal seconds of the search

    @property
    def support(self) -> tuple[int, ...]:
        """The columns of the first term, ascending; empty when nothing was found."""
        return self.interactions[0].support if self.interactions else ()

    @property
    def solver(self) -> Solver | None:
        """Who proposed the first term."""
        return self.interactions[0].solver if self.interactions else None

    @property
    def bits(self) -> tuple[str, ...]:
        """The questions of the first term."""
        return self.interactions[0].bits if self.interactions else ()

    @property
    def truth_table(self) -> list[Combination]:
        """The combinations of values of the first term."""
        return self.interactions[0].truth_table if self.interactions else []

    @property
    def held_out_accuracy(self) -> float:
        """Accuracy on held-out rows (R² of a measured target); not a number where there are too few rows."""
        return self.quality.r_squared if self.model.measured else self.quality.accuracy

    @property
    def p_value(self) -> float:
        """The corrected p-value, 0.0 when it is too small for a float."""
        return math.exp(self.log_p)

    def expected(self, X: ndarray) -> ndarray:
        """Return P(second class), or the expected target, of every row."""
        return self.model.expected({column: X[:, column] for column in self.model.columns}, len(X))

    @property
    def nothing_sentence(self) -> str:
        """What to say when nothing was found."""
        return f"{self.reason}; predict gives the {'mean' if self.model.measured else 'majority class'}"

    def tie_sentences(self, columns: Sequence[SearchedColumn]) -> list[str]:
        """Return a sentence for every found column that has copies."""
        return [
            f"{', '.join(columns[other].name for other in others)} and {columns[column].name} agree (or disagree) on "
            "every row: these data cannot tell them apart"
            for column, others in self.ties.items()
        ]


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


def plain_columns(count: int) -> list[SearchedColumn]:
    """Return what columns without names are called.

    >>> plain_columns(4)[3].name
    'column 3'
    """
    return [SearchedColumn(f"column {place}", place) for place in range(count)]


def ask(
    question: Question,
    X: ndarray,
    labels: ndarray,
    random: np.random.RandomState,
    columns: Sequence[SearchedColumn] | None = None,
    progress: Progress | None = None,
    unordered: frozenset[int] = frozenset(),
    *,
    groups: ndarray | None = None,
    weights: ndarray | None = None,
    covariates: Sequence[int] = (),
    measured: bool = False,
) -> Answer:
    """Search the table for terms; `columns` say what its columns are called and what their values stand for.

    Labels are −1 and 1, or with `measured` any numbers. `progress` is called now and then with the share of the budget
    that is used (0 to 1) and a few words that say what is being searched. The numbers of `unordered` columns are mere
    names: each is asked for against all others. Rows of one of the `groups` may depend on each other. `covariates` are
    columns whose effects are taken out, and which are not searched.

    >>> random = np.random.RandomState(0)
    >>> X, labels = random.randint(2, size=(90, 4)), random.choice(np.array([-1, 1], dtype=np.int8), size=90)
    >>> print(ask(Question(max_k=2), X, labels, random).reason.partition(" (")[0])
    nothing found: no parity of 1 to 2 of 4 columns stands out in 90 rows
    """
    question.refuse_if_bad(X.shape[1])
    budget = Budget(seconds_of(question.budget), progress)
    budget.report(f"reading {X.shape[1]} columns")
    y = labels.astype(float) if measured else (labels > 0).astype(float)
    repeated = repetition(X, y) if groups is None else None
    codes = repeated.copies if repeated is not None else groups
    codes = None if codes is None else np.unique(codes, return_inverse=True)[1]
    target = Target(y, measured, weights, codes)
    sizes = range(1, min(question.max_k, X.shape[1]) + 1) if question.k is None else (question.k,)
    known = Known.of(
        X, target, sizes, question.k is not None, question.alpha, covariates=covariates, unordered=unordered
    )
    sorted_columns = len({bit.column for bit in known.table.bits if bit.threshold is not None})
    budget.charge(_READ_SECONDS * X.size + (_SORT_SECONDS * sorted_columns + _ROW_SECONDS) * len(X))
    diary = Diary(budget)
    run(known, diary, question.solver, random)
    return _Telling(known, diary, list(columns or plain_columns(X.shape[1])), repeated, random).answer()


@dataclass
class _Telling:
    """From what a search knows to what it says."""

    known: Known
    diary: Diary
    columns: Sequence[SearchedColumn]
    repeated: Repetition | None
    random: np.random.RandomState

    def answer(self) -> Answer:
        known = self.known
        features = known.model_features()
        design = known.design(features)
        held = split(known.target, self.random)
        terms = self._terms(held)
        expected = self._held_out(features, held)
        skipped = self._skipped()
        first = terms[0] if terms else None
        nearest = self.diary.nearest
        pure = first is not None and len(terms) == 1 and first.kind in ("parity", "main effect")
        found = quality(known.target.y[held], expected, known.target.measured)
        reason = self._why_found(first) if first is not None else self._why_nothing(skipped)
        return Answer(
            terms,
            fit_model(features, design, known.target),
            share=known.target.share,
            log_p=first.log_p if first is not None else 0.0 if nearest is None else nearest.log_p,
            noise_rate=self._noise_rate(),
            quality=found,
            rule="majority" if first is None else "parity" if pure else "table",
            attention=known.accepted[0].attention if known.accepted else None,
            ties={
                column: known.table.copies[column]
                for column, one in enumerate(self.columns)
                if first is not None and one.place in first.support and column in known.table.copies
            },
            constant=known.table.constant,
            attempts=self.diary.attempts,
            reason=reason + (f"; {skipped}" if skipped and skipped not in reason else ""),
            guarantee=self._guarantee(),
            skipped=skipped,
            explanation=explanation(terms, found, known.target.measured, skipped=bool(skipped)),
            repeated="" if self.repeated is None else self.repeated.sentence,
            candidate=None if first is not None or nearest is None else nearest.support,
            strongest=known.strongest,
            work=self.diary.budget.spent,
        )

    def _held_out(self, features: Sequence[Any], held: ndarray) -> ndarray:
        """Return what a model fitted on the other rows expects of those held out."""
        known, train = self.known, ~held
        if not held.any() or not train.any():
            return np.empty(0)
        design = known.design(features)
        model = fit_model(features, design[train], known.target.taken(train))
        linear = design[held] @ model.coefficients
        return linear if model.measured else 1 / (1 + np.exp(-linear))

    def _terms(self, held: ndarray) -> tuple[Term, ...]:
        """Return the terms, the largest drop in deviance first; what each adds is given those before it."""
        known = self.known
        groups = told_together(known.accepted)
        fitted = known.fitted
        empty = regression(known.design(self._given()), known.target).deviance
        drops = [self._deviance_without(group) - fitted.deviance for group in groups]
        order = sorted(range(len(groups)), key=lambda place: (-drops[place], groups[place][0].support))
        total = max(1e-300, empty - fitted.deviance)
        y, measured = known.target.y[held], known.target.measured
        terms: list[Term] = []
        features = self._given()
        before = self._held_out(features, held)
        for place in order:
            features = list(dict.fromkeys([*features, *(f for one in groups[place] for f in known.features_of(one))]))
            after = self._held_out(features, held)
            terms.append(
                self._term(
                    groups[place],
                    share=max(0.0, drops[place]) / total,
                    adds=gain(y, before, after, measured),
                    accuracy=quality(y, after, measured).accuracy,
                )
            )
            before = after
        return tuple(terms)

    def _given(self) -> list[Any]:
        return [feature for column in self.known.covariates for feature in self.known.own(column)]

    def _deviance_without(self, group: Sequence[Candidate]) -> float:
        known = self.known
        others = [one for one in known.accepted if one not in group]
        features = list(dict.fromkeys([*self._given(), *(f for one in others for f in known.features_of(one))]))
        return regression(known.design(features), known.target).deviance

    def _term(self, group: Sequence[Candidate], *, share: float, adds: float, accuracy: float) -> Term:
        known, top = self.known, group[0]
        estimate, error = self._estimate(top)
        bits = tuple(dict.fromkeys(bit for one in group for bit in one.interaction.bits))
        bits = tuple(sorted(bits, key=lambda bit: (bit.column, bit.threshold or 0.0, bit.levels)))
        support = tuple(sorted({bit.column for bit in bits}))
        values = known.values(support)
        chi = top.interaction.chi(values)
        headings, cells = truth_table(bits, self.columns, known.table.levels, values, known.target)
        blocks: dict[int, tuple[int, ...]] = {}
        for one in group:
            blocks.update(indistinguishable(known, one))
        names = [column.name for column in self.columns]
        used = sorted((self.columns[column] for column in support), key=lambda column: column.place)
        return Term(
            tuple(sorted({column.place for column in used})),
            tuple(dict.fromkeys(column.name for column in used)),
            kind_of(group, known.accepted),
            tuple(self.columns[bit.column].describe(bit) for bit in bits),
            tuple(names[bit.column] for bit in bits),
            estimate,
            (estimate - _Z * error, estimate + _Z * error),
            float(np.corrcoef(chi, known.target.y)[0, 1]) if np.ptp(chi) else 0.0,
            top.log_p,
            share,
            adds,
            accuracy,
            {names[column]: [names[other] for other in others] for column, others in blocks.items()},
            top.solver,
            headings,
            cells,
            tuple(tuple(names[c] for c in one.support) for one in known.accepted if set(one.support) < set(support)),
        )

    def _estimate(self, top: Candidate) -> tuple[float, float]:
        """Return the coefficient of a parity in the final model and its standard error; of others that of the test.

        A column of numbers has its own curve in the model, which says nearly the same as its threshold and would share
        the coefficient with it: the threshold that is shown stands for both.
        """
        features, fitted = self.known.model_features(), self.known.fitted
        if top.k == 1 and top.interaction.bits in features and (curve := set(self.known.own(top.support[0]))):
            features = [one for one in features if one == top.interaction.bits or one not in curve]
            fitted = regression(self.known.design(features), self.known.target)
        if top.interaction.bits not in features:
            return top.estimate, top.error
        place = 1 + features.index(top.interaction.bits)
        variance = float(covariance(self.known.design(features), self.known.target, fitted)[place, place])
        return float(fitted.coefficients[place]), math.sqrt(max(0.0, variance))

    def _noise_rate(self) -> float:
        known = self.known
        if known.target.measured:
            return math.nan
        return float(((known.fitted.expected > 0.5) != (known.target.y > 0.5)).mean())

    # Sentences

    def _why_found(self, first: Term) -> str:
        names, rows = ", ".join(first.columns), self.known.rows
        beyond = " beyond its parts" if first.kind not in ("main effect", "parity") else ""
        proposed = f"{first.solver} proposed {names} from {rows} rows"
        return f"{proposed}; {p_text(first.log_p)}{beyond} after paying for the search"

    def _guarantee(self) -> str:
        known, found = self.known, {}
        share = 0.5 if known.target.measured else known.target.share
        features, rows = len(known.model_features()), known.rows
        grouped = known.target.groups is not None
        if known.target.groups is not None:
            rows = int(known.target.groups.max()) + 1
        for k in known.sizes:
            # Of thresholds the promise is about those that are scanned, which have half of alpha.
            several = any(bit.threshold is not None for bit in known.table.bits)
            price = known.price(k, scanned=True) + several * math.log(2) - math.log(known.level)
            met = 0.0 if k in self.diary.complete else self.diary.reached.get(k, 2.0)
            found[k] = promise.promised(rows, share, price, met=met, features=features, grouped=grouped)
        spread = None if known.target.measured else math.sqrt(share * (1 - share))
        uneven = {k for k in known.sizes if k > 2 and self._skew() > _EVEN}
        more = self.diary.left_over
        why = "" if more is None else f"the search ends after {len(known.accepted)} terms, and {self._said(more)}"
        return promise.sentence(
            found, spread=spread, terms=bool(known.accepted), grouped=grouped, uneven=uneven, ended=why
        )

    def _said(self, more: Candidate) -> str:
        names = ", ".join(self.columns[column].name for column in more.support)
        return f"{names} would be the next ({p_text(more.log_p)})"

    def _skew(self) -> float:
        """Return the largest |mean| of a question."""
        words = self.known.table.words
        ones = np.bitwise_count(words).sum(axis=0, dtype=np.int64)
        return float(np.abs(1 - 2 * ones / self.known.rows).max(initial=0.0))

    def _skipped(self) -> str:
        """Say which sizes were not searched to the end: from which correlation on they were, and the seconds left."""
        unfinished = {
            k: (self.diary.reached.get(k, 2.0), left)
            for k, left in self.diary.left_out.items()
            if k not in self.diary.complete
        }
        if why := self._why_the_last_term_ends_it():
            sizes = {k for k in self.known.sizes if k not in self.diary.complete and not self.known.hopeless(k)}
            return f"not searched given all terms: {promise.counted(promise.sizes_text(sizes), 'column')}, since {why}"
        stopped = "this machine is too slow: the clock stopped the search" * self.diary.budget.stopped_by_clock
        early = self.diary.found_after is not None and self.diary.budget.left > 0
        since = "only a part of the budget is spent once a term is found" * early
        return promise.skipped_sentence(unfinished, stopped=stopped, since=since, pairs=self.diary.pairs_budget)

    def _why_the_last_term_ends_it(self) -> str:
        """Say why sizes were not searched to the end given all terms; empty where that has other reasons."""
        known, diary = self.known, self.diary
        if diary.full and any(k not in diary.complete and not known.hopeless(k) for k in known.sizes):
            return f"the search ends after {len(known.accepted)} terms"
        ends = bool(known.accepted) and diary.budget.spent >= diary.budget.seconds
        return "the budget ends with the last of them" if ends and not diary.complete and not diary.reached else ""

    def _why_nothing(self, skipped: str) -> str:
        known, table, rows = self.known, self.known.table, self.known.rows
        if not table.bits:
            return "nothing found: every column is constant"
        if not known.sizes:
            return f"nothing found: only {table.columns} different columns that vary"
        smallest = min(known.sizes)
        if known.hopeless(smallest):
            return (
                f"nothing found: {rows} rows are too few: even a noiseless parity of {smallest} of "
                f"{promise.counted(table.columns, 'column')} takes {known.needed_rows(smallest)}"
            )
        searched = [k for k in known.sizes if k in self.diary.complete or self.diary.reached.get(k, 2.0) <= 1]
        if not searched:
            tried = (
                self.diary.attempts[-1].outcome if self.diary.attempts else "no solver has a way to search these sizes"
            )
            return f"nothing found: {skipped or tried}"
        text, best = "", self.diary.nearest
        if best is not None:
            names = ", ".join(self.columns[column].name for column in best.support)
            text = f" (strongest candidate, not significant: {names}, corrected {p_text(best.log_p)})"
        return (
            f"nothing found: no parity of {promise.sizes_text(searched)} of "
            f"{promise.counted(table.columns, 'column')} stands out in {rows} rows{text}"
        )


def explanation(found: Sequence[Term], said: Quality, measured: bool, *, skipped: bool = False) -> str:
    """Return what explains the target: one parity, one table, main effects, or several terms together.

    With `skipped` not everything was searched, so that nothing is said of all that there may be.

    >>> explanation((), Quality(), measured=False)
    'no interaction stands out: nothing here explains the label better than its class shares'
    """
    what = "target" if measured else "label"
    if not found:
        than = "its mean" if measured else "its class shares"
        return f"no interaction stands out: nothing here explains the {what} better than {than}"
    searched = " that was searched" if skipped else ""
    how = f"held-out R² {said.r_squared:.3f}" if measured else f"held-out accuracy {said.accuracy:.3f}"
    if not measured and not math.isnan(said.auc):
        how += f" (AUC {said.auc:.3f}, always the more frequent class {said.majority:.3f})"
    first = found[0]
    places = {place: name for one in found for place, name in zip(one.support, one.columns, strict=False)}
    names = ", ".join(name for _, name in sorted(places.items()))
    if len(found) == 1 and first.k > 2 and first.kind != "parity":
        return f"no single parity explains the {what}: the table of all values of {names} does, with {how}"
    if len(found) == 1:
        return f"the {first.kind} of {names} explains the {what} with {how}; nothing else{searched} adds to it"
    if all(one.kind == "main effect" for one in found):
        return (
            f"main effects of {names}, added up, explain the {what} with {how}; no interaction{searched} adds to them"
        )
    together = f"{len(found)} terms share the {what}, of {names}: added up they explain it with {how}"
    apart = sum(one.k for one in found) == len(places)  # no column in two of them
    return (
        together
        if apart and first.kind in ("parity", "main effect")
        else f"no single parity explains the {what}: {together}"
    )
