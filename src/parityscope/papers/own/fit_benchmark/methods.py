"""What a user would pick instead: each method names the columns it finds most important, by one of several settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64
from numpy import ndarray
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from parityscope.core.errors import InvalidInput
from parityscope.fit.classifier import NothingFound, SparseParityClassifier, TiedColumns

_PRODUCTS = 25_000
_MDR_COST, _MDR_KEPT, _MOST_VALUES = 3e11, 50, 8


class Refused(InvalidInput):
    """A method cannot take a table: it is too large for it, of another kind, or a package is missing."""


class Asked(NamedTuple):
    """What every method is told: the size of the interactions, how many there are, and a seed."""

    k: int
    sets: int = 1
    seed: int = 0

    @property
    def columns(self) -> int:
        """How many columns are to be named."""
        return self.k * self.sets


Setting = Mapping[str, Any]
Finder = Callable[..., tuple[int, ...]]


@dataclass(frozen=True)
class Method:
    """A way to find the columns: `find(X, y, asked, **setting)`; the first setting is the package's own or ours.

    A method that ranks columns names the best k·sets of them, one that ranks sets names all columns of the first ones.
    """

    find: Finder
    settings: Sequence[Setting] = ({},)


def grid(**choices: Sequence[Any]) -> tuple[Setting, ...]:
    """Return every combination of choices, the first of each first."""
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


def best_columns(importance: ndarray, asked: Asked) -> tuple[int, ...]:
    """Return the columns of largest importance, ascending.

    >>> best_columns(np.array([0.1, 0.5, 0.0, 0.7]), Asked(2))
    (1, 3)
    """
    return tuple(sorted(np.argsort(-importance, kind="stable")[: asked.columns].tolist()))


def columns_of(sets: Sequence[Sequence[int]], asked: Asked) -> tuple[int, ...]:
    """Return the columns of the first sets, ascending.

    >>> columns_of([(4, 9), (0, 2), (1, 3)], Asked(2, sets=2))
    (0, 2, 4, 9)
    """
    return tuple(sorted({int(column) for some in sets[: asked.sets] for column in some}))


def _ours(solver: str, *, k_is_told: bool = True) -> Method:
    def find(X: ndarray, y: ndarray, asked: Asked) -> tuple[int, ...]:
        k = asked.k if k_is_told else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFound)
            warnings.simplefilter("ignore", TiedColumns)
            model = SparseParityClassifier(k, solver=solver, random_state=asked.seed).fit(X, y)
        return columns_of([one.support for one in model.interactions_], asked)

    return Method(find)


def _gradient_boosting(X: ndarray, y: ndarray, asked: Asked, *, depth: int, rate: float) -> tuple[int, ...]:
    """Return the columns of largest impurity importance in 100 boosted trees."""
    model = GradientBoostingClassifier(max_depth=depth, learning_rate=rate, random_state=asked.seed)
    return best_columns(model.fit(X, y).feature_importances_, asked)


def _random_forest(X: ndarray, y: ndarray, asked: Asked, *, share: Any, trees: int) -> tuple[int, ...]:
    """Return the columns of largest impurity importance in full trees that choose among a share of the columns."""
    model = RandomForestClassifier(trees, max_features=share, random_state=asked.seed)
    return best_columns(model.fit(X, y).feature_importances_, asked)


def _neural_network(X: ndarray, y: ndarray, asked: Asked, *, decay: float) -> tuple[int, ...]:
    """Return the inputs with the most weight on their way through one hidden layer of 100 ReLUs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPClassifier(alpha=decay, random_state=asked.seed).fit(2.0 * X - X.max(), y)
    first, second = model.coefs_
    return best_columns((np.abs(first) @ np.abs(second)).ravel(), asked)


