"""Ordinary tables, on which other tools are at home: who predicts better, who names the pairs, and how quickly.

Run: python benchmarks/peers_ordinary.py [--only KIND …] [--out FILE]; `python benchmarks/peers_page.py` writes
docs/results/peers.md from FILE (benchmarks/peers_ordinary.json). A method that is not installed is left out.

Every method is fitted to one table and scored on another of the same kind. Those that predict are given the area under
the ROC curve (R² of a measured target); those that name interactions are counted: tables in which all planted ones were
named, and in which others were too. All have their default settings,
`fit` a budget of 5 s.
"""

import argparse
import json
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from fit_tables import Table, additive, draws, many_rows, rare
from parityscope.core.threads import single_threaded
from parityscope.fit import SparseParityClassifier
from parityscope.fit.evidence.score import log_normal_tail
from parityscope.papers.own.fit_benchmark.peers import fast_epistasis, plink_path

STORED = Path(__file__).parent / "peers_ordinary.json"
FIRST_SEED = 1_700_000
LEVEL = 0.01
BUDGET = "5s"  # of `fit`
SLOW, MOST_VALUES = ("random forest", "EBM with pairs"), 1_000_000  # minutes on larger tables


def smooth(random):
    """Return Friedman's first function of numbers as log-odds: a product under a sine, a square, two slopes."""
    X = random.rand(2000, 15)
    bent = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y = random.rand(2000) < 1 / (1 + np.exp(-(bent - 14.4) / 2))
    return Table(X, y.astype(int), {(0, 1)}, columns_may_act=True)


def many_weak(random):
    """Return 60 numbers, each with a weak slope."""
    X = random.randn(2000, 60)
    slopes = 0.25 * np.where(np.arange(60) % 2, 1, -1)
    y = random.rand(2000) < 1 / (1 + np.exp(-X @ slopes))
    return Table(X, y.astype(int), set(), columns_may_act=True)


KINDS = {
    "a main effect and a pair among rare bits, 4000 × 110": (draws, 4),
    "two additive correlated numbers, 3000 × 10": (partial(additive, kind="correlated"), 4),
    "3 % positives, a pair of numbers, 5000 × 12": (partial(rare, share=0.03, values="numbers", planted=True), 4),
    "a smooth function of five numbers, 2000 × 15": (smooth, 4),
    "sixty weak slopes, 2000 × 60": (many_weak, 4),
    "a pair of correlation 0.1, 100 000 × 100 bits": (partial(many_rows, rows=100_000, columns=100, k=2, rho=0.1), 3),
    "a pair of correlation 0.1, 100 000 × 500 bits": (partial(many_rows, rows=100_000, columns=500, k=2, rho=0.1), 1),
    "a triple of correlation 0.1, 100 000 × 40 bits": (partial(many_rows, rows=100_000, columns=40, k=3, rho=0.1), 3),
}


def fit(table, seed):
    """Return the score of rows and the interactions that were named."""
    model = SparseParityClassifier(budget=BUDGET, random_state=seed).fit(table.X, table.y)
    return lambda X: model.predict_proba(X)[:, 1], set(model.ebm_interactions())


def _predictor(model):
    def fitted(table, seed):
        del seed
        found = model().fit(table.X, table.y)
        return lambda X: found.predict_proba(X)[:, 1], None

    return fitted


def _lightgbm():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)


def ebm(table, seed):
    """Return an explainable boosting machine's score, and the pairs it has chosen: they are ranked, not tested."""
    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(random_state=seed, n_jobs=1).fit(table.X, table.y)
    return lambda X: model.predict_proba(X)[:, 1], None


