"""What was found in a user's table: the columns, how sure that is, and the truth table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from parityscope.estimator.files import TableFit


def show_fit(console: Console, fitted: TableFit, limit: int = 64) -> None:
    """Print what was found in a table: the columns, how sure it is, and the truth table with a bar per line.

    >>> import io
    >>> import tempfile
    >>> from itertools import product
    >>> from pathlib import Path
    >>> from parityscope.estimator.files import fit_file
    >>> path = Path(tempfile.mkdtemp()) / "switches.csv"
    >>> lines = [f"{a},{b},{c},{a ^ c}" for a, b, c in product((0, 1), repeat=3)] * 20
    >>> written = path.write_text("\\n".join(["hall,stairs,attic,light", *lines]))
    >>> console = Console(file=io.StringIO(), width=120)
    >>> show_fit(console, fit_file(path, "light"))
    >>> "held-out accuracy 1.000" in console.file.getvalue()
    True
    """
    found = fitted.to_json()
    for note in found["notes"]:
        console.print(Text(note, "yellow"))
    if found["columns"]:
        _show_interaction(console, found, limit)
    sure = f"p = {found['p_value']:.2g}" if found["p_value"] > 1e-300 else "p < 1e-300"
    console.print(
        f"held-out accuracy {found['accuracy']:.3f} · {sure} after the search · label noise {found['noise_rate']:.1%}"
        f" · {found['rows']} rows × {found['features']} columns · {found['solver'] or 'no solver'}"
        f" · {found['seconds']:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    for name, why in found["ignored"].items():
        console.print(f"ignored: {name} ({why})", highlight=False, markup=False)


def _show_interaction(console: Console, found: dict[str, Any], limit: int) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("column", "number", "bit"):
        table.add_column(title)
    for name, index, bit in zip(found["columns"], found["support"], found["bits"], strict=True):
        table.add_row(Text(name), str(index), Text(bit))
    console.print(table)
    console.print()
    second = found["classes"][1]
    cells = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in found["truth_table"][0]["values"]:
        cells.add_column(Text(name))
    for title in ("rows", f"{found['target']} = {second}"):
        cells.add_column(Text(title), justify="right")
    cells.add_column("")
    for cell in found["truth_table"][:limit]:
        share = cell["share"]
        bar = Text("" if share is None else "█" * round(20 * share), "green" if (share or 0) > 0.5 else "yellow")
        values = (Text(value) for value in cell["values"].values())
        cells.add_row(*values, str(cell["rows"]), "–" if share is None else f"{share:.0%}", bar)
    if len(found["truth_table"]) > limit:
        cells.caption = f"{len(found['truth_table']) - limit} more combinations with --json"
    console.print(cells)
    console.print()
