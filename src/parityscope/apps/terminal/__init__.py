"""What people see of results on a terminal, and the one look of its tables."""

from collections.abc import Container, Iterable

from rich.table import Table
from rich.text import Text

from parityscope.core.cells import as_text


def plain_table(titles: Iterable[str], left: Container[str]) -> Table:
    """Return a table without lines; columns are flush right but for those that are named.

    >>> [column.justify for column in plain_table(["seed", "recovered"], left=["recovered"]).columns]
    ['right', 'left']
    """
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(Text(as_text(title)), justify="left" if title in left else "right")
    return table
