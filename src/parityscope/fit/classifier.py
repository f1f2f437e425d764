"""`SparseParityClassifier` and `SparseParityRegressor`: the scikit-learn face of the search for interactions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.fit.answer import Answer, Question, ask, plain_columns, two_classes
from parityscope.fit.clock import seconds_of
from parityscope.fit.tables.column import SearchedColumn
from parityscope.fit.tables.frames import FrameCoder, as_frame, needs_coding
from parityscope.fit.tables.missing import missing_choice

with naming_the_extra():
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )

_LISTED = ["columns", "support", "kind", "bits", "estimate", "interval", "strength", "p_value", "share", "adds"]
_LISTED += ["accuracy", "parts", "block", "solver", "label"]


class NothingFound(UserWarning):
    """No term is significant: `support_` is empty and `predict` gives the majority class, or the mean.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = SparseParityClassifier().fit([[0, 1], [1, 0], [1, 1], [0, 0]], [0, 1, 0, 1])
    >>> caught[0].category.__name__, model.support_.tolist()
    ('NothingFound', [])
    >>> print(model.reason_)
    nothing found: 4 rows are too few: even a noiseless parity of 1 of 2 columns takes 13
    """


class TiedColumns(UserWarning):
    """A found column has copies that the data cannot tell from it.

    >>> X = np.random.RandomState(0).randint(2, size=(100, 3))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = SparseParityClassifier(random_state=0).fit(np.column_stack([X, 1 - X[:, 1]]), X[:, 0] ^ X[:, 1])
    >>> print(caught[0].message)
    column 3 and column 1 agree (or disagree) on every row: these data cannot tell them apart
    """


class NotSearched(UserWarning):
    """A column of text takes no part, or only its frequent values do.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"hot": [0, 1] * 20, "serial": [f"no {row}" for row in range(40)]})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = SparseParityClassifier(random_state=0).fit(frame, frame["hot"])
    >>> print(caught[0].message)
    not searched: serial (text of 40 different values, none of them in 5 rows)
    """


class RepeatedRows(UserWarning):
    """Rows repeat others exactly: equal rows count as one observation, unless `groups` say which belong together.

    >>> X = np.repeat(np.random.RandomState(0).randn(60, 3), 2, axis=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = SparseParityClassifier(random_state=0).fit(X, X[:, 1] > 0)
    >>> print(str(caught[0].message).partition(",")[0])
    60 of 120 rows repeat another row exactly
    """


class _Estimator(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: settings, coding of columns, and what an answer leaves behind."""

    def __init__(
        self,
        k: Any = None,
        *,
        max_k: Any = 10,
        solver: Any = "auto",
        alpha: Any = 0.01,
        budget: Any = None,
        covariates: Any = (),
        missing: Any = "refuse",
        random_state: Any = None,
    ) -> None:
        # Any: scikit-learn wants whatever is given stored as it is, and refused in `fit`.
        self.k = k
        self.max_k = max_k
        self.solver = solver
        self.alpha = alpha
        self.budget = budget
        self.covariates = covariates
        self.missing = missing
        self.random_state = random_state

    def to_frame(self) -> Any:
        """Return the terms as a pandas DataFrame, one row each.

        >>> X = np.random.RandomState(0).randint(2, size=(200, 5))
        >>> frame = SparseParityClassifier(random_state=0).fit(X, X[:, 0] ^ X[:, 3]).to_frame()
        >>> frame[["columns", "kind"]].values.tolist()
        [['column 0, column 3', 'parity']]
        """
        check_is_fitted(self, "interactions_")
        with naming_the_extra():
            import pandas as pd
        rows = [
            {name: getattr(one, name) for name in _LISTED}
            | {"columns": ", ".join(one.columns), "bits": " ⊕ ".join(one.bits)}
            for one in self.interactions_
        ]
        return pd.DataFrame(rows, columns=_LISTED)

    def ebm_interactions(self) -> list[tuple[int, ...]]:
        """Return the interactions of two columns and more, as `interactions=` of an explainable boosting machine.

        >>> X = np.random.RandomState(0).randint(2, size=(200, 5))
        >>> SparseParityClassifier(random_state=0).fit(X, X[:, 0] ^ X[:, 3]).ebm_interactions()
        [(0, 3)]
        """
        check_is_fitted(self, "interactions_")
        return list(dict.fromkeys(one.support for one in self.interactions_ if one.k > 1))

    def _get_support_mask(self) -> ndarray:
        check_is_fitted(self, "interactions_")
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[[column for one in self.interactions_ for column in one.support]] = True
        return mask

    def _columns(self, X: Any, y: Any) -> tuple[ndarray, Any, Sequence[SearchedColumn]]:
        """Return the numbers of the columns, the target, and what the columns are called."""
        missing = missing_choice(self.missing)
        X = as_frame(X)
        if missing != "refuse" and not hasattr(X, "iloc"):
            with naming_the_extra():
                import pandas as pd
            X = pd.DataFrame(np.asarray(X), columns=[f"column {place}" for place in range(np.shape(X)[1])])
        if not needs_coding(X, missing):
            self._coder = None
            X, y = validate_data(self, X, y, dtype="numeric")
            names = getattr(self, "feature_names_in_", None)
            plain = plain_columns(X.shape[1])
            return X, y, plain if names is None else [replace(one, name=str(names[one.place])) for one in plain]
        if missing == "drop":
            complete = X.notna().all(axis=1).to_numpy()
            X, y = X[complete], np.asarray(y)[complete]
            self._rows = complete
        validate_data(self, X, skip_check_array=True)
        self._coder, numbers = FrameCoder.of(X, missing)
        y = column_or_1d(y, warn=True)
        check_consistent_length(numbers, y)
        for note in self._coder.notes:
            warnings.warn(note, NotSearched, stacklevel=3)
        return numbers, y, self._coder.columns

    def _search(
        self,
        X: ndarray,
        labels: ndarray,
        columns: Sequence[SearchedColumn],
        *,
        groups: Any,
        weights: Any,
        **options: Any,
    ) -> Answer:
        question = Question(
            self.k, self.max_k, self.solver, options.get("alpha", self.alpha), options.get("budget", self.budget)
        )
        random = check_random_state(self.random_state)
        unordered = frozenset[int]() if self._coder is None else self._coder.unordered
        given = _places(self.covariates, columns)
        codes = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        if codes is not None and len(codes) != len(X):
            raise InvalidInput(f"groups has {len(codes)} entries, X has {len(X)} rows")
        return ask(
            question,
            X,
            labels,
            random,
            columns,
            None,
            unordered,
            groups=codes,
            weights=weights,
            covariates=given,
            measured=options.get("measured", False),
        )

    def _numbers(self, X: Any) -> ndarray:
        """Return the numbers of rows to predict."""
        check_is_fitted(self, "interactions_")
        X = as_frame(X)
        if self._coder is None:
            return validate_data(self, X, reset=False, dtype="numeric")
        if not hasattr(X, "iloc"):
            with naming_the_extra():
                import pandas as pd
            X = pd.DataFrame(np.asarray(X), columns=getattr(self, "feature_names_in_", None))
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._coder.numbers(X)

    def _keep(self, answer: Answer, columns: Sequence[SearchedColumn]) -> None:
        self._answer = answer
        self.support_ = np.array(answer.support, dtype=int)
        self.k_ = len(answer.support)
        self.solver_ = answer.solver
        self.p_value_ = answer.p_value
        self.held_out_accuracy_ = answer.held_out_accuracy
        self.quality_ = answer.quality.to_json()
        self.bits_ = list(answer.bits)
        self.rule_ = answer.rule
        self.truth_table_ = answer.truth_table
        self.attention_ = answer.attention
        self.ties_ = {
            columns[column].place: np.array([columns[other].place for other in others], dtype=int)
            for column, others in answer.ties.items()
        }
        self.constant_ = np.array([columns[column].place for column in answer.constant], dtype=int)
        self.attempts_ = answer.attempts
        self.reason_ = answer.reason
        self.interactions_ = answer.interactions
        self.guarantee_ = answer.guarantee
        self.skipped_ = answer.skipped
        self.explanation_ = answer.explanation
        self.candidate_ = answer.candidate
        for sentence in answer.tie_sentences(columns):
            warnings.warn(sentence, TiedColumns, stacklevel=3)
        if answer.repeated:
            warnings.warn(answer.repeated, RepeatedRows, stacklevel=3)
        if not answer.interactions:
            warnings.warn(answer.nothing_sentence, NothingFound, stacklevel=3)


def _places(covariates: Any, columns: Sequence[SearchedColumn]) -> tuple[int, ...]:
    """Return which columns are adjusted for, from their names or numbers."""
    names, found = [column.name for column in columns], []
    for one in covariates:
        wanted = [place for place, column in enumerate(columns) if one in (column.name, column.place)]
        if not wanted:
            raise InvalidInput(f"there is no covariate {one!r} among the columns {', '.join(names[:12])}")
        found += wanted
    return tuple(found)


def _weights(sample_weight: Any, X: ndarray) -> ndarray | None:
    return None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)


class SparseParityClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """Finds the few columns that act on a label only together, and says how sure that is.

    It predicts, and it selects: in a pipeline `transform` keeps the columns of all terms.

    A set of columns interacts if the log-odds of the label are not a sum of functions of smaller sets. What is found
    are the terms of one additive model: main effects, pairs, triples and so on, each an effect beyond its parts, with
    its own estimate, interval and p-value. A parity is the pure case, of which no part has an effect.

    Columns of two values are bits; columns of three or four values (genotypes 0/1/2) may be split in any way; columns
    of more values get a learned threshold. Text in a DataFrame is coded as `parityscope fit` codes it: up to four
    values may be split in any way, of more the frequent ones are asked for one by one. Several classes are told apart
    one against the rest, each at its part of alpha.

    Parameters
    ----------
    k : int or None
        How many columns interact; None looks for 1 … max_k. Sets of fewer columns come first in either case.
    max_k : int
        The largest interaction that is looked for when k is None.
    solver : "auto", "attention", "collision", "elimination" or "exhaustive"
        "auto" scans completely what is cheap, then samples; the others work alone.
    alpha : float
        The probability of any false term that is allowed, over all sizes and steps of the search.
    budget : float, str or None
        The work that a search may do: seconds of a nominal processor, or text such as "30s", "2m" or "1h"; None is 30
        seconds. The same budget gives the same answer on any machine, whatever else it does.
    covariates : sequence of names or numbers of columns
        Their effects are taken out, and they are not searched.
    missing : "refuse", "drop", "median" or "category"
        What is done where values are missing.
    threshold : float or "share"
        `predict` names the second class where its probability is larger; "share" is its share among the labels, which
        for a rare class says more than 0.5.
    random_state : int, RandomState or None
        Which rows are held out, which equations are sampled, how attention starts.

    Attributes
    ----------
    support_ : the columns of the first term, ascending; empty when nothing was found
    interactions_ : all terms, the largest share of explained deviance first, each with `support`, `kind`, `bits`,
        `estimate`, `interval`, `p_value`, `share`, `adds`, `accuracy`, `truth_table`, `parts` and `block`
    guarantee_ : one sentence: what would have been found, and how surely
    skipped_ : what was not searched within the budget, and what it would cost; empty when everything was
    explanation_ : what explains the label: a main effect, a table, a parity, or several terms together
    candidate_ : where nothing was found, the columns that came nearest: not significant, `p_value_` is theirs
    k_ : how many they are
    solver_ : which solver proposed the first term, or None
    reason_ : one sentence that says why this is the answer
    attempts_ : everything that was tried, with its outcome and its nominal seconds
    p_value_ : that of the first term, corrected for every set that could have been found; 0.0 if too small for a float
    noise_rate_ : the share of rows whose label is not the more probable one
    held_out_accuracy_ : accuracy on held-out rows, whose labels had no part in the coefficients (the terms were chosen
        with all rows)
    quality_ : accuracy, that of the majority class, area under the ROC curve and log loss on held-out rows
    bits_ : the questions whose parity is taken, such as `x > 0.5`
    rule_ : "parity", "table" or "majority"
    truth_table_ : the combinations of values of the first term with their rows, shares and 95 % intervals
    attention_ : (k, n_features_in_) attention of each head when attention answered, otherwise None
    ties_ : copies of found columns, by column
    constant_ : columns with one value, which take no part

    >>> from parityscope.problems import Parity, seeded_generator
    >>> X, y = Parity(50, (3, 17, 40), noise=0.1).sample(1000, seeded_generator(0, "data"))
    >>> model = SparseParityClassifier(random_state=0).fit(X.numpy(), y.numpy())
    >>> model.support_.tolist(), model.solver_, model.p_value_ < 1e-6
    ([3, 17, 40], 'exhaustive', True)
    """

    def __init__(
        self,
        k: Any = None,
        *,
        max_k: Any = 10,
        solver: Any = "auto",
        alpha: Any = 0.01,
        budget: Any = None,
        covariates: Any = (),
        missing: Any = "refuse",
        threshold: Any = 0.5,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            k,
            max_k=max_k,
            solver=solver,
            alpha=alpha,
            budget=budget,
            covariates=covariates,
            missing=missing,
            random_state=random_state,
        )
        self.threshold = threshold

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> SparseParityClassifier:
        """Search for terms. Rows of one of the `groups` (subjects, families) may depend on each other in any way."""
        self._rows = None
        numbers, y, columns = self._columns(X, y)
        groups, sample_weight = (
            some if some is None or self._rows is None else np.asarray(some)[self._rows]
            for some in (groups, sample_weight)
        )
        check_classification_targets(y)
        if self.threshold != "share" and not (isinstance(self.threshold, float | int) and 0 < self.threshold < 1):
            raise InvalidInput(f"threshold must lie strictly between 0 and 1 or be 'share', got {self.threshold!r}")
        weights = _weights(sample_weight, numbers)
        if weights is not None and (weights == 0).any():
            used = weights > 0
            numbers, y, weights = numbers[used], y[used], weights[used]
            groups = None if groups is None else np.asarray(groups)[used]
        self.classes_ = np.unique(y)
        if len(self.classes_) <= 2:
            self.classes_, labels = two_classes(y)
            self._answers = [self._search(numbers, labels, columns, groups=groups, weights=weights)]
            self._keep(self._answers[0], columns)
        else:
            self._one_against_the_rest(numbers, y, columns, groups, weights)
        self.noise_rate_ = self._answer.noise_rate
        return self

    def _one_against_the_rest(
        self, X: ndarray, y: ndarray, columns: Sequence[SearchedColumn], groups: Any, weights: ndarray | None
    ) -> None:
        share = 1 / len(self.classes_)
        Question(self.k, self.max_k, self.solver, self.alpha, self.budget).refuse_if_bad(X.shape[1])
        options = {"alpha": self.alpha * share, "budget": seconds_of(self.budget) * share}
        self._answers = [
            self._search(
                X, np.where(y == one, 1, -1).astype(np.int8), columns, groups=groups, weights=weights, **options
            )
            for one in self.classes_
        ]
        named = [
            replace(term, label=str(label))
            for label, answer in zip(self.classes_, self._answers, strict=True)
            for term in answer.interactions
        ]
        first = max(self._answers, key=lambda answer: (bool(answer.interactions), -answer.log_p))
        ordered = tuple(sorted(named, key=lambda term: term.log_p))
        self._keep(replace(first, interactions=ordered), columns)

    def predict_proba(self, X: Any) -> ndarray:
        """Return P(class) of every row, shape (rows, classes)."""
        check_is_fitted(self, "interactions_")
        numbers = self._numbers(X)
        each = np.column_stack([answer.expected(numbers) for answer in self._answers])
        return np.column_stack([1 - each, each]) if len(self.classes_) == 2 else each / each.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> ndarray:
        """Return the class of every row: of two the second above the threshold, of several the most probable."""
        probability = self.predict_proba(X)
        if len(self.classes_) > 2:
            return self.classes_[probability.argmax(axis=1)]
        cut = self._answer.share if self.threshold == "share" else self.threshold
        return self.classes_[(probability[:, 1] > cut).astype(int)]


class SparseParityRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Finds the few columns that act on a measured target only together: `SparseParityClassifier` for numbers.

    The same search with a linear model and normal residuals; parameters and attributes are those of the classifier, but
    for those about classes. `held_out_accuracy_` is R², the share of the held-out variance that is explained.

    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(400, 12))
    >>> model = SparseParityRegressor(random_state=0).fit(X, 3.0 * (X[:, 2] ^ X[:, 7]) + random.randn(400))
    >>> model.support_.tolist(), [one.kind for one in model.interactions_]
    ([2, 7], ['parity'])
    """

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> SparseParityRegressor:
        """Search for terms. Rows of one of the `groups` may depend on each other in any way."""
        self._rows = None
        numbers, y, columns = self._columns(X, y)
        groups, sample_weight = (
            some if some is None or self._rows is None else np.asarray(some)[self._rows]
            for some in (groups, sample_weight)
        )
        weights = _weights(sample_weight, numbers)
        if weights is not None and (weights == 0).any():
            used = weights > 0
            numbers, y, weights = numbers[used], np.asarray(y)[used], weights[used]
            groups = None if groups is None else np.asarray(groups)[used]
        y = np.asarray(y, dtype=float)
        self._keep(self._search(numbers, y, columns, groups=groups, weights=weights, measured=True), columns)
        return self

    def predict(self, X: Any) -> ndarray:
        """Return the expected target of every row."""
        check_is_fitted(self, "interactions_")
        return self._answer.expected(self._numbers(X))
