"""From sections to HTML: the template holds the look, this file the data."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import parityscope
from parityscope.core.drawing import Pictures
from parityscope.core.errors import naming_the_extra
from parityscope.papers import wording
from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.figure import Finding, Scale, Table, verdicts_on
from parityscope.papers.registry import PAPERS

with naming_the_extra():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

_SHOWN = ("torch", "python", "machine", "cpu")  # of the versions, in the head of the page


@dataclass(frozen=True)
class Section:
    """One figure in the report.

    >>> table, finding = Table(("n", "risk"), [("20", "0.5")]), Finding("it learns", "it does")
    >>> pictures = Pictures(b"", b"", b"", 640)
    >>> section = Section(
    ...     "demo", "A demonstration", "Text.", "smoke", pictures, None, table, [finding], "make demo", 1.0, 0.0
    ... )
    >>> page = render_report([section], "smoke")
    >>> [words in page for words in ("A demonstration", "it learns", "make demo", "a secret")]
    [True, True, True, False]
    """

    figure_id: str
    title: str
    text: str
    scale: Scale
    pictures: Pictures
    reference: bytes | None  # the shipped figure, where this one shows less
    table: Table
    findings: Sequence[Finding]
    command: str
    seconds: float
    finished: float
    versions: Mapping[str, str] = field(default_factory=dict)
    codes: Sequence[str] = ()  # hashes of the source that made the rows
    rechecked: Sequence[str] = ()  # what is known of rows that older source made


def render_report(
    sections: Sequence[Section],
    scale: Scale,
    claims: Sequence[ClaimNumbers] = (),
    missing: Sequence[str] = (),
) -> str:
    """Return the whole page, which loads nothing from anywhere; `missing` are the titles of what is still to come.

    >>> page = render_report([], "smoke")
    >>> page.startswith("<!doctype html>"), "src=" in page, "<link" in page
    (True, False, False)
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    environment.filters["date"] = _date
    environment.filters["duration"] = _duration
    environment.filters["unbroken"] = _unbroken
    environment.filters["pretty"] = partial(json.dumps, indent=1, ensure_ascii=False)
    finished = [section.finished for section in sections]
    return environment.get_template("page.html.jinja").render(
        sections=[replace(one, findings=[*verdicts_on(one.figure_id, claims), *one.findings]) for one in sections],
        claims=claims,
        missing=missing,
        papers=[paper for paper in PAPERS if any(claim.paper == paper.name for claim in claims)],
        words=wording,
        shown=[section.figure_id for section in sections],
        scale=scale,
        version=parityscope.__version__,
        versions={name: value for name, value in sections[-1].versions.items() if name in _SHOWN} if sections else {},
        finished=max(finished, default=0.0),
        seconds=sum(section.seconds for section in sections),
    )


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + b64encode(png).decode()


def _unbroken(text: str) -> str:
    """Return text whose numbers stay on one line: a browser breaks 6e-16 after the hyphen unless a word joiner follows.

    >>> len(_unbroken("off by 6e-16, well-known")) - len("off by 6e-16, well-known")
    1
    """
    return re.sub(r"(?<=\de-)(?=\d)", "\u2060", text)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _duration(seconds: float) -> str:
    """Return a duration as people say it.

    >>> _duration(0.4), _duration(75), _duration(7000)
    ('0.4 s', '1 min 15 s', '1 h 56 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
