"""Studies: one or two language models read the same problems, what each head did is stored, and summed up."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from pydantic import PlainSerializer
from torch import Tensor

from parityscope.core.errors import InvalidInput
from parityscope.language_models.measures import (
    COMPARISONS,
    COT,
    MATCHED,
    MEASURES,
    PAPER,
    REDUCTIONS,
    fits,
    measure_problems,
)
from parityscope.language_models.summary import HeadComparison, compare, summarise
from parityscope.language_models.word_problems import VARIANTS, Variant, WordProblem
from parityscope.records import Config, Numbers, Result, Row, Store
from parityscope.records.row import PROCESSOR_SECONDS

if TYPE_CHECKING:
    from parityscope.language_models.loading import LanguageModel


COMMAND = "parityscope entropy --model FOLDER_OR_NAME --data FILE [--second-model FOLDER_OR_NAME] --out DIR"
# What is drawn, from top to bottom: W's own measure, the same number of positions on both sides, word order destroyed.
PANELS: tuple[tuple[str, str, tuple[Variant, Variant]], ...] = (
    ("Eq. (1): min over all positions", PAPER, ("no CoT", "CoT")),
    ("as many positions of each suffix", MATCHED, ("no CoT", "CoT")),
    ("the solution's words shuffled, as many positions", MATCHED, ("shuffled CoT", "CoT")),
)
_Stored = Annotated[HeadComparison, PlainSerializer(HeadComparison.to_json)]  # by name, not as a list of lists


class StudyProgress(NamedTuple):
    """Where a study stands: problems done with one model.

    >>> StudyProgress("qwen2", 3, 20)._replace(done=4)
    StudyProgress(model='qwen2', done=4, total=20)
    """

    model: str
    done: int
    total: int


class ReadingNumbers(Numbers):
    """Who read a problem; what its heads did is the array `values` (variants, measures, layers, heads)."""

    model: str
    weights: str


class ProblemReading(Config):
    """What one model did on one problem; read by `run_study`, since a config cannot hold a model."""

    ROWS: ClassVar[str] = "W-entropy-problem"
    NUMBERS: ClassVar[type[Numbers]] = ReadingNumbers
    COMPUTED_BY: ClassVar[Any] = (measure_problems, WordProblem)  # named, so that their code is part of the address

    model: str  # fingerprint
    problem: str  # key
    seed: int
    measures: tuple[str, ...] = tuple(map(str, MEASURES))


class ModelNumbers(Numbers):
    """One model of a study: CoT against the other texts, one comparison per measure, over all heads and by layer."""

    name: str
    weights: str
    fingerprint: str
    layers_by_heads: tuple[int, int]
    comparisons: dict[Variant, tuple[_Stored, ...]]
    layers: dict[Variant, tuple[tuple[_Stored, ...], ...]]

    def against(self, other: Variant, reduction: str) -> HeadComparison:
        """Return CoT compared with another text over all heads, the sink kept."""
        return self.comparisons[other][REDUCTIONS.index(reduction)]  # measures with the sink kept come first

    def against_by_layer(self, other: Variant, reduction: str) -> Sequence[HeadComparison]:
        """Return CoT compared with another text, layer by layer, the sink kept."""
        return self.layers[other][REDUCTIONS.index(reduction)]

    @property
    def label(self) -> str:
        """The name and what the weights are."""
        return f"{self.name} ({self.weights})"


class StudyNumbers(Numbers):
    """A study: one model or two on the same problems.

    The arrays `0.mean` and `0.half` (variants, measures, layers, heads) say what the first model's heads did on average
    over problems, and half the 95 % interval of that.
    """

    data: str
    problems: int
    too_long: int
    models: tuple[ModelNumbers, ...]
    second_against_first: tuple[_Stored, ...] | None  # on CoT, one per measure; none unless heads correspond

    @property
    def title(self) -> str:
        """Who read what."""
        return f"{' and '.join(model.label for model in self.models)} on {self.problems} problems of {self.data}"


class EntropyStudy(Config):
    """Which models read which problems; summed up by `run_study`, since a config cannot hold models."""

    ROWS: ClassVar[str] = "W-study"
    NUMBERS: ClassVar[type[Numbers]] = StudyNumbers
    COMPUTED_BY: ClassVar[Any] = (ProblemReading, summarise, compare)

    models: tuple[str, ...]  # fingerprints
    problems: str  # a hash of all problems, in order
    seed: int
    measures: tuple[str, ...] = tuple(map(str, MEASURES))


StudyRow = Row[EntropyStudy, StudyNumbers]


def heads(
    row: StudyRow, place: int, variant: Variant, reduction: str
) -> tuple[Float[Tensor, "layers heads"], Float[Tensor, "layers heads"]]:
    """Return the mean over problems of every head of a study's model, and half its 95 % interval; the sink kept."""
    at = VARIANTS.index(variant), REDUCTIONS.index(reduction)
    return row.arrays[f"{place}.mean"][at], row.arrays[f"{place}.half"][at]


