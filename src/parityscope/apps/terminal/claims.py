"""Claims on a terminal: many as blocks with counts below, one as a page, counterexamples replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from parityscope.papers.claim import Claim, ClaimNumbers, ClauseNumbers, Replayed
from parityscope.papers.figure import Scale
from parityscope.papers.wording import (
    IRREFUTABLE,
    TALLIED,
    counterexample_of,
    entries,
    meaning_of,
    page_of,
    refuted_by,
    remarks,
    tallies,
)

_STYLE = {
    "proved": "green",
    "holds": "green",
    "holds in part": "yellow",
    "fails": "red",
    "not testable here": "dim",
    "open": "dim",
}
_WIDEST = 118  # longer lines are hard to read
_VERDICT_COLUMN = len("fails · as meant: holds") + 2


def show_claims(console: Console, checked: Sequence[ClaimNumbers]) -> None:
    """Print a block for every claim, and how many got which verdict.

    >>> import io
    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> console = Console(file=io.StringIO(), width=100)
    >>> show_claims(console, [check(*named_claims(["H1-lemma-14-derivative"]), Context("smoke"))])
    >>> console.file.getvalue().splitlines()[0].rstrip()
    'H1-lemma-14-derivative  fails · as meant: holds  Appendix, proof of Lemma 14'
    """
    names = max((len(claim.id) for claim in checked), default=0)
    for claim in checked:
        _print(console, Group(_heading(claim, names), Padding(_in_short(claim), (0, 0, 1, 2))))
    _print(console, counts_table(checked))
    apart = ", ".join(f"{claim.id} ({claim.verdict})" for claim in checked if not claim.refutable)
    if apart:
        _print(console, Text(f"\n{IRREFUTABLE}, counted apart: {apart}"))


def _heading(claim: ClaimNumbers, names: int) -> Text:
    verdict = _verdict(claim)
    room = " " * max(2, _VERDICT_COLUMN - len(verdict))
    return Text.assemble((claim.id.ljust(names + 2), "bold"), verdict, room, (claim.where, "dim"))


def _verdict(claim: ClaimNumbers) -> Text:
    return Text(" · ").join([Text(claim.verdict, _STYLE[claim.verdict]), *map(Text, remarks(claim))])


def _in_short(claim: ClaimNumbers) -> RenderableType:
    lines = [("found", claim.number), ("refuted if", refuted_by(claim)), ("tried", claim.tried)]
    return Group(Text(claim.statement), _named(lines))


def _named(lines: Sequence[tuple[str, str | Text]]) -> Table:
    """Return values beside their names."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in lines:
        table.add_row(Text(name, "dim"), value if isinstance(value, Text) else Text(value))
    return table


def counts_table(checked: Sequence[ClaimNumbers]) -> Table:
    """Return how many statements of each paper got which verdict.

    >>> table = counts_table([])
    >>> [str(column.header) for column in table.columns][1:3]
    ['statements', 'proved']
    """
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("")
    for title in TALLIED:
        table.add_column(title, justify="right")
    for tally in tallies(checked):
        table.add_row(tally.name, *tally.cells())
    return table


def show_claim(console: Console, claim: Claim, checked: ClaimNumbers, scale: Scale) -> None:
    """Print everything about one claim as a page to read.

    >>> import io
    >>> from parityscope.papers.claim import Context, check
    >>> from parityscope.papers.registry import named_claims
    >>> (claim,), console = named_claims(["H1-lemma-14-derivative"]), Console(file=io.StringIO(), width=100)
    >>> show_claim(console, claim, check(claim, Context("smoke")), "smoke")
    >>> "parityscope claims H1-lemma-14-derivative --replay --scale smoke" in console.file.getvalue()
    True
    """
    _print(console, Text.assemble((checked.id, "bold"), f"  {checked.paper}, {checked.where}\n"))
    _print(console, Padding(Text(checked.statement), (0, 0, 1, 2)))
    for title, content in _sections(checked):
        _print(console, Text(title, "bold"))
        _print(console, Padding(content, (0, 0, 1, 2)))
    _print(console, _named([*_further(claim, checked, scale)]))


