"""How far `fit` sees, and that it does not invent: sizes, noise and rows at the frontier, and random labelings.

Every line is measured in a process of its own, table by table: how often exactly the hidden columns were named, seconds
of wall clock and of processor, and the peak of memory, which includes the table itself. Budgets count work, so that a
busy machine changes neither the answers nor the processor seconds. k is open. Run it as

    python benchmarks/fit_frontier.py --out frontier.json   # 32 tables a line, 1000 labelings a kind
    python benchmarks/fit_frontier.py --only frontier --tables 4

`python benchmarks/fit_tables.py` holds `fit` to ordinary tables, and has these lines too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parityscope.core.statistics import median
from parityscope.fit.answer import Question, ask

FIRST_SEED = 1_700_000  # no setting was chosen with these tables


class Line(NamedTuple):
    """Tables of n uniform bits of which k decide, how many rows, which share of labels is flipped, and the budget."""

    n: int
    k: int
    rows: int
    noise: float
    budget: str


FRONTIER = (
    Line(1000, 3, 2000, 0.2, "30s"),
    Line(1000, 4, 2000, 0.1, "30s"),
    Line(1000, 4, 2000, 0.2, "60s"),
    Line(3000, 3, 2000, 0.1, "30s"),
    Line(230_000, 2, 2350, 0.2, "60s"),
    Line(500, 5, 2000, 0.01, "30s"),
    Line(200, 10, 400, 0.0, "30s"),
)


def hidden_parity(line: Line, seed: int) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return a table, its labels ±1 and the hidden columns."""
    random = np.random.RandomState(seed)
    bytes_per_row = -(-line.n // 8)
    packed = np.frombuffer(random.bytes(line.rows * bytes_per_row), dtype=np.uint8).reshape(line.rows, bytes_per_row)
    X = np.unpackbits(packed, axis=1)[:, : line.n]
    support = np.sort(random.choice(line.n, line.k, replace=False))
    odd = X[:, support].sum(axis=1) % 2 ^ (random.rand(line.rows) < line.noise)
    return X, (1 - 2 * odd.astype(np.int8)).astype(np.int8), tuple(support.tolist())


def continuous(random: np.random.RandomState) -> np.ndarray:
    """Return independent normal columns."""
    return random.randn(300, 8)


def genotypes(random: np.random.RandomState) -> np.ndarray:
    """Return loci in equilibrium, minor alleles from 0.1 to 0.5."""
    return (random.rand(2, 400, 7) < 0.1 + 0.4 * random.rand(7)).sum(axis=0)


def correlated(random: np.random.RandomState) -> np.ndarray:
    """Return bits in blocks of four that agree in nine rows of ten."""
    return np.repeat(random.rand(400, 4) < 0.5, 4, axis=1) ^ (random.rand(400, 16) < 0.1)


def skewed(random: np.random.RandomState) -> np.ndarray:
    """Return bits of which between 2 and 20 of a hundred are 1."""
    return (random.rand(400, 16) < np.linspace(0.02, 0.2, 16)).astype(np.uint8)


KINDS: dict[str, Callable[[np.random.RandomState], np.ndarray]] = {
    one.__name__: one for one in (continuous, genotypes, correlated, skewed)
}


def measure_line(line: Line, seeds: range) -> dict[str, Any]:
    """Return how one line of the frontier went."""
    found, wrong, wall, processor = 0, 0, [], []
    for seed in seeds:
        X, labels, support = hidden_parity(line, seed)
        at, cpu = time.perf_counter(), time.process_time()
        answer = ask(Question(budget=line.budget), X, labels, np.random.RandomState(seed))
        wall.append(time.perf_counter() - at)
        processor.append(time.process_time() - cpu)
        found += answer.support == support
        wrong += answer.support not in (support, ())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        **line._asdict(),
        "tables": len(seeds),
        "found": found,
        "wrong": wrong,
        "wall": median(wall),
        "processor": median(processor),
        "longest": max(processor),
        "megabytes": round(peak),
        "guarantee": answer.guarantee,
    }


def measure_kind(kind: str, seeds: range) -> dict[str, Any]:
    """Return in how many random labelings of one kind of table something was found."""
    found, unfinished, cpu = 0, 0, time.process_time()
    for seed in seeds:
        random = np.random.RandomState(seed)
        X = KINDS[kind](random)
        share = (0.5, 0.3, 0.15)[seed % 3]
        labels = np.where(random.rand(len(X)) < share, 1, -1).astype(np.int8)
        answer = ask(Question(budget="0.3s"), X, labels, random)
        found += bool(answer.support)
        unfinished += bool(answer.skipped)
    seconds = time.process_time() - cpu
    return {"kind": kind, "labelings": len(seeds), "found": found, "unfinished": unfinished, "processor": seconds}


def alone(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a measurement in a process of its own, so that its peak of memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def main() -> None:
    """Measure, print a line each, and write everything as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=("frontier", "labelings"))
    parser.add_argument("--lines", type=int, nargs="*", default=range(len(FRONTIER)))
    parser.add_argument("--tables", type=int, default=32)
    parser.add_argument("--labelings", type=int, default=1000)
    chosen = parser.parse_args()
    measured: dict[str, Any] = {"load": os.getloadavg()[0], "frontier": [], "labelings": []}
    if chosen.only != "labelings":
        for index in chosen.lines:
            one = alone(measure_line, FRONTIER[index], range(FIRST_SEED, FIRST_SEED + chosen.tables))
            measured["frontier"].append(one)
            print(
                f"({one['n']}, {one['k']}, {one['rows']} rows, {one['noise']:.0%}): {one['found']} of {one['tables']}, "
                f"{one['wrong']} wrong, median {one['processor']:.2f} s of processor, {one['wall']:.2f} s of clock, "
                f"longest {one['longest']:.2f} s, {one['megabytes']} MB",
                flush=True,
            )
    if chosen.only != "frontier":
        for kind in KINDS:
            one = alone(measure_kind, kind, range(FIRST_SEED, FIRST_SEED + chosen.labelings))
            measured["labelings"].append(one)
            print(
                f"{kind}: {one['found']} of {one['labelings']} labelings, {one['unfinished']} not searched to the end, "
                f"{one['processor']:.0f} s of processor",
                flush=True,
            )
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
