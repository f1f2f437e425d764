"""The report: one self-contained HTML file, readable offline, by mail, on a phone and in print."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import parityscope
from parityscope.core.drawing import Pictures
from parityscope.core.errors import naming_the_extra
from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.figure import Scale
from parityscope.papers.rendering import claims_markdown, duration, to_html

with naming_the_extra():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

_SHOWN = ("torch", "python", "machine", "cpu")  # of the versions, in the head of the page


@dataclass(frozen=True)
class Section:
    """One figure in the report; what stands below the picture is Markdown, given all verdicts."""

    figure_id: str
    title: str
    markdown: Callable[[Sequence[ClaimNumbers]], str]
    scale: Scale
    pictures: Pictures
    reference: bytes | None = None  # the shipped figure, where this one shows less
    seconds: float = 0.0
    finished: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)


def render_report(
    sections: Sequence[Section],
    scale: Scale,
    claims: Sequence[ClaimNumbers] = (),
    missing: Sequence[str] = (),
) -> str:
    """Return the whole page, which loads nothing from anywhere; `missing` are the titles of what is still to come."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    environment.filters["date"] = _date
    environment.filters["duration"] = duration
    environment.filters["html"] = lambda markdown: Markup(to_html(markdown))
    shown = {section.figure_id for section in sections}
    return environment.get_template("report.html.jinja").render(
        sections=sections,
        claims=claims,
        claims_text=claims_markdown(claims, scale, lambda name: f"#{name}" if name in shown else None),
        first_of_paper={claim.paper: claim.id for claim in reversed(claims)},
        missing=missing,
        scale=scale,
        version=parityscope.__version__,
        versions={name: value for name, value in sections[-1].versions.items() if name in _SHOWN} if sections else {},
        finished=max((section.finished for section in sections), default=0.0),
        seconds=sum(section.seconds for section in sections),
    )


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + b64encode(png).decode()


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
