"""How long does it take to find a hidden interaction, and what does a random forest make of the same table?

`parityscope bench estimator` prints these ratios. Both see the same fresh tables and are told k; `found` counts the
tables in which exactly the hidden columns were named. `parityscope reproduce estimator-benchmark` has more methods,
`python benchmarks/peers.py` those of other packages, with settings chosen for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from parityscope.apps.benchmarking import Timing, compare
from parityscope.fit.bits.encoding import encode
from parityscope.fit.solvers.scan import Scanner
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


def scans() -> Iterator[Timing]:
    """Scan all pairs of 1000 columns with 100 000 rows, beyond their parts: ours against two matrix products."""
    draw = np.random.default_rng(0)
    rows, columns = 100_000, 1000
    X, y = draw.integers(0, 2, (rows, columns)), draw.integers(0, 2, rows)
    residuals, variance = y - y.mean(), np.full(rows, y.mean() * (1 - y.mean()))
    ours = Scanner(encode(X, np.arange(rows)))
    signs = (1 - 2 * X.T).astype(np.float32)

    def plain() -> None:
        """Score every pair of ready-made signs, in single precision, and take roughly off what its parts explain."""
        score = np.abs((signs * residuals.astype(np.float32)) @ signs.T)
        overlap = (signs * variance.astype(np.float32)) @ signs.T
        alone = signs @ residuals.astype(np.float32)
        (score - np.abs(overlap) * np.abs(alone[:, None] + alone) / rows).argmax()

    setting = {"columns": columns, "rows": rows}
    calls = partial(ours.strongest, 2, residuals, variance), plain
    yield compare("scan of all pairs, 1000 columns", *calls, "two matrix products in numpy", setting, repeats=2)


def run() -> Iterator[Timing]:
    """Yield one measurement per kind of table, and one of a scan alone."""
    yield from scans()
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
