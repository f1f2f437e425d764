"""Claims and figures in words and as Markdown, which terminal, documentation, report and explorer show alike."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml

from parityscope.papers import own
from parityscope.papers.claim import WHERE_TESTED, ClaimNumbers, ClauseNumbers, CorrectedNumbers
from parityscope.papers.criterion import CLAUSE_VERDICTS, VERDICTS, ClauseVerdict, Verdict
from parityscope.papers.figure import PaperFigure, Scale, own_size_of, verdicts_on
from parityscope.papers.registry import CLAIM_IDS, PAPERS, source_of
from parityscope.records import Row

MEANINGS: Mapping[Verdict, str] = {
    "proved": "there is a written proof, and computation agrees with it",
    "holds": "we tried to refute it within its hypotheses and did not succeed, which is no proof",
    "misprint": "false as printed, and the form that the authors' own text shows they meant holds",
    "in part": "one clause holds and another fails",
    "fails": "refuted within its own hypotheses by a counterexample that a second route confirms",
    "open": "what was computed decides nothing",
}
_CLAUSES: Mapping[ClauseVerdict, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "open": ("is left open", "are left open"),
    "unconfirmed": ("is refuted by one route only", "are refuted by one route only"),
    "seen": ("is seen", "are seen"),
    "not seen": ("is not seen", "are not seen"),
}
AS_TESTED = (
    "the statement's own hypotheses cannot be met on a machine, or nothing computed could refute a clause, which is "
    "then seen or left open; it was tested as its entry says"
)
IRREFUTABLE = "cannot be refuted here"
OURS = own.PAPER.name
_MOST_CLAUSES, _MOST_NUMBERS, _MOST_ROWS = 3, 24, 12
_MOST_EVIDENCE = 6000  # characters; `claims --json` has the rest


class Tally(NamedTuple):
    """How many statements of a paper got which verdict; those that cannot be refuted here are counted apart.

    >>> Tally("H1", {"holds": 2, "fails": 1}, apart=1).cells()
    ['4', '0', '2', '0', '0', '1', '0', '1']
    """

    name: str
    verdicts: Mapping[Verdict, int]  # of statements that something computed here could have refuted
    apart: int

    @property
    def statements(self) -> int:
        """How many there are."""
        return sum(self.verdicts.values()) + self.apart

    def cells(self) -> list[str]:
        """Return the row of a table with the columns `TALLIED`."""
        return [str(count) for count in (self.statements, *(self.verdicts.get(one, 0) for one in VERDICTS), self.apart)]

    @classmethod
    def of(cls, name: str, claims: Sequence[ClaimNumbers]) -> Tally:
        """Count claims."""
        refutable = [claim for claim in claims if claim.refutable]
        return cls(name, Counter(claim.verdict for claim in refutable), len(claims) - len(refutable))


TALLIED = ("statements", *VERDICTS, IRREFUTABLE)


def tallies(claims: Sequence[ClaimNumbers]) -> list[Tally]:
    """Count the claims of each paper, of all papers together, and apart from them others' words and our own."""
    apart = {name: ids for paper in PAPERS for name, ids in paper.not_its_own.items()}
    authors = [claim for claim in claims if not any(claim.id in ids for ids in apart.values())]
    by_paper = {paper.name: [claim for claim in authors if claim.paper == paper.name] for paper in PAPERS}
    ours = by_paper.pop(OURS)
    found = [Tally.of(name, own) for name, own in by_paper.items() if own]
    if len(found) > 1:
        found.append(Tally.of("the papers", [claim for own in by_paper.values() for claim in own]))
    others = {name: [claim for claim in claims if claim.id in ids] for name, ids in apart.items()} | {"our own": ours}
    return [*found, *(Tally.of(name, some) for name, some in others.items() if some)]


