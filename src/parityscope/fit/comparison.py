"""What else would do in a table: the same search in shuffled labels, and a forest in its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parityscope.core.errors import naming_the_extra
from parityscope.fit.answer import Question
from parityscope.fit.files import answer_for
from parityscope.fit.model import quality
from parityscope.fit.tables.prepared import Prepared

_FOLDS = 5
_CLEARLY = 0.02  # a difference of the area under the ROC curve, or of R², that is worth a sentence


def compared_with_forest(known: Prepared, question: Question, seed: int = 0) -> str:
    """Return a sentence that compares the search in a table with a random forest, by cross-validation.

    The search is made anew in every fold, so that its choice of terms is tested too. LightGBM takes the place of the
    forest where it is installed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.fit.tables.prepared import prepare
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 20
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> compared_with_forest(prepare(path, "fault"), Question(budget=2)).partition(", this")[2]
    ' model 1.00: nothing more is there'
    """
    with naming_the_extra():
        from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
    X, y, measured = known.coded.X, known.labels, known.classes is None
    kind = KFold if measured else StratifiedKFold
    folds = kind(_FOLDS, shuffle=True, random_state=seed) if known.groups is None else GroupKFold(_FOLDS)
    name, other = _other(not measured, seed)
    scores = []
    for train, test in folds.split(X, y, known.groups):
        groups = None if known.groups is None else known.groups[train]
        part = replace(known, labels=y[train], coded=replace(known.coded, X=X[train]), groups=groups)
        other.fit(X[train], y[train])
        theirs = other.predict(X[test]) if measured else other.predict_proba(X[test])[:, 1]
        ours = answer_for(part, question, seed).expected(X[test])
        said = [quality(y[test] if measured else (y[test] > 0).astype(float), one, measured) for one in (ours, theirs)]
        scores.append([one.r_squared if measured else one.auc for one in said])
    ours, theirs = np.nanmean(scores, axis=0)
    text = f"in {_FOLDS} folds {name} reaches {'R²' if measured else 'AUC'} {theirs:.2f}, this model {ours:.2f}"
    if theirs > ours + _CLEARLY:
        return f"{text}: there is more in this table than interactions of few columns"
    return f"{text}: {'few columns are all that is needed' if ours > theirs + _CLEARLY else 'nothing more is there'}"


def _other(labels: bool, seed: int) -> tuple[str, Any]:
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor
    except ImportError:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        forest = RandomForestClassifier if labels else RandomForestRegressor
        return "a random forest", forest(200, random_state=seed)
    return "LightGBM", (LGBMClassifier if labels else LGBMRegressor)(random_state=seed, verbose=-1)


@dataclass(frozen=True)
class Shuffled:
    """The largest correlation that a search for k columns meets in the labels as they are, and in shuffled ones.

    >>> Shuffled(k=2, observed=0.8, shuffled=(0.1, 0.2, 0.15)).sentence
    'the strongest parity of 2 columns has correlation 0.80; in 3 shuffles of the labels the search met 0.20 at most'
    """

    k: int
    observed: float
    shuffled: tuple[float, ...]

    @property
    def sentence(self) -> str:
        """Say how the labels compare with shuffled ones."""
        most = max(self.shuffled, default=0.0)
        return (
            f"the strongest parity of {self.k} columns has correlation {self.observed:.2f}; in {len(self.shuffled)} "
            f"shuffles of the labels the search met {most:.2f} at most"
        )


def against_shuffled(
    known: Prepared, k: int, shuffles: Iterable[int], *, budget: str | float | None = None, seconds: float = 10.0
) -> Shuffled:
    """Search for k columns once in the labels as they are and once for each shuffle, a seed, while work is left.

    This is the whole search again, so that whatever it might choose from is paid for. Correlations are those of the
    rows that are searched, which chose the parity: that is why they are not near 0 in shuffled labels either. What is
    left of the nominal `seconds` decides how many shuffles are tried, so that a busy machine tries as many.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.fit.tables.prepared import prepare
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 20
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> compared = against_shuffled(prepare(path, "fault"), 2, range(3))
    >>> compared.observed, max(compared.shuffled) < 0.5
    (1.0, True)
    """
    question = Question(k, budget=budget)
    answer = answer_for(known, question)
    observed, found = answer.strongest, []
    for seed in shuffles:
        seconds -= answer.work
        if seconds <= 0:
            break
        labels = np.random.RandomState(seed).permutation(known.labels)
        answer = answer_for(replace(known, labels=labels), question, seed)
        found.append(answer.strongest)
    return Shuffled(k, observed, tuple(found))
