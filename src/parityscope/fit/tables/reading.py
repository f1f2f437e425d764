"""Tables of any format by the end of their name; those in columns, by pyarrow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.fit.tables.delimited import SUFFIXES, read_delimited
from parityscope.fit.tables.plink import read_plink
from parityscope.fit.tables.table import MISSING, DataTable, refuse_repeated, table_of

FORMATS = ".csv, .tsv, .tab or .txt (plain or .gz), .parquet, or PLINK's .bed"


def read_table(path: Path, *, refuse_missing: bool = False) -> DataTable:
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


_COLUMNS = 4096  # turned into numbers at a time


def read_parquet(path: Path) -> DataTable:
    """Return the table in a Parquet file.

    >>> import pandas as pd
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.parquet"
    >>> pd.DataFrame({"shift": ["day", "night"], "fault": [0, 1]}).to_parquet(path)
    >>> table = read_parquet(path)
    >>> table.names, table.numbers.tolist(), table.texts[0].tolist()
    (('shift', 'fault'), [[0], [1]], ['day', 'night'])
    """
    with naming_the_extra():
        import pyarrow.parquet as pq
    try:
        with pq.ParquetFile(path) as file:
            # pandas keeps the numbers of rows as a column where it cannot do without.
            names = tuple(name for name in file.schema_arrow.names if not name.startswith("__index_level_"))
            refuse_repeated(names, path)
            if not file.metadata.num_rows:
                raise InvalidInput(f"{path} has no rows")
            parts = [
                table_of(file.read(columns=list(names[start : start + _COLUMNS])).to_pandas(ignore_metadata=False))
                for start in range(0, len(names), _COLUMNS)
            ]
    except InvalidInput:
        raise
    except Exception as error:  # of a damaged file pyarrow and pandas raise whatever they stumble upon
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInput(f"{path} cannot be read as parquet: {reason}") from None
    if not parts:
        raise InvalidInput(f"{path} has no columns")
    return _joined(parts)


def _joined(parts: list[DataTable]) -> DataTable:
    """Return parts with the same rows as one table, bytes if all are."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.names) for part in parts)])
    small = all(part.numbers.dtype == np.int8 for part in parts)
    numbers = [
        part.numbers
        if small or part.numbers.dtype != np.int8
        else np.where(part.numbers == MISSING, np.nan, part.numbers)
        for part in parts
    ]
    together = list(zip(starts.tolist(), parts, strict=False))
    return DataTable(
        tuple(name for part in parts for name in part.names),
        np.concatenate(numbers, axis=1),
        np.concatenate([part.places + start for start, part in together]),
        {place + start: texts for start, part in together for place, texts in part.texts.items()},
        {place + start: words for start, part in together for place, words in part.words.items()},
        left_out={name: why for part in parts for name, why in part.left_out.items()},
    )
