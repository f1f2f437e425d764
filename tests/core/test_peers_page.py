"""The page about peers says what is stored, and what a reader is told follows from the numbers."""

import importlib.util
from pathlib import Path

import pytest

from parityscope.papers.own.fit_benchmark.planted import TableKind

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("peers_page", ROOT / "benchmarks" / "peers_page.py")
page = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)


def row(method, found=10, seconds=0.1, tables=10, group="pairs", **table):
    kind = TableKind(**table).model_dump()
    return {"group": group, "table": kind, "method": method, "found": found, "tables": tables, "seconds": seconds}


def refused(method, group="pairs", **table):
    return {"group": group, "table": TableKind(**table).model_dump(), "method": method, "refused": "pairs only"}


def test_the_page_quotes_what_is_stored():
    text, stored = page.PAGE.read_text(), page.stored()
    assert page.quoted(text, stored) == text
    assert page.quoted(text, {**stored, "rows": stored["rows"][1:]}) != text


def test_what_was_not_measured_is_said():
    results = {"rows": [row("auto"), row("auto", k=3), row("EBM")], "methods": ["auto", "EBM"], "kinds": 2}
    assert "Not measured yet, of 2 kinds of tables: EBM 1;" in page.unmeasured(results)
    assert page.unmeasured({**results, "rows": [*results["rows"], refused("EBM", k=3)]}) == ""
    assert page.group_table(results["rows"], "pairs").splitlines()[-1].endswith("| **10/10** 0.1 s | · |")


def test_who_wins_is_said_by_count_and_by_time():
    rows = [row("auto", found=8), row("MDR", found=9), row("EBM", found=8, seconds=0.05), row("PLINK 1.9", found=7)]
    assert page.winners(rows) == (
        "- k=2 of n=20, N=500, 10% noise (`auto`: 8/10, 0.1 s): MDR finds more (9/10), EBM is quicker (0.05 s).\n"
    )
    assert page.winners([row("auto"), row("MDR", seconds=0.06), row("EBM", found=0, seconds=0.01)]).startswith("- Now")


def test_fewer_tables_and_refusals_are_marked():
    rows = [row("auto"), row("Relief family", found=2, tables=3), refused("PLINK 1.9")]
    last = page.group_table(rows, "pairs").splitlines()[-1]
    assert last == "| k=2 of n=20, N=500, 10% noise | **10/10** 0.1 s | 2/3† 0.1 s | – |"
    assert page.reasons(rows) == "- PLINK 1.9, k=2 of n=20, N=500, 10% noise: pairs only.\n"


def test_a_refused_kind_counts_as_not_found_in_the_figure():
    rows = [row("auto"), row("auto", k=3), row("EBM", seconds=0.01), refused("EBM", k=3)]
    points = {name: (share, whole) for name, share, _, whole in page.group_points(rows, "pairs")}
    assert points == {"auto": (1.0, True), "EBM": (pytest.approx(0.5), False)}
    unfinished = page.group_points([*rows, row("MDR")], "pairs")
    assert {name for name, *_ in unfinished} == {"auto", "EBM"}


def test_who_wins_on_ordinary_tables():
    ours = {"kind": "slopes", "method": "fit", "tables": 8, "seconds": 0.4, "area": 0.8, "right": 8, "false": 0}
    trees = {"kind": "slopes", "method": "boosted trees", "tables": 8, "seconds": 0.4, "area": 0.805}
    scan = {"kind": "slopes", "method": "plain scan of pairs", "tables": 8, "seconds": 0.1, "right": 8, "false": 0}
    assert page.ordinary_winner([ours, trees, {**scan, "false": 3}]) == "nobody predicts better than `fit` by 0.01"
    assert page.ordinary_winner([ours, {**trees, "area": 0.9}, scan]) == (
        "**boosted trees predicts better** (0.900 against 0.800); plain scan of pairs is quicker (0.1 s)"
    )
    assert (
        page.ordinary_table([ours, scan]).splitlines()[2]
        == "| slopes | AUC 0.800, 8/8, 0 false, 0.4 s | 8/8, 0 false, 0.1 s |"
    )
