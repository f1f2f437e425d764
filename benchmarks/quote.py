"""Write the stored measurements into the pages that quote them; `make bench` measures and then runs this.

Run: python benchmarks/quote.py
"""

import json
import re
from pathlib import Path

from parityscope.apps.benchmarking import COLUMNS, stored_results, table_rows

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
DOCS = ROOT / "docs"
PAGES = (DOCS / "results" / "benchmarks.md", DOCS / "explanation" / "engines.md")
# What a page quotes stands between these two: everything or one question (`bench:begin risk`).
_QUOTED = re.compile(r"(<!-- bench:begin(?: (?P<part>\w+))? -->\n).*?(<!-- bench:end -->)", flags=re.S)


def markdown(rows):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


FRONTIER, FOUND = ROOT / "benchmarks" / "fit_frontier.json", DOCS / "what-we-found.md"
_FRONTIER = re.compile(r"(<!-- frontier:begin -->\n).*?(<!-- frontier:end -->)", flags=re.S)


def frontier(measured):
    """Return how far `fit` sees, as a table, and how often it invents."""
    lines = [
        "| columns | hidden | rows | wrong labels | recovered | median | longest | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in measured["frontier"]:
        columns, noise = f"{one['n']:,}".replace(",", " "), f"{one['noise']:.0%}".replace("%", " %")
        columns = columns if one["n"] >= 10_000 else str(one["n"])
        seconds = f"{one['processor']:.2g} s | {one['longest']:.2g} s"
        found = f"{one['found']}/{one['tables']}"
        lines.append(
            f"| {columns} | {one['k']} | {one['rows']} | {noise} | {found} | {seconds} | {one['megabytes']} MB |"
        )
    invented = ", ".join(f"{one['kind']} {one['found']}" for one in measured["labelings"])
    return (
        "\n".join(lines)
        + f"\n\nFalse positives in 1000 random labelings of each kind of table, at level 1 %: {invented}.\n"
    )


def with_frontier(page, measured):
    """Return the text of a page with the table of these measurements."""
    return _FRONTIER.sub(lambda match: match[1] + frontier(measured) + match[2], page)


TABLES, PROMISES = ROOT / "benchmarks" / "fit_tables.json", DOCS / "explanation" / "what-fit-promises.md"
_TABLES = re.compile(r"(<!-- fit:begin (?P<part>\w+) -->\n).*?(<!-- fit:end -->)", flags=re.S)


def held_to(measured, part):
    """Return what `benchmarks/fit_tables.py` counted: promises, false positives, or ordinary tables."""
    if part == "promises":
        lines = ["| planted at the promised strength | tables | found |", "|---|---|---|"]
        some = [row for row in measured if row["name"].startswith("promise, ")]
        lines += [f"| {row['name'].removeprefix('promise, ')} | {row['tables']} | {row['found']} |" for row in some]
    elif part == "false":
        lines = ["| random labels of | labelings | with a term | allowed |", "|---|---|---|---|"]
        some = [row for row in measured if row["name"].startswith("false positives, ")]
        lines += [
            f"| {row['kind']} | {row['labelings']} | {row['found']} | {row['labelings'] // 100} |" for row in some
        ]
    else:
        lines = ["| tables | how many | all that was planted found | anything false | median | longest |"]
        lines.append("|---|---|---|---|---|---|")
        for row in (row for row in measured if "longest wall" in row):
            counts = f"{row['tables']} | {row['found']} | {row['false']}"
            seconds = f"{row['processor']:.2g} s | {row['longest']:.2g} s"
            named = f" (repetition named in {row['repetition named']})" if row["repetition named"] else ""
            lines.append(f"| {row['name'].replace(' x ', ' × ')}{named} | {counts} | {seconds} |")
    return "\n".join(lines) + "\n"


def with_tables(page, measured):
    """Return the text of a page with the counts of these measurements."""
    return _TABLES.sub(lambda match: match[1] + held_to(measured, match["part"]) + match[3], page)


def quoted(page, results):
    """Return the text of a page with its tables from these results."""

    def table(match):
        part = match["part"]
        chosen = [(question, one) for question, one in results if part in (None, question)]
        return match[1] + markdown(table_rows(chosen)) + match[3]

    return _QUOTED.sub(table, page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(quoted(path.read_text(), stored_results(RESULTS.read_text())))
    FOUND.write_text(with_frontier(FOUND.read_text(), json.loads(FRONTIER.read_text())))
    PROMISES.write_text(with_tables(PROMISES.read_text(), json.loads(TABLES.read_text())))
