"""Text files with a line per row: comma, semicolon, tab or bar between fields, decimal points or commas."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.fit.tables import wide
from parityscope.fit.tables.table import DataTable, refuse_repeated, table_of

SUFFIXES = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_LETTERS = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
_SAMPLE = 1 << 16  # bytes that are looked at beyond the header
_LONGEST_LINE = 1 << 26  # bytes; a million genotypes take two million
_MOST_COLUMNS = 100_000  # that are not single digits: pandas takes minutes and gigabytes for more
_TOLD = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # how spreadsheets say what separates fields
_ALSO_MISSING = ["?"]  # beside what pandas takes for missing: empty fields, NA, N/A, NaN, null, None, …


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    separator: str
    decimal: str
    encoding: str
    header: tuple[str, ...]
    before: int = 0  # lines above the header
    by_returns: bool = False  # lines end in a carriage return alone

    def notes(self, suffix: str) -> tuple[str, ...]:
        """Say what is unusual for a file of that name.

        >>> Dialect(";", ",", "utf-8", ("a", "b")).notes(".csv")
        ('read with semicolons between fields and decimal commas',)
        """
        unusual = []
        if self.separator != SUFFIXES.get(suffix, ",") and suffix != ".txt":
            unusual.append(f"{_SEPARATORS.get(self.separator, repr(self.separator))} between fields")
        if self.decimal == ",":
            unusual.append("decimal commas")
        if self.encoding != "utf-8":
            unusual.append(f"letters as in {_LETTERS[self.encoding]}, since it is not UTF-8")
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
    with _sentences(path, suffix):
        table = _digits(path, suffix, dialect, refuse_missing)
    if table is not None:
        return table
    if len(dialect.header) > _MOST_COLUMNS:
        raise InvalidInput(
            f"{path} has {len(dialect.header)} columns, and they are not single digits: at most {_MOST_COLUMNS}"
        )
    with _sentences(path, suffix), warnings.catch_warnings(), _opened(path) as stream:
        warnings.simplefilter("error", pd.errors.ParserWarning)  # lines that are longer than the header
        frame = pd.read_csv(
            stream,
            sep=dialect.separator,
            decimal=dialect.decimal,
            encoding=dialect.encoding,
            header=0,
            skiprows=dialect.before,
            names=list(dialect.header),
            index_col=False,
            na_values=_ALSO_MISSING,
            low_memory=False,
        )
    if frame.empty:
        raise InvalidInput(f"{path} has no rows")
    return table_of(frame, dialect.notes(suffix))


def _digits(path: Path, suffix: str, dialect: Dialect, refuse_missing: bool) -> DataTable | None:
    """Return a table of very many columns of single digits; None for any other."""
    usual = dialect.encoding == "utf-8" and not dialect.before and not dialect.by_returns
    if len(dialect.header) <= wide.MANY_COLUMNS or not usual:
        return None
    if refuse_missing:
        with _opened(path) as stream:
            wide.refuse_missing(stream, dialect.header, dialect.separator, path)
    with _opened(path) as stream:
        return wide.read_digits(stream, dialect.header, dialect.separator, dialect.notes(suffix))


@contextmanager
def _sentences(path: Path, suffix: str) -> Iterator[None]:
    """Turn what goes wrong when a file is read into a sentence."""
    import pandas as pd

    try:
        yield
    except InvalidInput:
        raise
    except pd.errors.ParserWarning:
        raise InvalidInput(f"{path} has lines with more fields than its header names") from None
    except (ValueError, OSError, EOFError, zlib.error, csv.Error) as error:
        where = "its first line: " if isinstance(error, csv.Error) else ""
        reason = where + (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: {reason}") from None


def sniff(path: Path, suffix: str) -> Dialect:
    """Return how a text file is written, judging by its first lines.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("shift\\tfault\\nday\\t0\\n")
    >>> dialect = sniff(path, ".csv")
    >>> dialect.separator, dialect.encoding, dialect.header
    ('\\t', 'utf-8', ('shift', 'fault'))
    """
    with _sentences(path, suffix):
        encoding = _encoding(path)
        with _opened(path) as stream:
            first, rest = stream.readline(_LONGEST_LINE), stream.read(_SAMPLE)
        first = first.removeprefix(codecs.BOM_UTF8)
        by_returns = b"\r" in first.rstrip(b"\r\n")
        if by_returns:
            first, _, rest = first.partition(b"\r")
        if b"\0" in first:
            raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: it has zero bytes (UTF-16? save it as UTF-8)")
        told = _TOLD.fullmatch(first.decode(encoding))
        if told:
            first, _, rest = rest.partition(b"\r" if by_returns else b"\n")
        if not first.strip():
            raise InvalidInput(f"{path} is empty" if not rest.strip() else f"{path} begins with an empty line")
        header = first.decode(encoding)
        bare = re.sub(r'"[^"]*("|$)', "", header)  # what is within quotes separates nothing
        separator = told[1] if told else max(_SEPARATORS, key=lambda one: (bare.count(one), one == ","))
        while header.count('"') % 2 and rest:  # a name with a line break in it
            line, _, rest = rest.partition(b"\n")
            header += line.decode(encoding) + "\n"
        names = tuple(next(csv.reader(io.StringIO(header), delimiter=separator)))
    sample = rest.decode(encoding, errors="ignore")
    if by_returns:
        sample = sample.replace("\r", "\n")
    return Dialect(separator, _decimal(sample, separator), encoding, names, int(told is not None), by_returns)


def _decimal(sample: str, separator: str) -> str:
    """Return the decimal comma where numbers are written so and none has a point."""
    if separator == ",":
        return "."
    field = f"(?:^|{re.escape(separator)})-?\\d+{{}}\\d+(?={re.escape(separator)}|\r?$)"
    commas, points = (re.search(field.format(mark), sample, re.MULTILINE) for mark in (",", r"\."))
    return "," if commas and not points else "."


def _encoding(path: Path) -> str:
    """Return UTF-8 unless the file, read to its end, is not; refuse a line that no memory should hold."""
    decoders = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8", *_LETTERS)}
    line = 0  # bytes since the last line began
    with _opened(path) as stream:
        while piece := stream.read(1 << 24):
            ends = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
            line = len(piece) - ends - 1 + (line if ends < 0 else 0)
            if line > _LONGEST_LINE:
                raise InvalidInput(f"{path} has a line of more than {_LONGEST_LINE} bytes: is it a table?")
            for name in list(decoders):
                # Most pieces need no decoding.
                if not piece.isascii() or decoders[name].getstate()[0]:
                    try:
                        decoders[name].decode(piece)
                    except UnicodeDecodeError:
                        del decoders[name]
    try:
        decoders["utf-8"].decode(b"", final=True)
    except (KeyError, UnicodeDecodeError):
        decoders.pop("utf-8", None)
    return next(iter(decoders))


def _opened(path: Path) -> io.BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
