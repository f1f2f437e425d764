"""`SparseParityClassifier`: the scikit-learn face of the search for a hidden interaction."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy import ndarray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from parityscope.errors import InvalidInput
from parityscope.estimator.bits import encode
from parityscope.estimator.evidence import p_text, rows_needed
from parityscope.estimator.rules import Interaction, fit_rule, held_out_accuracy, prefers_table, truth_table
from parityscope.estimator.search import SOLVERS, Candidate, Search, Solver

_HELD_OUT = 0.3
_OPEN_BUDGET, _GIVEN_BUDGET = 2e10, 1e12


class NothingFound(UserWarning):
    """No parity stands out of chance: `support_` is empty and `predict` gives the majority class.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = SparseParityClassifier().fit([[0, 1], [1, 0], [1, 1], [0, 0]], [0, 1, 0, 1])
    >>> caught[0].category.__name__, model.support_.tolist()
    ('NothingFound', [])
    >>> print(model.reason_)
    nothing found: 4 rows are too few: even a noiseless parity of 1 of 2 columns takes 12
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


class SparseParityClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the few columns whose parity is the label, and says how sure that is.

    Columns of two values are bits; columns of three or four values (genotypes 0/1/2) may be split in any way; columns
    of more values get a learned threshold. 70 % of the rows are searched, 30 % confirm.

    Parameters
    ----------
    k : int or None
        How many columns interact; None chooses by held-out evidence among 1 … max_k.
    max_k : int
        The largest interaction that is looked for when k is None.
    solver : "auto", "attention", "elimination" or "exhaustive"
        "auto" tries the cheapest that can succeed, confirms on held-out rows, and falls back.
    alpha : float
        The largest corrected p-value that is believed.
    budget : float or None
        Multiplications an exhaustive search of one size may take, of which a core does about 7e9 a second; None
        is 2e10 when k is open and 1e12 when k is given.
    random_state : int, RandomState or None
        Which rows are held out, which equations are sampled, how attention starts.

    Attributes
    ----------
    support_ : the columns, ascending; empty when nothing was found
    k_ : how many they are
    solver_ : which solver answered, or None
    reason_ : one sentence that says why this is the answer
    attempts_ : everything that was tried, with its outcome and its seconds
    p_value_ : exact (labels dealt to rows at random), corrected for every support that could have been found; 0.0 when
        it is too small for a float
    noise_rate_ : the share of rows whose label differs from the parity
    held_out_accuracy_ : accuracy on the held-out rows of the rule fitted on the others
    bits_ : the questions whose parity is taken, such as `x > 0.5`
    rule_ : "parity", "table" (every combination of values has its own frequency) or "majority"
    truth_table_ : the combinations of values with their rows
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
        random_state: Any = None,
    ) -> None:
        # Any: scikit-learn wants whatever is given stored as it is, and refused in `fit`.
        self.k = k
        self.max_k = max_k
        self.solver = solver
        self.alpha = alpha
        self.budget = budget
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SparseParityClassifier:
        """Search for the interaction; two classes of any type, no missing values."""
        X, y = validate_data(self, X, y, dtype="numeric")
        labels = self._labels(y)
        self._check_parameters(X.shape[1])
        random = check_random_state(self.random_state)
        order, train = _split(labels, random)
        table = encode(X, order)
        sizes = range(1, min(self.max_k, table.columns) + 1) if self.k is None else (self.k,)
        search = Search(
            X,
            order,
            table,
            labels[order],
            train,
            [k for k in sizes if k <= table.columns],
            self.k is not None,
            self.alpha,
            self._budget(),
            random,
        )
        found = search.run(self.solver)
        self.attempts_ = search.attempts
        self.constant_ = np.array(table.constant, dtype=int)
        if found is None:
            self._nothing(search)
        else:
            self._keep(found, search)
        return self

    def predict_proba(self, X: Any) -> ndarray:
        """Return P(class) of every row, shape (rows, 2)."""
        check_is_fitted(self, "support_")
        X = validate_data(self, X, reset=False, dtype="numeric")
        if self._interaction is None:
            second = np.full(len(X), self._share)
        else:
            values = {bit.column: X[:, bit.column] for bit in self._interaction.bits}
            second = self._rule.probability(self._interaction, values)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> ndarray:
        """Return the more probable class of every row."""
        second = self.predict_proba(X)[:, 1]
        return self.classes_[(second > 0.5).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _labels(self, y: ndarray) -> ndarray:
        """Return the classes as signs: −1 for the first, 1 for the second."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise InvalidInput(
                f"Only binary classification is supported. The type of the target is {kind}: "
                f"y has {len(np.unique(y))} classes"
            )
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInput(f"y has one class only, {self.classes_[0]!r}: two classes are needed")
        return (2 * codes - 1).astype(np.int8)

    def _budget(self) -> float:
        if self.budget is not None:
            return self.budget
        return _OPEN_BUDGET if self.k is None else _GIVEN_BUDGET

    def _check_parameters(self, n: int) -> None:
        if self.solver not in SOLVERS:
            raise InvalidInput(f"unknown solver {self.solver!r}: choose one of {', '.join(SOLVERS)}")
        if self.k is not None and not 1 <= self.k <= n:
            raise InvalidInput(f"k must lie between 1 and the number of columns {n}, got {self.k}")
        if self.max_k < 1:
            raise InvalidInput(f"max_k must be at least 1, got {self.max_k}")
        if not 0 < self.alpha < 1:
            raise InvalidInput(f"alpha must lie strictly between 0 and 1, got {self.alpha}")

    def _keep(self, found: Candidate, search: Search) -> None:
        interaction, table = found.interaction, search.table
        values, labels, train = search.values(found.support), search.labels, search.train
        use_table = prefers_table(interaction, values, labels, train)
        agreement = float((interaction.chi(values) == labels).mean())
        names = {column: self._name(column) for column in found.support}
        self._interaction: Interaction | None = interaction
        self._rule = fit_rule(interaction, values, labels, table=use_table)
        self._share = float((labels > 0).mean())
        self.support_ = np.array(found.support, dtype=int)
        self.k_ = found.k
        self.solver_: Solver | None = found.solver
        self.p_value_ = math.exp(found.log_p)
        self.noise_rate_ = min(agreement, 1 - agreement)
        self.held_out_accuracy_ = held_out_accuracy(interaction, values, labels, train, table=use_table)
        self.bits_ = [bit.describe(names[bit.column]) for bit in interaction.bits]
        self.rule_ = "table" if use_table else "parity"
        self.truth_table_ = truth_table(interaction, values, labels, names)
        self.attention_ = found.attention
        self.ties_ = {c: np.array(table.copies[c], dtype=int) for c in found.support if c in table.copies}
        self.reason_ = (
            f"{found.solver} proposed {', '.join(names.values())} from {train} rows; {len(labels) - train} held-out "
            f"rows confirm it, and {p_text(found.log_p)} after paying for the search"
        )
        for column, others in self.ties_.items():
            copies = ", ".join(map(self._name, others.tolist()))
            warnings.warn(
                f"{copies} and {names[column]} agree (or disagree) on every row: these data cannot tell them apart",
                TiedColumns,
                stacklevel=3,
            )

    def _nothing(self, search: Search) -> None:
        labels = search.labels
        self._interaction = None
        self._share = float((labels > 0).mean())
        self.support_ = np.array([], dtype=int)
        self.k_ = 0
        self.solver_ = None
        self.p_value_ = math.exp(min((one.log_p for one in search.judged), default=0.0))
        self.noise_rate_ = min(self._share, 1 - self._share)
        held_out = labels[search.train :] > 0
        self.held_out_accuracy_ = float((held_out == (self._share > 0.5)).mean())
        self.bits_ = []
        self.rule_ = "majority"
        self.truth_table_ = []
        self.attention_ = None
        self.ties_ = {}
        self.reason_ = _why_nothing(search)
        warnings.warn(f"{self.reason_}; predict gives the majority class", NothingFound, stacklevel=3)

    def _name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"column {column}" if names is None else str(names[column])


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
