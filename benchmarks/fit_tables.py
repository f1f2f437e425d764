"""What `fit` is held to, as one command: ordinary tables, promises, false positives, the frontier, load and budget.

Every line counts, over tables of seeds with which no setting was chosen, how often the answer is right. Run it as

    python benchmarks/fit_tables.py --json tables.json               # everything, 32 tables a line
    python benchmarks/fit_tables.py draws "rare 3%" --seeds 4        # lines whose name begins so
    python benchmarks/fit_tables.py promise --seeds 300              # parities planted at the promised strength
    python benchmarks/fit_tables.py false --seeds 1000               # labels dealt to the rows at random
    python benchmarks/fit_tables.py frontier landscape load budget   # PARITYSCOPE_DATA names the landscapes' folder
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fit_frontier import FRONTIER, KINDS, alone, hidden_parity, measure_kind, measure_line
from parityscope.core.statistics import median
from parityscope.fit import SparseParityClassifier, SparseParityRegressor
from parityscope.fit.answer import Answer, Question, ask
from parityscope.fit.evidence.score import Target, score_test

FIRST_SEED = 1_700_000
RARE = (0.01, 0.02, 0.03, 0.05, 0.08)
VALUES = ("bits", "numbers", "text")
BUSY = 4  # processes beside a search under load

Sets = set[tuple[int, ...]]
Row = dict[str, Any]


class Table(NamedTuple):
    """Columns, labels, groups, and what is right: sets that must be found, and whether other single columns may be."""

    X: Any
    y: np.ndarray
    wanted: Sets
    groups: np.ndarray | None = None
    columns_may_act: bool = False
    budget: str = "30s"


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
    slope, centre = (2.5, 0.5) if kind == "strong bits" else (1.0, 0.0)
    up = random.rand(3000) < _share(slope * (X[:, 0] + X[:, 1] - 2 * centre))
    return Table(X, up.astype(int), set(), columns_may_act=True)


def rare(random: np.random.RandomState, share: float, values: str, planted: bool) -> Table:
    """Return few positives at random, or 19 times as many where two columns differ as where they agree."""
    if values == "text":
        X: Any = pd.DataFrame(random.choice(list("abcdef"), size=(5000, 12))).rename(columns=str)
        odd = (X["2"] == "a") ^ (X["7"] == "a")
    else:
        X = random.randint(2, size=(5000, 12)) if values == "bits" else random.randn(5000, 12)
        odd = (X[:, 2] > 0) ^ (X[:, 7] > 0)
    chance = np.where(odd, 1.9, 0.1) / np.where(odd, 1.9, 0.1).mean() * share if planted else np.full(5000, share)
    return Table(X, (random.rand(5000) < chance).astype(int), {(2, 7)} if planted else set(), budget="0.5s")


def repeated(random: np.random.RandomState, grouped: bool) -> Table:
    """Return 100 subjects of ten visits each, labels by subject, unrelated columns: with groups nearly by subject."""
    subjects = np.repeat(np.arange(100), 10)
    X = random.randn(100, 10)[subjects] + (0.1 * random.randn(1000, 10) if grouped else 0)
    y = random.randint(2, size=100)[subjects]
    return Table(X, y, set(), subjects if grouped else None, budget="0.5s")


def many_rows(random: np.random.RandomState, rows: int, columns: int, k: int, rho: float) -> Table:
    """Return many rows of bits and a weak parity of the first k columns."""
    X = np.unpackbits(random.randint(0, 256, size=(rows, -(-columns // 8)), dtype=np.uint8), axis=1)[:, :columns]
    odd = X[:, :k].sum(axis=1) % 2 ^ (random.rand(rows) < (1 - rho) / 2)
    return Table(X, odd, {tuple(range(k))})


TABLES: dict[str, Callable[[np.random.RandomState], Table]] = {
    "draws": draws,
    **{f"additive, {kind}": partial(additive, kind=kind) for kind in ("correlated", "independent", "strong bits")},
    **{
        f"rare {share:.0%} {values}, {'planted' if planted else 'null'}": partial(
            rare, share=share, values=values, planted=planted
        )
        for share in RARE
        for values in VALUES
        for planted in (False, True)
    },
    "repeated, groups given": partial(repeated, grouped=True),
    "repeated, no groups": partial(repeated, grouped=False),
    "large 300000 x 40, pair of 0.2": partial(many_rows, rows=300_000, columns=40, k=2, rho=0.2),
    "large 1000000 x 50, triple of 0.1": partial(many_rows, rows=1_000_000, columns=50, k=3, rho=0.1),
}


def _share(log_odds: Any) -> np.ndarray:
    return 1 / (1 + np.exp(-np.asarray(log_odds)))


def measure_tables(name: str, seeds: range) -> Row:
    """Return how one line went: all that was planted found, anything else found, and the seconds."""
    found_all = false = named = 0
    wall, processor, failed = [], [], []
    for seed in seeds:
        table = TABLES[name](np.random.RandomState(seed))
        at, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SparseParityClassifier(budget=table.budget, random_state=seed)
            model.fit(table.X, table.y, groups=table.groups)
        wall.append(time.perf_counter() - at)
        processor.append(time.process_time() - cpu)
        found = {one.support for one in model.interactions_}
        parts = {one for one in found if any(set(one) <= set(some) for some in table.wanted)}
        others = {one for one in found - parts if len(one) > 1 or not table.columns_may_act}
        found_all += found >= table.wanted
        false += bool(others)
        named += any("repeat another row" in str(one.message) for one in caught)
        if others or not found >= table.wanted:
            failed.append({"seed": seed, "found": sorted(found)})
    counts = {"tables": len(seeds), "found": found_all, "false": false, "repetition named": named, "failed": failed}
    times = {"processor": median(processor), "longest": max(processor), "longest wall": max(wall)}
    return {"name": name, **counts, **times}


# Promises: what the sentence says is planted, at exactly that strength, in tables that make it hard.


class Base(NamedTuple):
    """A table before a parity is planted: columns, log-odds (or means) of what else acts, and where to plant it."""

    X: np.ndarray
    log_odds: np.ndarray
    signs: tuple[np.ndarray, ...]  # ±1 of the questions that are planted
    wanted: Sets  # any of these is right
    groups: np.ndarray | None = None
    measured: bool = False


def _base(kind: str, random: np.random.RandomState, rows: int) -> Base:
    X = random.randint(2, size=(rows, 20)).astype(float)
    log_odds, groups, support = np.zeros(rows), None, (3, 7)
    if kind == "numbers":
        X = random.randn(rows, 20)
    elif kind == "rare columns":
        X[:, 10:], support = random.rand(rows, 10) < 0.15, (3, 12)
    elif kind == "proxies":
        X[:, 10:] = (X[:, :10] > 0) ^ (random.rand(rows, 10) < 0.02)
    elif kind == "uneven labels":
        log_odds = np.full(rows, -2.0)
    elif kind == "beside strong effects":
        log_odds = 1.5 * (1 - 2 * X[:, 0]) + 1.0 * (1 - 2 * X[:, 1]) * (1 - 2 * X[:, 2])
    elif kind.startswith("groups"):
        groups = np.arange(rows) // 2
        if kind == "groups of equal rows":
            X = X[groups * 2]
    elif kind == "single columns":
        support = (3,)
    elif kind == "triples":
        X, support = X[:, :15], (3, 7, 11)
    # A number is asked whether it exceeds its median, a threshold that is scanned.
    signs = tuple(1.0 - 2 * (X[:, one] > (np.median(X[:, one]) if kind == "numbers" else 0)) for one in support)
    wanted = {(a, b) for a in (3, 13) for b in (7, 17)} | {(7, 13)} if kind == "proxies" else {support}
    return Base(X, log_odds, signs, wanted, groups, kind == "measured target")


def _drawn(base: Base, expected: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    if base.measured:
        return expected + random.randn(len(expected))
    u = random.rand(len(expected))
    u = u if base.groups is None else u[2 * base.groups]  # both rows of a group have the same label where they can
    return np.where(u < expected, 1, -1).astype(np.int8)


def _beyond_parts(base: Base, weights: np.ndarray) -> np.ndarray:
    """Return what the parity of the planted questions does beyond them, in units of its standard deviation."""
    parts = base.signs if len(base.signs) > 1 else ()
    design = np.column_stack([np.ones(len(base.X)), *parts]) * np.sqrt(weights)[:, None]
    z = np.prod(base.signs, axis=0)
    left = z - np.column_stack([np.ones(len(base.X)), *parts]) @ np.linalg.lstsq(design, z * np.sqrt(weights))[0]
    return left / left.std()


def _asked(base: Base, y: np.ndarray, random: np.random.RandomState) -> Answer:
    question = Question(max_k=max(2, len(base.signs)))
    return ask(question, base.X, y, random, groups=base.groups, measured=base.measured)


def promised_strength(sentence: str, k: int) -> float | None:
    """Return the correlation that a guarantee names for k columns, or None.

    >>> promised_strength("any parity of at most k = 1 column with correlation ≥ 0.1, of 2 with correlation ≥ 0.3,", 2)
    0.3
    """
    for clause in re.finditer(
        r"of (at most k = )?(\d+)(?: to (\d+))?[^≥]*?(?:≥ [\d.]+ points[^≥]*?)?≥ ([\d.]+)", sentence
    ):
        least = 1 if clause[1] else int(clause[2])
        if least <= k <= int(clause[3] or clause[2]):
            return float(clause[4])
    return None


def _outcome(kind: str, seed: int, rows: int) -> bool | None:
    """Say whether a parity planted at the promised strength was found; None where nothing is promised."""
    random = np.random.RandomState(seed)
    base = _base(kind, random, rows)
    plain = base.log_odds if base.measured else _share(base.log_odds)
    said = promised_strength(_asked(base, _drawn(base, plain, random), random).guarantee, len(base.signs))
    if said is None:
        return None
    variance = np.ones(rows) if base.measured else plain * (1 - plain)
    left = _beyond_parts(base, variance)
    if base.measured:  # a partial correlation: the effect over the spread of noise and effect together
        return _found(base, _drawn(base, said / np.sqrt(1 - said**2) * left, random), random)
    # Every row's probability is shifted along what the parity does beyond its parts, where it has room; the shift has
    # the promised covariance with it, in units of the label's own spread.
    share = plain.mean()
    shift = variance * left
    shift *= said * np.sqrt(share * (1 - share)) / (shift * left).mean()
    if (plain + shift).min() < 0 or (plain + shift).max() > 1:
        return None
    return _found(base, _drawn(base, plain + shift, random), random)


def _found(base: Base, y: np.ndarray, random: np.random.RandomState) -> bool:
    return bool({one.support for one in _asked(base, y, random).interactions} & base.wanted)


PROMISES = {
    "even": 2000,
    "beside strong effects": 2000,
    "rare columns": 2000,
    "proxies": 2000,
    "uneven labels": 2000,
    "groups": 2000,
    "groups of equal rows": 2000,
    "numbers": 2000,
    "single columns": 2000,
    "triples": 1000,
    "measured target": 1000,
}


def measure_promise(kind: str, seeds: range) -> Row:
    """Return how many of the parities planted at the promised strength were found."""
    outcomes = {seed: _outcome(kind, seed, PROMISES[kind]) for seed in seeds}
    told = [one for one in outcomes.values() if one is not None]
    missed = [seed for seed, one in outcomes.items() if one is False]
    return {"name": f"promise, {kind}", "tables": len(told), "found": sum(told), "missed": missed}


# The same answers on a busy machine, and budgets.


def _spin(stop: Any) -> None:
    while not stop.is_set():
        sum(range(10_000))


def _told(seed: int) -> tuple[Any, ...]:
    """Return everything that six different searches say."""
    kinds = [draws, partial(rare, share=0.03, values="numbers", planted=True), partial(additive, kind="correlated")]
    tables = [kind(np.random.RandomState(seed)) for kind in kinds]
    asked = [(np.asarray(table.X), 2 * table.y.astype(np.int8) - 1, "30s") for table in tables]
    asked += [
        (*hidden_parity(FRONTIER[line], seed)[:2], budget) for line, budget in ((0, "30s"), (1, "30s"), (2, "8s"))
    ]
    answers = [ask(Question(budget=budget), X, y, np.random.RandomState(seed)) for X, y, budget in asked]
    return tuple((one.interactions, one.guarantee, one.skipped, one.reason, repr(one.quality)) for one in answers)


def measure_load(seeds: range) -> Row:
    """Return whether six tables are answered alike beside busy processes and without them."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    at = time.perf_counter()
    alone_told = _told(seeds[0])
    idle = time.perf_counter() - at
    busy = [context.Process(target=_spin, args=(stop,), daemon=True) for _ in range(BUSY)]
    for one in busy:
        one.start()
    at = time.perf_counter()
    loaded_told = _told(seeds[0])
    loaded = time.perf_counter() - at
    stop.set()
    same = sum(repr(one) == repr(other) for one, other in zip(alone_told, loaded_told, strict=True))
    return {"name": "load", "tables": len(alone_told), "found": same, "idle wall": idle, "loaded wall": loaded}


