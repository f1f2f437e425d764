"""The report: one HTML file that answers first, shows five findings, and keeps everything else folded.

It is readable offline, by mail, on a phone and in print.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import parityscope
from parityscope.core.drawing import Pictures
from parityscope.core.errors import naming_the_extra
from parityscope.papers.claim import ClaimNumbers
from parityscope.papers.criterion import Verdict
from parityscope.papers.figure import Scale
from parityscope.papers.registry import PAPERS
from parityscope.papers.rendering import claims_markdown, counts_markdown, duration, to_html

with naming_the_extra():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

_SHOWN = ("torch", "python", "machine", "cpu")  # of the versions, at the end of the page
_PICTURE = "heads-lock-on"  # stands beside the answer, where it was drawn


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


class _Answer(NamedTuple):
    """A sentence of the answer, the claim whose verdict it restates, and the figure that shows it."""

    sentence: str
    claim: str
    verdict: Verdict  # under which the sentence is true
    figure: str


_ANSWERS = (
    _Answer(
        "Attention heads can express every parity, but gradient descent as Theorem 5 of Han and Ghoshdastidar (H1) "
        "prescribes it does not always find it: from some of its own starts it ends in a strict local minimum.",
        "H1-theorem-5",
        "fails",
        "H1-where-it-ends",
    ),
    _Answer(
        "One gradient step of two heads finds a hidden pair, as the abstract of H1's later version (H2) says, in our "
        "reading.",
        "H2-one-step",
        "holds",
        "H2-one-step",
    ),
    _Answer(
        "With its partial results written out as a chain of thought, the simplified block of Wen, Zhang, Lin and Zhang "
        "(W) learns a parity in three steps, once a sign in the printed theorem is mended.",
        "W-theorem-3",
        "misprint",
        "W-figure-1",
    ),
    _Answer(
        "If the results of a tree of pairs are shown, one gradient step learns the parity of all its leaves, as Kim "
        "and Suzuki (K) say.",
        "K-theorem-5",
        "holds",
        "K-where-it-begins",
    ),
    _Answer(
        "One head with a trained scale and a bounded output learns exactly the sets that are faces of the polytope of "
        "its position codes, and its training is a concave problem (our result).",
        "P-face",
        "proved",
        "P-faces",
    ),
)


def render_report(
    sections: Sequence[Section], scale: Scale, claims: Sequence[ClaimNumbers] = (), missing: Sequence[str] = ()
) -> str:
    """Return the whole page, which loads nothing from anywhere; `missing` are the titles of what is still to come.

    The five sentences of the answer stand on every page, each with the verdict that this run gave, or that it gave
    none. Only the figures that show them are open, and only those have the shipped figure beside them.
    """
    by_figure = {section.figure_id: section for section in sections}
    leading = {answer.figure for answer in _ANSWERS}
    findings = [by_figure[answer.figure] for answer in _ANSWERS if answer.figure in by_figure]
    others = [section for section in sections if section.figure_id not in leading]
    groups = [(paper.name, paper.title, [one for one in others if one.figure_id in paper.figures]) for paper in PAPERS]
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            answers=_ANSWERS,
            verdicts={claim.id: claim.verdict for claim in claims},
            picture=by_figure.get(_PICTURE, next(iter((*findings, *others)), None)),
            counts=counts_markdown(claims),
            sections=sections,
            findings=findings,
            groups=[group for group in groups if group[2]],
            claims=claims,
            claims_text=claims_markdown(claims, scale, lambda name: f"#{name}" if name in by_figure else None),
            missing=missing,
            scale=scale,
            version=parityscope.__version__,
            versions={name: one for name, one in sections[-1].versions.items() if name in _SHOWN} if sections else {},
            finished=max((section.finished for section in sections), default=0.0),
            seconds=sum(section.seconds for section in sections),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = lambda png: "data:image/png;base64," + b64encode(png).decode()
    environment.filters["date"] = lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    environment.filters["duration"] = duration
    environment.filters["html"] = lambda markdown: Markup(to_html(markdown))
    return environment