def whose(claims: Sequence[ClaimNumbers]) -> tuple[int, int, int]:
    """Return how many statements are the papers', others' words on them, and our own.

    >>> whose([])
    (0, 0, 0)
    """
    ours = sum(claim.paper == OURS for claim in claims)
    quoted = {one for paper in PAPERS for ids in paper.not_its_own.values() for one in ids}
    others = sum(claim.id in quoted for claim in claims)
    return len(claims) - ours - others, others, ours


def meaning_of(claim: ClaimNumbers) -> str:
    """Return what a claim's verdict means; where its clauses differ, also how many are on each side."""
    counts: Counter[str] = Counter(clause.verdict for clause in claim.clauses if not clause.corrected)
    tested = claim.verdict == "holds" and claim.qualifier.endswith(WHERE_TESTED)
    meaning = f"{WHERE_TESTED}: {AS_TESTED}, and not refuted" if tested else MEANINGS[claim.verdict]
    if len(counts) == 1 and claim.verdict != "open":
        return meaning
    said = [f"{counts[side]} {words[counts[side] > 1]}" for side, words in _CLAUSES.items() if counts[side]]
    return f"{meaning}: of {counts.total()} clauses {', '.join(said)}"


def remarks(claim: ClaimNumbers) -> list[str]:
    """Return what stands beside a verdict: its qualifier, that nothing can refute it, how a corrected form fares."""
    beside = [*([claim.qualifier] if claim.qualifier else []), *([] if claim.refutable else [IRREFUTABLE])]
    if claim.corrected is not None:
        beside.append(f"{_corrected_name(claim.corrected)}: {_corrected_verdict(claim.corrected)}")
    return beside


def _corrected_verdict(corrected: CorrectedNumbers) -> str:
    return ", ".join(filter(None, (corrected.verdict, corrected.qualifier)))


def _corrected_name(corrected: CorrectedNumbers) -> str:
    return corrected.reading or ("as meant" if corrected.as_meant else "what is true instead (ours)")


def refuted_by(claim: ClaimNumbers) -> str:
    """Return in short what would refute the statement as printed."""
    printed = [clause for clause in claim.clauses if not clause.corrected]
    refuting = [f"{clause.quantity}: {clause.refuted_if}" for clause in printed if clause.refuted_if is not None]
    more = len(refuting) - _MOST_CLAUSES
    shown = refuting if more <= 1 else [*refuting[:_MOST_CLAUSES], f"one of {more} more"]
    return "; or ".join(shown) or "nothing that is computed here"


def counterexample_of(claim: ClaimNumbers) -> Mapping[str, Any] | None:
    """Return the points at which a claim was refuted by the quantity that fails there, if it was."""
    return claim.evidence.get("counterexample")


def point_lines(values: Mapping[str, Any]) -> list[str]:
    """Return nested values as lines that people read, names on the left; a table of numbers has one line per row."""
    entries = list(_entries(values))
    width = max((len(name) for name, value in entries if value), default=0) + 2
    lines = []
    for name, value in entries:
        first, *rest = value.split("\n")
        lines += [f"{name:<{width}}{first}".rstrip(), *(" " * width + line for line in rest)]
    return lines


