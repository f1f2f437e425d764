"""The rows of a damaged store: every page of its file is read by itself, and a row counts when its checksum fits.

SQLite finds rows through a tree of pages and gives up where a page of that tree is damaged. Here no tree is followed:
each page that holds cells of a table is taken apart, long rows are collected from the pages they go on in, and whatever
has the columns of a row and a fitting checksum is one. Section numbers are those of https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parityscope.records.store import COLUMNS, UPSERT, DamagedStore, Database, Store, row_checksum

_LEAF_OF_A_TABLE = 13
_USUAL_PAGE = 4096
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


def repair(folder: Path) -> tuple[int, Path | None]:
    """Copy every sound row of a damaged store into a new file; return how many, and where the old file is now.

    The old file is kept under another name. A store that is not damaged stays as it is, and there is no old file.
    """
    try:
        store = Store(folder)
        store.check_writable()
        if not store.damaged():
            return sum(store.counts().values()) + sum(store.counts(failed=True).values()), None
    except DamagedStore:
        pass
    file = folder / "store.sqlite"
    names = (file.with_name(f"{file.name}.damaged-{number}") for number in range(1, 1000))
    kept = next(name for name in names if not name.exists())
    with TemporaryDirectory(dir=folder, prefix="repaired-") as place:
        new = Database(Path(place))
        with new.writing() as connection:
            connection.executemany(UPSERT, _sound_rows(file))
            (count,) = connection.execute("SELECT count(*) FROM rows").fetchone()
        # The log goes with the file that it belongs to: replayed over the new one it would damage that.
        for suffix in ("", "-wal", "-shm"):
            if (part := file.with_name(file.name + suffix)).exists():
                part.rename(kept.with_name(kept.name + suffix))
        os.replace(new.file, file)
    return count, kept


def _sound_rows(file: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file, some perhaps twice: with its log of late changes, and as they were before."""
    pages = file.read_bytes()
    log = Path(f"{file}-wal")
    late = _late_pages(log.read_bytes()) if log.exists() else {}
    # The size of a page and what is kept free at its end, as the file says (1.3.2, 1.3.4) and as it is nearly always.
    said = int.from_bytes(pages[16:18], "big"), int.from_bytes(pages[20:21], "big")
    for size, free in {said, (_USUAL_PAGE, 0)}:
        if size >= 512 and size & (size - 1) == 0 and size - free >= 480:
            for changes in (late, {}) if late else ({},):
                yield from _File(pages, size, size - free, changes).rows()


def _late_pages(log: bytes) -> dict[int, bytes]:
    """Return the pages of a write-ahead log by their number, the last of each (4.2)."""
    size = int.from_bytes(log[8:12], "big") or _USUAL_PAGE
    found = {}
    for at in range(32, len(log) - size - 23, size + 24):
        if log[at + 8 : at + 16] == log[16:24]:  # a frame of another salt was written before the log began anew
            found[int.from_bytes(log[at : at + 4], "big")] = log[at + 24 : at + 24 + size]
    return found


class _File:
    """A database file as numbered pages, changed by those of its log."""

    def __init__(self, pages: bytes, size: int, usable: int, changes: dict[int, bytes]) -> None:
        self.pages, self.size, self.usable, self.changes = pages, size, usable, changes
        self.count = max(len(pages) // size, *changes, 0)

    def page(self, number: int) -> bytes:
        if number in self.changes:
            return self.changes[number]
        return self.pages[(number - 1) * self.size : number * self.size] if number > 0 else b""

    def rows(self) -> Iterator[tuple[Any, ...]]:
        for number in range(2, self.count + 1):  # the first page lists the tables
            page = self.page(number)
            if len(page) < self.usable or page[0] != _LEAF_OF_A_TABLE:
                continue
            cells = int.from_bytes(page[3:5], "big")  # 1.6
            for place in range(8, min(8 + 2 * cells, self.usable - 1), 2):
                try:
                    row = _values(self.payload(page, int.from_bytes(page[place : place + 2], "big")))
                except (IndexError, ValueError, struct.error):
                    continue
                if len(row) == len(COLUMNS) and row_checksum(row[:-1]) == row[-1]:
                    yield row

    def payload(self, page: bytes, at: int) -> bytes:
        """Return the record of a cell, with what of it stands on other pages (1.6)."""
        length, at = _varint(page, at)
        _, at = _varint(page, at)  # the row's number
        most, least = self.usable - 35, (self.usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (self.usable - 4)
        here = length if length <= most else here if here <= most else least
        parts, left = [page[at : at + here]], length - here
        following = int.from_bytes(page[at + here : at + here + 4], "big")
        if left > len(self.pages) + self.size * len(self.changes):
            raise ValueError("longer than the file")
        while left > 0:
            further = self.page(following)
            if len(further) < self.usable:
                raise ValueError("the row goes on where the file has ended")
            parts.append(further[4 : self.usable][:left])
            left -= len(parts[-1])
            following = int.from_bytes(further[:4], "big")
        return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and where it ends."""
    value = 0
    for _ in range(8):
        byte, at = data[at], at + 1
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at
    return value << 8 | data[at], at + 1


def _values(record: bytes) -> tuple[Any, ...]:
    """Return the columns of a record (2.1)."""
    end, at = _varint(record, 0)
    kinds = []
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        length = _INTEGER_BYTES[kind] if kind < 7 else 8 if kind == 7 else max(0, (kind - 12) // 2)
        raw = record[at : at + length]
        if len(raw) < length:
            raise ValueError("shorter than its columns")
        at += length
        if kind == 0:
            values.append(None)
        elif kind < 7:
            values.append(int.from_bytes(raw, "big", signed=True))
        elif kind == 7:
            values.extend(struct.unpack(">d", raw))
        elif kind < 10:
            values.append(kind - 8)
        else:
            values.append(raw.decode() if kind % 2 else raw)
    # SQLite writes a real number without a fraction as an integer.
    return tuple(
        float(value) if name in ("finished", "seconds") else value for name, value in zip(COLUMNS, values, strict=True)
    )
