"""Write the results pages of the documentation from a finished reproduction: `make docs-results`.

    python docs/results.py reference-output                         # the folder of `make reference`
    python docs/results.py FOLDER --scale smoke --out somewhere     # another scale, another place

Writes claims.md, claims.json, verdicts-changed.md, figures.md and figures/*.png, and the tables of the pages that quote
them (`QUOTING`).
Nothing is computed but the pictures.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parityscope.core.drawing import png, themed
from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.figure import SCALES, Finding, PaperFigure, Scale, own_size_of
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure
from parityscope.papers.rendering import (
    claims_markdown,
    counts_markdown,
    duration,
    figure_markdown,
    marked,
    plain,
    remarks,
    table_markdown,
    whose,
)
from parityscope.papers.results import stored_claims, stored_rows
from parityscope.records import Row, Store
from parityscope.records.row import PROCESSOR_SECONDS

PAGES = Path(__file__).parent
QUOTING = (
    PAGES / "what-we-found.md",
    PAGES / "explanation" / "chain-of-thought.md",
    PAGES / "explanation" / "what-does-it-take.md",
    *sorted((PAGES / "letters").glob("*.md")),
)
BLOCK = re.compile(r"(?<=<!-- (claims|figure):begin)([\w *-]*) -->\n.*?(?=<!-- \1:end -->)", flags=re.S)
BEFORE = PAGES / "verdicts_before.json"  # every verdict of release 0.2.0, and why some are others now
MOST_TABLE_ROWS = 60
INTRODUCTION = """\
Each statement stands as printed, with its hypotheses, beside what was tested and what of that is ours. Its verdict is
computed by a criterion that stands with it: what confirms it, what refutes it, and where the limit comes from. A
statement of several clauses is judged clause by clause. Nothing fails without a counterexample that a second route
confirms; a corrected form is called meant only if the authors' own text shows it; a figure that was not run at the
paper's own sizes stays open. `parityscope claims` checks all of them, `parityscope claims ID` shows one, `--replay`
computes its counterexample again ([how to check a claim](../how-to/check-a-claim.md)). That a criterion can come out
both ways, and that the rules are kept, is [tested on planted worlds](planted.md). Release 0.2.0 had other rules and
some other verdicts: [which changed, and why](verdicts-changed.md).
"""
CHANGED = """\
# Verdicts that changed

