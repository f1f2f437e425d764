"""Ordinary tables that `fit` is held to: strong effects beside interactions, additive causes, rare classes, repetition.

Every line counts, over tables of fresh seeds, how often the answer is right, and the processor seconds. Run it as

    python benchmarks/fit_tables.py --out tables.json          # 32 tables a line
    python benchmarks/fit_tables.py --only draws --tables 4
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from parityscope.core.statistics import median
from parityscope.fit import SparseParityClassifier

FIRST_SEED = 880_000
RARE = (0.01, 0.02, 0.03, 0.05, 0.08)
KINDS = ("bits", "numbers", "text")


class Table(NamedTuple):
    """Columns, labels, groups, and what is right: a set of supports, or None where no interaction may be found."""

    X: Any
    y: np.ndarray
    wanted: set[tuple[int, ...]] | None
    groups: np.ndarray | None = None


def draws(random: np.random.RandomState) -> Table:
    """Return 110 bits, a hundred of them rare, a main effect of 0.5 and an XOR of 0.3."""
    X = (random.rand(4000, 110) < np.where(np.arange(110) < 10, 0.5, 0.02)).astype(int)
    u = random.rand(4000)
    y = np.where(u < 0.5, X[:, 0], np.where(u < 0.8, X[:, 1] ^ X[:, 2], random.randint(2, size=4000)))
    return Table(X, y, {(0,), (1, 2)})


def additive(random: np.random.RandomState, kind: str) -> Table:
    """Return two causes whose log-odds add up: correlated or independent numbers, or strong bits."""
    X = random.randn(3000, 10)
    if kind == "correlated":
        X = 0.6 * random.randn(3000, 1) + 0.8 * X
    if kind == "strong bits":
        X = (X > 0).astype(float)
    slope = 2.5 if kind == "strong bits" else 1.0
    centre = 0.5 if kind == "strong bits" else 0.0
    up = random.rand(3000) < 1 / (1 + np.exp(-slope * (X[:, 0] + X[:, 1] - 2 * centre)))
    return Table(X, up.astype(int), None)


def rare(random: np.random.RandomState, share: float, kind: str, planted: bool) -> Table:
    """Return few positives at random, or four times as many where two columns differ as where they agree."""
    if kind == "text":
        X = pd.DataFrame(random.choice(list("abcdef"), size=(5000, 12))).rename(columns=str)
        odd = X["2"].isin(["a", "b", "c"]) ^ X["7"].isin(["a", "b", "c"])
        odd = (X["2"] == "a") ^ (X["7"] == "a")
    else:
        X = random.randint(2, size=(5000, 12)) if kind == "bits" else random.randn(5000, 12)
        odd = (X[:, 2] > 0) ^ (X[:, 7] > 0)
    chance = np.where(odd, 1.9 * share, 0.1 * share) if planted else np.full(5000, share)
    y = (random.rand(5000) < chance).astype(int)
    return Table(X, y, {(2, 7)} if planted else set())


def repeated(random: np.random.RandomState, grouped: bool) -> Table:
    """Return 100 subjects of ten visits each, labels by subject, columns nearly so and unrelated."""
    subjects = np.repeat(np.arange(100), 10)
    X = random.randn(100, 10)[subjects] + (0.1 * random.randn(1000, 10) if grouped else 0)
    y = random.randint(2, size=100)[subjects]
    return Table(X, y, set(), subjects if grouped else None)


def many_rows(random: np.random.RandomState, rows: int, columns: int, k: int, rho: float) -> Table:
    """Return many rows of bits and a weak parity of the first k columns."""
    X = np.unpackbits(random.randint(0, 256, size=(rows, -(-columns // 8)), dtype=np.uint8), axis=1)[:, :columns]
    odd = X[:, :k].sum(axis=1) % 2 ^ (random.rand(rows) < (1 - rho) / 2)
    return Table(X, odd, {tuple(range(k))})


LINES: dict[str, Callable[[np.random.RandomState], Table]] = {
    "draws": draws,
    **{f"additive, {kind}": partial(additive, kind=kind) for kind in ("correlated", "independent", "strong bits")},
    **{
        f"rare {share:.0%} {kind} {'planted' if planted else 'null'}": partial(
            rare, share=share, kind=kind, planted=planted
        )
        for share in RARE
        for kind in KINDS
        for planted in (False, True)
    },
    "repeated, groups given": partial(repeated, grouped=True),
    "repeated, no groups": partial(repeated, grouped=False),
    "300000 x 40, pair of 0.2": partial(many_rows, rows=300_000, columns=40, k=2, rho=0.2),
    "1000000 x 50, triple of 0.1": partial(many_rows, rows=1_000_000, columns=50, k=3, rho=0.1),
}


def measure(name: str, tables: int) -> dict[str, Any]:
    """Return how one line went: right answers, answers with an interaction, and processor seconds."""
    right = interactions = named = 0
    seconds = []
    for seed in range(FIRST_SEED, FIRST_SEED + tables):
        table = LINES[name](np.random.RandomState(seed))
        started = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SparseParityClassifier(random_state=seed).fit(table.X, table.y, groups=table.groups)
        seconds.append(time.process_time() - started)
        found = {one.support for one in model.interactions_}
        interactions += any(len(one) > 1 for one in found)
        named += any("repeat another row" in str(one.message) for one in caught)
        right += found == table.wanted if table.wanted is not None else not any(len(one) > 1 for one in found)
    return {
        "name": name,
        "tables": tables,
        "right": right,
        "interactions": interactions,
        "repetition named": named,
        "processor": median(seconds),
        "longest": max(seconds),
    }


def main() -> None:
    """Measure, print a line each, and write everything as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="lines whose name begins so")
    parser.add_argument("--tables", type=int, default=32)
    chosen = parser.parse_args()
    measured = []
    for name in LINES:
        if name.startswith(chosen.only):
            one = measure(name, chosen.tables)
            measured.append(one)
            print(
                f"{name}: right in {one['right']} of {one['tables']}, an interaction in {one['interactions']}, "
                f"repetition named in {one['repetition named']}, median {one['processor']:.2f} s of processor, longest "
                f"{one['longest']:.2f} s",
                flush=True,
            )
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
