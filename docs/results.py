"""Write the results pages of the documentation from a finished reproduction: `make docs-results`.

    python docs/results.py reference-output                         # the folder of `make reference`
    python docs/results.py FOLDER --scale smoke --out somewhere     # another scale, another place

Writes claims.md, claims.json, figures.md and figures/*.png. Nothing is computed but the pictures.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from parityscope.core.drawing import png, themed
from parityscope.papers.claim import VERDICTS, Claim, ClaimNumbers
from parityscope.papers.figure import SCALES, PaperFigure, Scale, Table
from parityscope.papers.registry import FIGURE_IDS, PAPERS, all_claims, load_figure
from parityscope.papers.results import stored_claims, stored_rows
from parityscope.records import Row, Store

MARKS = {"holds": "✔", "holds in part": "◐", "fails": "✘", "not testable here": "–"}
MOST_TABLE_ROWS = 60
MOST_EVIDENCE = 6000  # characters; claims.json has the rest


def main() -> None:
    """Read the arguments and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce`")
    parser.add_argument("--scale", choices=SCALES, default="reference")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    if not (arguments.folder / "store" / "store.sqlite").exists():
        sys.exit(f"{arguments.folder} holds no rows: run `make reference` first")
    write_results(Store(arguments.folder / "store"), arguments.scale, arguments.out)


def write_results(store: Store, scale: Scale, out: Path) -> None:
    """Write every results page; what the reproduction left out is an error that names it."""
    figures = [load_figure(name) for name in FIGURE_IDS]
    rows = {figure.ID: stored_rows(figure, scale, store) for figure in figures}
    unfinished = [one.ID for one in figures if len(rows[one.ID]) < len(one.CONFIGS[scale])]
    claims = stored_claims(scale, store)
    unchecked = {claim.id for claim in all_claims()} - {claim.id for claim in claims}
    if unfinished or unchecked:
        sys.exit(f"not finished at scale {scale}: {', '.join([*unfinished, *sorted(unchecked)])}")
    origin = origin_of([row for found in rows.values() for row in found], scale)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    stored = {**origin, "figures": list(FIGURE_IDS), "claims": [claim.model_dump() for claim in claims]}
    (out / "claims.json").write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    (out / "claims.md").write_text("\n".join(claims_page(claims, origin)) + "\n")
    (out / "figures.md").write_text("\n".join(figures_page(figures, rows, origin)) + "\n")
    for old in (out / "figures").glob("*.png"):
        old.unlink()
    for figure in figures:
        (out / "figures" / f"{figure.ID}.png").write_bytes(small_png(figure, rows[figure.ID]))


def origin_of(rows: Sequence[Row[Any, Any]], scale: Scale) -> dict[str, Any]:
    """Return where the rows come from: scale, versions, the day of the last one, and the seconds they took."""
    last = max(rows, key=lambda row: row.finished)
    return {
        "scale": scale,
        "versions": dict(last.versions),
        "finished": datetime.fromtimestamp(last.finished, UTC).strftime("%Y-%m-%d"),
        "seconds": round(sum(row.seconds for row in rows)),
    }


def origin_sentence(origin: Mapping[str, Any]) -> str:
    """Return one sentence about where the numbers of a page come from."""
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    return (
        f"Written by `make docs-results` from `parityscope reproduce --scale {origin['scale']}`, "
        f"finished on {origin['finished']} ({versions})."
    )


def warning_about(origin: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning where the numbers are not meant to be quoted."""
    if origin["scale"] == "smoke":
        yield '!!! warning "A trial run"'
        yield "    These numbers are of smoke scale, which only shows that everything runs. Do not quote them.\n"


def plain(text: str) -> str:
    """Return text that markdown and HTML leave as it is, also in a cell of a table."""
    text = escape(text, quote=False)
    for character in "\\`*_[]|#~^":
        text = text.replace(character, f"&#{ord(character)};")
    return " ".join(text.split())


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a markdown table whose cells are markdown already."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def claims_page(claims: Sequence[ClaimNumbers], origin: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the page that lists every statement with its verdict."""
    listed = {claim.id: claim for claim in all_claims()}
    yield "# Every claim, checked\n"
    yield f"{len(claims)} statements, each with a verdict that was computed. {origin_sentence(origin)}\n"
    yield from warning_about(origin)
    yield "`parityscope claims` checks all of them, `parityscope claims ID` one; `--json` prints its numbers"
    yield "([how to check a claim](../how-to/check-a-claim.md)). *Fails* means: not true as printed, with a"
    yield "counterexample. *Holds in part* says in which part.\n"
    papers = [paper for paper in PAPERS if any(claim.paper == paper.name for claim in claims)]
    counts = [Counter(claim.verdict for claim in claims if claim.paper == paper.name) for paper in papers]
    total = [str(sum(count[verdict] for count in counts)) for verdict in VERDICTS]
    counted = [
        [paper.name, *(str(count[verdict]) for verdict in VERDICTS)]
        for paper, count in zip(papers, counts, strict=True)
    ]
    yield from table_lines(["", *(f"{MARKS[verdict]} {verdict}" for verdict in VERDICTS)], [*counted, ["all", *total]])
    for paper in papers:
        yield f"\n## {paper.name}: {paper.title}\n"
        own = [claim for claim in claims if claim.paper == paper.name]
        yield from table_lines(
            ["claim", "statement", "verdict", "what was computed"],
            [[f"[{one.id}](#{one.id})", plain(one.statement), marked(one), plain(one.number)] for one in own],
        )
        yield "\n### Evidence\n"
        for claim in own:
            yield from evidence_of(claim, listed[claim.id], origin["scale"])


