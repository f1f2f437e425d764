"""`SparseParityClassifier`: the scikit-learn face of the search for a hidden interaction."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.fit.answer import Answer, Question, ask, numbered, two_classes
from parityscope.fit.tables.frames import FrameCoder, has_text

with naming_the_extra():
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data


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


class SparseParityClassifier(SelectorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the few columns whose parity is the label, and says how sure that is.

    It predicts, and it selects: in a pipeline `transform` keeps the columns of all interactions.

    Columns of two values are bits; columns of three or four values (genotypes 0/1/2) may be split in any way; columns
    of more values get a learned threshold. Text in a DataFrame is coded as `parityscope fit` codes it: up to four
    values may be split in any way, of more the frequent ones are asked for one by one. 70 % of the rows are searched,
    30 % confirm; a p-value ten times smaller than asked for, which all rows give, needs no such confirmation. "auto"
    also looks for conjunctions, and where nothing stands out for pairs of columns of a few values by their whole table.

    Parameters
    ----------
    k : int or None
        How many columns interact; None chooses by held-out evidence among 1 … max_k.
    max_k : int
        The largest interaction that is looked for when k is None.
    solver : "auto", "attention", "collision", "elimination" or "exhaustive"
        "auto" takes the step that promises something new soonest, again and again; the others work alone.
    alpha : float
        The largest corrected p-value that is believed.
    budget : float, str or None
        The time that a search may take: seconds, or text such as "30s", "2m" or "1h"; None is 30 seconds. What was
        not searched in that time, and what it would cost, is said in `reason_`.
    random_state : int, RandomState or None
        Which rows are held out, which equations are sampled, how attention starts.

    Attributes
    ----------
    support_ : the columns of the first interaction, ascending; empty when nothing was found
    interactions_ : all interactions, the strongest evidence first, each with `support`, `kind`, `bits`, `strength`,
        `p_value`, `adds` (bits per held-out row beyond those before it), `accuracy` and `block` (columns that these
        rows cannot tell from one of its own)
    guarantee_ : one sentence: what would have been found, and how surely
    skipped_ : what was not searched in the time, and what it would cost; empty when everything was
    explanation_ : what explains the label: a main effect, a table, a parity, or several together
    candidate_ : where nothing was found, the columns that came nearest: not significant, `p_value_` is theirs; None
        where something was found
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
        """Search for the interaction; two classes of any type, no missing values; a DataFrame may hold text."""
        coder = self._coder = FrameCoder.of(X) if has_text(X) else None
        X, y = validate_data(self, X if coder is None else coder.numbers(X), y, dtype="numeric")
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise InvalidInput(
                f"Only binary classification is supported. The type of the target is {kind}: "
                f"y has {len(np.unique(y))} classes"
            )
        self.classes_, labels = two_classes(y)
        question = Question(self.k, self.max_k, self.solver, self.alpha, self.budget)
        unordered = frozenset[int]() if coder is None else coder.unordered
        random = check_random_state(self.random_state)
        answer = ask(question, X, labels, random, self._name, unordered=unordered)
        for note in () if coder is None else coder.notes:
            warnings.warn(note, NotSearched, stacklevel=2)
        self._keep(answer if coder is None else coder.in_words(answer))
        return self

    def predict_proba(self, X: Any) -> ndarray:
        """Return P(class) of every row, shape (rows, 2)."""
        check_is_fitted(self, "support_")
        X = X if self._coder is None or not hasattr(X, "iloc") else self._coder.numbers(X)
        second = self._answer.probability(validate_data(self, X, reset=False, dtype="numeric"))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> ndarray:
        """Return the more probable class of every row."""
        second = self.predict_proba(X)[:, 1]
        return self.classes_[(second > 0.5).astype(int)]

    def to_frame(self) -> Any:
        """Return the interactions as a pandas DataFrame, one row each.

        >>> X = np.random.RandomState(0).randint(2, size=(200, 5))
        >>> frame = SparseParityClassifier(random_state=0).fit(X, X[:, 0] ^ X[:, 3]).to_frame()
        >>> frame[["columns", "kind"]].values.tolist()
        [['column 0, column 3', 'parity']]
        """
        check_is_fitted(self, "interactions_")
        with naming_the_extra():
            import pandas as pd
        rows = [
            {
                "columns": ", ".join(map(self._name, one.support)),
                "support": one.support,
                "kind": one.kind,
                "bits": " ⊕ ".join(one.bits),
                "strength": one.strength,
                "p_value": one.p_value,
                "adds": one.adds,
                "accuracy": one.accuracy,
                "block": {self._name(c): [self._name(other) for other in others] for c, others in one.block.items()},
                "solver": one.solver,
            }
            for one in self.interactions_
        ]
        names = ["columns", "support", "kind", "bits", "strength", "p_value", "adds", "accuracy", "block", "solver"]
        return pd.DataFrame(rows, columns=names)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _keep(self, answer: Answer) -> None:
        self._answer = answer
        self.support_ = np.array(answer.support, dtype=int)
        self.k_ = len(answer.support)
        self.solver_ = answer.solver
        self.p_value_ = answer.p_value
        self.noise_rate_ = answer.noise_rate
        self.held_out_accuracy_ = answer.held_out_accuracy
        self.bits_ = list(answer.bits)
        self.rule_ = answer.rule
        self.truth_table_ = answer.truth_table
        self.attention_ = answer.attention
        self.ties_ = {column: np.array(others, dtype=int) for column, others in answer.ties.items()}
        self.constant_ = np.array(answer.constant, dtype=int)
        self.attempts_ = answer.attempts
        self.reason_ = answer.reason
        self.interactions_ = answer.interactions
        self.guarantee_ = answer.guarantee
        self.skipped_ = answer.skipped
        self.explanation_ = answer.explanation
        self.candidate_ = answer.candidate
        for sentence in answer.tie_sentences(self._name):
            warnings.warn(sentence, TiedColumns, stacklevel=3)
        if answer.interaction is None:
            warnings.warn(answer.nothing_sentence, NothingFound, stacklevel=3)

    def _name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return numbered(column) if names is None else str(names[column])