def scan(table, seed):
    """Return the pairs whose product of centred columns is related to the label at 1 %, all pairs counted."""
    del seed
    X = np.asarray(table.X, dtype=np.float32)
    X = X - X.mean(axis=0)
    left = (table.y - table.y.mean()).astype(np.float32)
    score = (X * left[:, None]).T @ X / np.sqrt((X**2).T @ X**2 * left.var())
    pairs = X.shape[1] * (X.shape[1] - 1) / 2
    return None, {(a, b) for a, b in np.argwhere(np.triu(np.abs(score), 1) > _cut(pairs)).tolist()}


def _cut(pairs):
    """Return the standard normal quantile of the level divided by the number of pairs, two-sided."""
    grid = np.linspace(2, 9, 7001)
    return float(grid[np.argmax([log_normal_tail(z) + np.log(2 * pairs) <= np.log(LEVEL) for z in grid])])


def plink(table, seed):
    """Return the pairs that PLINK's fast epistasis has at 1 %, all pairs counted; bits are written as homozygotes."""
    del seed
    if set(np.unique(table.X)) != {0, 1}:
        return None
    found = fast_epistasis(2 * table.X, table.y.astype(np.int64))
    cut = _cut(table.X.shape[1] * (table.X.shape[1] - 1) / 2)
    return None, {one.pair for one in found if np.sqrt(one.statistic) > cut}


METHODS = {
    "fit": fit,
    "boosted trees": _predictor(partial(HistGradientBoostingClassifier, random_state=0)),
    "random forest": _predictor(partial(RandomForestClassifier, random_state=0)),
    "logistic regression": _predictor(partial(LogisticRegression, max_iter=1000)),
    "LightGBM": _predictor(_lightgbm),
    "EBM with pairs": ebm,
    "plain scan of pairs": scan,
    "PLINK 1.9": plink,
}
INSTALLED = {"LightGBM": "lightgbm", "EBM with pairs": "interpret"}


def cpu_seconds():
    """Return the processor time of this process and of the programs it has waited for."""
    import resource

    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + waited_for.ru_utime + waited_for.ru_stime


def measured(kind, name):
    """Return one cell: seconds a table, the mean area under the ROC curve, tables right, and with false pairs."""
    draw, tables = KINDS[kind]
    tables = min(tables, 2) if name in SLOW else tables
    areas, seconds, right, false = [], [], 0, 0
    named = None
    for seed in range(FIRST_SEED, FIRST_SEED + tables):
        table, fresh = draw(np.random.RandomState(seed)), draw(np.random.RandomState(seed + 10_000))
        if name in SLOW and table.X.size > MOST_VALUES:
            return None
        at = cpu_seconds()
        found = METHODS[name](table, seed)
        if found is None:
            return None
        predict, named = found
        seconds.append(cpu_seconds() - at)
        if predict is not None:
            areas.append(float(roc_auc_score(fresh.y, predict(fresh.X))))
        if named is not None:
            wanted = {one for one in table.wanted if len(one) > 1}
            right, false = right + (named >= wanted), false + bool(named - wanted)
    row = {"kind": kind, "method": name, "tables": tables, "seconds": round(sum(seconds) / tables, 4)}
    if areas:
        row["area"] = round(sum(areas) / tables, 4)
    return row if named is None else {**row, "right": right, "false": false}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--out", type=Path, default=STORED)
    arguments.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    given = arguments.parse_args()
    names = [name for name in given.only if name not in INSTALLED or find_spec(INSTALLED[name])]
    names = [name for name in names if name != "PLINK 1.9" or plink_path()]
    old = json.loads(given.out.read_text()) if given.out.is_file() else []
    rows = [row for row in old if row["method"] not in names]
    warnings.simplefilter("ignore")
    with single_threaded(), threadpool_limits(1):
        for kind in KINDS:
            for name in names:
                if (row := measured(kind, name)) is not None:
                    rows.append(row)
                    print(row, flush=True)
    order = [(kind, name) for kind in KINDS for name in METHODS]
    rows.sort(key=lambda row: order.index((row["kind"], row["method"])))
    given.out.write_text("[\n" + ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