def _lasso_on_products(X: ndarray, y: ndarray, asked: Asked, *, C: float, squares: bool) -> tuple[int, ...]:
    """Return the products of k with the largest coefficients in an L1 logistic regression on products of up to k.

    Columns are centred; with `squares` each comes with its centred square, so that any function of genotypes is a sum.
    """
    n, k = X.shape[1], asked.k
    forms = 2 if squares and X.max() > 1 else 1
    products = sum(math.comb(n, size) * forms**size for size in range(1, k + 1))
    if products > _PRODUCTS:
        raise Refused(f"{products} products of up to {k} of {n} columns: more than {_PRODUCTS}")
    centred = X - X.mean(axis=0)
    columns = [centred, centred**2 - (centred**2).mean(axis=0)][:forms]
    sets = [some for size in range(1, k + 1) for some in combinations(range(n), size)]
    owners, features = [], []
    for some in sets:
        for chosen in product(columns, repeat=len(some)):
            owners.append(some)
            features.append(math.prod(form[:, column] for form, column in zip(chosen, some, strict=True)))
    matrix = np.column_stack(features)
    matrix /= matrix.std(axis=0) + 1e-12
    model = LogisticRegression(l1_ratio=1, C=C, solver="liblinear", random_state=asked.seed)
    order = np.argsort(-np.abs(model.fit(matrix, y).coef_[0]), kind="stable")
    return columns_of(list(dict.fromkeys(owners[place] for place in order if len(owners[place]) == k)), asked)


class RankedSet(NamedTuple):
    """A set of columns and its balanced accuracy.

    >>> RankedSet((1, 4), 0.75).accuracy
    0.75
    """

    columns: tuple[int, ...]
    accuracy: float


def _mdr_cost(n: int, values: int, k: int, rows: int) -> float:
    """Return the multiplications of a search of all sets of k among n columns of so many values."""
    prefixes = 1.0
    for place in range(k - 2):
        prefixes *= (n - place) / (place + 1)
    return prefixes * (n * values) ** min(k, 2) * rows


def best_sets(X: ndarray, y: Int64[ndarray, " rows"], k: int, *, folds: int = 1, seed: int = 0) -> list[RankedSet]:
    """Return up to 50 sets of k columns by their balanced accuracy, the best first: MDR (Ritchie and others, 2001).

    A combination of values is called high-risk when it is commoner among cases than among controls. So the balanced
    accuracy of a set on its own rows is ½ Σ max(share among cases, share among controls) over combinations, and counts
    for all sets are products of 0/1 matrices: what the package scikit-MDR computes one set at a time.

    With one fold a set is judged on the rows that define its high-risk combinations; with more on the others, the mean
    over folds.
    """
    cells = _one_hot(X)
    fold = np.random.default_rng(seed).permutation(len(X)) % folds
    groups = np.stack([(y == label) & (fold == part) for part in range(folds) for label in (0, 1)])
    n, kept = X.shape[1], list[RankedSet]()
    if k == 1:
        ones = np.ones((1, len(X), 1), dtype=np.float32)
        accuracy = _accuracy(ones, cells, groups, groups.sum(axis=1))[0]
        kept = [RankedSet((column,), float(accuracy[column])) for column in range(n)]
        return sorted(kept, key=lambda one: -one.accuracy)[:_MDR_KEPT]
    for prefix in combinations(range(n), k - 2):
        last = prefix[-1] + 1 if prefix else 0
        if last >= n - 1:
            continue
        kept += _pairs_after(prefix, cells, last, groups)
        kept = sorted(kept, key=lambda one: -one.accuracy)[:_MDR_KEPT]
    return kept


def _pairs_after(
    prefix: tuple[int, ...],
    cells: Float32[ndarray, "columns rows values"],
    last: int,
    groups: Bool[ndarray, "parts rows"],
) -> list[RankedSet]:
    """Return the best sets that go on from a prefix with two later columns."""
    total = groups.sum(axis=1)
    later = cells[last:]
    accuracy = np.zeros((len(later), len(later)))
    for values in product(range(cells.shape[2]), repeat=len(prefix)):
        rows = np.ones(cells.shape[1], dtype=bool)
        for column, value in zip(prefix, values, strict=True):
            rows &= cells[column, :, value] > 0
        accuracy += _accuracy(later[:, rows], later[:, rows], groups[:, rows], total)
    first, second = np.triu_indices(len(later), 1)
    found = accuracy[first, second]
    best = np.argsort(-found, kind="stable")[:_MDR_KEPT]
    return [
        RankedSet((*prefix, last + int(first[place]), last + int(second[place])), float(found[place])) for place in best
    ]


