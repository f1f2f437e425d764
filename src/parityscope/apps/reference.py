"""The evidence that is shipped with the project: rows of the reference run as text, and the figures drawn from them.

python -m parityscope.apps.reference unpack FOLDER    # the shipped rows into FOLDER/store, where `reproduce` finds them
python -m parityscope.apps.reference recheck FOLDER   # keeps stale rows there where recomputing some gives the same
python -m parityscope.apps.reference measure FOLDER   # language models that FOLDER/store has no rows of, where it can
python -m parityscope.apps.reference pack FOLDER      # the rows in FOLDER/store into reference/, to be shipped
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError
from rich.console import Console
from torch import Tensor

from parityscope.core.errors import InvalidInput, MissingExtra
from parityscope.core.threads import single_threaded
from parityscope.language_models.packaged import PACKAGED, PackagedModel, prepared_model
from parityscope.language_models.study import EntropyStudy, StudyRow
from parityscope.papers.claim import computed
from parityscope.papers.figure import PaperFigure, Scale, own_size_of
from parityscope.papers.registry import FIGURE_IDS, all_claims, load_figure
from parityscope.papers.results import claim_check, needs_of, work_of
from parityscope.records import Config, Outcome, Result, Row, Store, StoredRow, read_text, write_text
from parityscope.runs import Work

_PROJECT, _PACKAGE = Path(__file__).parents[3], Path(__file__).parents[1] / "_reference"
RECHECKED = "rechecked"  # stands among a row's versions
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12  # what is smaller than the second is rounding
_FEWEST, _SECONDS = 2, 20.0  # rows of each kind that are recomputed at least, and how long more of them may take
PROBLEMS = 80  # that a language model reads
_DATA = "gsm8k-test.parquet"
_CACHE = Path.home() / ".cache" / "parityscope"


def _shipped(in_project: str, in_package: str) -> Path:
    """Return a shipped folder: of the clone this runs from, or else of the installed package."""
    place = _PROJECT / in_project
    return place if place.is_dir() else _PACKAGE / in_package


def reference_picture(figure: PaperFigure, scale: Scale) -> bytes | None:
    """Return the shipped figure as PNG where a run at this scale shows less than the reference run."""
    weaker = scale in ("smoke", "demo") and figure.CONFIGS[scale] != figure.CONFIGS["reference"]
    path = _shipped("docs/results/figures", "figures") / f"{figure.ID}.png"
    return path.read_bytes() if weaker and path.is_file() else None


def unpack_reference(folder: Path) -> int:
    """Add the shipped rows to the store in `folder`; return how many there are."""
    return read_text(_shipped("reference", "rows"), Store(folder / "store"))


def pack_reference(folder: Path, into: Path = _PROJECT / "reference") -> int:
    """Ship those rows of the store in `folder` that the reference run asks for, as of today; return how many."""
    store = Store(folder / "store")
    wanted = {config.key for work in _works() for config in work.configs}
    wanted |= {claim_check(claim, "reference", store).key for claim in all_claims()}
    for figure in (load_figure(name) for name in FIGURE_IDS):  # what other commands computed
        wanted |= {config.row_config().key for config in own_size_of(figure)}
        wanted |= {config.key for config in getattr(figure, "MEASURED_ELSEWHERE", ())}
        if hasattr(figure, "STORED"):
            wanted |= {row.config.key for row in store.rows_of(figure.STORED)}
    return write_text(store, into, among=wanted)


def _works(*, timed: bool = True) -> list[Work]:
    """Return what the reference run computes for figures and claims; timings only if asked for."""
    figures = [load_figure(name) for name in FIGURE_IDS]
    works = [work_of(figure, "reference") for figure in figures if timed or not getattr(figure, "TIMED", False)]
    return [*works, needs_of(all_claims(), "reference")]


def recheck_reference(folder: Path) -> Iterator[Recheck]:
    """Recheck the stale rows in `folder` that the reference run asks for; timings are no evidence of another code."""
    configs = [config for work in _works(timed=False) for config in work.configs]
    configs += [config.row_config() for name in FIGURE_IDS for config in own_size_of(load_figure(name))]
    return recheck(Store(folder / "store"), configs)


# Rows that older code made: the cheapest are recomputed, and where they agree the others are kept for today's code.


@dataclass(frozen=True)
class Recheck:
    """What became of the rows of one kind that one older code made.

    >>> print(Recheck("training", "5d41", rows=64, recomputed=2))
    training of code 5d41: 2 of 64 rows recomputed and equal, all are kept
    >>> print(Recheck("training", "5d41", rows=64, recomputed=2, difference="risk is 0.5, was 0.25"))
    training of code 5d41: its 64 rows stay stale, since risk is 0.5, was 0.25
    """

    experiment: str
    code: str
    rows: int
    recomputed: int
    difference: str | None = None

    def __str__(self) -> str:
        kind = f"{self.experiment} of code {self.code or 'unknown'}"
        if self.difference is None:
            return f"{kind}: {self.recomputed} of {self.rows} rows recomputed and equal, all are kept"
        return f"{kind}: its {self.rows} rows stay stale, since {self.difference}"


class _Pair(NamedTuple):
    """A config and the row that older code made of it."""

    config: Config
    row: StoredRow


def recheck(store: Store, configs: Iterable[Config], *, seconds: float = _SECONDS) -> Iterator[Recheck]:
    """Go through the configs that have a row of older code only; yield what became of each kind and code.

    The rows that took least are computed anew: two at least, and as many as fit into `seconds`. They are stored as what
    they are, rows of today's code. If all are as they were (floats to 1e-9, anything else exactly), the others of their
    kind and code are copied to today's address with a note about it; otherwise they stay stale.
    """
    for pairs in _older(store, configs):
        yield _recheck(store, sorted(pairs, key=lambda pair: pair.row.seconds), seconds)


def _older(store: Store, configs: Iterable[Config]) -> list[list[_Pair]]:
    """Return the newest older row of every config without one of today, by kind and code.

    A field that is new since then counts as having had its default.
    """
    done, kinds = store.keys(), dict[str, type[Config]]()
    wanted = {
        _identity(config.ROWS, config.VERSION, config.model_dump(mode="json")): config
        for config in configs
        if config.key not in done and kinds.setdefault(config.ROWS, type(config))
    }
    newest = {}
    for row in store.rows():
        if row.experiment not in kinds:
            continue
        try:
            fields = kinds[row.experiment].model_validate(row.config).model_dump(mode="json")
        except ValidationError:  # a field that is no more
            continue
        identity = _identity(row.experiment, row.version, fields)
        if identity in wanted:
            newest[identity] = _Pair(wanted[identity], row)
    groups: dict[tuple[str, str], list[_Pair]] = {}
    for pair in newest.values():
        groups.setdefault((pair.row.experiment, pair.row.code), []).append(pair)
    return list(groups.values())


def _identity(rows: str, version: int, fields: Mapping[str, Any]) -> str:
    return json.dumps([rows, version, dict(fields)], sort_keys=True)


def _recheck(store: Store, pairs: Sequence[_Pair], seconds: float) -> Recheck:
    """Recheck the rows of one kind and code, given from the cheapest on."""
    spent, recomputed, difference = 0.0, 0, None
    for pair in pairs:
        spent += pair.row.seconds
        if difference is not None or (recomputed >= _FEWEST and spent > seconds):
            break
        difference = _difference_now(store, pair)
        recomputed += 1
    experiment, code = pairs[0].row.experiment, pairs[0].row.code
    if difference is None:
        note = f"{recomputed} of {len(pairs)} rows of code {code or 'unknown'} recomputed and equal"
        store.add_rows(_kept(pair, note) for pair in pairs[recomputed:])
    return Recheck(experiment, code, len(pairs), recomputed, difference)


def _kept(pair: _Pair, note: str) -> StoredRow:
    before = pair.row.versions.get(RECHECKED)
    notes = note if before is None else f"{before}; {note}"
    fields = pair.config.model_dump(mode="json")
    return replace(pair.row, config=fields, code=pair.config.code(), versions={**pair.row.versions, RECHECKED: notes})


def _difference_now(store: Store, pair: _Pair) -> str | None:
    """Compute a row anew, store it, and say where it differs from the older one."""
    config, row = pair
    try:
        with single_threaded():
            fresh = computed(config)
    except Exception as error:
        return f"row {row.key} fails now: {type(error).__name__}: {error}"
    outcome = Outcome.of(Result(fresh.numbers, fresh.arrays), fresh.seconds)
    store.add_all([(config, outcome)])
    numbers = json.loads(json.dumps(outcome.numbers))
    place = first_difference(row.numbers, numbers) or _first_difference_of_arrays(row, fresh)
    return None if place is None else f"{place} in row {row.key}"


def first_difference(was: Any, now: Any, place: str = "numbers") -> str | None:
    """Return the first place where two JSON values differ: floats by more than 1e-9 of their size, others at all."""
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        found = (first_difference(was[name], now[name], f"{place}.{name}") for name in was)
        return next((one for one in found if one is not None), None)
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        found = (first_difference(*both, f"{place}[{index}]") for index, both in enumerate(zip(was, now, strict=True)))
        return next((one for one in found if one is not None), None)
    if isinstance(was, float) and isinstance(now, float):
        same = math.isclose(was, now, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) or (math.isnan(was) and math.isnan(now))
    else:
        same = type(was) is type(now) and was == now
    return None if same else f"{place} is {_short(now)}, was {_short(was)}"


def _first_difference_of_arrays(row: StoredRow, fresh: Row[Any, Any]) -> str | None:
    if row.arrays.keys() != fresh.arrays.keys():
        return f"the arrays are {', '.join(fresh.arrays)}, were {', '.join(row.arrays)}"
    different = (name for name, was in row.arrays.items() if not _same(was, fresh.arrays[name]))
    return next((f"the array {name} differs" for name in different), None)


def _same(was: Tensor, now: Tensor) -> bool:
    if was.shape != now.shape or was.dtype != now.dtype:
        return False
    if not was.dtype.is_floating_point:
        return torch.equal(was, now)
    return torch.allclose(was.double(), now.double(), rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else text[:37] + "…"


# Language models: measured where weights and data can be had, or else as shipped.


def measure_models(folder: Path, cache: Path | None = None) -> Iterator[str]:
    """Measure every packaged model that the store in `folder` has no study of, and yield a line on each.

    The data are the first problems of GSM8K's test split, in the folder that PARITYSCOPE_DATA names. Models are kept in
    `cache`, or where the environment variable LM_CACHE says.
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
    from parityscope.apps.terminal.progress import Progress
    from parityscope.language_models.loading import load_language_model
    from parityscope.language_models.study import run_study
    from parityscope.language_models.word_problems import read_word_problems

    problems = list(read_word_problems(data, limit=PROBLEMS))
    with Progress(Console(stderr=True)) as progress:
        name = str(prepared_model(model, cache))
        return run_study([name], problems, load_language_model, data=_DATA, store=store, on_progress=progress.study)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("unpack", "recheck", "measure", "pack"))
    parser.add_argument("folder", type=Path, help="the --out folder of `parityscope reproduce --scale reference`")
    arguments = parser.parse_args()
    if arguments.what == "unpack":
        print(f"{unpack_reference(arguments.folder)} shipped rows in {arguments.folder}")
    elif arguments.what == "pack":
        print(f"{pack_reference(arguments.folder)} rows of {arguments.folder} are shipped now")
    elif arguments.what == "measure":
        for line in measure_models(arguments.folder):
            print(line, flush=True)
    else:
        for found in recheck_reference(arguments.folder):
            print(found, flush=True)


if __name__ == "__main__":
    _main()
