"""What `fit` and `predict` print. Apart from the other tables, because it needs no torch and is quick to load."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from parityscope.apps.terminal import plain_table
from parityscope.fit.evidence.evidence import p_text
from parityscope.fit.tables.table import listed

if TYPE_CHECKING:
    from parityscope.fit.files import TableFit
    from parityscope.fit.interactions.findings import Finding
    from parityscope.fit.predicting import Predictions


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
        console.print(Text(note, "yellow"), soft_wrap=True)
    for number, finding in enumerate(fitted.findings, start=1):
        _show_finding(console, fitted, finding, number, limit)
    if len(fitted.findings) > 1:
        _say(console, answer.explanation)
    _say(
        console,
        f"{_accuracy(answer.held_out_accuracy)} · {p_text(answer.log_p)} after the search"
        f" · label noise {answer.noise_rate:.1%} · {fitted.rows} rows × {fitted.features} columns"
        f" · {answer.solver or 'no solver'} · {fitted.seconds:.1f} s",
    )
    _say(console, f"guarantee: {answer.guarantee}")
    if answer.skipped and fitted.findings:  # where nothing was found, the reason says it
        console.print(Text(answer.skipped, "yellow"), soft_wrap=True)
    constant = [name for name, why in fitted.ignored.items() if why == "constant"]
    if constant:  # what else was left out is said above
        _say(console, f"constant: {listed(constant)}")


def show_predictions(console: Console, said: Predictions) -> None:
    """Print how many rows were predicted as what, and how often that is right where the file tells.

    >>> import io
    >>> import numpy as np
    >>> from parityscope.fit.predicting import Predictions
    >>> from parityscope.fit.saved import SavedModel
    >>> known = dict(made_by="parityscope", data="", rows=4, target="fault", classes=("no", "yes"), share=0.2)
    >>> model = SavedModel(**known, held_out_accuracy=0.8, guarantee="", columns=(), parts=(), weights=())
    >>> console = Console(file=io.StringIO(), width=120)
    >>> show_predictions(console, Predictions(model, np.array([0.2, 0.2, 0.9]), accuracy=0.75))
    >>> print(console.file.getvalue().strip())
    3 rows: fault = no 2 times, fault = yes 1 times · accuracy 0.750 (0.800 on held-out rows when it was fitted)
    """
    target, (first, second) = said.model.target, said.model.classes
    counts = [f"{target} = {name} {said.classes.count(name)} times" for name in (first, second)]
    unknown = said.classes.count(None)
    more = f", {unknown} without a prediction" if unknown else ""
    fitted = f"{said.model.held_out_accuracy:.3f} on held-out rows when it was fitted"
    right = f"accuracy {said.accuracy:.3f} ({fitted})" if said.accuracy is not None else f"accuracy was {fitted}"
    _say(console, f"{len(said.classes)} rows: {', '.join(counts)}{more} · {right}")


def _accuracy(share: float) -> str:
    """Return the accuracy in words.

    >>> _accuracy(0.9), _accuracy(math.nan)
    ('held-out accuracy 0.900', 'too few rows to hold any out')
    """
    return "too few rows to hold any out" if math.isnan(share) else f"held-out accuracy {share:.3f}"


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _show_finding(console: Console, fitted: TableFit, finding: Finding, number: int, limit: int) -> None:
    found = finding.found
    if len(fitted.findings) > 1:
        given = " given those above" if number > 1 else ""
        evidence = (
            f"{p_text(found.log_p)}{given} · adds {found.adds:.2g} bits per row · accuracy {found.accuracy:.3f} with it"
        )
        heading = f"{number}. {found.kind} of {', '.join(finding.columns)} · {evidence}"
        console.print(Text(heading, "bold"), soft_wrap=True)
    titles = ("column", "number", "bit")
    table = plain_table(titles, left=titles)
    for (name, index), bit in zip(finding.asked, finding.bits, strict=True):
        table.add_row(Text(name), str(index), Text(bit))
    console.print(table)
    for name, others in finding.block.items():
        console.print(Text(f"these rows cannot tell {name} from {listed(others)}", "yellow"))
    console.print()
    # Two questions about one column have combinations of answers that no row can have.
    possible = [line for line in finding.truth_table if line["rows"] or len(finding.bits) == len(finding.columns)]
    console.print(_cells(possible, f"{fitted.target} = {fitted.classes[1]}", limit))
    console.print()


def _cells(lines: list[dict[str, Any]], second: str, limit: int) -> Table:
    """Return the truth table with a bar per line."""
    names = tuple(lines[0]["values"])
    cells = plain_table((*names, "rows", second, ""), left=(*names, ""))
    for cell in lines[:limit]:
        share = cell["share"]
        bar = Text("" if share is None else "█" * round(20 * share), "green" if (share or 0) > 0.5 else "yellow")
        values = (Text(value) for value in cell["values"].values())
        cells.add_row(*values, str(cell["rows"]), "–" if share is None else f"{share:.0%}", bar)
    if len(lines) > limit:
        cells.caption = f"{len(lines) - limit} more combinations with --json"
    return cells