def _sections(checked: ClaimNumbers) -> Iterator[tuple[str, RenderableType]]:
    verdict = Text.assemble((checked.verdict, _STYLE[checked.verdict]), f": {meaning_of(checked)}.")
    if not checked.refutable:
        verdict.append(f" It {IRREFUTABLE}: no outcome of this computation would have been “fails”.")
    yield "Verdict", verdict
    printed = [clause for clause in checked.clauses if not clause.corrected]
    yield ("Clause" if len(printed) == 1 else f"{len(printed)} clauses"), _clauses(printed)
    if checked.corrected is not None:
        meant = checked.corrected
        said = Text.assemble(f"{meant.statement}\n", (meant.verdict, _STYLE[meant.verdict]), "\n")
        yield "As meant", Group(said, _clauses([clause for clause in checked.clauses if clause.corrected]))
    yield "How it was computed", Text(checked.how)
    yield "What came out", Text(checked.number)
    yield "How hard it was attacked", Text(checked.tried)
    point = counterexample_of(checked)
    if point is not None:
        yield "Why: a counterexample", _named([("  " * one.depth + one.name, one.value) for one in entries(point)])


def _clauses(clauses: Sequence[ClauseNumbers]) -> Group:
    blocks: list[RenderableType] = []
    for number, clause in enumerate(clauses, start=1):
        mark = f"{number}. " if len(clauses) > 1 else ""
        head = Text.assemble(f"{mark}{clause.says}: ", (clause.verdict, _STYLE[clause.verdict]))
        refuting = "nothing that is computed here" if clause.refuted_if is None else clause.refuted_if
        limits = f"{clause.holds_if}; refuted if {refuting}"
        lines = [("measured", f"{clause.quantity}: {clause.measured}"), ("holds if", limits), ("source", clause.source)]
        blocks.append(Group(head, Padding(_named(lines), (0, 0, 1 if number < len(clauses) else 0, len(mark)))))
    return Group(*blocks)


def _further(claim: Claim, checked: ClaimNumbers, scale: Scale) -> Iterator[tuple[str, str]]:
    """Yield where to go on from here."""
    command, option = f"parityscope claims {checked.id}", "" if scale == "demo" else f" --scale {scale}"
    if checked.proof is not None:
        yield "proof", page_of(checked.proof)
    if checked.figure is not None:
        yield "figure", f"parityscope reproduce {checked.figure}{option}"
    if claim.replay is not None and counterexample_of(checked) is not None:
        yield "second route", f"{command} --replay{option}"
    yield "all numbers", f"{command} --json{option}"
    yield "computed", f"in {checked.seconds:g} s at scale {scale}"


def show_replays(console: Console, replayed: Sequence[Replayed]) -> None:
    """Print every number of the counterexamples beside the same number by its second route.

    >>> import io
    >>> console = Console(file=io.StringIO(), width=100)
    >>> show_replays(console, [Replayed("W-lemma-8", "demo", stored=True, missing="W-lemma-8 has no counterexample")])
    >>> console.file.getvalue().strip()
    'W-lemma-8 has no counterexample'
    """
    for one in replayed:
        if one.missing is not None:
            _print(console, Text(f"{one.missing}\n"))
            continue
        origin = "stored" if one.stored else "nothing was stored, so it was computed first"
        _print(console, Text.assemble((one.id, "bold"), f"  counterexample at scale {one.scale} ({origin})"))
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 2))
        for title in ("what", "stored", "again", "by", "still refutes"):
            table.add_column(title, overflow="fold")
        for replay in one.replays:
            confirms = Text("yes", "green") if replay.confirms else Text("no", "red")
            numbers = (f"{number:.6g}" for number in (replay.stored, replay.again))
            table.add_row(Text(replay.what), *numbers, Text(replay.route), confirms)
        _print(console, Group(table, ""))


def _print(console: Console, content: RenderableType) -> None:
    console.print(content, highlight=False, width=min(console.width, _WIDEST))
