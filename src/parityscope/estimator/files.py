"""From a file to the interaction: read a table, fit, and say everything that was found."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parityscope.core.atomic_files import write_atomically
from parityscope.core.errors import InvalidInput, naming_the_extra
from parityscope.estimator.answer import Answer, Question, ask, two_classes
from parityscope.estimator.bits import FEW_LEVELS

if TYPE_CHECKING:
    from pandas import DataFrame

_READ_CSV = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_FORMATS = ".csv, .tsv or .tab (plain or .gz) or .parquet"


@dataclass(frozen=True)
class TableFit:
    """What `parityscope fit` found in a file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("shift,fault\\n" + "day,0\\nnight,1\\n" * 20)
    >>> fitted = fit_file(path, "fault")
    >>> fitted.bits, fitted.spelled("shift", "1")
    (['shift = night'], 'night')
    """

    path: Path
    target: str
    names: tuple[str, ...]  # of the columns that were searched
    classes: np.ndarray
    answer: Answer
    spellings: dict[str, tuple[str, ...]]  # how the values of text columns are written, by code
    ignored: dict[str, str]  # columns that took no part, and why
    notes: tuple[str, ...]
    rows: int
    seconds: float

    @property
    def columns(self) -> list[str]:
        """The names of the found columns."""
        return [self.names[column] for column in self.answer.support]

    @property
    def bits(self) -> list[str]:
        """The questions whose parity is taken."""
        if self.answer.interaction is None:
            return []
        return [
            bit.describe(name, partial(self._spelled_number, name))
            for bit, name in zip(self.answer.interaction.bits, self.columns, strict=True)
        ]

    def spelled(self, column: str, value: str) -> str:
        """Return a value as it stands in the file."""
        names = self.spellings.get(column)
        return value if names is None or not value.isdigit() else names[int(value)]

    def _spelled_number(self, column: str, value: float) -> str:
        return self.spelled(column, f"{value:g}")

    def truth_table(self) -> list[dict[str, Any]]:
        """Return the combinations of values with their rows and the share of the second class."""
        names = self.columns
        table = []
        for cell in self.answer.truth_table:
            by_column = len(cell.values) == len(names)
            values = (
                {name: self.spelled(name, value) for name, value in zip(names, cell.values, strict=True)}
                if by_column
                else {"parity": cell.values[0]}
            )
            share = cell.second_class / cell.rows if cell.rows else None
            table.append({"values": values, "rows": cell.rows, "share": share})
        return table

    def to_json(self) -> dict[str, Any]:
        """Return the object that `fit --json` prints; `accuracy` is that of held-out rows."""
        answer = self.answer
        return {
            "support": list(answer.support),
            "columns": self.columns,
            "k": len(answer.support),
            "accuracy": answer.held_out_accuracy,
            "p_value": answer.p_value,
            "noise_rate": answer.noise_rate,
            "bits": self.bits,
            "solver": answer.solver,
            "reason": answer.reason,
            "rule": answer.rule,
            "target": self.target,
            "classes": [_plain(one) for one in self.classes],
            "rows": self.rows,
            "features": len(self.names),
            "truth_table": self.truth_table(),
            "ties": {self.names[c]: [self.names[other] for other in others] for c, others in answer.ties.items()},
            "ignored": self.ignored,
            "notes": list(self.notes),
            "attempts": [vars(attempt) for attempt in answer.attempts],
            "seconds": round(self.seconds, 3),
        }


def fit_file(path: Path, target: str, *, k: int | None = None, max_k: int = 10, seed: int = 0) -> TableFit:
    """Read a table, look for the parity that is its target column, and return what was found.

    >>> import tempfile
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 10
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> fitted = fit_file(path, "fault")
    >>> fitted.bits, fitted.answer.held_out_accuracy
    (['a = 1', 'c = 1'], 1.0)
    """
    frame = read_table(path)
    if target not in frame.columns:
        some = ", ".join(map(str, frame.columns[:12])) + (", …" if len(frame.columns) > 12 else "")
        raise InvalidInput(f"{path} has no column {target!r}: choose one of {some}")
    _check_complete(frame, path)
    columns, spellings, ignored = _features(frame.drop(columns=target), path)
    if not columns:
        raise InvalidInput(f"{path} has no column to search besides {target!r}")
    names = tuple(columns)
    classes, labels = two_classes(frame[target].to_numpy(), target)
    started = time.perf_counter()
    X = np.column_stack(list(columns.values()))
    answer = ask(Question(k, max_k), X, labels, np.random.RandomState(seed), names.__getitem__)
    seconds = time.perf_counter() - started
    ignored |= {names[column]: "constant" for column in answer.constant}
    notes = answer.tie_sentences(names.__getitem__)
    if answer.interaction is None:
        notes.append(answer.nothing_sentence)
    return TableFit(path, target, names, classes, answer, spellings, ignored, tuple(notes), len(frame), seconds)


def write_fit(fitted: TableFit, out: Path) -> list[str]:
    """Write what was found and its picture into a folder; return the names of the files.

    >>> import tempfile
    >>> rows = [f"{a},{b},{c},{a ^ c}" for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 10
    >>> path = Path(tempfile.mkdtemp()) / "faults.csv"
    >>> written = path.write_text("\\n".join(["a,b,c,fault", *rows]))
    >>> write_fit(fit_file(path, "fault"), path.parent)
    ['fit.json', 'interaction.png']
    >>> json.loads((path.parent / "fit.json").read_text())["columns"]
    ['a', 'c']
    """
    write_atomically(out / "fit.json", json.dumps(fitted.to_json(), indent=2).encode())
    # Numbers first: they survive a missing plotting library.
    from parityscope.core.drawing import png, themed
    from parityscope.estimator.picture import interaction_figure

    write_atomically(out / "interaction.png", png(themed(interaction_figure, fitted)))
    return ["fit.json", "interaction.png"]


def read_table(path: Path) -> DataFrame:
    """Return the table in a file: CSV, TSV or parquet, the first two also compressed with gzip.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faults.tsv"
    >>> written = path.write_text("shift\\tfault\\nday\\t0\\nnight\\t1\\n")
    >>> read_table(path).to_dict("list")
    {'shift': ['day', 'night'], 'fault': [0, 1]}
    """
    with naming_the_extra():
        import pandas as pd
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    try:
        if suffix == ".parquet" and path.suffix != ".gz":
            with naming_the_extra():
                import pyarrow  # noqa: F401  pandas names no extra of ours
            frame = pd.read_parquet(path)
        elif suffix in _READ_CSV:
            frame = pd.read_csv(path, sep=_READ_CSV[suffix])
        else:
            raise InvalidInput(f"{path} is of an unknown format: use {_FORMATS}")
    except InvalidInput:
        raise
    except pd.errors.EmptyDataError:
        raise InvalidInput(f"{path} is empty") from None
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read as {suffix[1:]}: {str(error).splitlines()[0]}") from None
    if frame.empty:
        raise InvalidInput(f"{path} has no rows")
    frame.columns = frame.columns.astype(str)
    return frame


def _check_complete(frame: DataFrame, path: Path) -> None:
    missing = frame.isna().sum()
    missing = missing[missing > 0]
    if len(missing):
        more = f" (and {len(missing) - 1} other columns)" if len(missing) > 1 else ""
        raise InvalidInput(
            f"{path} has {int(missing.iloc[0])} missing values in column {missing.index[0]!r}{more}: "
            "drop these rows or fill them in first"
        )


def _features(frame: DataFrame, path: Path) -> tuple[dict[str, np.ndarray], dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the columns as numbers: text of a few values by codes in alphabetical order, other text left out."""
    spellings: dict[str, tuple[str, ...]] = {}
    ignored: dict[str, str] = {}
    columns: dict[str, np.ndarray] = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind in "biuf":
            columns[name] = values.to_numpy(dtype=values.dtype.type)  # also from pandas' own types of number
            if not np.isfinite(columns[name]).all():
                raise InvalidInput(f"{path} has infinite values in column {name!r}: drop these rows or replace them")
            continue
        levels, codes = np.unique(values.astype(str).to_numpy(dtype=object), return_inverse=True)
        if len(levels) > FEW_LEVELS:
            ignored[name] = f"text of {len(levels)} different values"
        else:
            columns[name] = codes.astype(np.int8)
            spellings[name] = tuple(levels)
    return columns, spellings, ignored


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
