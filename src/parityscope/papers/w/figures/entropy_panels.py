"""What W's Figures 6 and 7 share: no configs of their own, one part per study, the setups in a panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.core.errors import InvalidInput
from parityscope.language_models.word_problems import Variant
from parityscope.papers.figure import SCALES, Scale
from parityscope.papers.w.measured_studies import COMMAND, MeasuredStudy, shown_studies
from parityscope.records import Config, Row

COST: dict[Scale, float] = {"smoke": 0, "demo": 0, "reference": 0, "paper": 0}
# Models are given by the user: `parityscope entropy` stores the rows.
CONFIGS: dict[Scale, list[Config]] = {scale: [] for scale in SCALES}
_COLOUR_OF: dict[Variant, int] = {"no CoT": 0, "CoT": 1, "shuffled CoT": 3}


def setups(study: MeasuredStudy, reduction: str, variants: Sequence[Variant]) -> list[tuple[str, str, Tensor, Tensor]]:
    """Return what a panel shows, as label, colour, means and half-widths: W's three setups, or CoT and its control.

    >>> import torch
    >>> from parityscope.papers.w.measured_studies import MeasuredModel
    >>> from parityscope.language_models.measures import MATCHED, MEASURES
    >>> mean = torch.rand(3, len(MEASURES), 2, 4)
    >>> study = MeasuredStudy("own.jsonl", 8, [MeasuredModel("qwen2", "float32", "1f0c", mean, mean, {}, {})], None)
    >>> [label for label, *_ in setups(study, MATCHED, ("shuffled CoT", "CoT"))]
    ['shuffled CoT', 'CoT']
    """
    first, *others = study.models
    shown: list[tuple[str, str, Tensor, Tensor]] = [
        (variant, colour(_COLOUR_OF[variant]), *first.heads(variant, reduction)) for variant in variants
    ]
    # W compares the second model, trained further on CoT data, on CoT data; its heads must be those of the first.
    if "no CoT" in variants and study.second_against_first is not None:
        shown += [(f"CoT, {second.name}", colour(2), *second.heads("CoT", reduction)) for second in others]
    return shown


def run(config: Any) -> NoReturn:
    """Say which command measures models: an experiment cannot choose one."""
    raise InvalidInput(f"this figure is drawn from models that you name: {COMMAND}")


def draw_studies(rows: Sequence[Row], height: float, draw: Callable[[Any, MeasuredStudy], None]) -> Figure:
    """Return one figure with a part for every stored study, drawn by `draw`; how to measure one where there is none.

    >>> draw_studies([], 4, lambda part, study: None).axes[0].texts[0].get_text().split("\\n")[-1] == COMMAND
    True
    """
    studies = shown_studies(rows)
    if not studies:
        return _how_to_make_it()
    figure = Figure(figsize=(13, height * len(studies)), layout="constrained")
    for part, study in zip(figure.subfigures(len(studies), 1, squeeze=False)[:, 0], studies, strict=True):
        part.suptitle(study.title, fontsize=12)
        draw(part, study)
    return figure


def _how_to_make_it() -> Figure:
    """Return the picture that stands where no study is stored."""
    figure, axes = new_figure(9, 1.7)
    axes.axis("off")
    text = f"No language model has been measured in this folder. To measure one and draw this figure:\n\n{COMMAND}"
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=10, transform=axes.transAxes)
    return figure
