"""What the figures and claims about language models read: studies stored by `parityscope entropy --out`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

from jaxtyping import Float
from pydantic import PlainSerializer
from torch import Tensor

from parityscope.language_models.measures import MATCHED, MEASURES, PAPER, REDUCTIONS
from parityscope.language_models.measuring import measure_problems
from parityscope.language_models.summary import Comparison, compare, summarise
from parityscope.language_models.word_problems import VARIANTS, Variant, WordProblem
from parityscope.records import Config, Numbers, Row

FIGURE_IDS = ("W-figure-6", "W-figure-7")
COMMAND = "parityscope entropy --model FOLDER_OR_NAME --data FILE [--second-model FOLDER_OR_NAME] --out DIR"
# What is drawn, from top to bottom: W's own measure, the same number of positions on both sides, word order destroyed.
PANELS: tuple[tuple[str, str, tuple[Variant, Variant]], ...] = (
    ("Eq. (1): min over all positions", PAPER, ("no CoT", "CoT")),
    ("as many positions of each suffix", MATCHED, ("no CoT", "CoT")),
    ("the solution's words shuffled, as many positions", MATCHED, ("shuffled CoT", "CoT")),
)
_Stored = Annotated[Comparison, PlainSerializer(Comparison.to_json)]  # by name, not as a list of lists


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
    """What one model did on one problem; read by `run_study`, since a config cannot hold a model.

    >>> ProblemReading(model="1f0c", problem="9b2e", seed=0).measures[0]
    'min (Eq. 1)'
    """

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

    def against(self, other: Variant, reduction: str) -> Comparison:
        """Return CoT compared with another text over all heads, the sink kept."""
        return self.comparisons[other][REDUCTIONS.index(reduction)]  # measures with the sink kept come first

    def against_by_layer(self, other: Variant, reduction: str) -> Sequence[Comparison]:
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

    >>> StudyNumbers(data="own.jsonl", problems=8, too_long=0, models=(), second_against_first=None).title
    ' on 8 problems of own.jsonl'
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
    """Which models read which problems; summed up by `run_study`, since a config cannot hold models.

    >>> first, more = (EntropyStudy(models=("1f0c",), problems=hashed, seed=0) for hashed in ("9b2e", "07aa"))
    >>> first.key == more.key  # other problems are another study
    False
    """

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
    """Return the mean over problems of every head of a study's model, and half its 95 % interval; the sink kept.

    >>> import torch
    >>> from parityscope.records import Numbers
    >>> arrays = {"0.mean": torch.rand(3, len(MEASURES), 2, 4), "0.half": torch.zeros(3, len(MEASURES), 2, 4)}
    >>> row = Row(EntropyStudy(models=("1f0c",), problems="9b2e", seed=0), Numbers(), arrays)
    >>> [tuple(found.shape) for found in heads(row, 0, "CoT", PAPER)]  # two layers of four heads
    [(2, 4), (2, 4)]
    """
    at = VARIANTS.index(variant), REDUCTIONS.index(reduction)
    return row.arrays[f"{place}.mean"][at], row.arrays[f"{place}.half"][at]


def means(row: StudyRow, place: int, measure: int) -> list[str]:
    """Return the mean over problems and heads of each variant for one model and measure of a study, as text.

    >>> import torch
    >>> from parityscope.records import Numbers
    >>> arrays = {"0.mean": torch.full((3, len(MEASURES), 2, 4), 0.25)}
    >>> means(Row(EntropyStudy(models=("1f0c",), problems="9b2e", seed=0), Numbers(), arrays), 0, 0)
    ['0.250', '0.250', '0.250']
    """
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


def lower_share(comparison: Comparison) -> str:
    """Return the share of heads that are lower with its interval over problems, as text.

    >>> import torch
    >>> from parityscope.language_models.summary import compare
    >>> lower_share(compare(torch.tensor([[-0.1, -0.2, -0.3, 0.1]] * 5)))  # three heads of four, in every problem
    '75% (75%–75%)'
    """
    value, low, high = comparison.heads_lower
    return f"{value:.0%} ({low:.0%}–{high:.0%})"


def by_how_much(comparison: Comparison) -> str:
    """Return the mean difference over heads with its interval, as text.

    >>> import torch
    >>> from parityscope.language_models.summary import compare
    >>> by_how_much(compare(torch.tensor([[-0.25, -0.75]] * 5)))
    '-0.500 (-0.500 to -0.500)'
    """
    value, low, high = comparison.difference
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"