def measure_budget(seeds: range) -> Row:
    """Return processor seconds over budget, of searches that use theirs up: random labels, each in a fresh process."""
    shares = {
        f"{rows} x {columns}, {budget} s": alone(_over_budget, rows, columns, budget, seeds[0])["share"]
        for rows, columns in ((100_000, 60), (4000, 110), (1_000_000, 50), (300_000, 40), (20_000, 2000), (2000, 1000))
        for budget in (1, 5, 30)
    }
    kept = sum(one <= 1.1 for one in shares.values())
    return {"name": "budget", "tables": len(shares), "found": kept, "shares": shares}


def _over_budget(rows: int, columns: int, budget: int, seed: int) -> Row:
    random = np.random.RandomState(seed)
    X = random.randint(2, size=(rows, columns), dtype=np.uint8)
    y = random.choice(np.array([-1, 1], dtype=np.int8), size=rows)
    cpu = time.process_time()
    ask(Question(budget=budget), X, y, random)
    return {"share": (time.process_time() - cpu) / budget}


def measure_oracle(values: str, seeds: range) -> Row:
    """Return how often the pair of a `rare` table of 1 % passes its level where the two questions are told beforehand.

    The test pays for the same search and has the two questions alone as parts: a search can hardly find more.
    """
    log_sets = math.log(math.comb(12, 2) * (7 if values == "numbers" else 6) ** 2)
    level = math.log(0.01 / 2) - log_sets - math.log(2 * 3) - (math.log(2) if values == "numbers" else 0.0)
    passed = 0
    for seed in seeds:
        table = rare(np.random.RandomState(seed), 0.01, values, planted=True)
        X = (table.X == "a").to_numpy() if values == "text" else table.X > 0
        a, b = 1.0 - 2 * X[:, 2], 1.0 - 2 * X[:, 7]
        design = np.column_stack([np.ones(len(X)), a, b])
        passed += score_test(design, a * b, Target(table.y.astype(float))).log_p < level
    return {"name": f"oracle, rare 1% {values}", "tables": len(seeds), "found": passed}


