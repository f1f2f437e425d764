"""How long does it take to find a hidden interaction, and what does a random forest make of the same table?

`parityscope bench estimator` prints these ratios. Both see the same tables and are told k; `found` counts the tables in
which exactly the hidden columns were named. `parityscope reproduce estimator-benchmark` has every method.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from parityscope.core.benchmarking import Measurement, compare
from parityscope.estimator.baselines import OTHERS, OURS
from parityscope.papers.own.figures.estimator_benchmark import TableKind, draw_table, label_of

TABLES = 5
KINDS = (
    TableKind(n=1000, k=2, rows=2000, noise=0.2),
    TableKind(n=100, k=3, rows=5000, noise=0.1),
    TableKind(n=200, k=10, rows=400, noise=0.0),
    TableKind(kind="genotypes", rows=1600),
)


def run() -> Iterator[Measurement]:
    """Yield one measurement per kind of table."""
    ours, forest = OURS["auto"], OTHERS["random forest"]
    for kind in KINDS:
        tables = [draw_table(kind, seed) for seed in range(TABLES)]
        found = [sum(find(X, y, kind.k, 0) == tuple(B) for X, y, B in tables) for find in (ours, forest)]
        X, y, _ = tables[0]
        setting = {
            "n": kind.n,
            "k": kind.k,
            "rows": kind.rows,
            "noise": kind.noise,
            "found": f"{found[0]} of {TABLES}",
            "other_found": f"{found[1]} of {TABLES}",
        }
        name = label_of(kind).replace("\n", ", ")
        calls = (partial(find, X, y, kind.k, 0) for find in (ours, forest))
        yield compare(name, *calls, "random forest", setting, repeats=2)
