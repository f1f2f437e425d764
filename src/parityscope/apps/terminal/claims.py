"""Claims on a terminal: many in short with counts below, one as a page, counterexamples replayed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group
from rich.markdown import Markdown
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from parityscope.apps.terminal import plain_table
from parityscope.papers.claim import ClaimNumbers, Replayed
from parityscope.papers.figure import Scale
from parityscope.papers.rendering import IRREFUTABLE, claim_markdown, counts_markdown, judgement_markdown

_COLOURS = {"proved": "green", "holds": "green", "misprint": "yellow", "in part": "yellow", "fails": "red"}
_WIDEST = 118  # longer lines are hard to read


class _Verdicts:
    """Markdown whose emphasis, verdicts, has their colours."""

    def __init__(self, markdown: str) -> None:
        self._markdown = Markdown(markdown, code_theme="ansi_light", hyperlinks=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._markdown, options):
            colour = _COLOURS.get(text) if style is not None and style.italic else None
            yield Segment(text, style if colour is None else Style(color=colour), control)


def show_claims(console: Console, checked: Sequence[ClaimNumbers]) -> None:
    """Print every claim in short, and how many got which verdict."""
    apart = ", ".join(f"{claim.id} ({claim.verdict})" for claim in checked if not claim.refutable)
    parts = [*map(claim_markdown, checked), counts_markdown(checked)]
    for part in [*parts, f"{IRREFUTABLE}, counted apart: {apart}"] if apart else parts:
        _print(console, part)


def show_claim(console: Console, checked: ClaimNumbers, scale: Scale) -> None:
    """Print everything about one claim as a page to read."""
    _print(console, f"{claim_markdown(checked)}\n\n{judgement_markdown(checked, scale)}")


def _print(console: Console, markdown: str) -> None:
    console.print(_Verdicts(markdown), "", width=min(console.width, _WIDEST))


def show_replays(console: Console, replayed: Sequence[Replayed]) -> None:
    """Print every number of the counterexamples beside the same number by a second method."""
    for one in replayed:
        console.print(Group(*_replayed(one), ""), highlight=False, width=min(console.width, _WIDEST))


def _replayed(one: Replayed) -> Iterator[Text | Table]:
    if one.missing is not None:
        yield Text(one.missing)
        return
    origin = "stored" if one.stored else "nothing was stored, so it was computed first"
    yield Text.assemble((one.id, "bold"), f"  counterexample at scale {one.scale} ({origin})")
    titles = ("what", "stored", "again", "by", "still refutes")
    table = plain_table(titles, left=titles)
    for replay in one.replays:
        confirms = Text("yes", "green") if replay.confirms else Text("no", "red")
        numbers = (f"{number:.6g}" for number in (replay.stored, replay.again))
        table.add_row(Text(replay.what), *numbers, Text(replay.route), confirms)
    yield table