def _entries(values: Mapping[str, Any], indent: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = indent + key.replace("_", " ")
        if isinstance(value, Mapping):
            yield name, ""
            yield from _entries(value, indent + "  ")
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            for place, one in enumerate(value, start=1):
                yield from _entries({f"{key} {place} of {len(value)}": one}, indent)
        else:
            yield name, _written(value)


def _written(value: Any) -> str:
    """Return a number, a text, a list or a table of numbers as people write them, the beginning of a long one.

    >>> _written([0, 1, 1]), _written(True), _written(None), _written(list(range(40)))
    ('(0, 1, 1)', 'yes', 'none', '(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 40 in all)')
    """
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if not isinstance(value, list | tuple):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    table = any(isinstance(one, list | tuple) for one in value)
    most = _MOST_ROWS if table else _MOST_NUMBERS
    written = [_written(one) for one in (value if len(value) <= most else value[:_MOST_ROWS])]
    if len(value) > most:
        written.append(f"… {len(value)} in all")
    return "\n".join(written) if table else f"({', '.join(written)})"


def page_of(proof: str) -> str:
    """Return the file of the documentation that has a proof, with the heading if one is named."""
    path, mark, heading = proof.removeprefix("docs").lstrip(":/ ").partition("#")
    return f"docs/{path.removesuffix('.md')}.md{mark}{heading}"


# Markdown. A verdict is set in emphasis and nothing else is, so that each medium can give it a colour of its own.


def plain(text: str) -> str:
    """Return text that Markdown and HTML leave as it is, also in a cell of a table."""
    special = {ord(character): f"&#{ord(character)};" for character in "\\`*_[]|#~^"}
    return " ".join(escape(text, quote=False).translate(special).split())


def table_markdown(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---") -> str:
    """Return a table whose cells are Markdown already; `align` is how all columns but the first are set.

    >>> print(table_markdown(["", "holds"], [["H1", "2"]], "--:"))
    |  | holds |
    |---|--:|
    | H1 | 2 |
    """
    rule = "|---" + f"|{align}" * (len(header) - 1) + "|"
    return "\n".join([f"| {' | '.join(header)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])


def counts_markdown(claims: Sequence[ClaimNumbers]) -> str:
    """Return the table of how many statements of each paper got which verdict.

    >>> counts_markdown([]).count("|")
    20
    """
    return table_markdown(["", *TALLIED], [[tally.name, *tally.cells()] for tally in tallies(claims)], "--:")


def claim_markdown(claim: ClaimNumbers) -> str:
    """Return a claim in short: its verdict, where it stands, as printed and as tested, what came out, what refutes it.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> print(claim_markdown(check(*named_claims(["H1-lemma-15"]), Context("smoke"))).partition("\\n")[0])
    **H1-lemma-15** *holds* · Appendix A, Lemma 15
    """
    beside = "".join(f" · {plain(remark)}" for remark in remarks(claim))
    said = [f"**{claim.id}** *{claim.verdict}*{beside} · {plain(claim.where)}"]
    if claim.printed:
        under = f" ({plain(claim.hypotheses)})" if claim.hypotheses else ""
        said.append(f"Printed: “{plain(claim.printed)}”{under}")
    said.append(f"{'Tested: ' if claim.printed else ''}{plain(claim.statement)}")
    lines = [f"ours: {claim.ours}"] if claim.ours else []
    lines += [f"the paper's sizes: {claim.sizes}"] if claim.sizes else []
    lines += [f"measured: {claim.number}", f"refuted if {refuted_by(claim)}", f"tried: {claim.tried}"]
    said.append("\n".join(f"- {plain(line)}" for line in lines))
    return "\n\n".join(said)


def judgement_markdown(
    claim: ClaimNumbers, scale: Scale, figure_address: Callable[[str], str | None] = lambda name: None
) -> str:
    """Return how a claim was judged: clause by clause, as printed and as corrected, how computed, and a counterexample.

    Its figure is a link where it has an address, and otherwise the command that draws it.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> judged = judgement_markdown(check(*named_claims(["H1-lemma-14-derivative"]), Context("smoke")), "smoke")
    >>> "`parityscope claims H1-lemma-14-derivative --replay --scale smoke`" in judged
    True
    """
    parts = [f"**Verdict**: *{claim.verdict}*, {meaning_of(claim)}.", _clauses(claim, corrected=False)]
    if not claim.refutable:
        parts[0] += f" It {IRREFUTABLE}: no outcome of this computation would have spoken against it."
    if claim.corrected is not None:
        name = _corrected_name(claim.corrected)
        name = name[:1].upper() + name[1:]
        why = f" Why it is meant: {plain(claim.misprint)}" if claim.misprint else ""
        beside = f", {claim.corrected.qualifier}" if claim.corrected.qualifier else ""
        meant = f"**{name}**: *{claim.corrected.verdict}*{beside}. {plain(claim.corrected.statement)}{why}"
        parts += [meant, _clauses(claim, corrected=True)]
    parts.append(f"**How it was computed**: {plain(claim.how)}")
    parts += [
        f"**Known through**: {plain(one.provenance)}" for one in PAPERS if one.name == claim.paper and one.provenance
    ]
    point = counterexample_of(claim)
    if point is not None:
        parts += ["**Why: a counterexample**", "\n".join(f"    {line}" for line in point_lines(point))]
    parts.append("\n".join(f"- {line}" for line in _further(claim, scale, figure_address)))
    return "\n\n".join(parts)


def _further(claim: ClaimNumbers, scale: Scale, figure_address: Callable[[str], str | None]) -> Iterator[str]:
    """Yield where to go on from here; a command keeps to a line of its own."""
    option = "" if scale == "demo" else f" --scale {scale}"
    if counterexample_of(claim) is not None:
        yield f"replay: `parityscope claims {claim.id} --replay{option}`"
    yield f"all values: `parityscope claims {claim.id} --json{option}`"
    if claim.figure is not None:
        address = figure_address(claim.figure)
        drawn = f"`parityscope reproduce {claim.figure}{option}`" if address is None else f"[{claim.figure}]({address})"
        yield f"figure: {drawn}"
    if claim.proof is not None:
        yield f"proof: `{page_of(claim.proof)}`"
    code = f" by `src/parityscope/{source_of(claim.id)}`" if claim.id in CLAIM_IDS else ""
    yield f"computed in {duration(claim.seconds)} at scale {scale}{code}"


def _clauses(claim: ClaimNumbers, *, corrected: bool) -> str:
    chosen = [clause for clause in claim.clauses if clause.corrected == corrected]
    return "\n".join(f"{number}. {_clause(clause)}" for number, clause in enumerate(chosen, start=1))


def _clause(clause: ClauseNumbers) -> str:
    refuting = "nothing that is computed here" if clause.refuted_if is None else clause.refuted_if
    limits = f"holds if {clause.holds_if}, refuted if {refuting}; {clause.source}"
    measured = f"{plain(clause.quantity)}: **{plain(clause.measured)}**"
    return f"{plain(clause.says)}: *{clause.verdict}*; {measured} ({plain(limits)})"


def _numbers_markdown(claim: ClaimNumbers) -> str:
    """Return the numbers of a claim but for its counterexample: six digits each, lists of numbers on one line.

    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> checked = check(*named_claims(["H1-lemma-14-derivative"]), Context("smoke"))
    >>> _numbers_markdown(checked.model_copy(update={"evidence": {"n": [4, 5], "risk": 1 / 3}}))
    '    {\\n     "n": [ 4, 5 ],\\n     "risk": 0.333333\\n    }'
    """
    evidence = {name: one for name, one in claim.evidence.items() if name != "counterexample"}
    text = json.dumps(_rounded(evidence), indent=1, ensure_ascii=False)
    text = re.sub(r"\[[^\[\]{}]*\]|{[^\[\]{}]*}", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)
    if len(text) > _MOST_EVIDENCE:
        text = f"{text[:_MOST_EVIDENCE]}\n… (`parityscope claims {claim.id} --json` prints all)"
    return "\n".join(f"    {line}" for line in text.splitlines())


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def claims_markdown(
    claims: Sequence[ClaimNumbers], scale: Scale, figure_address: Callable[[str], str | None] = lambda name: None
) -> str:
    """Return a page of claims: how many got which verdict, what those mean, and each claim with its details folded.

    >>> claims_markdown([], "demo").splitlines()[3]
    '- *proved* there is a written proof, and computation agrees with it'
    """
    meanings = [f"- *{verdict}* {meaning}" for verdict, meaning in MEANINGS.items()]
    apart = f"- *{IRREFUTABLE}* counted apart: no outcome of the computation would have spoken against it"
    parts = [counts_markdown(claims), "\n".join([*meanings, f"- *holds*, {WHERE_TESTED}: {AS_TESTED}", apart])]
    for paper in PAPERS:
        of_paper = [claim for claim in claims if claim.paper == paper.name]
        if of_paper:
            parts.append(f"## {paper.name}: {plain(paper.title)}")
            parts += [plain(paper.provenance)] if paper.provenance else []
        for claim in of_paper:
            parts += [
                f'<article class="claim" id="{claim.id}" markdown="1">',
                claim_markdown(claim),
                _folded("how it was tested", judgement_markdown(claim, scale, figure_address)),
                _folded("its values", _numbers_markdown(claim)),
                "</article>",
            ]
    return "\n\n".join(parts)


def figure_markdown(
    figure: PaperFigure,
    rows: Sequence[Row[Any, Any]],
    scale: Scale,
    claims: Sequence[ClaimNumbers] = (),
    most_rows: int | None = None,
) -> str:
    """Return what stands below a figure: its text, claims and findings beside the paper's words, numbers and command.

    >>> from parityscope.papers.registry import load_figure
    >>> figure_markdown(load_figure("H1-success"), [], "smoke").splitlines()[-1]
    '`parityscope reproduce H1-success --scale smoke`, 0.0 s'
    """
    parts = [plain(figure.TEXT)]
    said = [*verdicts_on(figure.ID, claims), *(figure.findings(rows) if rows else ())]
    findings = [[plain(finding.paper), plain(finding.here)] for finding in said]
    if findings:
        parts.append(table_markdown(["the paper says", "computed here"], findings))
    header, lines = figure.table(rows)
    if lines:
        shown = [[plain(cell) for cell in line] for line in lines[:most_rows]]
        part = f" (the first {len(shown)} of {len(lines)} rows)" if len(shown) < len(lines) else ""
        parts.append(_folded(f"its values{part}", table_markdown([plain(cell) for cell in header], shown)))
    command = getattr(figure, "COMMAND", f"parityscope reproduce {figure.ID} --scale {scale}")
    planned = own_size_of(figure)
    own = [row for row in rows if row.config in planned]  # compared, since a config may hold what has no hash
    usual = sum(row.seconds for row in rows) - sum(row.seconds for row in own)
    apart = f"; {len(own)} of {len(planned)} trainings of the paper's own size"
    apart += f" are there (`{getattr(figure, 'OWN_COMMAND', '')}`)"
    parts.append(f"`{command}`, {duration(usual)}{apart if planned else ''}")
    return "\n\n".join(parts)


def _folded(summary: str, markdown: str) -> str:
    """Return Markdown that unfolds where there is HTML.

    >>> _folded("more", "*fails*").splitlines()[-1]
    '</details>'
    """
    return f'<details markdown="1"><summary>{summary}</summary>\n\n{markdown}\n\n</details>'


def duration(seconds: float) -> str:
    """Return a duration as people say it.

    >>> duration(0.4), duration(75), duration(7000)
    ('0.4 s', '1 min 15 s', '1 h 56 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def marked(markdown: str) -> str:
    """Return Markdown whose verdicts are HTML that a style sheet can colour.

    >>> marked("**H1-lemma-14** *fails*")
    '**H1-lemma-14** <span class="verdict fails">fails</span>'
    """
    verdicts = "|".join(dict.fromkeys((*VERDICTS, *CLAUSE_VERDICTS, IRREFUTABLE)))
    as_span = r'<span class="verdict {}">\1</span>'
    return re.sub(
        rf"(?<!\*)\*({verdicts})\*(?!\*)", lambda it: it.expand(as_span.format(it[1].replace(" ", "-"))), markdown
    )


def to_html(markdown: str) -> str:
    """Return the HTML of what stands above: verdicts are marked, tables may be scrolled.

    A browser breaks 6e-16 after the hyphen unless a word joiner follows, so numbers in texts get one.

    >>> to_html("off by 6e-16")
    '<p>off by 6e-\u206016</p>\\n'
    """
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.add_render_rule(
        "text", lambda _, tokens, place, *__: escapeHtml(re.sub(r"(?<=\de-)(?=\d)", "\u2060", tokens[place].content))
    )
    html = parser.render(marked(markdown))
    return html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
