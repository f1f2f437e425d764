"""Text files of very many columns of one digit each, such as genotypes: a byte per value, no parser per column."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from numpy import ndarray

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.fit.tables.missing import refusal
from parityscope.fit.tables.table import MISSING, DataTable, table_of

MANY_COLUMNS = 2000
_LONGER = 64  # columns at most with anything but a digit, such as identifiers and the target
_ZERO = ord("0")
# What pandas takes for missing, of three letters and more.
_WORDS = frozenset(
    b"#N/A;#N/A N/A;#NA;-1.#IND;-1.#QNAN;-NaN;-nan;1.#IND;1.#QNAN;<NA>;N/A;NULL;NaN;None;n/a;nan;null".split(b";")
)


def read_digits(
    lines: Iterator[bytes], header: tuple[str, ...], separator: str, notes: tuple[str, ...]
) -> DataTable | None:
    """Return the table if all but a few of its columns are single digits, or nothing at all, otherwise None.

    >>> lines = io.BytesIO(b"id,a,b,c\\nx,0,1,2\\nyy,1,,0\\n")
    >>> table = read_digits(lines, ("id", "a", "b", "c"), ",", ())
    >>> table.numbers.tolist(), table.texts[0].tolist()  # what is missing is -128
    ([[0, 1, 2], [1, -128, 0]], ['x', 'yy'])
    """
    next(lines)
    rows: list[ndarray] = []
    longer: dict[int, list[bytes]] = {}
    for line in lines:
        content = line.rstrip(b"\r\n")
        if not content:
            continue
        starts, lengths = _fields(content, separator)
        if len(starts) != len(header) or b'"' in content:
            return None
        characters = np.frombuffer(content + b"\0", dtype=np.uint8)[starts]
        digits = (lengths == 1) & (characters >= _ZERO) & (characters < _ZERO + 10)
        values = np.where(digits, characters - _ZERO, 0).astype(np.int8)
        lacking = _lacking(content, starts, lengths) if _may_lack(content, separator) else np.zeros(len(starts), bool)
        values[lacking] = MISSING
        for place in np.flatnonzero(~digits & ~lacking).tolist():
            if place not in longer:
                if len(longer) == _LONGER:
                    return None
                longer[place] = [_spelled(int(row[place])) for row in rows]
        for place, texts in longer.items():
            texts.append(content[starts[place] : starts[place] + lengths[place]])
        rows.append(values)
    return _joined(rows, longer, header, notes)


def refuse_missing(lines: Iterator[bytes], header: tuple[str, ...], separator: str, source: object) -> None:
    """Refuse a text file that lacks values, naming every column that does, without reading its numbers.

    Looking for empty fields and words such as NA takes a fraction of the time that reading takes. A file with quotes,
    or with lines of another length, is left to those who read it.

    >>> refuse_missing(iter([b"a,b,c\\n", b"0,1,2\\n", b"0,,NA\\n"]), ("a", "b", "c"), ",", "faults.csv")
    Traceback (most recent call last):
    parityscope.core.errors.InvalidInput: faults.csv has missing values in 2 columns, b (1) and c (1): add --missing \
drop (keeps 1 of 2 rows), --missing median (a number becomes its column's median, text the most frequent value) or \
--missing category (missing becomes a value of its own)
    """
    next(lines)
    counts = np.zeros(len(header), dtype=int)
    rows = complete = 0
    for line in lines:
        content = line.rstrip(b"\r\n")
        if not content:
            continue
        rows += 1
        if not _may_lack(content, separator):
            complete += 1
            continue
        starts, lengths = _fields(content, separator)
        if len(starts) != len(header) or b'"' in content:
            return
        lacking = _lacking(content, starts, lengths)
        counts += lacking
        complete += not lacking.any()
    if counts.any():
        named = {header[place]: int(counts[place]) for place in np.flatnonzero(counts).tolist()}
        raise InvalidInput(refusal(named, complete, rows, source))


def _may_lack(content: bytes, separator: str) -> bool:
    """Say whether a line could lack a value: an empty field, a question mark, or a letter that all such words have."""
    mark = separator.encode()
    return 2 * mark in content or content.startswith(mark) or content.endswith(mark) or _may_have_words(content)


def _may_have_words(content: bytes) -> bool:
    return any(one in content for one in (b"?", b"N", b"n"))


def _lacking(content: bytes, starts: ndarray, lengths: ndarray) -> ndarray:
    """Say which fields have no value: none at all, or one of the words for it."""
    if not _may_have_words(content):
        return lengths == 0
    characters = np.frombuffer(content + b"\0", dtype=np.uint8)
    first, last = characters[starts], characters[np.maximum(starts + lengths - 1, 0)]
    lacking = (lengths == 0) | ((lengths == 1) & (first == ord("?")))
    lacking |= (lengths == 2) & (first == ord("N")) & (last == ord("A"))
    # All other words for it end with something else than a digit.
    for place in np.flatnonzero((lengths > 2) & (last > _ZERO + 9)).tolist():
        lacking[place] = content[starts[place] : starts[place] + lengths[place]] in _WORDS
    return lacking


def _fields(content: bytes, separator: str) -> tuple[ndarray, ndarray]:
    """Return where every field begins and how long it is."""
    cuts = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord(separator))
    starts = np.concatenate([[0], cuts + 1])
    return starts, np.concatenate([cuts, [len(content)]]) - starts


def _spelled(value: int) -> bytes:
    return b"" if value == MISSING else b"%d" % value


def _joined(
    rows: list[ndarray], longer: dict[int, list[bytes]], header: tuple[str, ...], notes: tuple[str, ...]
) -> DataTable | None:
    """Return digits and the few other columns as one table; those are read as any other text file."""
    with naming_the_extra():
        import pandas as pd
    if not rows:
        return None
    digits = np.delete(np.array(rows), list(longer), axis=1) if longer else np.array(rows)
    places = np.setdiff1d(np.arange(len(header)), list(longer))
    if not longer:
        return DataTable(header, digits, places, {}, notes=notes)
    columns = sorted(longer)
    text = "\n".join(",".join(f'"{field}"' for field in fields) for fields in _decoded(longer, columns))
    few = table_of(pd.read_csv(io.StringIO(text), names=[str(c) for c in columns], na_values=["?"]))
    texts = {columns[place]: values for place, values in few.texts.items()}
    if few.numbers.shape[1]:
        also = np.array(columns)[few.places]
        order = np.argsort(np.concatenate([places, also]))
        digits = _beside(digits, few.numbers)[:, order]
        places = np.concatenate([places, also])[order]
    return DataTable(header, digits, places, texts, {columns[p]: w for p, w in few.words.items()}, notes)


def _decoded(longer: dict[int, list[bytes]], columns: list[int]) -> list[tuple[str, ...]]:
    return list(zip(*([field.decode() for field in longer[column]] for column in columns), strict=True))


def _beside(digits: ndarray, few: ndarray) -> ndarray:
    if few.dtype == np.int8:
        return np.hstack([digits, few])
    return np.hstack([np.where(digits == MISSING, np.nan, digits), few])
