"""What the figures and claims about language models read: studies stored by `parityscope entropy --out`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from parityscope.language_models.measures import COMPARISONS, MATCHED, MEASURES, PAPER, REDUCTIONS
from parityscope.language_models.summary import Comparison
from parityscope.language_models.word_problems import VARIANTS, Variant
from parityscope.papers.figure import Table
from parityscope.records import Config, Row

FIGURE_IDS = ("W-figure-6", "W-figure-7")
COMMAND = "parityscope entropy --model FOLDER_OR_NAME --data FILE [--second-model FOLDER_OR_NAME] --out DIR"
# What is drawn, from top to bottom: W's own measure, the same number of positions on both sides, word order destroyed.
PANELS: tuple[tuple[str, str, tuple[Variant, Variant]], ...] = (
    ("Eq. (1): min over all positions", PAPER, ("no CoT", "CoT")),
    ("as many positions of each suffix", MATCHED, ("no CoT", "CoT")),
    ("the solution's words shuffled, as many positions", MATCHED, ("shuffled CoT", "CoT")),
)


class StudyProgress(NamedTuple):
    """Where a study stands: problems done with one model.

    >>> StudyProgress("qwen2", 3, 20)._replace(done=4)
    StudyProgress(model='qwen2', done=4, total=20)
    """

    model: str
    done: int
    total: int


class Study(Config):
    """The address of a study: which models read which problems."""

    models: tuple[str, ...]  # fingerprints
    problems: str  # a hash of all problems, in order
    seed: int
    measures: tuple[str, ...] = tuple(map(str, MEASURES))


@dataclass(frozen=True)
class MeasuredModel:
    """One model of a study: what its heads did on average, and CoT against the other texts.

    >>> import torch
    >>> mean = torch.rand(len(VARIANTS), len(MEASURES), 2, 4)  # two layers of four heads
    >>> model = MeasuredModel("qwen2", "float32", "1f0c", mean, torch.zeros_like(mean), {}, {})
    >>> means, half_widths = model.heads("CoT", PAPER)
    >>> model.label, tuple(means.shape)
    ('qwen2 (float32)', (2, 4))
    """

    name: str
    weights: str
    fingerprint: str
    mean: Float[Tensor, "variants measures layers heads"]
    half: Float[Tensor, "variants measures layers heads"]
    comparisons: Mapping[Variant, Sequence[Comparison]]
    layers: Mapping[Variant, Sequence[Sequence[Comparison]]]

    def heads(
        self, variant: Variant, reduction: str
    ) -> tuple[Float[Tensor, "layers heads"], Float[Tensor, "layers heads"]]:
        """Return the mean over problems of every head, and half its 95 % interval; the sink kept."""
        place = VARIANTS.index(variant), REDUCTIONS.index(reduction)  # measures with the sink kept come first
        return self.mean[place], self.half[place]

    def against(self, other: Variant, reduction: str) -> Comparison:
        """Return CoT compared with another text over all heads, the sink kept."""
        return self.comparisons[other][REDUCTIONS.index(reduction)]

    def against_by_layer(self, other: Variant, reduction: str) -> Sequence[Comparison]:
        """Return CoT compared with another text, layer by layer, the sink kept."""
        return self.layers[other][REDUCTIONS.index(reduction)]

    @property
    def label(self) -> str:
        """The name and what the weights are."""
        return f"{self.name} ({self.weights})"


@dataclass(frozen=True)
class MeasuredStudy:
    """A stored study: one model or two on the same problems.

    >>> numbers = {"data": "own.jsonl", "problems": 8, "models": [], "second_against_first": None}
    >>> MeasuredStudy.from_row(Row("W-figure-6", {}, numbers)).problems
    8
    """

    data: str
    problems: int
    models: Sequence[MeasuredModel]
    second_against_first: Sequence[Comparison] | None  # on CoT, one per measure; None unless heads correspond

    @classmethod
    def from_row(cls, row: Row) -> MeasuredStudy:
        """Return the study of a stored row."""
        models = [_model(stored, row.arrays, index) for index, stored in enumerate(row.numbers["models"])]
        second = row.numbers["second_against_first"]
        return cls(
            row.numbers["data"],
            row.numbers["problems"],
            models,
            None if second is None else [Comparison.from_json(one) for one in second],
        )

    @property
    def title(self) -> str:
        """Who read what."""
        return f"{' and '.join(model.label for model in self.models)} on {self.problems} problems of {self.data}"


def _model(stored: Mapping[str, Any], arrays: Mapping[str, Tensor], index: int) -> MeasuredModel:
    return MeasuredModel(
        stored["name"],
        stored["weights"],
        stored["fingerprint"],
        arrays[f"{index}.mean"],
        arrays[f"{index}.half"],
        {other: [Comparison.from_json(one) for one in stored["comparisons"][other]] for other in COMPARISONS},
        {
            other: [[Comparison.from_json(one) for one in layers] for layers in stored["layers"][other]]
            for other in COMPARISONS
        },
    )


def shown_studies(rows: Sequence[Row]) -> list[MeasuredStudy]:
    """Return one study for each set of models and data file: the one with the most problems.

    >>> def row(data, problems):
    ...     numbers = {"data": data, "problems": problems, "models": [], "second_against_first": None}
    ...     return Row("W-figure-6", {}, numbers)
    >>> [study.problems for study in shown_studies([row("a.csv", 30), row("a.csv", 80), row("b.csv", 5)])]
    [80, 5]
    """
    best: dict[tuple[str, ...], MeasuredStudy] = {}
    for row in rows:
        study = MeasuredStudy.from_row(row)
        key = (study.data, *(model.fingerprint for model in study.models))
        if key not in best or study.problems >= best[key].problems:
            best[key] = study
    return list(best.values())


def studies_table(rows: Sequence[Row]) -> Table:
    """Return every measure of every stored model, with the share of heads where CoT is lower.

    >>> studies_table([]).header[4:7]
    ['no CoT', 'CoT', 'shuffled CoT']
    """
    header = ["model", "weights", "problems", "measure", *VARIANTS, "heads lower than no CoT", "than shuffled CoT"]
    lines = []
    for study in shown_studies(rows):
        for model in study.models:
            for place, measure in enumerate(MEASURES):
                means = [f"{float(model.mean[variant, place].mean()):.3f}" for variant in range(len(VARIANTS))]
                shares = [lower_share(model.comparisons[other][place]) for other in COMPARISONS]
                lines.append([model.name, model.weights, str(study.problems), str(measure), *means, *shares])
    return Table(header, lines)


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
