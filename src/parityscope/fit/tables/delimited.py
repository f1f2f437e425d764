"""Text files with a line per row: comma, semicolon, tab or bar between fields, decimal points or commas."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.fit.tables import wide
from parityscope.fit.tables.table import DataTable, refuse_repeated, table_of

SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAMPLE = 1 << 16  # bytes that are looked at beyond the header
_ALSO_MISSING = ["?"]  # beside what pandas takes for missing: empty fields, NA, N/A, NaN, null, None, …


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str
    decimal: str
    encoding: str
    header: tuple[str, ...]

    def notes(self, suffix: str) -> tuple[str, ...]:
        """Say what is unusual for a file of that name.

        >>> Dialect(";", ",", "utf-8", ("a", "b")).notes(".csv")
        ('read with semicolons between fields and decimal commas',)
        """
        unusual = []
        if self.separator != SUFFIXES.get(suffix, ",") and suffix != ".txt":
            unusual.append(f"{_SEPARATORS[self.separator]} between fields")
        if self.decimal == ",":
            unusual.append("decimal commas")
        if self.encoding == "latin-1":
            unusual.append("letters as in Latin-1, since it is not UTF-8")
        return (f"read with {' and '.join(unusual)}",) if unusual else ()


def read_delimited(path: Path, suffix: str, *, refuse_missing: bool = False) -> DataTable:
    """Return the table in a text file, compressed with gzip or not; a wide one that lacks values may be refused first.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("shift;heat;fault\\nday;1,5;0\\nnight;2,25;1\\n")
    >>> table = read_delimited(path, ".csv")
    >>> table.names, table.numbers.tolist(), table.notes
    (('shift', 'heat', 'fault'), [[1.5, 0.0], [2.25, 1.0]], ('read with semicolons between fields and decimal commas',))
    """
    with naming_the_extra():
        import pandas as pd
    dialect = sniff(path, suffix)
    refuse_repeated(dialect.header, path)
    if len(dialect.header) > wide.MANY_COLUMNS and dialect.encoding == "utf-8":
        if refuse_missing:
            with _opened(path) as stream:
                wide.refuse_missing(stream, dialect.header, dialect.separator, path)
        with _opened(path) as stream:
            table = wide.read_digits(stream, dialect.header, dialect.separator, dialect.notes(suffix))
        if table is not None:
            return table
    try:
        with warnings.catch_warnings(), _opened(path) as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)  # lines that are longer than the header
            frame = pd.read_csv(
                stream,
                sep=dialect.separator,
                decimal=dialect.decimal,
                encoding=dialect.encoding,
                header=0,
                names=list(dialect.header),
                index_col=False,
                na_values=_ALSO_MISSING,
                low_memory=False,
            )
    except pd.errors.ParserWarning:
        raise InvalidInput(f"{path} has lines with more fields than its header names, {len(dialect.header)}") from None
    except (pd.errors.ParserError, ValueError, OSError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: {str(error).splitlines()[0]}") from None
    if frame.empty:
        raise InvalidInput(f"{path} has no rows")
    return table_of(frame, dialect.notes(suffix))


def sniff(path: Path, suffix: str) -> Dialect:
    """Return how a text file is written, judging by its first lines.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("shift\\tfault\\nday\\t0\\n")
    >>> sniff(path, ".csv")
    Dialect(separator='\\t', decimal='.', encoding='utf-8', header=('shift', 'fault'))
    """
    try:
        with _opened(path) as stream:
            first, rest = stream.readline(), stream.read(_SAMPLE)
    except (OSError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: {error}") from None
    if not first.strip():
        raise InvalidInput(f"{path} is empty" if not rest.strip() else f"{path} begins with an empty line")
    if b"\0" in first:
        raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: it has zero bytes (UTF-16? save it as UTF-8)")
    encoding = _encoding(path)
    header = first.decode(encoding).lstrip("\ufeff")
    bare = re.sub(r'"[^"]*("|$)', "", header)  # what is within quotes separates nothing
    separator = max(_SEPARATORS, key=lambda one: (bare.count(one), one == ","))
    while header.count('"') % 2 and rest:  # a name with a line break in it
        line, _, rest = rest.partition(b"\n")
        header += line.decode(encoding) + "\n"
    try:
        names = tuple(next(csv.reader(io.StringIO(header), delimiter=separator)))
    except csv.Error as error:
        raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: its first line: {error}") from None
    sample = rest.decode(encoding, errors="ignore")
    return Dialect(separator, _decimal(sample, separator), encoding, names)


def _decimal(sample: str, separator: str) -> str:
    """Return the decimal comma where numbers are written so and none has a point."""
    if separator == ",":
        return "."
    field = f"(?:^|{re.escape(separator)})-?\\d+{{}}\\d+(?={re.escape(separator)}|\r?$)"
    commas, points = (re.search(field.format(mark), sample, re.MULTILINE) for mark in (",", r"\."))
    return "," if commas and not points else "."


def _encoding(path: Path) -> str:
    """Return UTF-8 unless the file, read to its end, is not."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _opened(path) as stream:
            while piece := stream.read(1 << 24):
                if not piece.isascii() or decoder.getstate()[0]:  # most pieces need no decoding
                    decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _opened(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
