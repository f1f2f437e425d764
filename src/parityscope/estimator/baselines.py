"""What a user would pick instead: each of METHODS names the k columns it finds most important."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy import ndarray
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.estimator.classifier import NothingFound, SparseParityClassifier

Finder = Callable[[ndarray, ndarray, int, int], tuple[int, ...]]
_PRODUCTS = 25_000


class TooLarge(InvalidInput):
    """A method that would need far more than its share of time or memory here.

    >>> METHODS["L1 on products"](np.zeros((4, 300)), np.array([0, 1, 0, 1]), 3, 0)
    Traceback (most recent call last):
    parityscope.estimator.baselines.TooLarge: 4500250 products of up to 3 of 300 columns: more than 25000
    """


def _top(importance: ndarray, k: int) -> tuple[int, ...]:
    return tuple(sorted(np.argsort(-importance, kind="stable")[:k].tolist()))


def _ours(solver: str) -> Finder:
    def find(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFound)
            model = SparseParityClassifier(k, solver=solver, random_state=seed).fit(X, y)
        return tuple(model.support_.tolist())

    return find


def _gradient_boosting(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
    """Return the k columns of largest impurity importance in 100 boosted trees of depth max(3, k)."""
    model = GradientBoostingClassifier(max_depth=max(3, k), random_state=seed)
    return _top(model.fit(X, y).feature_importances_, k)


def _random_forest(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
    """Return the k columns of largest impurity importance in 100 full trees."""
    return _top(RandomForestClassifier(random_state=seed).fit(X, y).feature_importances_, k)


def _neural_network(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
    """Return the k inputs with the most weight on their way through one hidden layer of 100 ReLUs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPClassifier(random_state=seed).fit(2.0 * X - X.max(), y)
    first, second = model.coefs_
    return _top((np.abs(first) @ np.abs(second)).ravel(), k)


def _lasso_on_products(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
    """Return the product of largest coefficient in an L1 logistic regression on all products of up to k columns."""
    n = X.shape[1]
    products = sum(math.comb(n, size) for size in range(1, k + 1))
    if products > _PRODUCTS:
        raise TooLarge(f"{products} products of up to {k} of {n} columns: more than {_PRODUCTS}")
    centred = X - X.mean(axis=0)
    sets = [some for size in range(1, k + 1) for some in combinations(range(n), size)]
    features = np.column_stack([centred[:, some].prod(axis=1) for some in sets])
    features /= features.std(axis=0) + 1e-12
    model = LogisticRegression(l1_ratio=1, C=0.1, solver="liblinear", random_state=seed)
    return sets[int(np.argmax(np.abs(model.fit(features, y).coef_[0])))]


def _relieff(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
    """Return the k columns of largest ReliefF weight, up to 100 neighbours."""
    with naming_the_extra():
        from skrebate import ReliefF
    neighbours = min(100, int(np.bincount(y).min()) - 1)
    model = ReliefF(n_features_to_select=k, n_neighbors=neighbours).fit(X.astype(float), y)
    return _top(model.feature_importances_, k)


def _mutual_information(X: ndarray, y: ndarray, k: int, seed: int) -> tuple[int, ...]:
    """Return the k columns that say most about the class one by one."""
    return _top(mutual_info_classif(X, y, discrete_features=True, random_state=seed), k)


OURS = {
    "auto": _ours("auto"),
    "exhaustive": _ours("exhaustive"),
    "elimination": _ours("elimination"),
    "attention": _ours("attention"),
}
OTHERS: dict[str, Finder] = {
    "L1 on products": _lasso_on_products,
    "ReliefF": _relieff,
    "gradient boosting": _gradient_boosting,
    "random forest": _random_forest,
    "neural network": _neural_network,
    "mutual information": _mutual_information,
}
METHODS: dict[str, Finder] = {**OURS, **OTHERS}
SLOW = ("attention", "ReliefF", "gradient boosting", "random forest", "neural network")
