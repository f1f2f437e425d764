"""One fit as a page of its own: the sentences, the terms with their tables, and the picture, in a single file."""

from __future__ import annotations

import base64
import math
from html import escape
from typing import TYPE_CHECKING

from parityscope.fit.evidence.evidence import p_text

if TYPE_CHECKING:
    from parityscope.fit.files import TableFit
    from parityscope.fit.interactions.terms import Term

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2330;
  background: #fff }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: left }
thead th { border-bottom: 1px solid #999 } td.number { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100% } .note { color: #8a5a00 }
@media (prefers-color-scheme: dark) { body { color: #e4e7ee; background: #14171f } .note { color: #e0b060 } }
"""


def report(fitted: TableFit, picture: bytes) -> str:
    """Return a page that needs no other file; `picture` is a PNG.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.fit.files import fit_file
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("a<b,fault\\n" + "0,0\\n1,1\\n" * 20)
    >>> page = report(fit_file(path, "fault"), b"")
    >>> "a&lt;b" in page, "a<b" in page
    (True, False)
    """
    answer = fitted.answer
    what = fitted.target if fitted.classes is None else f"{fitted.target} = {fitted.classes[1]}"
    title = f"What decides {what}? {fitted.path.name}"
    numbers = {
        "rows": str(fitted.rows),
        "columns": str(fitted.features),
        **{f"held-out {name.replace('_', ' ')}": f"{value:.3f}" for name, value in answer.quality.to_json().items()},
    }
    summary = "".join(f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in numbers.items())
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in fitted.notes)
    terms = "".join(_term(number, term, what) for number, term in enumerate(fitted.findings, start=1))
    image = f'<img alt="truth tables" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
    skipped = f"<p>{escape(answer.skipped)}</p>" if answer.skipped else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1>{notes}<p>{escape(answer.explanation)}.</p><table>{summary}</table>"
        f"{terms}{image}<h2>What would have been found</h2><p>{escape(answer.guarantee)}.</p>{skipped}</body></html>"
    )


def _term(number: int, term: Term, what: str) -> str:
    low, high = term.interval
    interval = f"{term.estimate:+.3g} ({low:.3g} to {high:.3g})"
    beyond = f", beyond effects of {', '.join(' × '.join(part) for part in term.parts)}" if term.parts else ""
    adds = "" if math.isnan(term.adds) else f", adds {term.adds:.2g}"
    heading = f"{number}. {term.kind} of {', '.join(term.columns)}"
    text = f"{p_text(term.log_p)}{beyond}; estimate {interval}; {term.share:.0%} of what is explained{adds}"
    questions = f"questions: {' ⊕ '.join(term.bits)}"
    head = "".join(f"<th>{escape(name)}</th>" for name in (*term.headings, "rows", what, "95 % interval"))
    lines = "".join(
        "<tr>"
        + "".join(f"<td>{escape(value)}</td>" for value in cell.values)
        + f'<td class="number">{cell.rows}</td>'
        + ("<td>–</td><td></td>" if cell.share is None else f'<td class="number">{cell.share:.3g}</td>')
        + ("" if cell.share is None else f"<td>{cell.low:.3g} to {cell.high:.3g}</td>")
        + "</tr>"
        for cell in term.truth_table
    )
    return (
        f"<h2>{escape(heading)}</h2><p>{escape(text)}</p><p>{escape(questions)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )
