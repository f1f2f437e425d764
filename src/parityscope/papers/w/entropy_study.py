"""`entropy`: let one or two language models read the same problems, store what each head did, and sum it up."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.language_models.measures import COMPARISONS, COT, MEASURES
from parityscope.language_models.measuring import fits, measure_problems
from parityscope.language_models.summary import compare, summarise
from parityscope.language_models.word_problems import VARIANTS, WordProblem
from parityscope.papers.registry import load_figure
from parityscope.papers.w.measured_studies import (
    FIGURE_IDS,
    EntropyStudy,
    ModelNumbers,
    ProblemReading,
    ReadingNumbers,
    StudyNumbers,
    StudyProgress,
    StudyRow,
)
from parityscope.records import Result, Row, Store
from parityscope.records.export import write_numbers

if TYPE_CHECKING:
    from parityscope.language_models.loading import LanguageModel


@dataclass(frozen=True)
class _Readings:
    """What one model did on every problem it has positions for."""

    name: str
    weights: str
    fingerprint: str
    values: dict[str, Float[Tensor, "variants measures layers heads"]]  # by problem key
    seconds: float


def run_study(
    models: Sequence[str],
    problems: Sequence[WordProblem],
    load: Callable[[str], LanguageModel],
    *,
    data: str,
    seed: int = 0,
    batch: int = 1,
    store: Store | None = None,
    on_progress: Callable[[StudyProgress], None] = lambda progress: None,
) -> StudyRow:
    """Measure the models one after the other and return the study.

    With a store, problems that are already there are not read again. A problem that is too
    long for one of the models is left out for all of them, and counted; one that stands twice counts once.

    >>> problem = WordProblem("What is 1 + 1?", "One and one are two.", "2")
    >>> def nothing_to_load(name): ...
    >>> run_study([], [problem, problem], nothing_to_load, data="own").numbers.problems
    1
    """
    if batch < 1:
        raise InvalidInput(f"batch must be 1 or more, got {batch}")
    distinct = list({problem.key: problem for problem in problems}.values())
    reads = [_read(load(name), distinct, seed, batch, store, on_progress) for name in models]
    common = [problem.key for problem in distinct if all(problem.key in read.values for read in reads)]
    if not common:
        raise InvalidInput(f"none of the {len(distinct)} problems fits into the positions the model has")
    config = EntropyStudy(
        models=tuple(read.fingerprint for read in reads),
        problems=hashlib.sha256(" ".join(common).encode()).hexdigest()[:16],
        seed=seed,
    )
    result = _summary(reads, common, data, too_long=len(distinct) - len(common))
    seconds = sum(read.seconds for read in reads)
    if store is not None:
        store.add(config, result, seconds=seconds)
    return Row.of(config, result, seconds)


def _read(
    model: LanguageModel,
    problems: Sequence[WordProblem],
    seed: int,
    batch: int,
    store: Store | None,
    on_progress: Callable[[StudyProgress], None],
) -> _Readings:
    """Let one model read every problem that fits and is not stored, and collect the numbers of all."""
    from parityscope.language_models.loading import fingerprint

    identity = fingerprint(model.network)
    configs = {p.key: ProblemReading(model=identity, problem=p.key, seed=seed) for p in problems}
    stored = {} if store is None else {key: store.row(config) for key, config in configs.items()}
    known = {key: row for key, row in stored.items() if row is not None}
    values = {key: row.arrays["values"] for key, row in known.items()}
    seconds = sum(row.seconds for row in known.values())
    pending = [problem for problem in problems if problem.key not in values and fits(model, problem, seed)]
    on_progress(StudyProgress(model.name, len(values), len(values) + len(pending)))
    for first in range(0, len(pending), batch):
        chosen = pending[first : first + batch]
        started = time.perf_counter()
        found = measure_problems(model, chosen, seed)
        each = (time.perf_counter() - started) / len(chosen)
        seconds += each * len(chosen)
        for problem, heads in zip(chosen, found, strict=True):
            values[problem.key] = heads
            if store is not None:
                numbers = ReadingNumbers(model=model.name, weights=model.weights)
                store.add(configs[problem.key], Result(numbers, {"values": heads}), seconds=each)
        on_progress(StudyProgress(model.name, len(values), len(known) + len(pending)))
    return _Readings(model.name, model.weights, identity, values, seconds)


def _summary(reads: Sequence[_Readings], common: Sequence[str], data: str, too_long: int) -> Result:
    """Return a study over the problems that every model read."""
    models, stacked = [], []
    arrays: dict[str, Tensor] = {}
    for index, read in enumerate(reads):
        values = torch.stack([read.values[key] for key in common])
        stacked.append(values)
        summary = summarise(values)
        arrays |= {f"{index}.mean": summary.mean, f"{index}.half": summary.half}
        models.append(
            ModelNumbers(
                name=read.name,
                weights=read.weights,
                fingerprint=read.fingerprint,
                layers_by_heads=(values.shape[3], values.shape[4]),
                comparisons={other: tuple(found) for other, found in summary.comparisons.items()},
                layers={other: tuple(map(tuple, found)) for other, found in summary.layers.items()},
            )
        )
    second = None
    # Heads correspond when one model was trained on from the other, which their shapes must at least allow.
    if len(stacked) > 1 and stacked[0].shape == stacked[1].shape:
        difference = (stacked[1] - stacked[0])[:, COT]
        second = tuple(compare(difference[:, place]) for place in range(len(MEASURES)))
    numbers = StudyNumbers(
        data=data, problems=len(common), too_long=too_long, models=tuple(models), second_against_first=second
    )
    return Result(numbers, arrays)


def study_json(row: StudyRow) -> dict[str, Any]:
    """Return the object that `entropy --json` prints.

    >>> numbers = StudyNumbers(data="own.jsonl", problems=8, too_long=1, models=(), second_against_first=None)
    >>> study = study_json(Row(EntropyStudy(models=(), problems="9b2e", seed=0), numbers, seconds=2.5))
    >>> study["problems"], study["too_long"], study["seconds"]
    (8, 1, 2.5)
    """
    study = row.numbers
    second = study.second_against_first
    return {
        "data": study.data,
        "problems": study.problems,
        "too_long": study.too_long,
        "models": [_model_json(row, place) for place in range(len(study.models))],
        "second_against_first": None if second is None else [one.to_json() for one in second],
        "seconds": row.seconds,
    }


def _model_json(row: StudyRow, place: int) -> dict[str, Any]:
    model, mean, half = row.numbers.models[place], row.arrays[f"{place}.mean"], row.arrays[f"{place}.half"]
    return {
        "name": model.name,
        "weights": model.weights,
        "fingerprint": model.fingerprint,
        "measures": [
            {
                "measure": measure.name,
                "sink": measure.sink,
                **{
                    variant: {
                        "mean": float(mean[v, index].mean()),
                        "heads": mean[v, index].tolist(),
                        "half_width": _finite(half[v, index]),
                    }
                    for v, variant in enumerate(VARIANTS)
                },
                "CoT against": {other: model.comparisons[other][index].to_json() for other in COMPARISONS},
            }
            for index, measure in enumerate(MEASURES)
        ],
    }


def _finite(half: Float[Tensor, "layers heads"]) -> list[list[float]] | None:
    """Return half-widths as lists; a single problem has none, and JSON has no infinity."""
    return half.tolist() if bool(half.isfinite().all()) else None


def draw_study(out: Path) -> list[Path]:
    """Draw W's Figures 6 and 7 from all studies stored in a folder, and write their numbers beside them.

    Returns the paths of the PNG files.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in draw_study(Path(folder)) if path.exists()]
    ['W-figure-6.png', 'W-figure-7.png']
    """
    from parityscope.core.drawing import themed, write_figure

    rows = Store(out / "store").rows_of(EntropyStudy)
    for name in FIGURE_IDS:
        write_figure(themed(load_figure(name).plot, rows), out / "figures", name)
        write_numbers(rows, out / "figures", name)
    return [out / "figures" / f"{name}.png" for name in FIGURE_IDS]