def marked(claim: ClaimNumbers) -> str:
    """Return the verdict with its mark, kept on one line."""
    return f"{MARKS[claim.verdict]}&nbsp;{claim.verdict.replace(' ', '&nbsp;')}"


def evidence_of(checked: ClaimNumbers, claim: Claim, scale: Scale) -> Iterator[str]:
    """Yield a block that unfolds: how a claim was checked, by which command and code, and all its numbers."""
    numbers = readable_json(checked.evidence)
    if len(numbers) > MOST_EVIDENCE:
        numbers = numbers[:MOST_EVIDENCE] + "\n… (all of it: docs/results/claims.json)"
    figure = checked.figure
    code = claim.check.__module__.replace(".", "/")
    yield f'<details id="{checked.id}"><summary>{checked.id}: {checked.verdict}</summary>'
    yield f"<p>{escape(checked.statement)}</p>"
    yield f"<p>{escape(checked.how)}</p>"
    command = f"parityscope claims {checked.id} --json" + ("" if scale == "reference" else f" --scale {scale}")
    shown = f' · figure <a href="figures.html#{figure}">{figure}</a>' if figure else ""
    yield f"<p><code>{command}</code>, {duration(checked.seconds)} · code <code>src/{code}.py</code>{shown}</p>"
    yield f"<pre>{escape(numbers)}</pre>"
    yield "</details>\n"


def readable_json(value: Any) -> str:
    """Return JSON with six digits a number, and lists of numbers on one line."""
    text = json.dumps(rounded(value), indent=1, ensure_ascii=False)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)


def rounded(value: Any) -> Any:
    """Return numbers with six digits, also inside of lists and objects."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def figures_page(
    figures: Sequence[PaperFigure], rows: Mapping[str, Sequence[Row[Any, Any]]], origin: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the lines of the page that shows every figure with its findings, numbers and command."""
    yield "# Every figure\n"
    yield f"{len(figures)} figures, each drawn from stored rows. {origin_sentence(origin)}"
    yield f"All of them together took {duration(origin['seconds'])} of computing.\n"
    yield from warning_about(origin)
    for figure in figures:
        found = rows[figure.ID]
        seconds = sum(row.seconds for row in found)
        command = getattr(figure, "COMMAND", f"parityscope reproduce {figure.ID} --scale {origin['scale']}")
        yield f"## {plain(figure.TITLE)} {{ #{figure.ID} }}\n"
        yield f"![{plain(figure.TITLE)}](figures/{figure.ID}.png)\n"
        yield f"{plain(figure.TEXT)}\n"
        findings = [[plain(finding.paper), plain(finding.here)] for finding in figure.findings(found)]
        if findings:
            yield from table_lines(["the paper says", "computed here"], findings)
            yield ""
        yield from folded_table(figure.table(found))
        if figure.CONFIGS[origin["scale"]]:
            yield f"`{command}`, {duration(seconds)}\n"
        else:
            yield f"`{command}` ([how](../how-to/language-models.md))\n"


def folded_table(table: Table) -> Iterator[str]:
    """Yield a table that unfolds; of a long one its beginning."""
    if not table.rows:
        return
    shown = table.rows[:MOST_TABLE_ROWS]
    left_out = len(table.rows) - len(shown)
    name = "its numbers" + (f" (the first {len(shown)} of {len(table.rows)} rows)" if left_out else "")
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    yield f"<details><summary>{name}</summary>"
    yield f"<div><table><thead><tr>{head}</tr></thead><tbody>"
    for row in shown:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"
    yield "</details>\n"


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def small_png(shown: PaperFigure, rows: Sequence[Row[Any, Any]]) -> bytes:
    """Return the figure as a PNG with a palette: readable at the width of a page, and small in a repository."""
    figure = themed(shown.plot, rows)
    dots_per_inch = min(150, round(1700 / figure.get_figwidth()))
    image = Image.open(BytesIO(png(figure, dpi=dots_per_inch))).convert("RGB")
    buffer = BytesIO()
    image.quantize(colors=128, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
