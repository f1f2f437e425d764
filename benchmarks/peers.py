"""How does `fit` compare with what others offer? Measures every method on every kind of table, and keeps the counts.

Run: python benchmarks/peers.py [--out FILE] [--only METHOD …] [--again] [--tables N] [--most-columns N]
Needs the extra `peers` and PLINK 1.9 (Debian: plink1.9); who is missing is left out with a reason. Cells that FILE
(benchmarks/peers.json) already has are kept, unless they are to be measured `--again`. `python
benchmarks/peers_page.py` writes docs/results/peers.md from it.

Everyone is told k and the number of sets, and gets the same tables (seeds from 2000). A peer's setting is chosen for
each kind of table on other tables (seeds from 0) of the same kind; ours is always the default. For one kind of table a
method has BUDGET seconds of CPU time to be counted, and half as much to choose: slow ones get fewer tables.
"""

import argparse
import json
import os
import platform
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_limits

from parityscope.core.threads import single_threaded
from parityscope.papers.own.fit_benchmark.comparison import compare_on
from parityscope.papers.own.fit_benchmark.methods import METHODS, Asked, Refused
from parityscope.papers.own.fit_benchmark.peers import PEERS
from parityscope.papers.own.fit_benchmark.planted import PUBLIC_FILES, TableKind, public_files

STORED = Path(__file__).parent / "peers.json"
BUDGET, LIMIT = 10.0, 20.0
ALL = {**METHODS, **PEERS}
CHOSEN = (
    "auto",
    "auto, k open",
    "PLINK 1.9",
    "MDR",
    "EBM",
    "L1 on products",
    "Relief family",
    "random forest",
    "LightGBM",
    "shapiq",
)
GENOTYPES = TableKind(kind="genotypes", heritability=0.1)
GROUPS = {
    "pairs of bits": [
        TableKind(),
        TableKind(n=100, rows=800, noise=0.2),
        TableKind(n=100, rows=200, noise=0.2),
        TableKind(n=100, rows=800, noise=0.35),
        TableKind(n=1000, rows=2000, noise=0.2),
    ],
    "more bits": [
        TableKind(k=3),
        TableKind(k=5, rows=1000),
        TableKind(n=100, k=3, rows=800),
        TableKind(n=200, k=10, rows=400, noise=0.0),
        TableKind(n=1000, k=3, rows=2000),
        TableKind(n=1000, k=4, rows=2000),
    ],
    "genotypes": [
        GENOTYPES.model_copy(update={"rows": 400}),
        GENOTYPES.model_copy(update={"n": 100, "rows": 800}),
        GENOTYPES.model_copy(update={"n": 1000, "rows": 1600}),
        GENOTYPES.model_copy(update={"k": 3, "rows": 800, "heritability": 0.2}),
    ],
    "several sets": [
        TableKind(interactions=2, rows=800),
        GENOTYPES.model_copy(update={"interactions": 2, "rows": 800, "heritability": 0.4}),
        GENOTYPES.model_copy(update={"interactions": 2, "n": 100, "rows": 1000, "heritability": 0.4}),
    ],
    "main effects": [
        TableKind(k=1, noise=0.3),
        TableKind(k=1, interactions=3, n=100),
        TableKind(kind="conjunction"),
        TableKind(kind="conjunction", k=3, n=100),
    ],
    "public files": list(PUBLIC_FILES),
}


def cells(only):
    """Return what is to be measured: kind by kind and small ones first, so that what is broken off has whole kinds.

    Public files that are not here are left out; their stored rows stay.
    """
    missing = [kind for kind in PUBLIC_FILES if kind not in public_files()]
    kinds = [(group, kind) for group, some in GROUPS.items() for kind in some if kind not in missing]
    return [(group, kind, name) for group, kind in sorted(kinds, key=lambda one: one[1].n) for name in only]


def in_order(rows):
    """Return rows in the order of the page."""
    kinds = [kind for some in GROUPS.values() for kind in some]
    keys = [key_of({"table": kind.model_dump(), "method": name}) for kind in kinds for name in CHOSEN]
    return [rows[key] for key in keys if key in rows]


def key_of(row):
    return json.dumps(row["table"], sort_keys=True), row["method"]


def measured(group, kind, name, tables):
    """Return the row of one cell."""
    row = {"group": group, "table": kind.model_dump(), "method": name}
    try:
        score = compare_on(kind, ALL[name], tables=tables, others=3, budget=BUDGET, limit=LIMIT)
    except Refused as reason:
        return {**row, "refused": str(reason)}
    return {**row, **score.model_dump(), "seconds": round(score.seconds, 5)}


def warm_up(names):
    """Let everybody compile and import on a table that is not counted."""
    table = TableKind(n=10, rows=200).draw(0)
    for name in names:
        for setting in ALL[name].settings:
            try:
                ALL[name].find(table.X, table.y, Asked(2), **setting)
            except Refused as reason:
                print(f"{name}: {reason}", file=sys.stderr)


def versions(before):
    """Return the versions of packages, of those that are missing here the ones that stored cells were measured with."""
    names = ("scikit-learn", "skrebate", "lightgbm", "interpret-core", "shapiq", "torch", "parityscope")
    found = dict(before)
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def save(path, rows, before):
    about = {
        "measured": time.strftime("%Y-%m-%d", time.gmtime()),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "versions": versions(before),
        "budget": BUDGET,
        "limit": LIMIT,
        "methods": list(CHOSEN),
        "kinds": sum(map(len, GROUPS.values())),
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)[:-2] + ',\n "rows": [\n'
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(text + lines + "\n ]\n}\n")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--out", type=Path, default=STORED)
    arguments.add_argument("--only", nargs="*", choices=ALL, default=CHOSEN)
    arguments.add_argument("--again", action="store_true")
    arguments.add_argument("--tables", type=int, default=10)
    arguments.add_argument("--most-columns", type=int, help="leave larger tables for another time")
    given = arguments.parse_args()
    stored = json.loads(given.out.read_text()) if given.out.is_file() else {"rows": [], "versions": {}}
    old = stored["rows"]
    rows = {key_of(row): row for row in old if not (given.again and row["method"] in given.only)}
    wanted = [cell for cell in cells(given.only) if cell[1].n <= (given.most_columns or cell[1].n)]
    warnings.simplefilter("ignore")
    with single_threaded(), threadpool_limits(1):
        warm_up(given.only)
        for done, (group, kind, name) in enumerate(wanted, 1):
            key = key_of({"table": kind.model_dump(), "method": name})
            if key in rows:
                continue
            row = rows[key] = measured(group, kind, name, given.tables)
            outcome = row.get("refused") or f"{row['found']}/{row['tables']}, {row['seconds']:.3g} s, {row['setting']}"
            print(f"{done}/{len(wanted)} {kind}: {name}: {outcome}", flush=True)
            save(given.out, in_order(rows), stored["versions"])


if __name__ == "__main__":
    main()