def _accuracy(
    left: Float32[ndarray, "one rows values"],
    right: Float32[ndarray, "other rows more"],
    groups: Bool[ndarray, "parts rows"],
    total: Int64[ndarray, " parts"],
) -> Float[ndarray, "one other"]:
    """Return what these rows add to every pair's balanced accuracy; `groups` are controls and cases of each fold."""
    counts = np.stack([_counts(left[:, rows], right[:, rows]) for rows in groups])
    folds = len(groups) // 2
    controls, cases = counts[0::2], counts[1::2]
    all_controls, all_cases = max(1, total[0::2].sum()), max(1, total[1::2].sum())
    if folds == 1:
        return 0.5 * np.maximum(controls[0] / all_controls, cases[0] / all_cases).sum(axis=(1, 3))
    summed = np.zeros((len(left), len(right)), dtype=np.float32)
    for part in range(folds):
        out, among = total[2 * part], total[2 * part + 1]
        high = (cases.sum(0) - cases[part]) / max(1, all_cases - among) >= (controls.sum(0) - controls[part]) / max(
            1, all_controls - out
        )
        right_share = np.where(high, cases[part] / max(1, among), controls[part] / max(1, out))
        summed += 0.5 * right_share.sum(axis=(1, 3)) / folds
    return summed


def _counts(left: ndarray, right: ndarray) -> Float32[ndarray, "one values other more"]:
    one, rows, values = left.shape
    other, _, more = right.shape
    flat = left.transpose(0, 2, 1).reshape(one * values, rows) @ right.transpose(1, 0, 2).reshape(rows, other * more)
    return flat.reshape(one, values, other, more)


def _one_hot(X: ndarray) -> Float32[ndarray, "columns rows values"]:
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in X.T])
    values = int(codes.max()) + 1
    if values > _MOST_VALUES:
        raise InvalidInput(f"a column has {values} values: cut it into at most {_MOST_VALUES} first")
    return (codes[:, :, None] == np.arange(values)).astype(np.float32)


def _mdr(X: ndarray, y: ndarray, asked: Asked, *, folds: int) -> tuple[int, ...]:
    """Return the sets of best balanced accuracy: multifactor dimensionality reduction, our own implementation."""
    values = max(len(np.unique(column)) for column in X.T)
    needed = _mdr_cost(X.shape[1], values, asked.k, len(X))
    if values > _MOST_VALUES or needed > _MDR_COST:
        raise Refused(f"{needed:.1g} multiplications for all sets of {asked.k} of {X.shape[1]} columns")
    ranked = best_sets(X, y, asked.k, folds=folds, seed=asked.seed)
    return columns_of([found.columns for found in ranked], asked)


def _mutual_information(X: ndarray, y: ndarray, asked: Asked) -> tuple[int, ...]:
    """Return the columns that say most about the class one by one."""
    return best_columns(mutual_info_classif(X, y, discrete_features=True, random_state=asked.seed), asked)


OURS: dict[str, Method] = {
    "auto": _ours("auto"),
    "auto, k open": _ours("auto", k_is_told=False),
    "exhaustive": _ours("exhaustive"),
    "elimination": _ours("elimination"),
    "attention": _ours("attention"),
}
OTHERS: dict[str, Method] = {
    "MDR": Method(_mdr, grid(folds=(1, 5))),
    "L1 on products": Method(_lasso_on_products, grid(squares=(True, False), C=(0.1, 0.03, 0.3))),
    "gradient boosting": Method(_gradient_boosting, grid(depth=(3, 6), rate=(0.1, 0.3))),
    "random forest": Method(_random_forest, ({"trees": 100, "share": "sqrt"}, {"trees": 300, "share": 0.5})),
    "neural network": Method(_neural_network, grid(decay=(1e-4, 1.0))),
    "mutual information": Method(_mutual_information),
}
METHODS: dict[str, Method] = {**OURS, **OTHERS}
