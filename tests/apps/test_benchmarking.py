"""Pages quote the stored measurements, every question is among them, and `bench` prints and keeps what it measures."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from parityscope.apps import benchmarking
from parityscope.apps.benchmarking import benchmark_names, stored_results
from parityscope.apps.cli import app

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("quote", ROOT / "benchmarks" / "quote.py")
quote = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(quote)
STORED = stored_results(quote.RESULTS.read_text())


@pytest.mark.parametrize("page", quote.PAGES, ids=lambda path: path.name)
def test_pages_quote_the_stored_measurements(page):
    text = page.read_text()
    assert "<!-- bench:begin" in text
    assert quote.quoted(text, STORED) == text
    assert quote.quoted(text, STORED[:1]) != text


def test_how_far_fit_sees_is_quoted_as_measured():
    text, measured = quote.FOUND.read_text(), json.loads(quote.FRONTIER.read_text())
    assert quote.with_frontier(text, measured) == text
    assert quote.with_frontier(text, {**measured, "frontier": measured["frontier"][1:]}) != text


def test_what_fit_was_held_to_is_quoted_as_measured():
    text, measured = quote.PROMISES.read_text(), json.loads(quote.TABLES.read_text())
    assert quote.with_tables(text, measured) == text
    for start in ("draws", "promise", "false"):
        assert quote.with_tables(text, [row for row in measured if not row["name"].startswith(start)]) != text


def test_every_question_is_stored():
    assert {question for question, _ in STORED} == set(benchmark_names())


def test_bench_prints_one_table_and_keeps_the_same_numbers(tmp_path, monkeypatch):
    (tmp_path / "naps.py").write_text(
        "from parityscope.apps.benchmarking import Timing\n"
        "def run():\n"
        "    yield Timing('short', 12.34, 0.002, 0.02468, 'a long nap', {})\n"
        "    yield Timing('alone', None, 3.0, None, None, {})\n"
    )
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(benchmarking, "_FOLDERS", (tmp_path,))
    shown = CliRunner().invoke(app, ["bench", "--out", str(tmp_path / "kept.json")])
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines() if line.startswith("naps")]
    assert lines == [
        ["naps", "short", "12×", "2", "ms", "25", "ms,", "a", "long", "nap"],
        ["naps", "alone", "–", "3", "s", "–"],
    ]
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert {"cores", "torch", "python", "measured"} <= kept.keys()
    listed = json.loads(CliRunner().invoke(app, ["bench", "naps", "--json"]).stdout)
    assert listed == kept["measurements"]
    assert listed[0]["ratio"] == 12.34
