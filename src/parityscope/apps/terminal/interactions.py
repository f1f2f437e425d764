"""What `fit` and `predict` print. Apart from the other tables, because it needs no torch and is quick to load."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from parityscope.apps.terminal import plain_table
from parityscope.core.cells import as_text
from parityscope.fit.evidence.evidence import p_text
from parityscope.fit.tables.table import listed

if TYPE_CHECKING:
    from parityscope.fit.files import TableFit
    from parityscope.fit.interactions.terms import Term
    from parityscope.fit.model import Quality
    from parityscope.fit.saved import Predictions

_A_PERCENT = 0.005  # what rounds to one
_RARE = 0.2  # where no cell has a larger share, shares have a digit more


def show_fit(console: Console, fitted: TableFit, limit: int = 64) -> None:
    """Print what was found in a table: what to know first, every interaction, how sure it all is.

    >>> import io
    >>> import tempfile
    >>> from itertools import product
    >>> from pathlib import Path
    >>> from parityscope.fit.files import fit_file
    >>> path = Path(tempfile.mkdtemp()) / "switches.csv"
    >>> lines = [f"{a},{b},{c},{a ^ c}" for a, b, c in product((0, 1), repeat=3)] * 20
    >>> written = path.write_text("\\n".join(["hall,stairs,attic,light", *lines]))
    >>> console = Console(file=io.StringIO(), width=120)
    >>> show_fit(console, fit_file(path, "light"))
    >>> "held-out accuracy 1.000" in console.file.getvalue()
    True
    """
    answer = fitted.answer
    for note in fitted.notes:
        _say(console, note, "yellow")
    for number, finding in enumerate(fitted.findings, start=1):
        _show_finding(console, fitted, finding, number, limit)
    if len(fitted.findings) > 1:
        _say(console, answer.explanation)
    noise = "" if math.isnan(answer.noise_rate) else f" · label noise {answer.noise_rate:.1%}"
    _say(
        console,
        f"{_quality(answer.quality, answer.model.measured)} · {p_text(answer.log_p)} after the search{noise}"
        f" · {fitted.rows} rows × {fitted.features} columns · {answer.solver or 'no solver'} · {fitted.seconds:.1f} s",
    )
    _say(console, f"guarantee: {answer.guarantee}")
    if answer.skipped and fitted.findings:  # where nothing was found, the reason says it
        _say(console, answer.skipped, "yellow")
    if fitted.compared:
        _say(console, fitted.compared)
    constant = [name for name, why in fitted.ignored.items() if why == "constant"]
    if constant:  # what else was left out is said above
        _say(console, f"constant: {listed(constant)}")


def show_predictions(console: Console, said: Predictions) -> None:
    """Print how many rows were predicted as what, and how often that is right where the file tells.

    >>> import io
    >>> import numpy as np
    >>> from parityscope.fit.saved import Predictions
    >>> from parityscope.fit.saved import SavedModel
    >>> known = dict(made_by="parityscope", data="", rows=4, target="fault", classes=("no", "yes"), share=0.2)
    >>> model = SavedModel(**known, held_out_accuracy=0.8, guarantee="", terms=(), columns=(), constant=0, features=())
    >>> console = Console(file=io.StringIO(), width=120)
    >>> show_predictions(console, Predictions(model, np.array([0.2, 0.2, 0.9]), accuracy=0.75))
    >>> print(console.file.getvalue().strip())
    3 rows: fault = no 2 times, fault = yes 1 times · accuracy 0.750 (0.800 on held-out rows when it was fitted)
    """
    target = said.model.target
    if said.model.classes is None:
        right = "" if said.accuracy is None else f" · R² {said.accuracy:.3f}"
        _say(console, f"{len(said.classes)} rows: expected {target}{right}")
        return
    first, second = said.model.classes
    counts = [f"{target} = {name} {said.classes.count(name)} times" for name in (first, second)]
    unknown = said.classes.count(None)
    more = f", {unknown} without a prediction" if unknown else ""
    fitted = f"{said.model.held_out_accuracy:.3f} on held-out rows when it was fitted"
    right = f"accuracy {said.accuracy:.3f} ({fitted})" if said.accuracy is not None else f"accuracy was {fitted}"
    _say(console, f"{len(said.classes)} rows: {', '.join(counts)}{more} · {right}")


def _quality(said: Quality, measured: bool) -> str:
    """Return how good the model is on held-out rows, in words.

    >>> from parityscope.fit.model import Quality
    >>> _quality(Quality(0.9, 0.88, 0.65, 0.3), measured=False)
    'held-out accuracy 0.900 (majority class 0.880), AUC 0.650, log loss 0.300'
    >>> _quality(Quality(), measured=False), _quality(Quality(r_squared=0.5), measured=True)
    ('too few rows to hold any out', 'held-out R² 0.500')
    """
    if measured:
        return f"held-out R² {said.r_squared:.3f}"
    if math.isnan(said.accuracy):
        return "too few rows to hold any out"
    auc = "" if math.isnan(said.auc) else f", AUC {said.auc:.3f}"
    return (
        f"held-out accuracy {said.accuracy:.3f} (majority class {said.majority:.3f}){auc}, log loss {said.log_loss:.3f}"
    )


def _say(console: Console, text: str, style: str = "") -> None:
    """Print a line; what the table's own words would tell a terminal to do is shown, not done."""
    console.print(Text(as_text(text), style), highlight=False, soft_wrap=True)


