"""One fit as a page of its own, and its picture: truth tables as bars, or as a map where two columns interact."""

from __future__ import annotations

import base64
import html
import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parityscope.core.cells import as_text
from parityscope.core.drawing import HEAT, colour, new_figure
from parityscope.fit.evidence.evidence import p_text
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
    """Return a page that needs no other file; `picture` is a PNG."""
    answer = fitted.answer
    what = fitted.target if fitted.classes is None else f"{fitted.target} = {fitted.classes[1]}"
    title = f"What decides {what}? {fitted.path.name}"
    numbers = {
        "rows": str(fitted.rows),
        "columns": str(fitted.features),
        **{f"held-out {name.replace('_', ' ')}": f"{value:.3f}" for name, value in answer.quality.to_json().items()},
    }
    summary = "".join(f"<tr><th>{_escape(name)}</th><td>{value}</td></tr>" for name, value in numbers.items())
    notes = "".join(f'<p class="note">{_escape(note)}</p>' for note in fitted.notes)
    terms = "".join(_term(number, term, what) for number, term in enumerate(fitted.findings, start=1))
    image = f'<img alt="truth tables" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
    skipped = f"<p>{_escape(answer.skipped)}</p>" if answer.skipped else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{_escape(title)}</h1>{notes}<p>{_escape(answer.explanation)}.</p><table>{summary}</table>"
        f"{terms}{image}<h2>What would have been found</h2><p>{_escape(answer.guarantee)}.</p>{skipped}</body></html>"
    )


def _escape(text: str) -> str:
    """Return a text of the table's as HTML, with no control character."""
    return html.escape(as_text(text))


def _term(number: int, term: Term, what: str) -> str:
    beyond = f", beyond effects of {', '.join(' × '.join(part) for part in term.parts)}" if term.parts else ""
    adds = "" if math.isnan(term.adds) else f", adds {term.adds:.2g}"
    heading = f"{number}. {term.kind} of {', '.join(term.columns)}"
    text = f"{p_text(term.log_p)}{beyond}; estimate {term.estimated()}; {term.share:.0%} of what is explained{adds}"
    questions = f"questions: {' ⊕ '.join(term.bits)}"
    head = "".join(f"<th>{_escape(name)}</th>" for name in (*term.headings, "rows", what, "95 % interval"))
    lines = "".join(
        "<tr>"
        + "".join(f"<td>{_escape(value)}</td>" for value in cell.values)
        + f'<td class="number">{cell.rows}</td>'
        + ("<td>–</td><td></td>" if cell.share is None else f'<td class="number">{cell.share:.3g}</td>')
        + ("" if cell.share is None else f"<td>{cell.low:.3g} to {cell.high:.3g}</td>")
        + "</tr>"
        for cell in term.truth_table
    )
    return (
        f"<h2>{_escape(heading)}</h2><p>{_escape(text)}</p><p>{_escape(questions)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


_NAMED_BARS = 32
_MOST_PANELS = 6


def interaction_figure(fitted: TableFit) -> Figure:
    """Return the share of the second class for every combination of values, a panel for each interaction.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from parityscope.fit.files import fit_file
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 10
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> interaction_figure(fit_file(path, "fault")).axes[0].get_title()
    'a × c: held-out accuracy 1.000'
    """
    findings = fitted.findings[:_MOST_PANELS]
    if not findings:
        figure, axes = new_figure(6, 2.5)
        axes.text(0.5, 0.5, "nothing found", ha="center", va="center", fontsize=14)
        axes.set_axis_off()
        return figure
    label = _plain(fitted.target if fitted.classes is None else f"share of {fitted.target} = {fitted.classes[1]}")
    width = max(6.0 if _is_map(one) else min(14.0, 1.5 + 0.35 * len(one.truth_table)) for one in findings)
    figure, grid = new_figure(max(6.0, width), 4.5 * len(findings), len(findings), squeeze=False)
    for place, (finding, axes) in enumerate(zip(findings, grid[:, 0], strict=True)):
        if _is_map(finding):
            _map(figure, axes, finding, label)
        else:
            _bars(axes, finding, label)
        axes.set_title(_plain(_title(place, finding, len(findings))), wrap=True)
    return figure


def _title(place: int, finding: Term, panels: int) -> str:
    names = " × ".join(finding.columns)
    accuracy = "" if math.isnan(finding.accuracy) else f": held-out accuracy {finding.accuracy:.3f}"
    return f"{names}{accuracy}" if panels == 1 else f"{place + 1}. {names}: {finding.share:.0%} of what is explained"


def _plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: it would typeset what stands between dollars."""
    return as_text(text).replace("$", r"\$")


def _is_map(finding: Term) -> bool:
    return len(finding.columns) == 2 == len(finding.headings)


def _map(figure: Figure, axes: Axes, finding: Term, label: str) -> None:
    table = finding.cells()
    first, second = table[0]["values"]
    rows, columns = (list(dict.fromkeys(cell["values"][name] for cell in table)) for name in (first, second))
    grid = [[math.nan] * len(columns) for _ in rows]
    for cell in table:
        y, x = rows.index(cell["values"][first]), columns.index(cell["values"][second])
        share = cell["share"]
        if share is None:
            axes.text(x, y, "no rows", ha="center", va="center", fontsize=9)
            continue
        grid[y][x] = share
        shown = f"{share:.0%}" if label.startswith("share") else f"{share:.3g}"
        axes.text(
            x, y, f"{shown}\n{cell['rows']} rows", ha="center", va="center", color="black", backgroundcolor="#ffffffb0"
        )
    known = [cell["share"] for cell in table if cell["share"] is not None]
    low, high = (0.0, 1.0) if min(known) >= 0 and max(known) <= 1 else (min(known), max(known))
    image = axes.imshow(grid, cmap=HEAT, vmin=low, vmax=high, aspect="auto")
    axes.set(
        xlabel=_plain(second),
        ylabel=_plain(first),
        xticks=range(len(columns)),
        xticklabels=[_plain(one) for one in columns],
        yticks=range(len(rows)),
        yticklabels=[_plain(one) for one in rows],
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label=label)


def _bars(axes: Axes, finding: Term, label: str) -> None:
    table = finding.cells()
    shares = [0.0 if cell["share"] is None else cell["share"] for cell in table]
    axes.bar(range(len(table)), shares, color=[colour(0) if share > 0.5 else colour(1) for share in shares])
    axes.axhline(0.5, color="#888888", linewidth=0.8)
    axes.set(ylabel=label, xlim=(-0.6, len(table) - 0.4))
    if label.startswith("share"):
        axes.set_ylim(0, 1)
    if len(table) <= _NAMED_BARS:
        names = ["\n".join(map(_plain, cell["values"].values())) for cell in table]
        axes.set_xticks(range(len(table)), names, fontsize=8)
        axes.set_xlabel(_plain(" / ".join(table[0]["values"])) + "  (top to bottom)")
    else:
        axes.set(xticks=[], xlabel=_plain(f"all {len(table)} combinations of {', '.join(table[0]['values'])}"))
