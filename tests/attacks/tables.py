"""Odd table files: damaged archives, other encodings and line ends, headers and cells that mean something elsewhere."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Iterator
from pathlib import Path

NAMES, TARGET = ("a", "b", "c", "fault"), "fault"
ROWS = [(str(a), str(b), str(c), str(a ^ c)) for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 8
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1", "shift-jis")
LINE_ENDS = ("\n", "\r\n", "\r", "\n\r", "\n\n", "\x85", "\u2028", "\x0b", "")
SEPARATORS = (",", ";", "\t", "|", " ", ":", ", ", ",,", "\x1f", "§")
CELLS = (
    "", " ", "inf", "-inf", "nan", "NA", "1e400", "-1e400", "1e-400", "9" * 400, "0x1F", "1,5", "1.234,5", "1_000",
    "True", "\x1b[31mred", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", '"', '""', "'", "a\"b", "\ud83d\ude00"
    .encode("utf-16", "surrogatepass").decode("utf-16"), "é", "𝔘", "$x$", "$\\frac", "<b>x</b>", "2026-11-18",
    "18.11.2026 10:00", "\x00", "\x07", "x" * 100_000, "\u202e", "½", "None", "null", "#REF!", "1;2", "a\tb", "[1]",
)  # fmt: skip


def text_of(rows=ROWS, names=NAMES, separator=",", line_end="\n") -> str:
    return line_end.join(separator.join(row) for row in (names, *rows)) + line_end


def odd_tables(flips: int = 40) -> list[tuple[str, bytes]]:
    """Return files by the name they are to have, several with the same name."""
    parts = (_empty(), _written(), _cells(), _headers(), _targets(), _archives(flips), _columns(flips), _noise())
    return [one for part in parts for one in part]


def _empty() -> Iterator[tuple[str, bytes]]:
    for content in (
        b"",
        b"\n",
        b" ",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\n",
        b"\xff\xfe",
        b"\0",
        b"\0" * 99,
        b",",
        b",\n,\n",
    ):
        yield "table.csv", content
        yield "table.csv.gz", gzip.compress(content)
    yield "table.csv", text_of([]).encode()
    for count in (1, 2, 3, 4, 5):
        yield "table.csv", text_of(ROWS[:count]).encode()
        yield "table.csv", text_of(ROWS[count - 1 :: 8]).encode()


def _written() -> Iterator[tuple[str, bytes]]:
    accented = [(*row[:3], "é" if row[3] == "1" else "n") for row in ROWS]
    for encoding in ENCODINGS:
        yield "table.csv", text_of(accented).encode(encoding, errors="replace")
    yield "table.csv", text_of([(*row[:3], "“" if row[3] == "1" else "€") for row in ROWS]).encode("cp1252")
    yield "table.csv", text_of([(*row[:3], "x\x81") for row in ROWS]).encode("latin-1")
    for line_end in LINE_ENDS:
        yield "table.csv", text_of(line_end=line_end).encode()
    for separator in SEPARATORS:
        for suffix in (".csv", ".tsv", ".txt"):
            yield f"table{suffix}", text_of(separator=separator).encode()
    for told in ("sep=;", "sep=,", "sep=", "SEP=;", '"sep=;"', "sep=ab", "sep=\t", "# comment"):
        yield "table.csv", f"{told}\n{text_of(separator=';')}".encode()
        yield "table.csv", f"{told}\r\n{text_of(separator=';', line_end=chr(13) + chr(10))}".encode()
    for mark in ("{}5", "1.{}5", "-{}25", "{}5e3"):
        commas = [(mark.format(f"{row[0]},"), *row[1:]) for row in ROWS]
        yield "table.csv", text_of(commas, separator=";").encode()
        yield "table.csv", text_of(commas).encode()
        yield "table.csv", text_of([(f'"{row[0]}"', *row[1:]) for row in commas]).encode()


def _cells() -> Iterator[tuple[str, bytes]]:
    for cell in CELLS:
        content = cell.encode("utf-8", "surrogatepass")
        for place in (0, 3):
            rows = [tuple("@@" if i == place and number % 3 == 0 else v for i, v in enumerate(row))
                    for number, row in enumerate(ROWS)]  # fmt: skip
            yield "table.csv", text_of(rows).encode().replace(b"@@", content)
    for line in ("1", "1,2,3,4,5", '"1,2,3,4', "1,2,3,4" * 20, ",,,", '"' * 99):
        yield "table.csv", (text_of() + line + "\n").encode()
        yield "table.csv", (text_of(ROWS[:4]) + line + "\n" + text_of(ROWS, ROWS[0])).encode()


def _headers() -> Iterator[tuple[str, bytes]]:
    for cell in CELLS:
        content = text_of(names=("@@", *NAMES[1:])).encode()
        yield "table.csv", content.replace(b"@@", cell.encode("utf-8", "surrogatepass"))
    for names in (("a", "a", "b", "fault"), ("", "", "", "fault"), ("1", "2", "3", "fault"), ('"a', "b", "c", "fault")):
        yield "table.csv", text_of(names=names).encode()


def _targets() -> Iterator[tuple[str, bytes]]:
    for values in (("x",), ("x", "y", "z"), ("",), ("", "1"), ("2026-01-01", "2026-01-02"), ("1e308", "-1e308"),
                   ("1", "1.0"), ("True", "False"), ("0", "x"), tuple(map(str, range(40))), ("inf", "0"),
                   tuple(f"{i}.5" for i in range(40)), ("1e-320", "0"), ("x", *["y"] * 999)):  # fmt: skip
        rows = [(*row[:3], values[number % len(values)]) for number, row in enumerate(ROWS)]
        yield "table.csv", text_of(rows).encode()
        yield "table.csv", text_of(rows[:9]).encode()


def _flipped(content: bytes, flips: int) -> Iterator[bytes]:
    chance = random.Random(len(content))
    for _ in range(flips):
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        yield bytes(changed)


def _archives(flips: int) -> Iterator[tuple[str, bytes]]:
    whole = gzip.compress(text_of(ROWS * 20).encode(), mtime=0)
    for changed in _flipped(whole, flips):
        yield "table.csv.gz", changed
    for length in (1, 5, 10, 18, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        yield "table.csv.gz", whole[:length]
    yield "table.csv.gz", text_of().encode()  # not compressed at all
    yield "table.csv.gz", whole + b"more"
    yield "table.csv.gz", whole + whole
    yield "table.csv", whole
    yield "table.parquet.gz", whole
    yield "table.bed", whole
    yield "table.xyz", whole


def _columns(flips: int) -> Iterator[tuple[str, bytes]]:
    import datetime
    import decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    count = len(ROWS)
    plain = {name: pa.array([int(row[place]) for row in ROWS]) for place, name in enumerate(NAMES)}
    day, noon = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 12)
    odd = {
        "times": pa.array([noon, noon.replace(hour=13)] * (count // 2)),
        "zoned": pa.array([noon, noon.replace(hour=13)] * (count // 2), pa.timestamp("us", "UTC")),
        "days": pa.array([day, day.replace(day=2)] * (count // 2)),
        "lengths": pa.array([datetime.timedelta(1), datetime.timedelta(2)] * (count // 2)),
        "hours": pa.array([noon.time(), datetime.time(1)] * (count // 2)),
        "decimals": pa.array([decimal.Decimal("1.5"), decimal.Decimal("2.5")] * (count // 2)),
        "lists": pa.array([[1], [2, 3]] * (count // 2)),
        "structs": pa.array([{"x": 1}, {"x": 2}] * (count // 2)),
        "bytes": pa.array([b"\xff", b"\x00"] * (count // 2)),
        "words": pa.array(["x", "y"] * (count // 2)).dictionary_encode(),
        "nothing": pa.nulls(count),
        "truths": pa.array([True, False] * (count // 2)),
        "halves": pa.array([None, 2**64 - 1] * (count // 2), pa.uint64()),
        "maps": pa.array([[("a", 1)], []] * (count // 2), pa.map_(pa.string(), pa.int64())),
    }
    for column in odd.values():
        for place in ("a", TARGET):
            yield "table.parquet", _parquet(pa.table({**plain, place: column}), pq)
    whole = _parquet(pa.table(plain), pq)
    for changed in _flipped(whole, flips):
        yield "table.parquet", changed
    for length in (0, 3, 4, 8, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        yield "table.parquet", whole[:length]
    for metadata in (b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": ["nowhere"], "columns": []}', b"\xff"):
        table = pa.table(plain).replace_schema_metadata({b"pandas": metadata})
        yield "table.parquet", _parquet(table, pq)
    yield "table.parquet", _parquet(pa.table({}), pq)
    yield "table.parquet", _parquet(pa.table(plain).slice(0, 0), pq)


def _parquet(table, pq) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _noise() -> Iterator[tuple[str, bytes]]:
    chance = random.Random(11)
    whole = text_of().encode()
    for number in range(24):
        yield f"table.{('csv', 'tsv', 'parquet')[number % 3]}", chance.randbytes(1 << number % 12)
    for _ in range(40):
        changed = bytearray(whole)
        for _ in range(4):
            changed[chance.randrange(len(changed))] = chance.choice(b',;\t"\r\n\x00\xff\x1b=')
        yield "table.csv", bytes(changed)


def put(folder: Path, name: str, content: bytes) -> Path:
    """Write a table, and for PLINK's format what belongs beside it."""
    path = folder / name
    path.write_bytes(content)
    if path.suffix == ".bed":
        path.with_suffix(".fam").write_text("".join(f"f{i} i{i} 0 0 1 {1 + i % 2}\n" for i in range(8)))
        path.with_suffix(".bim").write_text("".join(f"1\tv{i}\t0\t{i}\tA\tG\n" for i in range(3)))
    return path
