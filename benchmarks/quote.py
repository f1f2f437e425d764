"""Write the stored measurements into the pages that quote them; `make bench` measures and then runs this.

Run: python benchmarks/quote.py
"""

import re
from pathlib import Path

from parityscope.benchmarking import stored_results, table_rows

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGES = (ROOT / "README.md", ROOT / "docs" / "results" / "benchmarks.md")
# What a page quotes stands between these two; `bench:begin headline` quotes only what HEADLINE names.
_QUOTED = re.compile(r"(<!-- bench:begin(?: (?P<part>\w+))? -->\n).*?(<!-- bench:end -->)", flags=re.S)
HEADLINE = {
    ("risk", "split n=20"),
    ("risk", "split n=20, per run of 64"),
    ("risk", "split n=24"),
    ("cot", "1 layer, CoT"),
    ("cot", "1 layer, no CoT"),
    ("cot", "4 layers × 4 heads, CoT"),
    ("sweep", "packed, per training"),
    ("sweep", "two workers"),
}


def markdown(rows):
    lines = ["| question | what | ratio | ours | the other |", "|---|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def quoted(page, results):
    """Return the text of a page with its tables from these results."""

    def table(match):
        chosen = [one for one in results if match["part"] is None or (one[0], one[1].name) in HEADLINE]
        return match[1] + markdown(table_rows(chosen)) + match[3]

    return _QUOTED.sub(table, page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(quoted(path.read_text(), stored_results(RESULTS.read_text())))
