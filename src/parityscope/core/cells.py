"""Texts that others wrote, where they are written again: a terminal and a spreadsheet obey some of them."""

from __future__ import annotations


def as_text(text: str) -> str:
    """Return a text without control characters, which a terminal would obey, and without halves of letters.

    >>> print(as_text("\\x1b[31mred\\udcff"))
    \\x1b[31mred\\udcff
    """
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def as_cell(value: object) -> object:
    """Return a value as a cell of a table: what a spreadsheet would take for a formula begins with a quote.

    Of control characters, which a terminal would obey when the table is printed, only line breaks stay.

    >>> as_cell("=1+1"), as_cell("-0.5"), as_cell(-0.5), as_cell("night")
    ("'=1+1", '-0.5', -0.5, 'night')
    >>> print(as_cell("\\t=1+1"), as_cell("\\x1b[31mred"))
    \\t=1+1 \\x1b[31mred
    """
    if not isinstance(value, str):
        return value
    value = "\n".join(map(as_text, value.split("\n")))
    if not value.startswith(("=", "+", "-", "@")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