def measure_landscape() -> Row:
    """Return the first terms of eqFP611, as it was measured and cut at its median."""
    table = pd.read_csv(Path(os.environ["PARITYSCOPE_DATA"]) / "eqfp611.tsv.gz", sep="\t")
    sites, brightness = table[[one for one in table if one.startswith("site")]], table["brightness"]
    numeric = SparseParityRegressor(random_state=0).fit(sites, brightness)
    cut = SparseParityClassifier(random_state=0).fit(sites, brightness > brightness.median())
    first = [[one.support for one in model.interactions_[:3]] for model in (numeric, cut)]
    right = sum(set(one) == {(4, 9), (2, 4), (2, 9)} for one in first)
    return {"name": "landscape", "tables": 2, "found": right, "first": first}


def _lines() -> dict[str, Callable[[range], Row]]:
    return {
        **{name: partial(measure_tables, name) for name in TABLES},
        **{f"promise, {kind}": partial(measure_promise, kind) for kind in PROMISES},
        **{f"false positives, {kind}": partial(_false, kind) for kind in KINDS},
        **{f"frontier {tuple(line)[:4]}": partial(_frontier, line) for line in FRONTIER},
        **{f"oracle, rare 1% {values}": partial(measure_oracle, values) for values in ("numbers", "text")},
        "landscape": lambda seeds: measure_landscape(),
        "load": measure_load,
        "budget": measure_budget,
    }


def _false(kind: str, seeds: range) -> Row:
    return {"name": f"false positives, {kind}", **alone(measure_kind, kind, seeds)}


def _frontier(line: Any, seeds: range) -> Row:
    return {"name": f"frontier {tuple(line)[:4]}", **alone(measure_line, line, seeds)}


def main() -> None:
    """Measure, print a line each, and write everything as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[""], help="lines whose name begins so; without a name all")
    parser.add_argument("--seeds", type=int, default=32, help="how many tables a line")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--json", type=Path, help="write the measurements here")
    chosen = parser.parse_args()
    measured = []
    for name, measure in _lines().items():
        if name.startswith(tuple(chosen.names)):
            row = measure(range(chosen.first_seed, chosen.first_seed + chosen.seeds))
            measured.append(row)
            shown = {key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()}
            print(*(f"{key} {value}" for key, value in shown.items() if key != "guarantee"), sep=" · ", flush=True)
            if chosen.json is not None:
                chosen.json.write_text(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
