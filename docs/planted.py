"""Write the page of planted worlds from the worlds that the tests use: `make docs-results`.

    python docs/planted.py                       # docs/results/planted.md
    python docs/planted.py --out somewhere.md

Every claim is checked twice at smoke scale, in a world where its statement is false and in one where it is true.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from parityscope.papers.claim import Claim, ClaimNumbers
from parityscope.papers.registry import PAPERS, all_claims
from parityscope.papers.rendering import plain, table_markdown

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness.planted import RULES, all_planted, verdict_in

if TYPE_CHECKING:
    from harness.planted import Planted

INTRODUCTION = """\
# Planted worlds

A check that can only say *holds* says nothing. So every criterion is tried in two planted worlds: one in which the
statement is plainly false, where it must be refuted, and one in which it is plainly true, where it must say *holds*.
What is planted is what the statement is about (a constant, the model, the data), never the criterion. It is planted
in the first route of the computation: where a second route is not fooled, or where there is none, the statement is
not said to fail but stays open, with the refutation shown. A misprinted statement is judged as printed. The tests run
the same worlds (`tests/papers/*/planted.py`); this page was written by `make docs-results`, at smoke scale.
"""


def main() -> None:
    """Read the arguments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "planted.md")
    arguments = parser.parse_args()
    arguments.out.write_text("\n".join(planted_page(all_claims(), all_planted())) + "\n")


def planted_page(claims: list[Claim], planted: Mapping[str, Planted]) -> Iterator[str]:
    """Yield the lines of the page: both worlds of every claim with their verdicts, and claims that have none."""
    yield INTRODUCTION
    for paper in PAPERS:
        own = [claim for claim in claims if claim.paper == paper.name and claim.id in planted]
        if own:
            yield f"## {paper.name}: {paper.title}\n"
            header = ["claim", "planted violation", "verdict under it", "planted truth", "verdict under it"]
            yield table_markdown(header, [row_of(claim, planted[claim.id]) for claim in own])
            yield ""
    yield "## The rules\n"
    yield "What may be called how, by a planted claim for each rule.\n"
    yield table_markdown(["planted", "verdict"], [[plain(rule.what), plain(said_of(rule.found()))] for rule in RULES])
    yield ""
    apart = [claim for claim in claims if not claim.refutable]
    yield "## What cannot be refuted here\n"
    if apart:
        yield f"For {len(apart)} of {len(claims)} statements no violation can be planted. They are counted apart.\n"
        yield table_markdown(["claim", "clause", "why nothing here refutes it"], list(reasons(apart)))
    else:
        yield f"Nothing: each of the {len(claims)} statements can be refuted."


def row_of(claim: Claim, worlds: Planted) -> list[str]:
    """Return a claim's row; the verdicts are computed now."""
    false, true = (verdict_in(claim.id, planted) for planted in ("false", "true"))
    return [linked(claim), plain(worlds.false.what), false, plain(worlds.true.what), true]


def said_of(found: ClaimNumbers) -> str:
    """Return a verdict with its qualifier."""
    return f"{found.verdict}, {found.qualifier}" if found.qualifier else found.verdict


def reasons(claims: list[Claim]) -> Iterator[list[str]]:
    """Yield a row for every clause that nothing computed here refutes."""
    for claim in claims:
        for clause in claim.clauses:
            if clause.refuting is None:
                yield [linked(claim), plain(clause.says), plain(clause.source)]


def linked(claim: Claim) -> str:
    """Return a claim's id as a link to its evidence."""
    return f"[{claim.id}](claims.md#{claim.id})"


if __name__ == "__main__":
    main()
