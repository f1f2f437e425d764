"""Is there more in a table than interactions of few columns? A forest's accuracy in the same folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from parityscope.core.errors import naming_the_extra

_FOLDS = 5
_CLEARLY = 0.02  # a difference of the area under the ROC curve, or of R², that is worth a sentence


def compared_with_forest(model: Any, X: Any, y: ndarray, *, groups: ndarray | None = None, seed: int = 0) -> str:
    """Return a sentence that compares an estimator of this package with a random forest, by cross-validation.

    The search is made anew in every fold, so that its choice of terms is tested too. LightGBM takes the place of the
    forest where it is installed. The columns must be numbers.

    >>> from parityscope.fit import SparseParityClassifier
    >>> random = np.random.RandomState(0)
    >>> X = random.randint(2, size=(400, 6))
    >>> y = X[:, 0] ^ X[:, 3] ^ (random.rand(400) < 0.1)
    >>> print(compared_with_forest(SparseParityClassifier(random_state=0, max_k=3, budget=2), X, y).partition(" ")[0])
    in
    """
    with naming_the_extra():
        from sklearn.base import is_classifier
        from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
    labels = is_classifier(model)
    kind = StratifiedKFold if labels else KFold
    folds = kind(_FOLDS, shuffle=True, random_state=seed) if groups is None else GroupKFold(_FOLDS)
    score = ("roc_auc" if len(np.unique(y)) == 2 else "accuracy") if labels else "r2"
    name, other = _other(labels, seed)
    ours, theirs = (
        float(cross_val_score(one, X, y, groups=groups, cv=folds, scoring=score).mean()) for one in (model, other)
    )
    words = {"roc_auc": "AUC", "accuracy": "accuracy", "r2": "R²"}[score]
    text = f"in the same {_FOLDS} folds {name} reaches {words} {theirs:.2f}, this model {ours:.2f}"
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
