"""The page of every claim, from stored verdicts; written by docs/results.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from page_parts import duration, html_table, origin_sentence, plain, table_lines, warning_about

from parityscope.papers.claim import Claim, ClaimNumbers, ClauseNumbers
from parityscope.papers.figure import Scale
from parityscope.papers.registry import PAPERS, all_claims, source_of
from parityscope.papers.wording import (
    IRREFUTABLE,
    MEANINGS,
    OURS,
    TALLIED,
    counterexample_of,
    entries,
    page_of,
    refuted_by,
    remarks,
    tallies,
)

MARKS = {"proved": "∎", "holds": "✔", "holds in part": "◐", "fails": "✘", "not testable here": "–", "open": "–"}
MOST_EVIDENCE = 6000  # characters; claims.json has the rest
INTRODUCTION = """\
Each verdict is computed by a criterion that stands with the statement: what confirms it, what refutes it, and where the
limit comes from. A statement of several clauses is judged clause by clause; a misprinted one as printed and, beside it,
as meant. `parityscope claims` checks all of them, `parityscope claims ID` shows one, `--replay` computes its
counterexample again by a second route ([how to check a claim](../how-to/check-a-claim.md)). That a criterion can come
out both ways is [tested on planted worlds](planted.md).
"""


def claims_page(claims: Sequence[ClaimNumbers], origin: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the page that lists every statement with its verdict."""
    listed = {claim.id: claim for claim in all_claims()}
    ours = sum(claim.paper == OURS for claim in claims)
    yield "# Every claim, checked\n"
    yield f"{len(claims) - ours} statements of the papers and {ours} of our own. {origin_sentence(origin)}\n"
    yield from warning_about(origin)
    yield INTRODUCTION
    yield from (f"- {MARKS[verdict]} **{verdict}**: {meaning}" for verdict, meaning in MEANINGS.items())
    yield f"- **{IRREFUTABLE}**: no outcome of the computation would have been *fails*; counted apart\n"
    yield from counts_table(claims)
    for paper in PAPERS:
        own = [claim for claim in claims if claim.paper == paper.name]
        if not own:
            continue
        yield f"\n## {paper.name}: {paper.title}\n"
        yield from table_lines(["claim", "statement", "verdict", "what was computed"], [row_of(one) for one in own])
        yield "\n### Evidence\n"
        for claim in own:
            yield from evidence_of(claim, listed[claim.id], origin["scale"])


def counts_table(claims: Sequence[ClaimNumbers]) -> Iterator[str]:
    """Yield the table of how many statements of each paper got which verdict."""
    yield from table_lines(["", *TALLIED], [[tally.name, *tally.cells()] for tally in tallies(claims)])


def row_of(claim: ClaimNumbers) -> list[str]:
    """Return a claim's row in the table of its paper."""
    return [
        f"[{claim.id}](#{claim.id})<br><small>{plain(claim.where)}</small>",
        f"{plain(claim.statement)}<br><small>refuted if {plain(refuted_by(claim))}</small>",
        "<br>".join([marked(claim.verdict), *(f"<small>{remark}</small>" for remark in remarks(claim))]),
        f"{plain(claim.number)}<br><small>tried: {plain(claim.tried)}</small>",
    ]


def marked(verdict: str) -> str:
    """Return a verdict with its mark, kept on one line."""
    return f"{MARKS[verdict]}&nbsp;{verdict.replace(' ', '&nbsp;')}"


def evidence_of(checked: ClaimNumbers, claim: Claim, scale: Scale) -> Iterator[str]:
    """Yield a block that unfolds: how a claim was judged, its counterexample, by which command and code, numbers."""
    numbers = readable_json({name: one for name, one in checked.evidence.items() if name != "counterexample"})
    if len(numbers) > MOST_EVIDENCE:
        numbers = numbers[:MOST_EVIDENCE] + "\n… (all of it: docs/results/claims.json)"
    beside = "".join(f" ({remark})" for remark in remarks(checked))
    yield f'<details id="{checked.id}"><summary>{checked.id}: {checked.verdict}{beside}</summary>'
    yield f"<p>{escape(checked.statement)} <em>({escape(checked.where)})</em></p>"
    yield from clauses_table([clause for clause in checked.clauses if not clause.corrected])
    if checked.corrected is not None:
        yield f"<p>As meant: {escape(checked.corrected.statement)} {marked(checked.corrected.verdict)}</p>"
        yield from clauses_table([clause for clause in checked.clauses if clause.corrected])
    yield f"<p>{escape(checked.how)} Tried: {escape(checked.tried)}.</p>"
    if checked.proof is not None:
        page, _, heading = page_of(checked.proof).removeprefix("docs/").partition("#")
        address = f"../{page.removesuffix('.md')}.html" + (f"#{heading}" if heading else "")
        yield f'<p>Proof: <a href="{address}">{page.removesuffix(".md")}</a></p>'
    command = f"parityscope claims {checked.id}" + ("" if scale == "demo" else f" --scale {scale}")
    figure = checked.figure
    shown = f' · figure <a href="figures.html#{figure}">{figure}</a>' if figure else ""
    code = f"src/parityscope/{source_of(checked.id)}"
    yield f"<p><code>{command}</code>, {duration(checked.seconds)} · code <code>{code}</code>{shown}</p>"
    point = counterexample_of(checked)
    if point is not None:
        second = f"; by a second route: <code>{command} --replay</code>" if claim.replay is not None else ""
        yield f"<p>A counterexample{second}</p>"
        lines = [f"{'  ' * one.depth}{one.name}: {one.value}".rstrip(": ").replace("\n", " ") for one in entries(point)]
        yield f"<pre>{escape(chr(10).join(lines))}</pre>"
    yield f"<p>Numbers</p><pre>{escape(numbers)}</pre>"
    yield "</details>\n"


def clauses_table(clauses: Sequence[ClauseNumbers]) -> Iterator[str]:
    """Yield the clauses of a statement with what was measured, what confirms and what refutes each, and why."""
    rows = [
        [
            escape(clause.says),
            escape(f"{clause.quantity}: {clause.measured}"),
            f'<span class="limit">{escape(clause.holds_if)}</span>',
            f'<span class="limit">{escape(clause.refuted_if or "nothing computed here")}</span>',
            escape(clause.source),
            marked(clause.verdict),
        ]
        for clause in clauses
    ]
    yield from html_table(["clause", "measured", "holds if", "refuted if", "the limit is", ""], rows)


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