Release 0.2.0 called a statement *holds in part* where clauses were open, judged figures by rows of other sizes than the
paper's, and counted misprints as failures. Read again with the papers' texts, these verdicts are others now; all other
verdicts of that release are the same. Each statement stands on [its page](claims.md) as printed. Written by
`make docs-results`.
"""


def main() -> None:
    """Read the arguments and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce`")
    parser.add_argument("--scale", choices=SCALES, default="reference")
    parser.add_argument("--out", type=Path, default=PAGES / "results")
    arguments = parser.parse_args()
    if not (arguments.folder / "store" / "store.sqlite").exists():
        sys.exit(f"{arguments.folder} holds no rows: run `make reference` first")
    store = Store(arguments.folder / "store")
    claims = write_results(store, arguments.scale, arguments.out)
    if arguments.out == PAGES / "results":

        def findings(name: str) -> Sequence[Finding]:
            figure = load_figure(name)
            return figure.findings(stored_rows(figure, arguments.scale, store))

        for page in QUOTING:
            page.write_text(quoting(page.read_text(), claims, findings))


def quoting(page: str, claims: Sequence[ClaimNumbers], findings: Callable[[str], Sequence[Finding]]) -> str:
    """Return a page whose marked tables are what the claims and the figures say now.

    `<!-- claims:begin -->` counts verdicts, `<!-- claims:begin H1-lemma-8 W-lemma* -->` has a line for each of these
    claims (with a star: of all that begin so and are refuted as printed), `<!-- figure:begin H1-success -->` has
    the figure's findings. `<!-- claims:end -->` and `<!-- figure:end -->` end them.
    """

    def block(found: re.Match[str]) -> str:
        kind, names = found[1], found[2].split()
        if kind == "figure":
            rows = [[plain(one.paper), plain(one.here)] for name in names for one in findings(name)]
            table = table_markdown(["said", "computed here"], rows)
        elif names:
            shown = [claim for name in names for claim in claims if _is_named(claim, name)]
            table = table_markdown(["statement", "verdict", "measured"], [_line_of(claim) for claim in shown])
        else:
            table = counts_markdown(claims)
        return f"{found[2]} -->\n{table}\n"

    return BLOCK.sub(block, page)


def _is_named(claim: ClaimNumbers, name: str) -> bool:
    if name.endswith("*"):
        return claim.id.startswith(name[:-1]) and claim.verdict in ("fails", "in part", "misprint")
    return claim.id == name


def _line_of(claim: ClaimNumbers) -> list[str]:
    verdict = " · ".join([claim.verdict, *remarks(claim)])
    return [f"`{claim.id}`", plain(verdict), plain(claim.number)]


def write_results(store: Store, scale: Scale, out: Path) -> list[ClaimNumbers]:
    """Write every results page and return the claims; what the reproduction left out is an error that names it."""
    figures = [load_figure(name) for name in FIGURE_IDS]
    rows = {figure.ID: stored_rows(figure, scale, store) for figure in figures}
    unfinished = [one.ID for one in figures if len(rows[one.ID]) < len(one.CONFIGS[scale])]
    claims = stored_claims(scale, store)
    unchecked = {claim.id for claim in all_claims()} - {claim.id for claim in claims}
    if unfinished or unchecked:
        sys.exit(f"not finished at scale {scale}: {', '.join([*unfinished, *sorted(unchecked)])}")
    # The hours of rows at a paper's own size are no part of a reproduction's.
    usual = [row for one in figures for row in rows[one.ID] if row.config not in own_size_of(one)]
    origin = origin_of(usual, scale)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    stored = {**origin, "figures": list(FIGURE_IDS), "claims": [claim.model_dump() for claim in claims]}
    (out / "claims.json").write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    (out / "claims.md").write_text("\n".join(claims_page(claims, origin)) + "\n")
    (out / "verdicts-changed.md").write_text("\n".join(changed_page(claims)) + "\n")
    (out / "figures.md").write_text("\n".join(figures_page(figures, rows, claims, origin)) + "\n")
    for old in (out / "figures").glob("*.png"):
        old.unlink()
    for figure in figures:
        (out / "figures" / f"{figure.ID}.png").write_bytes(small_png(figure, rows[figure.ID]))
    return claims


def origin_of(rows: Sequence[Row[Any, Any]], scale: Scale) -> dict[str, Any]:
    """Return where the rows come from: scale, versions, the day of the last one, and the seconds they took."""
    last = max(rows, key=lambda row: row.finished)
    return {
        "scale": scale,
        "versions": dict(last.versions),
        "finished": datetime.fromtimestamp(last.finished, UTC).strftime("%Y-%m-%d"),
        "seconds": round(sum({str(row.config.row_config()): row.seconds for row in rows}.values())),
    }


def origin_lines(origin: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about where the numbers of a page come from, and a warning if they are not to be quoted."""
    versions = ", ".join(f"{name} {one}" for name, one in origin["versions"].items() if name != PROCESSOR_SECONDS)
    command = f"parityscope reproduce --scale {origin['scale']}"
    yield f"Written by `make docs-results` from `{command}`, finished on {origin['finished']} ({versions}).\n"
    if origin["scale"] == "smoke":
        yield '!!! warning "A trial run"'
        yield "    These numbers are of smoke scale, which only shows that everything runs. Do not quote them.\n"


def claims_page(claims: Sequence[ClaimNumbers], origin: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the page that lists every statement with its verdict, each with its evidence folded."""
    papers, others, ours = whose(claims)
    yield "# Every statement with its verdict\n"
    yield f"{papers} statements of the papers, {others} of a machine-written page on H2 and {ours} of our own."
    yield from origin_lines(origin)
    yield INTRODUCTION
    for verdict in ("fails", "in part", "misprint", "open"):
        named = [f"[{claim.id}](#{claim.id})" for claim in claims if claim.verdict == verdict]
        yield f"- *{verdict}*: {', '.join(named) or 'none'}"
    yield ""
    text = marked(claims_markdown(claims, origin["scale"], lambda name: f"figures.md#{name}"))
    yield re.sub(r"`docs/([\w/-]+)\.md(#[\w-]+)?`", r"[\1](../\1.md\2)", text)


def changed_page(claims: Sequence[ClaimNumbers]) -> Iterator[str]:
    """Yield the lines of the page that says which verdicts of release 0.2.0 changed, and which claims it did not have.

    A changed verdict without a reason in `verdicts_before.json` is an error that names it.
    """
    stored = json.loads(BEFORE.read_text())
    before, why = stored["verdicts"], stored["why"]
    changed = [
        one for one in claims if one.id in before and _verdict_of(one) != _RENAMED.get(before[one.id], before[one.id])
    ]
    if unsaid := [one.id for one in changed if one.id not in why]:
        sys.exit(f"say in {BEFORE.name} why the verdict changed: {', '.join(unsaid)}")
    yield CHANGED
    rows = [[_linked(one), before[one.id], _verdict_of(one), plain(f"{why[one.id]}.")] for one in changed]
    yield table_markdown(["statement", "in 0.2.0", "now", "why"], rows)
    yield f"\nNew since then: {', '.join(_linked(one) for one in claims if one.id not in before)}."


_RENAMED = {"holds in part": "in part"}


def _verdict_of(claim: ClaimNumbers) -> str:
    """Return a verdict with what stands beside it, but for lists of sizes."""
    beside = claim.qualifier.partition(" (")[0]
    return ", ".join([claim.verdict, *([beside] if beside else [])])


def _linked(claim: ClaimNumbers) -> str:
    return f"[{claim.id}](claims.md#{claim.id})"


def figures_page(
    figures: Sequence[PaperFigure],
    rows: Mapping[str, Sequence[Row[Any, Any]]],
    claims: Sequence[ClaimNumbers],
    origin: Mapping[str, Any],
) -> Iterator[str]:
    """Yield the lines of the page that shows every figure with its claims, findings, numbers and command."""
    yield "# Every figure\n"
    yield f"{len(figures)} figures, each drawn from stored rows in {duration(origin['seconds'])} of computing."
    yield from origin_lines(origin)
    for figure in figures:
        yield f"## {plain(figure.TITLE)} {{ #{figure.ID} }}\n"
        yield f"![{plain(figure.TITLE)}](figures/{figure.ID}.png)\n"
        yield figure_markdown(figure, rows[figure.ID], origin["scale"], claims, MOST_TABLE_ROWS)
        yield "" if figure.CONFIGS[origin["scale"]] else "([how](../how-to/language-models.md))\n"


def small_png(shown: PaperFigure, rows: Sequence[Row[Any, Any]]) -> bytes:
    """Return the figure as a PNG with a palette: readable at the width of a page, and small in a repository."""
    figure = themed(shown.plot, rows)
    return png(figure, dpi=min(150, round(1700 / figure.get_figwidth())))


if __name__ == "__main__":
    main()
