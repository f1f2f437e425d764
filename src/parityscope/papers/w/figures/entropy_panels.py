"""What W's Figures 6 and 7 share: no configs of their own, one part per study, the setups in a panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from parityscope.core.drawing import colour, new_figure
from parityscope.language_models.word_problems import Variant
from parityscope.papers.figure import SCALES, Scale
from parityscope.papers.w.measured_studies import COMMAND, StudyRow, heads, shown_studies
from parityscope.records import Config

COST: dict[Scale, float] = {"smoke": 0, "demo": 0, "reference": 0}
# Models are given by the user: `parityscope entropy` stores the rows.
CONFIGS: dict[Scale, list[Config]] = {scale: [] for scale in SCALES}
_COLOUR_OF: dict[Variant, int] = {"no CoT": 0, "CoT": 1, "shuffled CoT": 3}


def setups(row: StudyRow, reduction: str, variants: Sequence[Variant]) -> list[tuple[str, str, Tensor, Tensor]]:
    """Return what a panel shows, as label, colour, means and half-widths: W's three setups, or CoT and its control.

    >>> import torch
    >>> from parityscope.language_models.measures import MATCHED, MEASURES
    >>> from parityscope.papers.w.measured_studies import EntropyStudy, StudyNumbers
    >>> from parityscope.records import Row
    >>> arrays = {"0.mean": torch.rand(3, len(MEASURES), 2, 4), "0.half": torch.rand(3, len(MEASURES), 2, 4)}
    >>> row = Row(EntropyStudy(models=(), problems="9b2e", seed=0), StudyNumbers.model_construct(), arrays)
    >>> [label for label, *_ in setups(row, MATCHED, ("shuffled CoT", "CoT"))]
    ['shuffled CoT', 'CoT']
    """
    shown: list[tuple[str, str, Tensor, Tensor]] = [
        (variant, colour(_COLOUR_OF[variant]), *heads(row, 0, variant, reduction)) for variant in variants
    ]
    # W compares the second model, trained further on CoT data, on CoT data; its heads must be those of the first.
    if "no CoT" in variants and row.numbers.second_against_first is not None:
        for place, second in enumerate(row.numbers.models[1:], start=1):
            shown.append((f"CoT, {second.name}", colour(2), *heads(row, place, "CoT", reduction)))
    return shown


def draw_studies(rows: Sequence[StudyRow], height: float, draw: Callable[[Any, StudyRow], None]) -> Figure:
    """Return one figure with a part for every stored study, drawn by `draw`; how to measure one where there is none.

    >>> draw_studies([], 4, lambda part, row: None).axes[0].texts[0].get_text().split("\\n")[-1] == COMMAND
    True
    """
    studies = shown_studies(rows)
    if not studies:
        return _how_to_make_it()
    figure = Figure(figsize=(13, height * len(studies)), layout="constrained")
    for part, study in zip(figure.subfigures(len(studies), 1, squeeze=False)[:, 0], studies, strict=True):
        part.suptitle(study.numbers.title, fontsize=12)
        draw(part, study)
    return figure


def _how_to_make_it() -> Figure:
    """Return the picture that stands where no study is stored."""
    figure, axes = new_figure(9, 1.7)
    axes.axis("off")
    text = f"No language model has been measured in this folder. To measure one and draw this figure:\n\n{COMMAND}"
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=10, transform=axes.transAxes)
    return figure
