"""The language models of the reference run: measured where weights and data can be had, or else as shipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from parityscope.core.errors import InvalidInput, MissingExtra
from parityscope.language_models.packaged import PACKAGED, PackagedModel, prepared_model
from parityscope.language_models.study import EntropyStudy, StudyRow
from parityscope.records import Store

PROBLEMS = 80
_DATA = "gsm8k-test.parquet"
_CACHE = Path.home() / ".cache" / "parityscope"


def measure_models(folder: Path, cache: Path | None = None) -> Iterator[str]:
    """Measure every packaged model that the store in `folder` has no study of, and yield a line on each.

    The data are the first problems of GSM8K's test split, in the folder that PARITYSCOPE_DATA names. Models are kept in
    `cache`, or where the environment variable LM_CACHE says.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"PARITYSCOPE_DATA": ""}):
    ...     print(next(measure_models(Path(tempfile.mkdtemp()))))
    smollm2-135m-instruct-4bit: not measured, since PARITYSCOPE_DATA names no folder with gsm8k-test.parquet
    """
    store = Store(folder / "store")
    place = cache or Path(os.environ.get("LM_CACHE") or _CACHE)
    for model in PACKAGED.values():
        known = _study_of(model, store)
        if known is not None:
            yield f"{known.numbers.title}: measured"
            continue
        try:
            yield f"{_measured(model, store, place).numbers.title}: measured now"
        except (InvalidInput, MissingExtra, OSError) as error:
            yield f"{model.name}: not measured, since {error}"


def _study_of(model: PackagedModel, store: Store) -> StudyRow | None:
    """Return a study of this model alone, by this code, on enough problems."""
    for row in store.rows_of(EntropyStudy):
        if [one.name for one in row.numbers.models] == [model.name] and row.numbers.problems >= PROBLEMS:
            return row
    return None


def _measured(model: PackagedModel, store: Store, cache: Path) -> StudyRow:
    """Fetch the model if need be, let it read the problems and store the study."""
    data = Path(os.environ.get("PARITYSCOPE_DATA") or "nowhere") / _DATA
    if not data.is_file():
        raise InvalidInput(f"PARITYSCOPE_DATA names no folder with {_DATA}")
    from parityscope.apps.terminal.progress import entropy_progress
    from parityscope.language_models.loading import load_language_model
    from parityscope.language_models.study import run_study
    from parityscope.language_models.word_problems import read_word_problems

    problems = list(read_word_problems(data, limit=PROBLEMS))
    with entropy_progress(Console(stderr=True)) as on_progress:
        name = str(prepared_model(model, cache))
        return run_study([name], problems, load_language_model, data=_DATA, store=store, on_progress=on_progress)
