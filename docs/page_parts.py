"""What the written pages are made of: text that stays as it is, tables, durations, where numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any


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
    special = {ord(character): f"&#{ord(character)};" for character in "\\`*_[]|#~^"}
    return " ".join(escape(text, quote=False).translate(special).split())


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a markdown table whose cells are markdown already."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table for inside of a block that unfolds, whose cells are HTML already."""
    yield "<div><table><thead><tr>" + "".join(f"<th>{cell}</th>" for cell in header) + "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
