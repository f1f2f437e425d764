"""How long does it take to find a hidden interaction, and what does a random forest make of the same table?

`parityscope bench estimator` prints these ratios. Both see the same fresh tables and are told k; `found` counts the
tables in which exactly the hidden columns were named. `parityscope reproduce estimator-benchmark` has more methods,
`python benchmarks/peers.py` those of other packages, with settings chosen for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from parityscope.apps.benchmarking import Timing, compare
from parityscope.papers.own.fit_benchmark.comparison import FIRST_FRESH
from parityscope.papers.own.fit_benchmark.methods import OTHERS, OURS, Asked
from parityscope.papers.own.fit_benchmark.planted import TableKind

TABLES = 5
KINDS = (
    TableKind(n=1000, k=2, rows=2000, noise=0.2),
    TableKind(n=100, k=3, rows=5000, noise=0.1),
    TableKind(n=200, k=10, rows=400, noise=0.0),
    TableKind(kind="genotypes", rows=1600),
)


def run() -> Iterator[Timing]:
    """Yield one measurement per kind of table."""
    forest = OTHERS["random forest"]
    finders = (OURS["auto"].find, partial(forest.find, **forest.settings[0]))
    for kind in KINDS:
        tables = [kind.draw(FIRST_FRESH + seed) for seed in range(TABLES)]
        asked = Asked(kind.k)
        found = [sum(find(table.X, table.y, asked) == table.columns for table in tables) for find in finders]
        setting = {
            "n": kind.n,
            "k": kind.k,
            "rows": kind.rows,
            "noise": kind.noise,
            "found": f"{found[0]} of {TABLES}",
            "other_found": f"{found[1]} of {TABLES}",
        }
        calls = (partial(find, tables[0].X, tables[0].y, asked) for find in finders)
        yield compare(str(kind), *calls, "random forest", setting, repeats=2)
