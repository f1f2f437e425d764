"""From a path to a table: which reader reads it."""

from __future__ import annotations

from pathlib import Path

from parityscope.core.errors import InvalidInput
from parityscope.fit.tables.columnar import read_parquet
from parityscope.fit.tables.delimited import SUFFIXES, read_delimited
from parityscope.fit.tables.plink import read_plink
from parityscope.fit.tables.table import Table

FORMATS = ".csv, .tsv, .tab or .txt (plain or .gz), .parquet, or PLINK's .bed"


def read_table(path: Path, *, refuse_missing: bool = False) -> Table:
    """Return the table in a file; its name says how it is written, for text files its first lines.

    With `refuse_missing` a text file of very many columns that lacks values is refused before it is read, in seconds;
    of other files the caller sees what is missing once they are read.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.tsv"
    >>> written = path.write_text("shift\\tfault\\nday\\t0\\nnight\\t1\\n")
    >>> read_table(path).names
    ('shift', 'fault')
    """
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    suffix = (Path(path.stem).suffix if path.suffix == ".gz" else path.suffix).lower()
    if suffix in SUFFIXES:
        return read_delimited(path, suffix, refuse_missing=refuse_missing)
    if suffix == ".parquet" and path.suffix != ".gz":
        return read_parquet(path)
    if suffix == ".bed" and path.suffix != ".gz":
        return read_plink(path)
    raise InvalidInput(f"{path} is of an unknown format: use {FORMATS}")