def means(row: StudyRow, place: int, measure: int) -> list[str]:
    """Return the mean over problems and heads of each variant for one model and measure of a study, as text."""
    return [f"{float(by_measure[measure].mean()):.3f}" for by_measure in row.arrays[f"{place}.mean"]]


def shown_studies(rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Return one study for each set of models and data file: the one with the most problems.

    >>> def row(data, problems):
    ...     config = EntropyStudy(models=(), problems=f"{problems} of {data}", seed=0)
    ...     return Row(config, StudyNumbers.model_construct(data=data, problems=problems, models=()))
    >>> [row.numbers.problems for row in shown_studies([row("a.csv", 30), row("a.csv", 80), row("b.csv", 5)])]
    [80, 5]
    """
    best: dict[tuple[str, ...], StudyRow] = {}
    for row in rows:
        key = (row.numbers.data, *row.config.models)
        if key not in best or row.numbers.problems >= best[key].numbers.problems:
            best[key] = row
    return list(best.values())


def lower_share(comparison: HeadComparison) -> str:
    """Return the share of heads that are lower with its interval over problems, as text.

    >>> import torch
    >>> lower_share(compare(torch.tensor([[-0.1, -0.2, -0.3, 0.1]] * 5)))  # three heads of four, in every problem
    '75% (75%–75%)'
    """
    value, low, high = comparison.heads_lower
    return f"{value:.0%} ({low:.0%}–{high:.0%})"


def by_how_much(comparison: HeadComparison) -> str:
    """Return the mean difference over heads with its interval, as text.

    >>> import torch
    >>> by_how_much(compare(torch.tensor([[-0.25, -0.75]] * 5)))
    '-0.500 (-0.500 to -0.500)'
    """
    value, low, high = comparison.difference
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


@dataclass(frozen=True)
class _Readings:
    """What one model did on every problem it has positions for."""

    name: str
    weights: str
    fingerprint: str
    values: dict[str, Float[Tensor, "variants measures layers heads"]]  # by problem key
    seconds: float
    processor: float  # seconds of it; NaN where a row of an earlier release does not say


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
        processor = sum(read.processor for read in reads)
        store.add(config, result, seconds=seconds, processor=None if math.isnan(processor) else processor)
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
    processor = sum(float(row.versions.get(PROCESSOR_SECONDS, math.nan)) for row in known.values())
    pending = [problem for problem in problems if problem.key not in values and fits(model, problem, seed)]
    on_progress(StudyProgress(model.name, len(values), len(values) + len(pending)))
    for first in range(0, len(pending), batch):
        chosen = pending[first : first + batch]
        started, work = time.perf_counter(), time.process_time()
        found = measure_problems(model, chosen, seed)
        each = (time.perf_counter() - started) / len(chosen)
        each_work = (time.process_time() - work) / len(chosen)
        seconds += each * len(chosen)
        processor += each_work * len(chosen)
        for problem, heads in zip(chosen, found, strict=True):
            values[problem.key] = heads
            if store is not None:
                numbers = ReadingNumbers(model=model.name, weights=model.weights)
                result = Result(numbers, {"values": heads})
                store.add(configs[problem.key], result, seconds=each, processor=each_work)
        on_progress(StudyProgress(model.name, len(values), len(known) + len(pending)))
    return _Readings(model.name, model.weights, identity, values, seconds, processor)


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
    """Return the object that `entropy --json` prints."""
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
