"""How long does it take to find a hidden interaction, and what does a random forest make of the same table?

`parityscope bench estimator` prints these ratios. Both see the same tables and are told k; `found` counts the tables in
which exactly the hidden columns were named. `parityscope reproduce estimator-benchmark` has every method.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from parityscope.core.benchmarking import Measurement, compare
from parityscope.estimator.baselines import OTHERS, OURS
from parityscope.papers.own.figures.estimator_benchmark import Point, draw_table

TABLES = 5
POINTS = (
    Point(n=1000, k=2, rows=2000, noise=0.2),
    Point(n=100, k=3, rows=5000, noise=0.1),
    Point(n=200, k=10, rows=400, noise=0.0),
    Point(kind="genotypes", rows=1600),
)


def run() -> Iterator[Measurement]:
    """Yield one measurement per kind of table."""
    ours, forest = OURS["auto"], OTHERS["random forest"]
    for point in POINTS:
        tables = [draw_table(point, seed) for seed in range(TABLES)]
        found = [sum(find(X, y, point.k, 0) == tuple(B) for X, y, B in tables) for find in (ours, forest)]
        X, y, _ = tables[0]
        setting = {
            "n": point.n,
            "k": point.k,
            "rows": point.rows,
            "noise": point.noise,
            "found": f"{found[0]} of {TABLES}",
            "other_found": f"{found[1]} of {TABLES}",
        }
        name = point.label().replace("\n", ", ")
        calls = (partial(find, X, y, point.k, 0) for find in (ours, forest))
        yield compare(name, *calls, "random forest", setting, repeats=2)