def _show_finding(console: Console, fitted: TableFit, finding: Term, number: int, limit: int) -> None:
    scale = "" if fitted.answer.model.measured else " log-odds"
    adds = (
        "" if math.isnan(finding.adds) or fitted.answer.model.measured else f" · adds {finding.adds:.2g} bits per row"
    )
    evidence = f"{p_text(finding.log_p)} · {finding.estimated(scale)}"
    heading = f"{number}. {finding.kind} of {', '.join(finding.columns)} · {evidence}"
    share = f"{finding.share:.0%}" if finding.share >= _A_PERCENT else "under 1%"
    _say(console, f"{heading} · {share} of what is explained{adds}", "bold")
    if finding.parts:
        _say(console, f"beyond effects of {listed(' × '.join(part) for part in finding.parts)}")
    titles = ("column", "number", "bit")
    table = plain_table(titles, left=titles)
    numbers = dict(zip(finding.columns, finding.support, strict=False))
    for name, bit in zip(finding.asked, finding.bits, strict=True):
        table.add_row(Text(as_text(name)), str(numbers.get(name, "")), Text(as_text(bit)))
    console.print(table)
    for name, others in finding.block.items():
        _say(console, f"these rows cannot tell {name} from {listed(others)}", "yellow")
    console.print()
    # Two questions about one column have combinations of answers that no row can have.
    possible = [line for line in finding.cells() if line["rows"] or len(finding.bits) == len(finding.columns)]
    what = fitted.target if fitted.classes is None else f"{fitted.target} = {fitted.classes[1]}"
    console.print(_cells(possible, what, limit, measured=fitted.classes is None))
    console.print()


def _cells(lines: list[dict[str, Any]], second: str, limit: int, *, measured: bool) -> Table:
    """Return the truth table with a bar per line."""
    names = tuple(lines[0]["values"])
    rare = max((cell["share"] or 0.0 for cell in lines), default=0.0) < _RARE
    percent = "{:.1%}".format if rare else "{:.0%}".format
    cells = plain_table((*names, "rows", second, ""), left=(*names, ""))
    for cell in lines[:limit]:
        share = cell["share"]
        values = (Text(as_text(value)) for value in cell["values"].values())
        if share is None:
            cells.add_row(*values, str(cell["rows"]), "–", "")
            continue
        interval = (
            f"{cell['low']:.3g} to {cell['high']:.3g}"
            if measured
            else f"{percent(cell['low'])}–{percent(cell['high'])}"
        )
        bar = Text("" if measured else "█" * round(20 * share) + " ", "green" if share > 0.5 else "yellow")
        shown = f"{share:.3g}" if measured else percent(share)
        cells.add_row(*values, str(cell["rows"]), shown, bar + Text(interval, "dim"))
    if len(lines) > limit:
        cells.caption = f"{len(lines) - limit} more combinations with --json"
    return cells
